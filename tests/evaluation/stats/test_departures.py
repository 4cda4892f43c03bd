"""Sides that nearly always give one answer: a correlation of them rests on the items on which both depart from it."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, scored

from perse.evaluation.annotators.measuring import Ratings, annotator_agreement
from perse.evaluation.evaluate import evaluate
from perse.evaluation.stats.departures import FEW_DEPART, departing, departures
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval

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
