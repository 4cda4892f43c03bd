"""`perse rehearsal leniency`: a judge of summaries beside people who graded them, and what its scores then say first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import perse
from kills import Script, check_nothing_lost
from places import SHARED
from rehearsal_builders import Cast, Said, persum_folder, sample, step_of, usual

from perse.engines.base import Failure
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.judging.judge import Judge
from perse.rehearsal.agents import ROLES
from perse.rehearsal.judging import ASPECTS
from perse.rehearsal.leniency.asking import UNRELATED, Asked, ask
from perse.rehearsal.leniency.kept import FOUND, keep, leniency_of
from perse.rehearsal.leniency.measuring import Leniency, leniency
from perse.rehearsal.leniency.reading import Graded, hundred, read_graded, unrelated
from perse.rehearsal.leniency.telling import finding, leniency_result, unknown
from perse.rehearsal.process import rehearse
from perse.rehearsal.samples import read_samples
from perse.rehearsal.scoring.asking import read_scores, score
from perse.rehearsal.scoring.results import results
from perse.rehearsal.scoring.telling import rehearsal_result
from perse.rehearsal.settings import Settings
from perse.rendering.prompt import TextRenderer
from perse.results.markdown import markdown

REAL = SHARED / "summeval_op"
COVERAGE, SENTIMENT = ASPECTS


def row(name: str, ac: list[list[int]], sc: list[list[int]]) -> dict[str, Any]:
    """A product of the detailed form; its summaries are named after it."""
    return {
        "reviews": [f"I like the {name}.", f"The {name} is dear."],
        "summaries": [f"Summary {n} of the {name}." for n in range(len(ac))],
        "ac": ac,
        "sc": sc,
    }


def written(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def two(path: Path) -> Path:
    return written(
        path,
        row("boots", [[3, 4, 5], [1, 1, 1]], [[5, 5, 5], [3, 3, 3]]),
        row("radio", [[2, 2, 2], [5, 5, 5]], [[4, 4, 4], [1, 2, 3]]),
    )


def scoring(given: Callable[[str, str], int], name: str = "scripted") -> Cast:
    """A judge that gives a text a score, by question."""

    def reply(message: str) -> Said:
        [text] = re.findall(r"^\[Text\] (.*)$", message, re.MULTILINE)
        return f"[Score] {given(step_of(message).removeprefix('scores '), text)}"

    return Cast(reply, name=name)


def answers(values: list[list[tuple[float | None, float]]], others: list[list[float]]) -> list[Asked]:
    """(judge, people) of each product's summaries, the same for both questions, and what the judge gives the first of the next products beside it."""
    both = (COVERAGE, SENTIMENT)
    own = [
        Asked(product, (product, place), dict.fromkeys(both, people), dict.fromkeys(both, judge))
        for product, pairs in enumerate(values)
        for place, (judge, people) in enumerate(pairs)
    ]
    foreign = [
        Asked(product, ((product + step) % len(values), 0), None, dict.fromkeys(both, judge))
        for product, of_one in enumerate(others)
        for step, judge in enumerate(of_one, start=1)
    ]
    return [*own, *foreign]


def measured(values: list[list[tuple[float | None, float]]], others: list[list[float]]) -> Leniency:
    return leniency(answers(values, others), judge="J", resamples=200, seed=0)


def test_people_are_means_and_a_grade_of_1_to_5_is_0_to_100(tmp_path: Path) -> None:
    boots, radio = read_graded(two(tmp_path / "graded.jsonl")).products
    assert boots.reviews == ("I like the boots.", "The boots is dear.") and radio.id == "2"
    assert [one.people for one in boots.summaries] == [{COVERAGE: 4, SENTIMENT: 5}, {COVERAGE: 1, SENTIMENT: 3}]
    assert [hundred(grade) for grade in (1, 2, 3.5, 5)] == [0, 25, 62.5, 100]


def test_the_form_with_means_is_read_too(tmp_path: Path) -> None:
    graded = {"Fluency": 5, "Aspect Coverage": 3.67, "Sentiment Consistency": 3}
    fields = {"reviews": {"rev1": "Good.", "rev2": "Bad."}, "summaries": {"human": {"summary": "Both.", "dimensions": graded}}}
    [product] = read_graded(written(tmp_path / "means.jsonl", fields)).products
    assert product.reviews == ("Good.", "Bad.")
    assert [(one.text, one.people) for one in product.summaries] == [("Both.", {COVERAGE: 3.67, SENTIMENT: 3})]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reviews": []}, "line 2, field 'reviews': found .*, expected texts; give summeval-op-detailed.jsonl"),
        ({"summaries": None}, "line 2, field 'summaries'"),
        ({"ac": [[1, 1, 1]]}, "line 2, field 'ac': found .*, expected a list of grades for each of 2 summaries"),
        ({"sc": [[1, 1, 6], [1, 1, 1]]}, "line 2, field 'sc', summary 1: found 6, expected a grade from 1 to 5"),
        ({"sc": [[1, 1, 2], []]}, "line 2, field 'sc', summary 2: found .*, expected a list of grades"),
        ({"summaries": {"human": "Both."}}, "summary 'human': found .*, expected an object with 'summary' and 'dimensions'"),
        ({"summaries": {"h": {"summary": "B", "dimensions": {"Aspect Coverage": 3}}}}, "'Sentiment Consistency': found"),
        ({"summaries": {}}, "field 'summaries': found none"),
    ],
)
def test_a_row_that_is_not_of_the_form_is_named_with_what_was_expected(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    good = row("boots", [[3, 4, 5], [1, 1, 1]], [[5, 5, 5], [3, 3, 3]])
    with pytest.raises(BadInput, match=told):
        read_graded(written(tmp_path / "graded.jsonl", good, {**good, **change}))


def test_summaries_of_others_are_never_of_the_same_product(tmp_path: Path) -> None:
    products = read_graded(
        written(tmp_path / "g.jsonl", *(row(name, [[1]] * 3, [[1]] * 3) for name in ("a", "b", "c", "d", "e")))
    ).products
    found = unrelated(products, UNRELATED)
    assert len(found) == 5 * UNRELATED
    for product in products:
        texts = [one.summary.text for one in found if one.reviews_of == product]
        assert len(set(texts)) == UNRELATED and not any(summary.text in texts for summary in product.summaries)
    assert len(unrelated(products[:2], UNRELATED)) == 2 and unrelated(products[:1], UNRELATED) == []


def test_both_questions_are_asked_about_each_summary_and_the_others(tmp_path: Path) -> None:
    judge = scoring(lambda question, text: 60 if question == "coverage" else 80)
    found = ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out")
    assert len(judge.asked) == 2 * (4 + 2)
    assert [one.product for one in found] == [0, 0, 1, 1, 0, 1]
    assert [one.summary for one in found] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 0), (0, 1)]
    assert found[0].people == {COVERAGE: 75.0, SENTIMENT: 100.0} and found[-1].people is None
    assert all(one.judge == {COVERAGE: 60.0, SENTIMENT: 80.0} for one in found)
    foreign = [message for message in judge.asked if "like the boots" in message and "of the radio" in message]
    assert len(foreign) == 2


def test_the_difference_is_judge_minus_people_and_the_share_is_of_those_scored_higher() -> None:
    # Differences 20, -10, 40, 0: mean 12.5. Higher: 2 of 4. The judge's mean (80 + 40 + 60 + 100) / 4 = 70, people's 57.5.
    [one, _] = measured([[(80, 60), (40, 50)], [(60, 20), (100, 100)]], [[40], [20]]).questions
    assert one.difference.value == pytest.approx(12.5) and one.higher.value == pytest.approx(0.5)
    assert (one.own.value, one.people) == (pytest.approx(70), pytest.approx(57.5))
    # Others get 40 and 20: mean 30. They are the first summaries, to which it gives 60 and 80 with their own product's reviews, so 20 and 60 more: 40.
    assert one.unrelated.value == pytest.approx(30) and one.apart.value == pytest.approx(40)


def test_a_summary_with_anothers_reviews_is_held_against_itself_alone() -> None:
    # The first summaries get 50, 70 and none at home; with another's reviews 40 (the second's), none (the third's) and 45 (the first's): 30 and 5 more,
    # 17.5 on average. The last ones, which nobody shows elsewhere, get 100 and do not matter.
    [one, _] = measured([[(50, 60), (100, 50)], [(70, 20), (100, 100)], [(None, 50), (100, 0)]], [[40], [20], [45]]).questions
    assert one.apart.value == pytest.approx(17.5) and one.apart.items == 2


def test_a_judge_that_looks_at_the_text_alone_gives_a_products_own_summaries_nothing_more(tmp_path: Path) -> None:
    """13 systems, of which the last three are better, and 10 products: the summaries that are shown elsewhere are the first ten systems', and all of them
    get 40 of a judge that gives the last three 80, whatever reviews stand beside them."""
    rows = [row(f"thing {n}", [[3]] * 13, [[3]] * 13) for n in range(10)]
    blind = scoring(lambda question, text: 80 if int(text.split()[1]) >= 10 else 40)
    asked = ask(blind.judge, read_graded(written(tmp_path / "graded.jsonl", *rows)), tmp_path / "out")
    found = leniency(asked, judge="blind", resamples=200, seed=0)
    for one in found.questions:
        assert one.own.value == pytest.approx((10 * 40 + 3 * 80) / 13) and one.unrelated.value == 40
        assert one.apart.value == 0 and not one.apart.above_zero
    assert finding(found).count("not shown to be less than the same get with their own product's reviews") == 2


def test_the_order_is_looked_at_within_products() -> None:
    # Product 1: people 0 < 50 < 100, judge 60 < 80 < 70: pairs +, +, -: tau 1/3; ranks 1 2 3 against 1 3 2: rho 0.5. Product 2: the same order: 1.
    [one, _] = measured([[(60, 0), (80, 50), (70, 100)], [(10, 40), (20, 60), (30, 90)]], [[0], [0]]).questions
    assert one.kendall.value == pytest.approx((1 / 3 + 1) / 2) and one.spearman.value == pytest.approx(0.75)


def test_summaries_are_gathered_by_peoples_rounded_grade() -> None:
    # Grades: 0 -> 1; 12.5 is 1.5 -> 2; 30 is 2.2 -> 2; 100 -> 5.
    [one, _] = measured([[(50, 0), (60, 12.5)], [(80, 30), (90, 100)]], [[0], [0]]).questions
    assert [(each.grade, each.summaries, each.people, each.judge.value) for each in one.grades] == [
        (1, 1, 0, 50),
        (2, 2, 21.25, 70),
        (5, 1, 100, 90),
    ]


def test_intervals_need_ten_products_and_say_so() -> None:
    [one, _] = measured([[(80, 60), (40, 50)], [(60, 20), (100, 100)]], [[40], [20]]).questions
    assert one.difference.interval.reason == "undefined (few products)" == one.unrelated.interval.reason
    many = measured([[(80, 60 + n % 3), (40, 20)] for n in range(12)], [[40 + n] for n in range(12)])
    assert many.questions[0].difference.above_zero and many.questions[0].unrelated.interval.low is not None


def test_the_finding_says_lenient_strict_or_neither_with_the_numbers() -> None:
    products = range(12)
    others = [[38 + n % 5] for n in products]  # 39.75 on average
    lenient = measured([[(80, 60 + n % 3), (40, 20)] for n in products], others)
    assert re.match(
        r"J is lenient with aspect coverage, by 19\.5 \[.*\] points of 100, and is lenient with sentiment consistency, by 19\.5 \[.*\] points of "
        r"100, over 24 summaries of 12 products that people graded\. To summaries with another product's reviews it gives 39\.8 \[[\d., ]+\] for aspect coverage "
        r"and 39\.8 \[[\d., ]+\] for sentiment consistency\. For aspect coverage it gives 40\.0 where people's mean grade is nearest to 2 \(12 summaries\), and 80\.0 where it is nearest to 3 "
        r"\(12 summaries\); "
        r"for sentiment consistency .*\.$",
        finding(lenient),
    )
    strict = measured([[(40, 60 + n % 3), (10, 20)] for n in range(36)], others * 3)
    assert "J is strict with aspect coverage, by 15.5 [" in finding(strict) and "-" not in finding(strict).partition("]")[0]
    near = measured(
        [[(63, 60 + n % 3), (24, 20)] for n in products], others
    )  # 2 and 4 points more, or less than grades can be brought to a scale
    assert "J is not shown to be lenient or strict with aspect coverage (+3.0 [" in finding(near)
    unclear = measured([[(60 + 20 * (-1) ** n, 60), (50, 50)] for n in products], others)
    assert "J is not shown to be lenient or strict with aspect coverage (" in finding(unclear)
    few = measured([[(80, 60)], [(70, 60)]], [[40], [40]])
    assert "not shown to be lenient or strict with aspect coverage (+15.0 [undefined (few products)]" in finding(few)


def test_a_judge_that_always_says_the_same_is_not_lenient_by_what_few_summaries_cannot_show() -> None:
    # 80 to all of 24 summaries, to which people give 71 to 73: resamples are 8 and little else, but of none in 24 that get less many may.
    values: list[list[tuple[float | None, float]]] = [[(80, 71 + n % 3), (80, 72)] for n in range(12)]
    found = measured(values, [[80]] * 12)
    interval = found.questions[0].difference.interval
    assert interval.low is not None and interval.low < 5 and "is not shown to be lenient or strict" in finding(found)
    far = measured([[(80, 41 + n % 3), (80, 42)] for n in range(12)], [[80]] * 12)
    assert "is lenient with" in finding(far)


def test_a_judge_whose_expected_scores_never_repeat_is_not_lenient_by_what_few_summaries_cannot_show() -> None:
    values: list[list[tuple[float | None, float]]] = [[(80 + n / 100, 71 + n % 3), (80 - n / 100, 72)] for n in range(12)]
    assert "is not shown to be lenient or strict" in finding(measured(values, [[80]] * 12))


def test_a_judge_that_cannot_tell_a_products_own_summaries_is_said_not_to() -> None:
    blind = measured([[(80 + n % 2, 60 + n % 3), (40, 20)] for n in range(12)], [[78 + n % 5] for n in range(12)])
    assert re.search(
        r"it gives 79\.8 \[[\d., ]+\] for aspect coverage, not shown to be less than the same get with their own product's reviews, and 79\.8 "
        r"\[[\d., ]+\] for sentiment consistency, not shown to be less than the same get with their own product's reviews\. For aspect",
        finding(blind),
    )


def test_what_is_not_answered_is_left_out_and_counted() -> None:
    found = measured([[(80, 60), (None, 50)], [(60, 20), (100, 100)]], [[40], [20]])
    assert found.questions[0].answered == 3 and found.questions[0].difference.value == pytest.approx(20)
    assert "no score for aspect coverage of 1 of 4 summaries, which are left out" in " ".join(leniency_result(found).notes)
    assert "over 3 of 4 summaries of 2 products" in finding(found)


def test_the_result_has_a_table_by_grade_and_the_same_in_every_medium() -> None:
    result = leniency_result(measured([[(80, 60 + n), (40, 20)] for n in range(12)], [[40 + n] for n in range(12)]))
    told = markdown(result)
    assert "By people's grade" in told and "own reviews minus another's" in told and result.details["finding"] == result.answer
    assert "**J is lenient with aspect coverage" in told


def test_a_judge_that_gives_no_score_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput,
        match="mute gave no score to any of 6 questions about summaries .*the model said: Mmm.*ask a judge that answers",
    ):
        ask(Cast(lambda message: "Mmm.", name="mute").judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out")


def test_the_same_command_asks_nothing_again_and_another_judge_is_refused(tmp_path: Path) -> None:
    graded = read_graded(two(tmp_path / "graded.jsonl"))
    judge = scoring(lambda question, text: 60)
    first = ask(judge.judge, graded, tmp_path / "out")
    asked = len(judge.asked)
    assert ask(judge.judge, graded, tmp_path / "out") == first and len(judge.asked) == asked
    with pytest.raises(RunMismatch, match="judge.model"):
        ask(scoring(lambda question, text: 60, "other").judge, graded, tmp_path / "out")
    with pytest.raises(RunMismatch, match="summaries.products was 2, is 1"):
        ask(judge.judge, Graded(graded.products[:1]), tmp_path / "out")


def test_what_a_person_wrote_into_the_finding_is_kept_when_the_command_is_given_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = scoring(lambda question, text: 60)
    found = ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out")
    result = leniency_result(leniency(found, judge="scripted", resamples=10, seed=0))
    keep(tmp_path / "out", result)
    keep(tmp_path / "out", result)
    written = (tmp_path / "out" / FOUND).read_text()
    assert not list((tmp_path / "out").glob("*.kept-*"))
    (tmp_path / "out" / FOUND).write_text("mine")
    keep(tmp_path / "out", result)
    assert (tmp_path / "out" / FOUND).read_text() == written
    assert (
        tmp_path / "out" / "leniency.kept-1.json"
    ).read_text() == "mine" and "is kept as leniency.kept-1.json" in caplog.text


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_asks_nothing_twice(tmp_path: Path) -> None:
    def ask_all(folder: Path, script: Script) -> None:
        judge = Judge(ScriptedEngine(script, batch=1), TextRenderer(), name="scripted")
        found = ask(judge, read_graded(two(folder / "graded.jsonl")), folder / "run")
        keep(folder / "run", leniency_result(leniency(found, judge="scripted", resamples=10, seed=0)))

    def say(message: str, seed: int) -> str:
        return f"[Score] {20 * (sum(map(ord, message)) % 6)}"

    check_nothing_lost(ask_all, say, tmp_path, prepare=lambda folder: two(folder / "graded.jsonl"))


def measured_in(folder: Path, judge: Cast, tmp_path: Path) -> Path:
    found = ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), folder)
    keep(folder, leniency_result(leniency(found, judge=judge.name, resamples=10, seed=0)))
    return folder


def test_scores_say_the_judges_leniency_before_any_number_from_then_on(tmp_path: Path) -> None:
    cast, samples = Cast(), [sample(n) for n in range(1, 4)]
    run = cast.rehearse(tmp_path / "run", samples, ["onlysum"])
    folder = score(cast.judge, samples, run, digest="of these", name="scored")

    def told() -> list[str]:
        scored = read_scores(samples, run, digest="of these", name="scored")
        return rehearsal_result(results(samples, scored, resamples=10, seed=0)).answer.splitlines()

    first, second = told()
    assert first == unknown("scripted") and "perse rehearsal leniency" in first and "OnlySum scores" in second
    found = leniency_of(measured_in(tmp_path / "leniency", Cast(), tmp_path), cast.judge)
    keep(folder, found)
    assert told() == [found.answer, second] and found.answer.startswith("scripted is not shown to be lenient or strict")


def test_the_leniency_of_another_judge_is_refused(tmp_path: Path) -> None:
    folder = measured_in(tmp_path / "leniency", scoring(lambda question, text: 60), tmp_path)
    with pytest.raises(
        BadInput, match="is of the judge scripted, not of other, which scores here; measure that one's leniency"
    ):
        leniency_of(folder, Cast(name="other").judge)


def test_a_judge_may_be_held_against_people_on_the_narrower_scale(tmp_path: Path) -> None:
    judge = scoring(lambda question, text: 4 if question == "coverage" else 1)
    found = ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out", labels="1-5")
    assert all(one.judge == {COVERAGE: 75.0, SENTIMENT: 0.0} for one in found)
    with pytest.raises(RunMismatch, match="scale was"):
        ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out")
    result = leniency_result(leniency(found, judge="scripted", labels="1-5", resamples=10, seed=0))
    assert "which was asked for 1 to 5" in result.notes[0]
    keep(tmp_path / "out", result)
    assert leniency_of(tmp_path / "out", judge.judge, "1-5") == result
    with pytest.raises(BadInput, match="is of scores on the scale of 1-5, these are on that of 0-100; .*--scale 0-100"):
        leniency_of(tmp_path / "out", judge.judge)


def test_a_judge_that_fails_at_the_wider_scale_is_told_of_the_narrower(tmp_path: Path) -> None:
    graded, mute = read_graded(two(tmp_path / "graded.jsonl")), Cast(lambda message: "Mmm.").judge
    with pytest.raises(BadInput, match=r"or this one on the narrower scale \(--scale 1-5\)"):
        ask(mute, graded, tmp_path / "wide")
    with pytest.raises(BadInput, match="such as one that follows instructions$"):
        ask(mute, graded, tmp_path / "narrow", labels="1-5")


def test_a_folder_without_a_finding_is_refused_with_the_command(tmp_path: Path) -> None:
    judge = scoring(lambda question, text: 60)
    with pytest.raises(BadInput, match="has no leniency.json; run `perse rehearsal leniency` to its end"):
        leniency_of(tmp_path / "nothing", judge.judge)
    ask(judge.judge, read_graded(two(tmp_path / "graded.jsonl")), tmp_path / "out")
    with pytest.raises(BadInput, match="holds a run of perse rehearsal leniency, and no leniency.json"):
        leniency_of(tmp_path / "out", judge.judge)
    (tmp_path / "out" / FOUND).write_text("{}")
    with pytest.raises(BadInput, match="leniency.json: .*; run `perse rehearsal leniency` again"):
        leniency_of(tmp_path / "out", judge.judge)


def test_an_engine_that_failed_at_some_is_asked_again(tmp_path: Path) -> None:
    graded = read_graded(two(tmp_path / "graded.jsonl"))
    flaky = Cast(lambda message: Failure("timed out") if "Summary 1 of the radio" in message else usual(message))
    assert [one.judge[COVERAGE] for one in ask(flaky.judge, graded, tmp_path / "out")][3] is None
    healed = Cast(usual)
    assert all(one.judge[COVERAGE] == 60 for one in ask(healed.judge, graded, tmp_path / "out"))
    assert len(healed.asked) == 2 * len([one for one in flaky.asked if "Summary 1 of the radio" in one]) / 2


def test_the_command_prints_what_it_found_keeps_it_and_scores_refuse_that_of_another_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges = {"one": Cast(name="one"), "other": Cast(name="other")}
    monkeypatch.setattr(Judge, "load", lambda name, **_: judges[name].judge)
    out = tmp_path / "leniency"
    done = perse("rehearsal", "leniency", two(tmp_path / "graded.jsonl"), "--judge", "one", "--out", out, "--json")
    found = json.loads(done.stdout)
    # 60 from the judge; people 75, 0, 25, 100 and 100, 50, 75, 25: 50 and 62.5 on average.
    assert [row[2]["value"] for row in found["tables"][0]["rows"]] == [60, 60]
    assert [row[3]["value"] for row in found["tables"][0]["rows"]] == [10, -2.5]
    assert json.loads((out / FOUND).read_text())["answer"] == found["answer"]

    data = persum_folder(tmp_path / "persum", [sample(1), sample(2)])
    given = read_samples(data)
    run, cast = tmp_path / "run", Cast()
    rehearse(
        dict.fromkeys(ROLES, cast.writer),
        None,
        given.samples,
        run,
        digest=given.digest,
        methods=["onlysum"],
        settings=Settings(),
    )
    shown = perse("rehearsal", "score", data, run, "--judge", "one", "--leniency", out)
    assert shown.returncode == 0 and " ".join(shown.stdout.split()).startswith(found["answer"]), shown.stderr
    again = perse("rehearsal", "score", data, run, "--judge", "one", "--json")
    assert json.loads(again.stdout)["answer"].startswith(found["answer"]), "kept beside the scores"
    asked = len(judges["other"].asked)
    refused = perse("rehearsal", "score", data, run, "--judge", "other", "--name", "others", "--leniency", out)
    assert refused.returncode == 2 and "is of the judge one, not of other" in " ".join(refused.stderr.split())
    assert len(judges["other"].asked) == asked


def test_a_file_that_is_not_there_is_refused_before_a_judge_is_loaded(tmp_path: Path) -> None:
    done = perse("rehearsal", "leniency", tmp_path / "no.jsonl", "--judge", tmp_path / "no-model", "--out", tmp_path / "o")
    assert done.returncode == 2 and "no.jsonl" in " ".join(done.stderr.split()) and "no-model" not in done.stderr


@pytest.mark.skipif(not REAL.exists(), reason="SummEval-OP is not at ../shared/data")
def test_both_published_forms_tell_the_same() -> None:
    """20 products of 8 reviews and 13 summaries; the means of one file are those of the other's grades, rounded."""
    detailed, means = (read_graded(REAL / name).products for name in ("summeval-op-detailed.jsonl", "summeval-op.jsonl"))
    assert [len(one.summaries) for one in detailed] == [13] * 20 == [len(one.summaries) for one in means]
    assert [one.reviews for one in detailed] == [one.reviews for one in means]
    for one, other in zip(detailed, means, strict=True):
        for exact, rounded in zip(one.summaries, other.summaries, strict=True):
            assert exact.people == pytest.approx(rounded.people, abs=0.006)


def test_a_judge_that_orders_a_products_summaries_the_wrong_way_round_is_said_to() -> None:
    generator = np.random.default_rng(0)
    people = generator.uniform(10, 90, (20, 6))
    against = [[(100 - one + generator.normal(0, 5), one) for one in row] for row in people]
    said = finding(measured(against, [[50]] * 20))
    assert " It orders a product's summaries the wrong way round by aspect coverage (Kendall tau-b -0." in said
    along = [[(one, one) for one in row] for row in people]
    assert "wrong way round" not in finding(measured(along, [[50]] * 20))
