"""How far the judge's verification can be trusted: labels that need no annotator, values by hand, and a study that goes on after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import Reworded
from hypothesis import given
from hypothesis import strategies as st
from kgds_builders import benchmark, many_samples, paragraphs, sample, two_samples, write_benchmark_file
from places import SHARED
from scipy import stats
from typer.testing import CliRunner

from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.evaluation.stats.departures import FEW_DEPART
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.judgement import Judgement, Status, Tokens
from perse.judging.judge import Judge
from perse.kgds.agreement.measures import Answered, SampleResamples, answered, measured, same_answers
from perse.kgds.agreement.pairs import Pair, draw_pairs, has_names, lists, seems_said, word_share
from perse.kgds.agreement.rows import Row
from perse.kgds.agreement.study import agreement
from perse.kgds.agreement.words import _auroc
from perse.kgds.benchmark import Benchmark, Sample, read_benchmark
from perse.rendering.prompt import TextRenderer
from perse.results.result import Result
from perse.studies.frame.running import read_study

REAL = SHARED / "kgds" / "KGDS.first60.json"


def raw(number: int = 1, **changed: Any) -> Sample:
    return Sample.model_validate({**two_samples()[number - 1], **changed, "number": number})


def only(one: Sample) -> Benchmark:
    return Benchmark(Path("KGDS.json"), {one.number: one}, "digest")


def scripted(reply: Any) -> Judge:
    return Judge(ScriptedEngine(reply), TextRenderer(), name="scripted")


def yes_to_all(message: str, _seed: int) -> str:
    """One line, or one for each statement of a list."""
    listed = message.split("[Statements]\n")
    if len(listed) == 1:
        return "[Answer] yes"
    return "\n".join(f"{n}: yes" for n in range(1, len(listed[1].strip().splitlines()) + 1))


def table(result: Result, title: str) -> dict[str, dict[str, Any]]:
    """Rows by first cell and header; values of estimates."""
    [found] = [one for one in result.tables if one.title.startswith(title)]
    return {
        str(row[0]): {name: getattr(cell, "value", cell) for name, cell in zip(found.header[1:], row[1:], strict=True)}
        for row in found.rows
    }


# Which claims, and which labels


def test_a_key_fact_is_asked_of_its_own_paragraph_and_of_one_that_supports_nothing() -> None:
    one = sample(1)
    facts = draw_pairs(only(one), limit=None, seed=0).of("fact")
    # 1 and 3 support; of the others only 2 has no masked fact.
    assert {(pair.claim, pair.text, pair.truth) for pair in facts} == {
        (claim, one.paragraph(place), truth)
        for index, claim in (
            (1, "The library of Harlow will open on Sundays."),
            (1, "The Sunday opening begins in May."),
            (3, "Mara Lind will work on Sundays."),
            (3, "Otto Beck will work on Sundays."),
        )
        for place, truth in ((index, True), (2, False))
    }


def test_a_paragraph_with_a_masked_fact_is_never_asked() -> None:
    masked = benchmark(1).samples[1].paragraph(4)
    for seed in range(20):
        assert masked not in {pair.text for pair in draw_pairs(benchmark(1), limit=None, seed=seed).pairs}


def test_without_a_paragraph_that_is_surely_silent_facts_are_left_out_and_counted() -> None:
    nonsupporting = [{**one, "atomic_facts": [{"atomic_fact": "It is so.", "type": 5}]} for one in two_samples()[0]["BNPAF"]]
    drawn = draw_pairs(only(raw(BNPAF=nonsupporting)), limit=None, seed=0)
    assert drawn.of("fact") == ()
    assert drawn.left_out["fact without a paragraph"] == 4


def test_a_fact_that_the_other_paragraph_seems_to_say_is_left_out_and_counted() -> None:
    article = two_samples()[0]["SBK"]
    again = paragraphs(*(one["paragraph_text"] for one in article))
    again[1]["paragraph_text"] = "Otto Beck, the baker, works on Sundays and will go on."
    drawn = draw_pairs(only(raw(SBK=again)), limit=None, seed=0)
    assert drawn.left_out["fact said elsewhere"] == 1
    assert "Otto Beck will work on Sundays." not in {pair.claim for pair in drawn.of("fact")}


def test_an_opinion_is_asked_of_all_opinions_and_of_the_others_without_the_annotators_marks() -> None:
    first, second = (text.replace("**", "") for text in two_samples()[1]["CAO"])
    opinions = draw_pairs(only(sample(2)), limit=None, seed=0).of("opinion")
    assert {(pair.claim, pair.text, pair.truth) for pair in opinions} == {
        (first, f"{first}\n{second}", True),
        (second, f"{first}\n{second}", True),
        (first, second, False),
        (second, first, False),
    }


def test_an_opinion_that_another_one_says_too_is_left_out_but_the_fuller_one_is_asked() -> None:
    short, full = (
        "Person1 thinks that Lind is right.",
        "Person1 thinks that Lind is right because she measured the water every day.",
    )
    drawn = draw_pairs(only(raw(CAO=[short, full])), limit=None, seed=0)
    assert {pair.claim for pair in drawn.of("opinion")} == {full}
    assert drawn.left_out["opinion said elsewhere"] == 1


def test_the_same_opinion_of_another_person_is_another_opinion() -> None:
    same = ["Person1 thinks that Lind is right.", "Person2 thinks that Lind is right."]
    assert len(draw_pairs(only(raw(CAO=same)), limit=None, seed=0).of("opinion")) == 4


def test_the_only_opinion_of_a_discussion_cannot_be_asked() -> None:
    drawn = draw_pairs(only(raw(CAO=["Person1 thinks that it was overdue."])), limit=None, seed=0)
    assert (drawn.of("opinion"), drawn.left_out["opinion alone"]) == ((), 1)


@pytest.mark.parametrize(
    ("claim", "text", "said"),
    [
        ("The dam near Ost holds.", "A dam near Ost still holds well.", True),
        ("The dam near Ost holds.", "A dam near West still holds well.", False),  # another name
        ("The dam cost 40 euros.", "The dam cost 14 euros.", False),  # another number
        ("Lind's work was praised.", "They praised the work of Lind.", True),  # genitive, other endings
        ("Mara swims every cold morning.", "Somebody sings every warm evening.", False),  # 1 of 4 other words
    ],
)
def test_a_text_seems_to_say_a_claim_with_all_its_names_and_most_of_its_words(claim: str, text: str, said: bool) -> None:
    assert seems_said(claim, text) is said


def test_words_in_common_are_a_share_of_names_and_long_words() -> None:
    # Name: Ost. Long words, by 5 letters: ferry, sails, every. In the text: Ost, ferry. 2 of 4.
    assert word_share("The ferry to Ost sails every day", "A ferry, the Ost line's own") == 0.5


def test_a_limit_draws_so_many_claims_of_each_kind_by_seed_and_asks_each_of_both_texts() -> None:
    drawn = [draw_pairs(benchmark(20), limit=7, seed=seed) for seed in (0, 0, 1)]
    for one in drawn:
        for kind in ("fact", "opinion"):
            truths = [pair.truth for pair in one.of(kind)]
            assert (truths.count(True), truths.count(False)) == (7, 7)
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.slow
@given(limit=st.integers(1, 12), seed=st.integers(0, 5))
def test_both_ways_ask_the_same_facts_of_the_same_texts(limit: int, seed: int) -> None:
    facts = draw_pairs(benchmark(6), limit=limit, seed=seed).of("fact")
    made, named = lists(facts)
    by_id = {f"{one.id}/{n}": (one.text, claim) for one in made for n, claim in enumerate(one.claims, start=1)}
    assert {pair.id: by_id[named[pair.id]] for pair in facts} == {pair.id: (pair.text, pair.claim) for pair in facts}
    assert len(by_id) == len(facts)


# Values


def given_answers(truth: str, p_yes: list[float], *, ok: str | None = None, sample_of: list[int] | None = None) -> Answered:
    """Labels as y and n; yes from 0.5; answered where `ok` has an x."""
    p = np.array(p_yes)
    fine = np.array([letter == "x" for letter in ok or "x" * len(truth)])
    return Answered(
        truth=np.array([letter == "y" for letter in truth]),
        yes=(p >= 0.5) & fine,
        ok=fine,
        p_yes=np.where(fine, p, np.nan),
        p_any=p,
        mass=np.where(fine, 0.9, 0.1),
        sample=np.array(sample_of or range(len(truth))),
    )


def test_values_by_hand() -> None:
    # Follows: 0.9, 0.4, (0.8 not answered). Does not: 0.4, 0.1, 0.6.
    found = measured(
        given_answers("yyynnn", [0.9, 0.4, 0.8, 0.4, 0.1, 0.6], ok="xx.xxx"), SampleResamples(6, resamples=100, seed=0)
    )
    assert found["accuracy"].value == pytest.approx(3 / 6)  # 0.9, 0.4 and 0.1 are right: yes, no, no
    assert found["true"].value == pytest.approx(1 / 3)  # no answer is wrong
    assert found["false"].value == pytest.approx(2 / 3)
    assert found["said yes"].value == pytest.approx(2 / 5)
    # Pairs of answered: 0.9 beats 3; 0.4 ties 0.4, beats 0.1, loses to 0.6: 1.5. Together 4.5 of 6.
    assert found["AUROC"].value == pytest.approx(0.75)
    # With 0.8: it beats all 3. 7.5 of 9.
    assert found["AUROC of any"].value == pytest.approx(7.5 / 9)
    # 0.1^2 + 0.6^2 + 0.4^2 + 0.1^2 + 0.6^2 = 0.01 + 0.36 + 0.16 + 0.01 + 0.36 = 0.9, over 5.
    assert found["Brier"].value == pytest.approx(0.18)
    assert found["P(yes) of true"].value == pytest.approx(0.65)
    assert found["P(yes) of false"].value == pytest.approx(1.1 / 3)
    assert found["mass"].value == pytest.approx((5 * 0.9 + 0.1) / 6)


@given(
    true=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7]), min_size=1, max_size=12),
    false=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7]), min_size=1, max_size=12),
)
def test_auroc_is_the_rank_statistic(true: list[float], false: list[float]) -> None:
    one = given_answers("y" * len(true) + "n" * len(false), true + false)
    value = measured(one, SampleResamples(len(one.ok), resamples=100, seed=0))["AUROC"].value
    assert value == pytest.approx(stats.mannwhitneyu(true, false).statistic / (len(true) * len(false)))


def test_one_claim_of_48_the_wrong_way_round_does_not_bound_an_auroc_to_what_resamples_saw() -> None:
    # 12 samples of two true and two false claims. One false claim is the surest: 24 of 576 pairs are out of order, 0.958.
    truth, sample = np.tile([True, True, False, False], 12), np.repeat(np.arange(12), 4)
    score = np.where(truth, 0.9, 0.1) + np.linspace(0, 0.05, 48)
    score[3] = 1.0
    found = SampleResamples(12, resamples=400, seed=0).auroc(score, truth, chosen=np.ones(48, dtype=bool), sample=sample)
    assert found.value == pytest.approx(552 / 576)
    percentiles, interval = bootstrap_interval(found.resampled, reviewers=12, of="sample"), found.estimate().interval
    assert percentiles.high == 1 and interval.high is not None and interval.high < 1, "not all are in order"
    assert percentiles.low is not None and interval.low is not None and interval.low < percentiles.low


def test_auroc_of_one_class_is_undefined_with_its_reason() -> None:
    value = measured(given_answers("yyy", [0.2, 0.6, 0.9]), SampleResamples(3, resamples=100, seed=0))["AUROC"]
    assert value.estimate().value is None
    assert value.estimate().interval.reason == "undefined (answers to one class alone)"


@pytest.mark.parametrize(
    ("p_yes", "said"),
    [
        ((0.9, 0.1, 0.4, 0.6), "(it tells what follows from what does not)"),
        ((0.1, 0.9, 0.6, 0.4), "(it is higher for what does not follow)"),
        ((0.5, 0.5, 0.4, 0.4), "(not shown to tell what follows from what does not)"),
    ],
    ids=["mostly right", "mostly wrong", "neither"],
)
def test_an_auroc_is_said_to_tell_something_only_where_its_interval_is_above_a_half(
    p_yes: tuple[float, ...], said: str
) -> None:
    # Of 30 samples two claims each, of which one follows; every third sample has the third and fourth number, the others the first two.
    given = [p for sample in range(30) for p in (p_yes[2:] if sample % 3 == 0 else p_yes[:2])]
    if said.startswith("(not"):
        given = [p + 0.01 * (n // 2 % 2 == n % 2) for n, p in enumerate(given)]
    one = given_answers("yn" * 30, given, sample_of=[n // 2 for n in range(60)])
    values = measured(one, SampleResamples(30, resamples=200, seed=0))
    found = _auroc(Row("facts", one, values, values))
    assert found.endswith(said) and found.startswith(f"{values['AUROC'].value:.3f} [")


def test_a_resample_weighs_a_claim_as_often_as_its_sample_was_drawn() -> None:
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(12), 3)
    one = given_answers("ynn" * 12, list(rng.random(36).round(1)), sample_of=list(who))
    shared = SampleResamples(12, resamples=100, seed=0)
    found = measured(one, shared)
    for nth in (0, 7, 99):
        times = shared._drawn[:, nth + 1].astype(int)
        rows = np.concatenate([np.flatnonzero(who == place) for place in range(12) for _ in range(times[place])])
        score, truth = one.p_yes[rows], one.truth[rows]
        statistic = stats.mannwhitneyu(score[truth], score[~truth]).statistic / (truth.sum() * (~truth).sum())
        assert found["AUROC"].resampled[nth] == pytest.approx(statistic)
        assert found["accuracy"].resampled[nth] == pytest.approx(one.right[rows].mean())
    assert found["accuracy"].samples == 12
    assert found["accuracy"].estimate().interval.low is not None


def test_shares_that_all_samples_have_alike_have_intervals_with_a_width_and_other_means_say_why_they_have_none() -> None:
    right = given_answers("yn" * 12, [0.9, 0.1] * 12, sample_of=[n // 2 for n in range(24)])
    shared = SampleResamples(12, resamples=100, seed=0)
    found = {name: value.estimate() for name, value in measured(right, shared).items()}
    both = {name: value.estimate() for name, value in same_answers(right, right, shared).items()}
    for one in (found["accuracy"], found["true"], found["false"], both["equal"]):
        assert one.value == 1 and one.interval.high == 1
        assert one.interval.low is not None and 0.6 < one.interval.low < 0.9
    apart = both["accuracy"].interval
    assert apart.low is not None and -0.3 < apart.low < -0.1 and apart.high == -apart.low
    for one in (found["Brier"], found["mass"], both["kappa"]):
        assert one.value is not None and one.interval.reason == "undefined (the same in every resample)"
    sure = given_answers(
        "yn" * 12, list(np.random.default_rng(0).uniform(0.997, 0.999, 24)), sample_of=[n // 2 for n in range(24)]
    )
    mass = measured(sure, shared)["P(yes) of true"].estimate()
    assert mass.interval.low is not None and mass.interval.low < 0.998 * 0.75, "of other claims one in four may have P(yes) 0"
    few = given_answers("yn", [0.9, 0.1])
    assert measured(few, SampleResamples(2, resamples=100, seed=0))["accuracy"].estimate().interval.reason == (
        "undefined (few samples)"
    )


def test_agreement_of_two_ways_by_hand() -> None:
    # Answers y y n n and y n n n; the fifth was answered in one way only. Equal: 3 of 4. Chance: 1/2 * 1/4 + 1/2 * 3/4 = 1/2.
    one, other = (given_answers("ynynn", p, ok=ok) for p, ok in (([1, 1, 0, 0, 0], "xxxxx"), ([1, 0, 0, 0, 0], "xxxx.")))
    found = same_answers(one, other, SampleResamples(5, resamples=100, seed=0))
    assert found["equal"].value == 0.75
    assert found["kappa"].value == pytest.approx((0.75 - 0.5) / 0.5)
    assert found["accuracy"].value == pytest.approx(3 / 5 - 3 / 5)
    # AUROC over the first four: yes of 1, 0 against 1, 0: 0.5 + 1 + 0 + 0.5 of 4; then 1, 0 against 0, 0: 1 + 1 + 0.5 + 0.5 of 4.
    assert found["AUROC"].value == pytest.approx(2 / 4 - 3 / 4)


def test_two_ways_that_rarely_say_yes_and_never_to_the_same_claim_are_not_shown_to_contradict_each_other() -> None:
    sample_of = np.repeat(np.arange(40), 8)
    one, other = (np.isin(np.arange(320), range(first, 320, 20)) for first in (0, 1))
    found = SampleResamples(40, resamples=200, seed=0).kappa(one, other, chosen=np.ones(320, dtype=bool), sample=sample_of)
    assert found.value < 0
    assert found.estimate().interval.reason == FEW_DEPART


def test_kappa_of_two_ways_that_always_say_yes_is_undefined() -> None:
    always = given_answers("yn", [0.9, 0.9])
    found = same_answers(always, always, SampleResamples(2, resamples=100, seed=0))
    assert found["equal"].value == 1.0
    assert np.isnan(found["kappa"].value)


def test_what_was_not_answered_has_no_label_and_no_probability() -> None:
    pair = Pair("a", 4, "fact", "s", "text", "claim", True)
    nothing = Tokens(prompt=0, cached=0, generated=0)
    unparsed = Judgement(
        id="a", question="verify_fact", status=Status.UNPARSED, distribution={"yes": 0.9, "no": 0.1}, mass=0.2, k_effective=0,
        tokens=nothing, model="m",
    )  # fmt: skip
    one = answered([pair], [unparsed], samples={4: 0})
    assert (one.ok[0], one.right[0], one.p_any[0]) == (False, False, 0.9)
    assert np.isnan(one.p_yes[0])


# The study


def test_a_judge_that_always_says_yes_is_half_right_and_named_so(tmp_path: Path) -> None:
    result = agreement(scripted(yes_to_all), benchmark(12), tmp_path / "study")
    rows = table(result, "Right answers")
    for name in ("facts one by one", "facts in lists", "opinions one by one", "all one by one"):
        assert rows[name]["accuracy"] == 0.5
        assert (rows[name]["yes to what is so"], rows[name]["no to what is not"]) == (1.0, 0.0)
    assert "It says yes to all " in result.answer and " facts one by one: its accuracy" in result.answer
    assert "little but the share of claims that follow" in result.answer


def test_what_a_judge_never_answered_is_no_share_and_has_no_price(tmp_path: Path) -> None:
    def no_lists(message: str, seed: int) -> str:
        return "I cannot say" if "[Statements]" in message else yes_to_all(message, seed)

    answer = agreement(scripted(no_lists), benchmark(12), tmp_path / "study").answer
    assert "none of facts in lists, of which it answered none of " in answer and "times the prompt tokens" not in answer


def test_a_judge_of_words_has_accuracy_and_reasons_for_the_rest(tmp_path: Path) -> None:
    result = agreement(scripted(yes_to_all), benchmark(12), tmp_path / "study")
    why = "undefined (the judge gives no probabilities)"
    [answers] = [one for one in result.tables if one.title == "Right answers"]
    assert answers.rows[0][-1].interval.reason == why  # type: ignore[union-attr]
    assert table(result, "Probabilities")["facts one by one"]["ECE"] == why
    assert any("gives no probabilities" in note for note in result.notes)
    assert not [point for point in result.points if point.metric.startswith("reliability")]


def test_a_judge_that_looks_up_the_words_is_right(tmp_path: Path) -> None:
    def looks_up(message: str, _seed: int) -> str:
        text = message.split("[Text]\n")[1].split("\nAnswer with")[0]
        if "[Statements]" in message:
            claims = [line.split(". ", 1)[1] for line in message.split("[Statements]\n")[1].strip().splitlines()]
            return "\n".join(
                f"{n}: {'no' if '1911' in text or '1987' in text else 'yes'}" for n, _ in enumerate(claims, start=1)
            )
        claim = message.rsplit("] ", 1)[1].strip()
        silent = "1911" in text or "1987" in text or ("[Opinion]" in message and claim not in text)
        return f"[Answer] {'no' if silent else 'yes'}"

    result = agreement(scripted(looks_up), benchmark(12), tmp_path / "study")
    assert {name: row["accuracy"] for name, row in table(result, "Right answers").items() if "by one" in name or "lists" in name} == {
        "facts one by one": 1.0, "facts in lists": 1.0, "opinions one by one": 1.0, "all one by one": 1.0,
    }  # fmt: skip
    assert table(result, "The same")["equal answers"]["value"] == 1.0
    assert table(result, "The same")["Cohen's kappa"]["value"] == 1.0


@pytest.mark.slow
def test_the_study_of_an_exact_judge_has_every_number_and_can_be_read_back(tmp_path: Path, tiny_model_folder: Path) -> None:
    judge = Judge.load(str(tiny_model_folder), dtype="float32")
    result = agreement(judge, benchmark(12), tmp_path / "study", limit=12, resamples=200)
    assert read_study(tmp_path / "study") == result
    costs = table(result, "What a question costs")
    prompt, computed = (float(costs["facts one by one"][name]) for name in ("prompt tokens", "of these computed"))
    assert prompt > 2 * computed > 0
    for name in ("prompt tokens", "of these computed"):
        ratio = float(costs["facts one by one"][name]) / float(costs["facts in lists"][name])
        assert float(costs["facts, one by one / in lists"][name]) == pytest.approx(ratio, abs=0.02)
    mass = table(result, "Probabilities")["facts one by one"]["mass"]
    assert 0 < mass < 1
    lines = (tmp_path / "study" / "asked" / "facts-listed" / "judgements.jsonl").read_text().splitlines()
    assert len(lines) == 24
    assert len((tmp_path / "study" / "pairs.jsonl").read_text().splitlines()) == 48


def test_measuring_again_gives_the_same_bytes_and_asks_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    def counts(message: str, seed: int) -> str:
        asked.append(message)
        return yes_to_all(message, seed)

    files = ("study.json", "table.md", "pairs.jsonl")
    agreement(scripted(counts), benchmark(12), tmp_path / "study", limit=5)
    first, number = [(tmp_path / "study" / name).read_bytes() for name in files], len(asked)
    agreement(scripted(counts), benchmark(12), tmp_path / "study", limit=5)
    assert [(tmp_path / "study" / name).read_bytes() for name in files] == first
    assert len(asked) == number


def test_another_seed_limit_benchmark_or_wording_is_refused_in_the_same_folder(tmp_path: Path) -> None:
    agreement(scripted(yes_to_all), benchmark(12), tmp_path / "study", limit=5)
    with pytest.raises(RunMismatch, match="limit was 5, is 6"):
        agreement(scripted(yes_to_all), benchmark(12), tmp_path / "study", limit=6)
    with pytest.raises(RunMismatch, match="seed was 0, is 1"):
        agreement(scripted(yes_to_all), benchmark(12), tmp_path / "study", limit=5, seed=1)
    with pytest.raises(RunMismatch, match="benchmark was"):
        agreement(scripted(yes_to_all), benchmark(11), tmp_path / "study", limit=5)
    reworded = Judge(scripted(yes_to_all).engine, Reworded(), name="scripted")
    with pytest.raises(RunMismatch, match=r"prompts_sha256\.\S+ was"):
        agreement(reworded, benchmark(12), tmp_path / "study", limit=5)


def test_a_benchmark_without_anything_to_ask_is_one_sentence(tmp_path: Path) -> None:
    one = raw(
        2, CAO=["Person1 thinks so."], BNPAF=[{"paragraph_index": 1, "atomic_facts": [{"atomic_fact": "So.", "type": 4}]}]
    )
    with pytest.raises(BadInput, match="no key fact and no two opinions that can be asked"):
        agreement(scripted(yes_to_all), only(one), tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_facts_with_a_name_that_their_own_paragraph_lacks_are_counted_beside_the_numbers(tmp_path: Path) -> None:
    assert not has_names("The mayor Zora Lind opened it.", "Lind opened the library."), "Zora"
    assert has_names("The mayor Lind opened it in May.", "In May LIND opened the library.")
    one = two_samples()[0]
    one["BSPAF"][0]["atomic_facts"][1]["atomic_fact"] = "The opening, which Zora Beck wanted, begins in May."
    result = agreement(scripted(yes_to_all), only(Sample.model_validate({**one, "number": 1})), tmp_path / "study")
    said = "(1 of the 4 facts have a name or number that their own paragraph lacks)"
    assert any(said in note for note in result.notes)


def test_a_benchmark_with_opinions_alone_is_studied_without_facts(tmp_path: Path) -> None:
    one = raw(2, BNPAF=[{"paragraph_index": 1, "atomic_facts": [{"atomic_fact": "So.", "type": 4}]}])
    result = agreement(scripted(yes_to_all), only(one), tmp_path / "study")
    assert [one.title for one in result.tables] == ["Right answers", "Probabilities", "What a question costs"]
    assert any(
        "facts of articles without a paragraph that says nothing of what the supporting ones say: 2" in note
        for note in result.notes
    )


def test_what_an_interval_of_auroc_does_not_know_stands_below_the_table(tmp_path: Path) -> None:
    result = agreement(scripted(yes_to_all), benchmark(2), tmp_path / "study")
    [note] = [one for one in result.tables[0].notes if one.startswith("AUROC")]
    assert "each is looked at by itself" in note and "rarely wrong it is too high in up to 8 of 100" in note


KILLED = """
import os, signal, sys
from pathlib import Path
from perse.judging.judge import Judge
from perse.kgds.agreement.study import agreement
from perse.kgds.benchmark import read_benchmark

def kill(way, done, total):
    if way == "facts-listed" and done > 10:
        os.kill(os.getpid(), signal.SIGKILL)

agreement(Judge.load(sys.argv[1], dtype="float32"), read_benchmark(Path(sys.argv[2])), Path(sys.argv[3]), on_progress=kill)
"""


@pytest.mark.integration
def test_killed_and_run_again_it_asks_nothing_twice(tmp_path: Path, tiny_model_folder: Path) -> None:
    path, study = write_benchmark_file(tmp_path, many_samples(8)), tmp_path / "study"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tiny_model_folder), str(path), str(study)], check=False)
    assert killed.returncode == -signal.SIGKILL
    judged = study / "asked" / "facts-listed" / "judgements.jsonl"
    before = judged.read_bytes()
    with judged.open("ab") as file:
        file.write(b'{"id": "torn')
    judge = Judge.load(str(tiny_model_folder), dtype="float32")
    whole = agreement(judge, read_benchmark(path), tmp_path / "whole", resamples=100)
    assert agreement(judge, read_benchmark(path), study, resamples=100).points == whole.points
    assert judged.read_bytes().startswith(before)
    for way in ("facts-single", "facts-listed", "opinions-single"):
        ids = [json.loads(line)["id"] for line in (study / "asked" / way / "judgements.jsonl").read_text().splitlines()]
        assert len(ids) == len(set(ids))
        assert sorted(ids) == sorted(
            json.loads(line)["id"]
            for line in (tmp_path / "whole" / "asked" / way / "judgements.jsonl").read_text().splitlines()
        )


@pytest.mark.slow
def test_the_command_prints_json_on_stdout_alone(tmp_path: Path, tiny_model_folder: Path) -> None:
    import typer

    from perse.commands.kgds.agreement import agreement as command

    app = typer.Typer()
    app.command()(command)
    path = write_benchmark_file(tmp_path, many_samples(4))
    arguments = [
        str(path),
        "--judge",
        str(tiny_model_folder),
        "--out",
        str(tmp_path / "study"),
        "--limit",
        "3",
        "--dtype",
        "float32",
    ]
    shown = CliRunner().invoke(app, [*arguments, "--resamples", "100", "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["name"] == "kgds-agreement"
    assert list((tmp_path / "study" / "figures").glob("*.svg"))


@pytest.mark.skipif(not REAL.exists(), reason="the real benchmark is not here")
def test_of_the_real_benchmark_most_claims_can_be_asked() -> None:
    drawn = draw_pairs(read_benchmark(REAL), limit=None, seed=0)
    assert len(drawn.of("fact")) > 2 * 950  # of 998 key facts
    assert len(drawn.of("opinion")) > 2 * 400  # of 571 opinions
    assert not any("**" in pair.claim + pair.text for pair in drawn.of("opinion"))
