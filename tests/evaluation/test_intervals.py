from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.evaluation import intervals
from perse.evaluation.correlation import COEFFICIENTS, Convention, FloatArray, kendall, pearson, spearman, within_reviewers
from perse.evaluation.estimates import Bootstrap
from perse.evaluation.intervals import (
    FEW_REVIEWERS,
    draw_reviewers,
    percentile_interval,
    resampled_kendall,
    resampled_pearson,
    resampled_ratio,
    resampled_spearman,
    times_drawn,
)

FAST = {"pearson": resampled_pearson, "spearman": resampled_spearman, "kendall": resampled_kendall}


def data(seed: int = 0, *, reviewers: int = 15) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Gold, predictions and reviewers of unequal numbers of items, rows of a reviewer not together."""
    generator = np.random.default_rng(seed)
    reviewer = np.repeat(np.arange(reviewers), generator.integers(1, 8, reviewers))
    generator.shuffle(reviewer)
    gold = generator.integers(1, 11, len(reviewer)).astype(float)
    return gold, np.round(gold + generator.normal(0, 3, len(reviewer)), 1), reviewer


def slow_twin(coefficient: Callable, gold: FloatArray, predicted: FloatArray, reviewer: np.ndarray, drawn: np.ndarray) -> list:
    """Each resample built row by row in plain Python, all items of a drawn reviewer as often as they were drawn."""
    values = []
    for sample in drawn:
        rows = [row for one in sample for row in range(len(gold)) if reviewer[row] == one]
        value = coefficient(gold[rows], predicted[rows])
        values.append(np.nan if value is None else value)
    return values


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("rounded", [False, True])
def test_pooled_resamples_equal_their_slow_twin(name: str, rounded: bool) -> None:
    gold, predicted, reviewer = data()
    predicted = np.round(predicted / 3) if rounded else predicted
    drawn = draw_reviewers(15, resamples=60, seed=4)
    fast = FAST[name](gold, predicted, reviewer=reviewer, counts=times_drawn(drawn))
    np.testing.assert_allclose(fast, slow_twin(COEFFICIENTS[name], gold, predicted, reviewer, drawn), atol=1e-12)


@pytest.mark.parametrize("name", FAST)
def test_resamples_that_are_constant_are_undefined_as_in_their_slow_twin(name: str) -> None:
    # Readers 0 and 1 give one score (0.1, not exact in binary) to everything: a resample of only these is constant.
    gold, predicted = np.array([0.1, 0.1, 0.1, 0.7, 0.9]), np.array([0.3, 0.3, 0.3, 0.3, 0.5])
    reviewer, drawn = np.array([0, 0, 1, 2, 2]), draw_reviewers(3, resamples=200, seed=1)
    fast = FAST[name](gold, predicted, reviewer=reviewer, counts=times_drawn(drawn))
    slow = slow_twin(COEFFICIENTS[name], gold, predicted, reviewer, drawn)
    assert 0 < np.isnan(slow).sum() < 200
    np.testing.assert_allclose(fast, slow, atol=1e-12)


@pytest.mark.parametrize("convention", Convention)
def test_macro_intervals_equal_their_slow_twin(convention: Convention) -> None:
    gold, predicted, reviewer = data(2)
    drawn = draw_reviewers(15, resamples=80, seed=6)
    within = within_reviewers(pearson, gold, predicted=predicted, reviewer=reviewer)
    assert within.skipped > 0
    slow = []
    for sample in drawn:
        found = [pearson(gold[reviewer == one], predicted[reviewer == one]) for one in sample]
        kept = [value or 0.0 for value in found if value is not None or convention is Convention.CONSTANT_AS_ZERO]
        slow.append(sum(kept) / len(kept))
    low, high = np.quantile(slow, [0.025, 0.975])
    estimate = Bootstrap(reviewer, times_drawn(drawn)).correlations(gold, predicted, convention=convention)["within_pearson"]
    assert (estimate.interval.low, estimate.interval.high) == (pytest.approx(low), pytest.approx(high))
    assert estimate.value == pytest.approx(within.mean(convention))


@pytest.mark.parametrize("name", FAST)
def test_chunks_do_not_change_the_resamples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gold, predicted, reviewer = data(1)
    counts = times_drawn(draw_reviewers(15, resamples=50, seed=0))
    whole = FAST[name](gold, predicted, reviewer=reviewer, counts=counts)
    monkeypatch.setattr(intervals, "_CHUNK_CELLS", 3 * len(gold))
    np.testing.assert_array_equal(whole, FAST[name](gold, predicted, reviewer=reviewer, counts=counts))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3)), max_size=15))
def test_drawing_each_reviewer_once_gives_the_value_itself(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    gold, predicted, reviewer = columns[0], columns[1], columns[2].astype(np.int64)
    for name, coefficient in (("pearson", pearson), ("spearman", spearman), ("kendall", kendall)):
        value = coefficient(gold, predicted)
        resampled = FAST[name](gold, predicted, reviewer=reviewer, counts=np.ones((1, 4)))
        np.testing.assert_allclose(resampled, [np.nan if value is None else value], atol=1e-12)


def test_reviewers_not_rows_are_resampled() -> None:
    # Half of 20 readers are always right, half always wrong, 30 items each. A resample of readers has a share of right
    # answers that is a whole number of twentieths; one of 600 rows would nearly never be, and its interval would be
    # sqrt(30) times narrower: 0.08 instead of 0.44.
    reviewer = np.repeat(np.arange(20), 30)
    bootstrap = Bootstrap.over(reviewer, resamples=1000, seed=0)
    hits = (reviewer % 2).astype(float)
    totals, items = np.bincount(reviewer, weights=hits), np.bincount(reviewer).astype(float)
    shares = resampled_ratio(totals, items, counts=bootstrap.counts)
    np.testing.assert_allclose(shares * 20, np.round(shares * 20), atol=1e-9)
    interval = bootstrap.mean(hits, np.ones(600, dtype=bool)).interval
    assert interval.low is not None and interval.high is not None
    assert interval.high - interval.low > 0.3


def test_all_items_of_a_drawn_reviewer_go_along() -> None:
    # Reader 0 has 3 items with error 0, reader 1 has 1 with error 1: means 0 (0, 0), 1/4 (once each), 1 (1, 1).
    counts = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    np.testing.assert_allclose(resampled_ratio(np.array([0.0, 1.0]), np.array([3.0, 1.0]), counts=counts), [0, 0.25, 1])


def test_counts_say_how_often_each_reviewer_was_drawn() -> None:
    np.testing.assert_array_equal(times_drawn(np.array([[0, 2, 2], [1, 1, 1]])), [[1, 0, 2], [0, 3, 0]])


def test_seeds_decide_the_resamples() -> None:
    np.testing.assert_array_equal(draw_reviewers(12, seed=7), draw_reviewers(12, seed=7))
    drawn = [draw_reviewers(12, seed=seed) for seed in range(3)]
    assert all((one != other).any() for one, other in ((drawn[0], drawn[1]), (drawn[1], drawn[2]), (drawn[0], drawn[2])))
    assert drawn[0].shape == (1000, 12)


def test_fewer_than_ten_reviewers_have_no_interval_and_say_so() -> None:
    few = percentile_interval(np.linspace(0, 1, 100), reviewers=9)
    assert (few.low, few.high, few.reason) == (None, None, FEW_REVIEWERS)
    enough = percentile_interval(np.linspace(0, 1, 101), reviewers=10)
    # 101 evenly spaced values: the 2.5% and 97.5% points are 0.025 and 0.975.
    assert (enough.low, enough.high, enough.reason) == (pytest.approx(0.025), pytest.approx(0.975), None)


def test_undefined_resamples_are_counted_and_too_many_leave_no_interval() -> None:
    some = percentile_interval(np.array([np.nan] * 40 + [0.5] * 60), reviewers=20)
    assert (some.low, some.undefined_resamples, some.resamples) == (0.5, 40, 100)
    most = percentile_interval(np.array([np.nan] * 60 + [0.5] * 40), reviewers=20)
    assert (most.low, most.undefined_resamples, most.reason) == (None, 60, "undefined (in 60 of 100 resamples)")


@pytest.mark.parametrize("name", FAST)
def test_no_items_are_undefined_in_every_resample(name: str) -> None:
    nothing = np.empty(0)
    resampled = FAST[name](nothing, nothing, reviewer=np.empty(0, dtype=np.int64), counts=np.ones((3, 2)))
    assert resampled.shape == (3,) and np.isnan(resampled).all()
