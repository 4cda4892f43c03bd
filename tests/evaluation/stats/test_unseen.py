"""What no sample shows: answers, or readers, so rare that there is none among those at hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.unseen import joined, none_among, none_of
from perse.results.result import Interval

READER = np.repeat(np.arange(40), 8)
GOLD = np.random.default_rng(0).integers(1, 11, 320).astype(float)
BOOTSTRAP = Bootstrap.over(READER, resamples=200, seed=0)


def test_none_of_so_many_is_clopper_and_pearsons_upper_end() -> None:
    assert none_of(40) == pytest.approx(stats.binomtest(0, 40).proportion_ci(0.95, method="exact").high)
    assert none_among([np.arange(40)]) == pytest.approx(none_of(40))
    assert none_of(320) < none_among([READER]) < none_of(40)  # what a reader's items know together


def test_an_interval_reaches_further_by_what_was_not_seen() -> None:
    found = joined(1.0, Interval(low=0.7, high=1.5), down=0.4)
    assert (found.low, found.high) == (pytest.approx(0.5), 1.5)
    none = Interval(reason="undefined")
    assert joined(1.0, none, down=0.4, up=0.4) == none


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall", "within_kendall", "within_pearson"])
def test_a_perfect_sample_does_not_say_that_all_others_are_perfect(name: str) -> None:
    interval = BOOTSTRAP.one(name, GOLD, GOLD).interval
    assert interval.low == pytest.approx(1 - 2 * none_of(320))
    assert interval.high == pytest.approx(1)
    against = BOOTSTRAP.one(name, GOLD, -GOLD).interval
    assert (against.low, against.high) == (pytest.approx(-1), pytest.approx(2 * none_of(320) - 1))


def test_an_error_that_is_the_same_of_nearly_all_may_be_larger_of_others() -> None:
    near = GOLD + np.where(READER % 2, 0.5, 0.4)
    interval = BOOTSTRAP.one("mae", GOLD, near).interval
    assert interval.low is not None and interval.high is not None
    assert 0.42 < interval.low < 0.45 and 0.5 < interval.high < 0.56


def test_an_ordinary_correlation_hardly_changes() -> None:
    judged = GOLD + np.random.default_rng(1).normal(0, 8, 320)
    alone = BOOTSTRAP.interval(0.3, BOOTSTRAP.resampled("kendall", GOLD, judged), reviewers=40)
    told = BOOTSTRAP.one("kendall", GOLD, judged).interval
    assert alone.low is not None and told.low is not None
    assert alone.low - 0.005 < told.low < alone.low and told.high == alone.high
