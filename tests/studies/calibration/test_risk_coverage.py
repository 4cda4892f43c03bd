"""Does the judge know when it does not know? Curves and areas by hand, in resamples, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reading_builders import answered, failed, pair, run_folder, scored
from typer.testing import CliRunner

from perse.commands.studies.app import app
from perse.errors import BadInput
from perse.evaluation.calibration.risk_coverage import by_what_is_said
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Estimate, Interval
from perse.studies.calibration.risk_coverage import Answers, _sentence, answers_of, risk_coverage

ONE = np.ones((1, 4))


def test_risk_is_the_error_of_the_expected_score_and_unanswered_items_are_left_out_and_counted() -> None:
    examples = [scored("a", "r", 7), scored("b", "r", 2), scored("c", "r", 5), scored("d", "r", None)]
    judgements = [
        answered("a", "6", distribution={"6": 0.5, "8": 0.5}),
        answered("b", "2", distribution={"2": 0.9, "3": 0.1}),
        failed("c"),
        answered("d", "1", distribution={"1": 1.0}),
    ]
    found = answers_of(examples, judgements)
    assert found.ids == ("a", "b") and found.asked == 3 and found.metric == "mae"
    assert found.risk == pytest.approx([0.0, 0.1])
    assert found.sureness["largest"] == pytest.approx([0.5, 0.9])


def test_the_error_of_all_answers_has_the_interval_that_evaluate_gives_it() -> None:
    # Nearly all are off by a little: how far others may be off is not known to resamples.
    examples = [scored(f"e{n}", f"r{n // 5}", 3 + n % 5) for n in range(100)]
    spread = [(0.95, 0.05) if n % 3 else (0.9, 0.1) for n in range(100)]
    judgements = [
        answered(f"e{n}", str(3 + n % 5), distribution={str(3 + n % 5): p, str(4 + n % 5): q})
        for n, (p, q) in enumerate(spread)
    ]
    answers = answers_of(examples, judgements)
    [all_of_them] = [
        p.estimate for p in risk_coverage({"j": answers}, resamples=200).points if p.x == "100%" and p.series == "j, entropy"
    ]
    gold = np.array([3.0 + n % 5 for n in range(100)])
    told = Bootstrap.over(np.arange(100) // 5, resamples=200, seed=0).one("mae", gold, gold + answers.risk)
    assert all_of_them.value == pytest.approx(told.value)
    assert all_of_them.interval.high == pytest.approx(told.interval.high) and told.interval.high is not None
    assert told.interval.high > 0.15


def test_pairs_are_ordered_by_entropy_and_by_order_gap() -> None:
    examples = [pair("a", "r", "A"), pair("b", "r", "B")]
    judgements = [
        answered("a", "A", distribution={"A": 0.9, "B": 0.1}, order_gap=0.1),
        answered("b", "A", distribution={"A": 0.6, "B": 0.4}, order_gap=0.5),
    ]
    found = answers_of(examples, judgements)
    assert list(found.sureness) == ["entropy", "order_gap"] and found.metric == "error"
    assert found.risk == pytest.approx([0.0, 1.0]) and found.sureness["order_gap"] == pytest.approx([-0.1, -0.5])


def _made(count: int, *, knows: bool) -> Answers:
    generator = np.random.default_rng(1)
    risk = generator.random(count)
    sure = -risk + 0.1 * generator.random(count) if knows else generator.random(count)
    return _answers([(f"i{n}", f"r{n % 40}", f"t{n}") for n in range(count)], risk, {"entropy": sure}, asked=count)


def _answers(
    whose: list[tuple[str, str, str]], risk: object, sureness: dict[str, object], *, asked: int, metric: str = "mae"
) -> Answers:
    """Of (item, reader, text)."""
    examples = tuple(scored(id, reader, 5, item=text) for id, reader, text in whose)
    known = {name: np.array(values, dtype=float) for name, values in sureness.items()}
    return Answers(tuple(one.id for one in examples), np.array(risk, dtype=float), known, asked, metric, examples)


def test_few_wrong_answers_do_not_say_whether_a_judge_knows_when_it_does_not_know() -> None:
    # 12 of 320 choices are wrong, of 12 readers, and they happen to be the least sure.
    wrong = np.isin(np.arange(320), range(0, 120, 10))
    whose = [(f"i{n}", f"r{n // 8}", f"t{n}") for n in range(320)]
    found = risk_coverage({"j": _answers(whose, wrong, {"entropy": 1 - wrong}, asked=320)}, resamples=200)
    assert (
        "whether that is more than chance: undefined (of most answers the error is nearly the same, and 12 others are too few)"
        in (found.answer)
    )
    of_few = np.arange(320) < 40
    told = risk_coverage({"j": _answers(whose, of_few, {"entropy": 1 - of_few}, asked=320)}, resamples=200)
    assert "the error is nearly the same, and the others are of 5 readers, who are too few)" in told.answer
    many = np.arange(320) % 8 == 0
    told = risk_coverage({"j": _answers(whose, many, {"entropy": 1 - many}, asked=320)}, resamples=200)
    assert "it knows when it does not know" in told.answer


def test_choices_that_are_all_right_may_be_wrong_of_others() -> None:
    whose = [(f"i{n}", f"r{n % 40}", f"t{n}") for n in range(80)]
    found = risk_coverage(
        {"judge": _answers(whose, np.zeros(80), {"entropy": np.arange(80.0)}, asked=80, metric="error")}, resamples=50
    )
    points = [one for one in found.points if one.series == "judge, entropy"]
    highs = [one.estimate.interval.high for one in points if one.estimate.interval.high is not None]
    assert all(one.estimate.value == 0 for one in points) and len(highs) > 5
    assert highs[0] > 0.02 and highs == sorted(highs), "fewer answers know less"
    assert any("are not resampled but exact" in note for note in found.notes)
    ours, chance, oracle = (one.interval for one in found.tables[0].rows[0][2:5] if isinstance(one, Estimate))
    assert chance == points[0].estimate.interval, "in random order the area is the share of all"
    assert ours.high == oracle.high == pytest.approx(chance.high)


def test_errors_of_expected_scores_that_are_nearly_alike_are_as_few_as_those_that_are_equal() -> None:
    # 12 of 320 are four points off, the others half a point and never the same, and they happen to be the least sure.
    far = np.isin(np.arange(320), range(0, 120, 10))
    risk = np.where(far, 4.0, 0.5 + np.arange(320) / 10_000)
    whose = [(f"i{n}", f"r{n // 8}", f"t{n}") for n in range(320)]
    found = risk_coverage({"j": _answers(whose, risk, {"entropy": 1 - far}, asked=320)}, resamples=200)
    assert "12 others are too few" in found.answer


def test_a_few_answers_that_are_less_sure_than_all_others_do_not_say_whether_a_judge_knows() -> None:
    generator = np.random.default_rng(0)
    rows = [(f"{n}", f"u{n // 4}", f"t{n}") for n in range(160)]
    for unsure, said in (
        (29, "of most answers it is equally sure, and 29 others are too few"),
        (40, "know when it does not know"),
    ):
        sure = {"entropy": np.where(np.arange(160) % 160 < unsure, -1.0, 0.0)}
        made = _answers(rows, np.abs(generator.normal(size=160)), sure, asked=160)
        assert said in risk_coverage({"j": made}, resamples=100).answer


@pytest.mark.parametrize("dust", [0, 1e-16])
def test_a_judge_that_is_equally_sure_of_everything_is_said_to_be_and_has_no_surest_half(dust: float) -> None:
    made = _made(400, knows=True)
    same = replace(made, sureness={"entropy": dust * np.arange(400) - 1.356})
    found = risk_coverage({"same": same}, resamples=200)
    assert found.answer.endswith("it is equally sure of all of them by entropy, so none are surer than others.")
    assert "half" not in found.answer and "0.000 [0.000, 0.000]" not in found.answer
    assert found.tables[0].rows[0][5].value is None  # type: ignore[union-attr]


def test_a_judge_that_knows_is_told_from_one_that_does_not() -> None:
    found = risk_coverage({"sure": _made(400, knows=True), "blind": _made(400, knows=False)}, resamples=200)
    sure, blind = found.tables[0].rows
    assert "sure: the error is" in found.answer and "it knows when it does not know" in found.answer
    assert "blind: the error is" in found.answer and "not shown to know" in found.answer
    assert sure[2].value < blind[2].value  # type: ignore[union-attr]
    # both judges stand beside random and oracle order, at ten shares each
    assert len(found.points) == 2 * 3 * 10 and sum(point.baseline for point in found.points) == 40


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.0003, 0.1131, "it knows when it does not know: random order's area minus its own is 0.0567 [0.0003, 0.1131]"),
        (-0.113, -0.0004, "it is surest where it is wrong: random order's area minus its own is -0.0567 [-0.1130, -0.0004]"),
        (
            0.000001,
            0.113,
            "it is not shown to know when it does not know: random order's area minus its own is 0.057 [0.000, 0.113]",
        ),
    ],
)
def test_the_words_and_the_printed_ends_say_the_same(low: float, high: float, said: str) -> None:
    answers = _made(40, knows=True)
    gain = Estimate(value=(low + high) / 2, interval=Interval(low=low, high=high), items=40, difference=True)
    assert said in _sentence("j", "entropy", answers, answers.sureness["entropy"], gain)


@pytest.mark.slow
def test_what_texts_decide_is_not_taken_for_the_judges_doing_where_readers_share_them() -> None:
    # Error and sureness are the text's, and have nothing to do with each other; 40 readers judge 8 of 20 texts each.
    words = []
    for world in range(40):
        generator = np.random.default_rng((5, world))
        error, sure = np.abs(generator.normal(size=20)) * 1.5, generator.normal(size=20)
        pairs = [(reader, text) for reader in range(40) for text in generator.choice(20, size=8, replace=False)]
        texts = np.array([text for _, text in pairs])
        made = _answers(
            [(f"{reader}-{text}", f"u{reader}", f"t{text}") for reader, text in pairs],
            error[texts] + np.abs(generator.normal(size=len(texts))) * 0.5,
            {"entropy": sure[texts] + 0.2 * generator.normal(size=len(texts))},
            asked=len(texts),
        )
        found = risk_coverage({"j": made}, resamples=100)
        words.append("not shown to know" in found.answer)
        assert any(note.startswith("two-way: reviewers and 20 texts are both resampled") for note in found.notes)
    assert sum(words) >= 34, "by readers alone 11 of 40 are told apart"


def test_the_same_seed_gives_the_same_bytes() -> None:
    once, again = (risk_coverage({"j": _made(100, knows=True)}, seed=3, resamples=100).model_dump_json() for _ in range(2))
    assert once == again


def test_few_reviewers_have_no_interval_but_a_reason() -> None:
    few = _answers([("a", "r", "t"), ("b", "s", "u")], [0, 1], {"entropy": [1, 0]}, asked=2)
    found = risk_coverage({"j": few}, resamples=100)
    assert "undefined (few reviewers)" in found.answer
    assert all(point.estimate.interval.low is None for point in found.points)


def test_the_command_says_of_a_run_whose_readers_chose_the_judges_weights_that_it_looks_better_than_it_is(
    tmp_path: Path,
) -> None:
    examples = [scored(f"{n}", f"r{n}", 1 + n % 10) for n in range(12)]
    run = run_folder(tmp_path / "run", examples, [answered(one.id, "5", distribution={"5": 0.5, "6": 0.5}) for one in examples])
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["context"] |= {"chosen_by": 12, "profile": "another"}
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    found = CliRunner().invoke(app, ["risk-coverage", str(run), "--resamples", "100", "--json"])
    assert found.exception is None, found.exception
    notes = json.loads(found.stdout)["notes"]
    assert "run: 12 of 12 examples are of readers on whom the judge's weights were chosen" in str(notes)
    assert not any("baselines" in note for note in notes)


def test_judges_are_compared_on_the_items_that_all_answered() -> None:
    long, short = _made(100, knows=True), _made(60, knows=True)
    found = risk_coverage({"long": long, "short": short}, resamples=100)
    assert "all curves are of the 60 items that every judge answered" in found.notes


@pytest.mark.parametrize(
    ("judges", "message"),
    [
        ({}, "no run to look at"),
        ({"j": _answers([], [], {}, asked=5)}, "j has answered none of its 5 items"),
        ({"j": _answers([("a", "r", "t")], [1], {}, asked=1)}, "does not tell how sure it was of each answer: some or all"),
        (
            {"j": _made(5, knows=True), "k": _answers([("x", "r", "t")], [1], {"entropy": [1]}, asked=1)},
            "no item was",
        ),
        (
            {"j": _made(5, knows=True), "k": _answers([("i0", "r", "t")], [1], {"entropy": [1]}, asked=1, metric="error")},
            "apart",
        ),
    ],
    ids=["none", "nothing answered", "no distribution", "nothing shared", "two kinds"],
)
def test_what_cannot_be_looked_at_is_refused_in_one_sentence(judges: dict[str, Answers], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        risk_coverage(judges)


@pytest.mark.parametrize(
    ("centre", "said"),
    [
        (8.5, "it is surer where it is right, which is not shown to be more than the scores that it says tell"),
        (5.5, "it is surest where it is wrong, which is not shown to be more than the scores that it says tell"),
    ],
)
def test_a_judge_of_chance_that_is_as_sure_everywhere_is_not_said_to_know_by_the_ends_of_its_scale(
    centre: float, said: str
) -> None:
    answer = risk_coverage({"chance": _of_scores(centre, knows=False)}, resamples=200).answer
    assert said in answer and ", that by the scores alone minus its own " in answer
    assert "it knows when it does not know:" in risk_coverage({"j": _of_scores(centre, knows=True)}, resamples=200).answer


def _of_scores(centre: float, *, knows: bool) -> Answers:
    """Normal probabilities around scores that have nothing to do with the readers', as wide everywhere; or around theirs, as wide as they are off."""
    generator = np.random.default_rng(0)
    gold = np.clip(np.round(centre + 1.5 * generator.normal(size=320)), 1, 10)
    width, middle = np.full(320, 1.5), np.clip(centre + 1.5 * generator.normal(size=320), 1, 10)
    if knows:
        width = generator.uniform(0.5, 2.5, 320)
        middle = gold + width * generator.normal(size=320)
    likely = np.exp(-(((np.arange(1, 11) - middle[:, None]) / width[:, None]) ** 2) / 2)
    shares = likely / likely.sum(axis=1, keepdims=True)
    examples = [scored(f"i{n}", f"r{n // 8}", int(score), item=f"t{n}") for n, score in enumerate(gold)]
    judgements = [
        answered(one.id, "5", distribution={str(label): float(p) for label, p in enumerate(row, start=1)})
        for one, row in zip(examples, shares, strict=True)
    ]
    return answers_of(examples, judgements)


def test_what_a_score_tells_of_sureness_lies_between_the_answers_next_to_it() -> None:
    said = np.array([3.0, 1.0, 2.0, 2.0, 7.0])
    assert by_what_is_said(said, np.array([10.0, 0.0, 4.0, 6.0, 2.0])) == pytest.approx([6 - 4 / 5, 4, 6, 4, 10])
    straight = by_what_is_said(said, 2 * said)
    assert straight[[0, 2]] == pytest.approx([6, 4]), "what follows from the score it tells exactly"
    assert by_what_is_said(np.array([1.0]), np.array([2.0])).tolist() == [2.0]
