"""What each source knows, beside all together and each judge: the rows of the report's first picture."""

from __future__ import annotations

import pytest
from scipy.stats import kendalltau
from stacking_worlds import around, world

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.stacking.adding import FREQUENCIES, NEW, SEEN, Told, alone
from perse.evaluation.stacking.crossing import CrossFitted
from perse.evaluation.stacking.knowing import NOTHING_EXACT, TOGETHER, Knowledge, what_knows_what
from perse.evaluation.stacking.making import fit
from perse.judgement import Judgement, Status
from perse.records import PointwiseExample
from perse.stacking.sources import IN_WORDS, JUDGE, OTHERS


@pytest.fixture(scope="module")
def train() -> list[PointwiseExample]:
    """Readers who know half of the texts."""
    whole = world(60, seed=1, knows=0)[0]
    kept = [one.model_copy(update={"profile": tuple(past for past in one.profile if half(past.text))}) for one in whole]
    return [one for one in kept if half(one.query) and one.profile]


def half(text: str) -> bool:
    return int(text.removeprefix("text ")) < 40


def known(
    train: list[PointwiseExample], asked: list[PointwiseExample], judges: dict[str, list[Judgement]]
) -> dict[str, Knowledge]:
    found = what_knows_what([Fold(asked, train)], judges, seed=0, resamples=100, resample="reviewers")
    return {one.kind: one for one in found}


def value(of: Knowledge, name: str) -> float:
    estimate = {row.name: row.estimate for row in of.rows}[name]
    assert estimate is not None and estimate.value is not None
    return estimate.value


@pytest.mark.slow
def test_a_judge_that_knows_taste_stands_above_the_numbers_together_on_both_kinds_of_texts(
    train: list[PointwiseExample],
) -> None:
    asked, judgements = world(40, seed=2, knows=0.9)
    of = known(train, asked, {"judge": judgements})
    assert sum(one.examples for one in of.values()) == len(asked)
    for kind in (SEEN, NEW):
        assert value(of[kind], "judge, with these") > value(of[kind], TOGETHER) + 0.05
    others = {row.name: row for row in of[NEW].rows}[IN_WORDS[OTHERS]]
    assert others.estimate is None and others.missing == "training readers scored none of these texts"
    assert value(of[SEEN], IN_WORDS[OTHERS]) > 0.3


@pytest.mark.slow
def test_the_report_and_fit_say_the_same_of_each_kind(train: list[PointwiseExample]) -> None:
    asked, judgements = world(30, seed=3, knows=0.5)
    of = known(train, asked, {"judge": judgements})
    apart = fit([Fold(asked, train)], judgements, resamples=100, resample="reviewers").measured.apart
    for kind in (SEEN, NEW):
        rows = {row.name: row.estimate for row in of[kind].rows}
        assert rows["judge, with these"] == apart[kind].levels["stacked"]["kendall"]
        assert rows[TOGETHER] == apart[kind].levels["stacked, without the language model"]["kendall"]
        assert rows["judge"] == apart[kind].levels["the language model alone, fitted"]["kendall"]
        assert rows[IN_WORDS[OTHERS]] == (apart[SEEN].levels[alone(OTHERS)]["kendall"] if kind == SEEN else None)
    none = apart[NEW].levels[alone(OTHERS)]["kendall"]
    assert none.value is None and none.interval.reason == "undefined (training readers scored none of these texts)"


@pytest.mark.slow
def test_how_far_the_fitting_is_is_told_to_its_end(train: list[PointwiseExample]) -> None:
    asked, judgements = world(20, seed=2, knows=0.5)
    told: list[tuple[int, int]] = []
    judges = {"one": judgements, "silent": [one.model_copy(update={"distribution": None}) for one in judgements]}
    what_knows_what(
        [Fold(asked, train)], judges, seed=0, resamples=100, resample="reviewers", on_progress=lambda *how: told.append(how)
    )
    done, totals = zip(*told, strict=True)
    assert done[0] == 0 and list(done) == sorted(done) and len(done) > 5
    assert {*totals} == {done[-1]}


@pytest.mark.slow
def test_all_rows_are_of_the_examples_that_every_judge_answered(train: list[PointwiseExample]) -> None:
    asked, judgements = world(30, seed=3, knows=0.5)
    failed = [
        one.model_copy(update={"status": Status.UNPARSED, "label": None, "distribution": None}) if n % 3 == 0 else one
        for n, one in enumerate(judgements)
    ]
    of = known(train, asked, {"whole": judgements, "often silent": failed})
    assert sum(one.examples for one in of.values()) == sum(one.status is Status.OK for one in failed)
    assert all(row.estimate is None or row.estimate.items == one.examples for one in of.values() for row in one.rows)


@pytest.mark.slow
def test_a_judge_without_exact_distributions_is_a_row_that_says_so(train: list[PointwiseExample]) -> None:
    asked, judgements = world(30, seed=3, knows=0.5)
    in_words = [one.model_copy(update={"distribution": None}) for one in judgements]
    silent = [one.model_copy(update={"status": Status.UNPARSED, "label": None, "distribution": None}) for one in judgements]
    of = known(train, asked, {"judge": judgements, "in words": in_words, "silent": silent})
    missing = {row.name: row.missing for row in of[SEEN].rows if row.estimate is None and row.judge}
    names = ("in words", "in words, with these", "silent", "silent, with these")
    assert missing == dict.fromkeys(names, NOTHING_EXACT)
    assert value(of[SEEN], "judge") == value(known(train, asked, {"judge": judgements})[SEEN], "judge")


@pytest.mark.slow
def test_a_judge_with_some_distributions_is_shown_on_those_and_the_others_are_counted(train: list[PointwiseExample]) -> None:
    asked, judgements = world(30, seed=3, knows=0.9)
    half_told = [one if n % 2 else one.model_copy(update={"distribution": None}) for n, one in enumerate(judgements)]
    of, only = known(train, asked, {"judge": half_told}), known(train, asked[1::2], {"judge": judgements[1::2]})
    for kind in (SEEN, NEW):
        assert of[kind].rows == only[kind].rows
        assert (
            of[kind].notes[-1]
            == f"{len(asked) // 2} examples to which not every judge that gives exact distributions gave one are left out"
        )


@pytest.mark.slow
def test_a_source_that_is_absent_is_a_row_and_judges_may_be_called_as_rows_are(train: list[PointwiseExample]) -> None:
    asked, judgements = world(30, seed=3, knows=0.5)
    others = IN_WORDS[OTHERS]
    of = known(train, asked, {others: judgements, TOGETHER: judgements})
    rows = {(row.name, row.judge): row for row in of[NEW].rows}
    assert rows["the words of the text", None].missing == "absent (perse data evidence makes it)"
    assert (
        rows[others, None].estimate is None and rows[others, others].estimate == rows[TOGETHER, TOGETHER].estimate is not None
    )
    assert rows[TOGETHER, None].estimate != rows[TOGETHER, TOGETHER].estimate


def test_too_few_readers_are_told_in_a_sentence(train: list[PointwiseExample]) -> None:
    asked, judgements = world(4, seed=2, knows=0.9)
    with pytest.raises(BadInput, match="4 readers are too few to fit on"):
        known(train, asked, {"judge": judgements})


def test_readers_who_are_too_few_for_want_of_exact_distributions_are_told_so(train: list[PointwiseExample]) -> None:
    asked, judgements = world(20, seed=2, knows=0.9)
    rarely = [one if n < 3 else one.model_copy(update={"distribution": None}) for n, one in enumerate(judgements)]
    said = "1 reader is too few .*; 157 of 160 examples, to which not every judge that gives exact distributions gave one, are left out"
    with pytest.raises(BadInput, match=said):
        known(train, asked, {"judge": judgements, "rare": rarely})


@pytest.mark.slow
def test_what_is_gained_on_each_kind_of_texts_is_the_difference_of_its_rows(train: list[PointwiseExample]) -> None:
    """The slow twin: the rows of one kind picked out by hand, and scipy's tau-b of them."""
    asked, judgements = world(30, seed=3, knows=0.9)
    found = fit([Fold(asked, train)], judgements, resamples=100, resample="reviewers")
    cross = CrossFitted.of(found.rows, seed=0)
    with_judge, without = (Told.by(cross, some).order for some in (cross.rows.sources, [*cross.rows.sources][1:]))
    assert cross.rows.sources[0] == JUDGE
    seen = found.rows.have([OTHERS])
    for kind, chosen in ((SEEN, seen), (NEW, ~seen)):
        of = found.measured.apart[kind]
        gain = of.over["stacked", "stacked, without the language model"]["kendall"]
        expected = [kendalltau(one[chosen], found.rows.gold[chosen]).statistic for one in (with_judge, without)]
        assert gain.value == pytest.approx(expected[0] - expected[1]) and gain.difference
        assert gain.above_zero, "the judge knows their taste"
        assert of.levels["stacked"]["kendall"].value == pytest.approx(expected[0])


@pytest.mark.slow
def test_probabilities_of_a_judge_that_is_too_sure_are_not_right_and_fitted_ones_are(
    train: list[PointwiseExample],
) -> None:
    asked, judgements = world(60, seed=5, knows=0.9)
    sure = [
        one.model_copy(update={"distribution": around(round(one.expected or 5.5), 0.3), "expected": None}) for one in judgements
    ]
    found = fit([Fold(asked, train)], [Judgement.model_validate(one.model_dump()) for one in sure], resamples=100)
    by_row = found.measured.calibrated
    assert by_row["the language model"].right is False
    fitted = ("stacked", "stacked, without the language model", FREQUENCIES)
    assert [by_row[name].right for name in fitted] == [True] * 3
    assert by_row["stacked"].error < 0.5 * by_row["the language model"].error
