"""What no sample shows: answers, or readers, so rare that there is none among those at hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from perse.evaluation.metrics import METRICS
from perse.evaluation.metrics.samples import Scored
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.ordinal import qwk_of_tables
from perse.evaluation.stats.unseen import joined, none_among, none_of, of_bounded, of_errors, of_mean
from perse.results.result import Estimate, Interval
from perse.scale import SCORES

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


def test_a_mean_between_two_ends_reaches_towards_both_by_what_was_not_seen() -> None:
    # Of 30 probabilities of 0.998 each: of others 11.6% may be 0, and these few are all that resamples know.
    found = of_bounded(0.998, Interval(low=0.9978, high=0.9982), items=30, least=0.0, most=1.0)
    assert found.low == pytest.approx(0.998 * (1 - none_of(30)), abs=1e-4) and found.high == pytest.approx(0.998, abs=5e-4)


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


def test_an_error_of_texts_that_are_drawn_too_is_never_below_0_and_a_difference_may_be() -> None:
    low = Interval(low=-0.01, high=0.4)
    gold, right = np.array([1.0, 2.0, 3.0] * 10), np.array([1.0, 2.0, 3.1] * 10)
    assert of_errors(0.03, low, gold, [(1.0, right)], items=30).low == 0
    assert (of_errors(0.03, low, gold, [(1.0, right), (-1.0, gold)], items=30).low or 0) < 0
    found = of_mean(Estimate(value=0.03, interval=low, items=30), np.full(30, 2.0))
    assert found.interval.low == 0 and (found.interval.high or 0) >= 0.4


def test_an_ordinary_correlation_hardly_changes() -> None:
    judged = GOLD + np.random.default_rng(1).normal(0, 8, 320)
    alone = BOOTSTRAP.interval(0.3, BOOTSTRAP.resampled("kendall", GOLD, judged), reviewers=40)
    told = BOOTSTRAP.one("kendall", GOLD, judged).interval
    assert alone.low is not None and told.low is not None
    assert alone.low - 0.005 < told.low < alone.low and told.high == alone.high


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall", "kendall_c", "within_kendall", "kendall_a"])
def test_a_judge_that_was_right_throughout_is_not_better_than_one_that_is_a_little_off(name: str) -> None:
    near = GOLD + np.random.default_rng(2).uniform(-1.2, 1.2, 320)
    both = [BOOTSTRAP.resampled(name, GOLD, side) for side in (GOLD, near)]
    found = BOOTSTRAP.difference(name, GOLD, GOLD, near)
    assert found.value is not None and found.value > 0 and np.nanquantile(both[0] - both[1], 0.001) > 0
    assert found.interval.low is not None and found.interval.high is not None
    share = 2 * none_of(320)
    assert found.interval.low <= found.value - share * BOOTSTRAP.one(name, GOLD, GOLD).value + 1e-9  # type: ignore[operator]
    turned = BOOTSTRAP.difference(name, GOLD, near, GOLD).interval
    assert (turned.low, turned.high) == (
        pytest.approx(-found.interval.high, abs=0.01),
        pytest.approx(-found.interval.low, abs=0.01),
    )


def test_two_that_said_the_same_of_all_items_may_differ_on_others() -> None:
    judged = GOLD + np.random.default_rng(1).normal(0, 8, 320)
    found = BOOTSTRAP.difference("kendall", GOLD, judged, judged)
    reach = 2 * none_of(320) * BOOTSTRAP.one("kendall", GOLD, judged).value  # type: ignore[operator]
    assert found.value == 0
    assert (found.interval.low, found.interval.high) == (pytest.approx(-reach), pytest.approx(reach))


def test_of_judges_at_chance_a_difference_keeps_its_interval() -> None:
    sides = np.random.default_rng(4).normal(0, 1, (2, 320))
    drawn = [BOOTSTRAP.resampled("kendall", GOLD, side) for side in sides]
    found = BOOTSTRAP.difference("kendall", GOLD, *sides)
    alone = BOOTSTRAP.interval(found.value, drawn[0] - drawn[1], reviewers=40)
    assert alone.low is not None and found.interval.low == pytest.approx(alone.low, abs=0.001)


def test_each_side_of_a_difference_of_errors_may_be_farther_off() -> None:
    one, other = GOLD + np.where(READER % 2, 0.5, 0.4), GOLD + np.where(READER % 3, 0.9, 1.0)
    narrow = Interval(low=-0.5, high=-0.4)
    found = of_errors(-0.45, narrow, GOLD, [(1.0, one), (-1.0, other)], items=320)
    assert found.high == pytest.approx(-0.45 + np.hypot(0.05, none_of(320) * _more(one, other)[0]))
    assert found.low == pytest.approx(-0.45 - np.hypot(0.05, none_of(320) * _more(one, other)[1]))
    assert of_errors(None, Interval(reason="undefined"), GOLD, [], items=320) == Interval(reason="undefined")


def _more(one: np.ndarray, other: np.ndarray) -> list[float]:
    """How much farther off each could be, between the lowest and the highest of what was true and what was said."""
    ends = min(GOLD.min(), one.min()), max(one.max(), other.max())
    worst = np.mean([max(score - ends[0], ends[1] - score) for score in GOLD])
    return [float(worst - np.abs(side - GOLD).mean()) for side in (one, other)]


def _values(said: np.ndarray) -> dict[str, Interval]:
    scored = Scored(bootstrap=BOOTSTRAP, gold=GOLD, predicted=said, scale=SCORES, half=np.arange(40) % 2, epsilon=0.0)
    return {name: METRICS[name].function(scored).interval for name in ("qwk", "rps", "pair_accuracy")}  # type: ignore[union-attr]


def test_kappa_rps_and_pairs_in_order_know_of_answers_that_are_far_off_and_were_not_seen() -> None:
    """One answer of 320 is a point off: of others 1.1% may be as far off as labels allow."""
    said = GOLD + (np.arange(320) == 7) * np.where(GOLD > 5, -1, 1)
    found, more = _values(said), none_of(320)
    true = (GOLD - 1).astype(int)
    worst = np.where(true < 5, 9, 0)
    table = np.zeros((10, 10))
    np.add.at(table, (true, (said - 1).astype(int)), (1 - more) / 320)
    np.add.at(table, (true, worst), more / 320)
    fallen = float(qwk_of_tables(table.reshape(1, 100))[0])
    assert found["qwk"].low is not None and found["qwk"].low < fallen + 1e-3
    farthest = np.mean(np.abs(worst - true)) / 9
    assert found["rps"].high is not None and found["rps"].high > more * farthest
    assert found["pair_accuracy"].low is not None and found["pair_accuracy"].low < 1 - 2 * more + 1e-3


def test_kappa_of_a_judge_at_chance_keeps_its_interval() -> None:
    said = np.random.default_rng(3).permutation(GOLD)
    cells = ((GOLD - 1) * 10 + said - 1).astype(int)
    alone = BOOTSTRAP.of_tables(cells, 100, qwk_of_tables, np.ones(320, dtype=bool)).interval
    told = _values(said)["qwk"]
    assert alone.low is not None and told.low == pytest.approx(alone.low, abs=0.01) and told.high == alone.high
