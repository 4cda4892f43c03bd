"""Sides that nearly always give one answer: a correlation of them rests on the items on which both depart from it."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, scored

from perse.evaluation.alignment import Fold
from perse.evaluation.annotators.measuring import Ratings, annotator_agreement
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.evaluate import evaluate
from perse.evaluation.metrics import METRICS, Scored
from perse.evaluation.stats.departures import FEW_DEPART, KNOWN, departing, departures, departures_within
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.judgement import Judgement
from perse.scale import SCORES
from perse.studies.frame.summarizing import SharedResamples

READERS, TEXTS = 40, 8
READER = np.repeat(np.arange(READERS), TEXTS)
SIZE = len(READER)
BOOTSTRAP = Bootstrap.over(READER, resamples=200, seed=0)


def usual_but_at(*items: int) -> np.ndarray:
    """5 of everything but 1 at these."""
    return np.where(np.isin(np.arange(SIZE), items), 1.0, 5.0)


def test_rare_answers_that_never_meet_by_chance_do_not_make_a_judge_worse_than_chance() -> None:
    # 16 of 320 items each, one a reader and none in common, where chance makes 0.8: the resamples have none, either.
    gold, judged = (usual_but_at(*range(first, 16 * 20, 20)) for first in (0, 1))
    found = BOOTSTRAP.one("kendall", gold, judged)
    assert found.value == pytest.approx(-16 / 304)  # of 2 x 2 tables tau-b is phi: (288 * 0 - 16 * 16) / (16 * 304)
    assert found.interval.reason == FEW_DEPART
    apart = BOOTSTRAP.difference("kendall", gold, usual_but_at(*range(0, 320, 20)), judged)
    assert apart.interval.reason == FEW_DEPART


def test_the_verdict_says_that_too_little_is_known_and_why() -> None:
    gold, judged = (usual_but_at(*range(first, 16 * 20, 20)) for first in (0, 1))
    examples = [
        scored(f"{n}", f"u{reader}", int(score), item=f"{n}")
        for n, (reader, score) in enumerate(zip(READER, gold, strict=True))
    ]
    judgements = [answered(one.id, str(int(label))) for one, label in zip(examples, judged, strict=True)]
    concluded = evaluate(examples, judgements, train=None, resamples=200).conclusions[0]
    assert concluded.standing == "undefined"
    assert FEW_DEPART in concluded.words


def test_a_judge_that_finds_what_is_rare_is_better_than_chance() -> None:
    gold = usual_but_at(*range(0, 320, 20))
    judged = usual_but_at(*range(0, 320, 20), 1, 41)
    assert BOOTSTRAP.one("kendall", gold, judged).above_zero


def test_who_departs_where_the_readers_do_not_is_below_chance_where_many_would_have_met() -> None:
    # A quarter of the items each and none in common: 20 of 320 are expected.
    gold, judged = (usual_but_at(*range(first, 320, 4)) for first in (0, 1))
    assert BOOTSTRAP.one("kendall", gold, judged).below_zero


def test_some_fewer_than_chance_are_not_shown_to_be_fewer() -> None:
    # 64 and 64 of 320 items: 12.8 are expected to meet, 6 do. A bootstrap alone is below 0 here.
    gold = usual_but_at(*range(0, 320, 5))
    judged = usual_but_at(*range(0, 30, 5), *range(31, 320, 5))
    together = departures(departing(gold), departing(judged), clusters=[READER])
    assert (together.too_few, together.may_be_chance) == (False, True)
    alone = bootstrap_interval(BOOTSTRAP.resampled("kendall", gold, judged), reviewers=READERS)
    assert alone.high is not None and alone.high < 0
    assert BOOTSTRAP.one("kendall", gold, judged).interval.reason == FEW_DEPART


def test_answers_without_a_usual_one_are_all_that_a_correlation_rests_on() -> None:
    assert departing(np.array([1.0, 1.0, 2.0, 3.0])) is None
    assert not departures(None, departing(usual_but_at(3)), clusters=[READER]).too_few


def test_annotators_whose_rare_marks_never_meet_are_not_shown_to_disagree() -> None:
    marks = np.stack([usual_but_at(*range(first, 320, 20)) for first in range(3)], axis=1)
    ratings = Ratings("fluency", ("ann", "bob", "cem"), marks, READER)
    [dimension] = annotator_agreement([ratings], resamples=200).dimensions
    shown = [dimension.alpha, dimension.mean["spearman"], dimension.pairs[0].columns["spearman"]]
    assert [one.interval.reason for one in shown] == [FEW_DEPART] * 3
    assert all(one.value is not None and one.value < 0 for one in shown)


def test_rare_marks_that_never_meet_in_a_reader_do_not_put_a_judge_below_chance_within_readers() -> None:
    # Each of 20 readers departs once, and so does the judge, at another text: 20 x 1/8 = 2.5 are expected to meet. All values are -1/7.
    gold, judged = (usual_but_at(*range(first, 20 * TEXTS, TEXTS)) for first in (0, 1))
    found = BOOTSTRAP.one("within_kendall", gold, judged)
    assert found.value == pytest.approx(-1 / 7)
    assert found.interval.reason == FEW_DEPART
    zero = BOOTSTRAP.one("within_zero_kendall", gold, judged)
    assert zero.interval.reason == FEW_DEPART


def test_a_reader_who_is_always_kind_has_a_usual_answer_of_their_own() -> None:
    # The same with half of the readers usually at 9: over all readers no answer is usual, within them one is.
    gold, judged = (usual_but_at(*range(first, 20 * TEXTS, TEXTS)) for first in (0, 1))
    kind = np.where(READER % 2 == 0, 4.0, 0.0)
    assert departing(gold + kind) is None
    assert BOOTSTRAP.one("within_kendall", gold + kind, judged + kind).interval.reason == FEW_DEPART


def test_rare_marks_that_are_found_within_readers_are_found() -> None:
    gold = usual_but_at(*range(0, 30 * TEXTS, TEXTS))
    judged = usual_but_at(*range(0, 20 * TEXTS, TEXTS), *range(20 * TEXTS + 1, 30 * TEXTS, TEXTS))
    assert BOOTSTRAP.one("within_kendall", gold, judged).above_zero


def test_readers_without_a_usual_answer_have_their_interval_within_readers() -> None:
    gold = np.tile(np.arange(TEXTS, dtype=float), READERS)
    assert departures_within(gold, gold[::-1].copy(), reviewer=READER) == KNOWN
    assert BOOTSTRAP.one("within_kendall", gold, -gold + (READER % 8 == 0) * 2 * gold).below_zero


def test_weighted_kappa_of_rare_answers_that_never_meet_is_not_below_chance() -> None:
    gold, judged = (usual_but_at(*range(first, 16 * 20, 20)) for first in (0, 1))
    # Scores between labels: all but the rare ones are rounded to 5.
    scored_as = judged + np.linspace(0, 0.3, SIZE)
    sample = Scored(bootstrap=BOOTSTRAP, gold=gold, predicted=scored_as, scale=SCORES, half=np.zeros(READERS, dtype=np.int64))
    found = METRICS["qwk"].function(sample)
    assert found is not None and found.value is not None and found.value < 0
    assert found.interval.reason == FEW_DEPART


def test_groups_of_items_whose_rare_marks_never_meet_do_not_show_that_annotators_disagree() -> None:
    marks = np.stack([usual_but_at(*range(first, 20 * TEXTS, TEXTS)) for first in range(2)], axis=1)
    [dimension] = annotator_agreement([Ratings("fluency", ("ann", "bob"), marks, READER)], resamples=200).dimensions
    assert [dimension.mean["within_kendall"].interval.reason, dimension.pairs[0].columns["within_pearson"].interval.reason] == [
        FEW_DEPART,
        FEW_DEPART,
    ]


def test_a_study_tells_nothing_of_rare_answers_that_never_meet() -> None:
    gold, judged = (usual_but_at(*range(first, 16 * 20, 20)) for first in (0, 1))
    study = SharedResamples(gold, READER, BOOTSTRAP)
    assert study.value("kendall", [(1.0, judged)]).interval.reason == FEW_DEPART
    another = usual_but_at(*range(0, 320, 20))
    change = study.value("kendall", [(1.0, another), (-1.0, judged)])
    assert change.value is not None and change.value > 0
    assert change.interval.reason == FEW_DEPART


def test_two_judges_of_whom_one_never_meets_what_is_rare_are_not_compared_by_it() -> None:
    gold, judged = (usual_but_at(*range(first, 16 * 20, 20)) for first in (0, 1))
    examples = [
        scored(f"{n}", f"u{reader}", int(score), item=f"{n}")
        for n, (reader, score) in enumerate(zip(READER, gold, strict=True))
    ]

    def said(labels: np.ndarray) -> list[Judgement]:
        return [answered(one.id, str(int(label))) for one, label in zip(examples, labels, strict=True)]

    judges = {"blind": said(judged), "seeing": said(usual_but_at(*range(0, 320, 20)))}
    found = compare(judges, [Fold(examples, None)], resamples=200, permutations=199, metrics=["kendall"])
    [pairing] = [one for one in found.pairings if one.other == "blind"]
    assert pairing.contrasts[0].interval.reason == FEW_DEPART
    assert pairing.contrasts[0].better is None
