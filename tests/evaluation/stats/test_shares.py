"""Values that nearly all readers have alike: what they rest on, and intervals that hold all the same."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, pair, scored
from scipy import stats

from perse.evaluation.evaluate import evaluate
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import RESTS_ON_FEW
from perse.evaluation.stats.shares import deciding, independent_items, share_interval
from perse.results.result import Interval


def interval(values: np.ndarray, reviewer: np.ndarray, *, low: float = 0.0, high: float = 1.0, seed: int = 0) -> Interval:
    everything = np.ones(len(values), dtype=bool)
    return Bootstrap.over(reviewer, resamples=200, seed=seed).share(values, everything, low=low, high=high).interval


def covers(found: Interval, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


@pytest.mark.parametrize("right", [0, 1, 9, 23, 24])
def test_a_share_of_single_items_has_wilsons_interval(right: int) -> None:
    found = interval((np.arange(24) < right).astype(float), np.arange(24))
    wilson = stats.binomtest(right, 24).proportion_ci(method="wilson")
    assert (found.low, found.high) == (pytest.approx(wilson.low, abs=1e-8), pytest.approx(wilson.high, abs=1e-8))


def test_a_share_that_many_readers_have_in_another_way_is_resampled() -> None:
    reviewer = np.repeat(np.arange(20), 8)
    values, everything = (np.arange(160) % 3 == 0).astype(float), np.ones(160, dtype=bool)
    bootstrap = Bootstrap.over(reviewer, resamples=200, seed=0)
    assert bootstrap.share(values, everything) == bootstrap.mean(values, everything)


def test_items_of_one_reader_who_differ_together_count_as_one() -> None:
    weights, reviewer = np.full(160, 1 / 160), np.repeat(np.arange(10), 16)
    alike, apart = (reviewer == 3).astype(float), (np.arange(160) % 16 == 0).astype(float)
    assert independent_items(alike, weights, [reviewer]) == pytest.approx(10)
    assert 60 < independent_items(apart, weights, [reviewer]) < 160
    assert independent_items(np.zeros(160), weights, [reviewer]) == pytest.approx(10), "of what was never seen nothing is known"
    assert independent_items(alike, weights, [np.arange(160)]) == pytest.approx(160)


def test_values_on_both_sides_of_the_commonest_reach_both_ways() -> None:
    one, weights = [np.arange(40)], np.ones(40)
    equal = share_interval(np.zeros(40), weights, clusters=one, low=-1.0, high=1.0)
    assert equal.low == pytest.approx(-(equal.high or 0)) and 0.08 < (equal.high or 0) < 0.15
    always = share_interval(np.full(40, 0.5), weights, clusters=one, low=-0.5, high=0.5)
    assert always.high == 0.5 and 0.3 < (always.low or 0) < 0.45


def test_a_correlation_rests_on_the_readers_to_whom_something_else_is_said() -> None:
    reviewer = np.repeat(np.arange(40), 8)
    flat = np.full(320, 6.0)
    flat[[0, 9, 100]] = [5.0, 7.0, 8.0]
    assert deciding(flat, reviewer) == 3
    assert deciding(np.arange(320) % 5.0, reviewer) == 40
    gold = np.random.default_rng(0).integers(1, 11, 320).astype(float)
    bootstrap = Bootstrap.over(reviewer, resamples=200, seed=0)
    for estimate in (bootstrap.one("kendall", gold, flat), bootstrap.one("kendall", flat, gold)):
        assert estimate.value is not None and estimate.interval.reason == RESTS_ON_FEW
    assert bootstrap.difference("kendall", gold, gold + 0.1, flat).interval.reason == RESTS_ON_FEW
    one_text = np.where(np.tile(np.arange(8), 40) == 2, gold, 6.0)
    two_way = Bootstrap.over(reviewer, resamples=200, seed=0, item=np.repeat(np.arange(40), 8) * 0 + np.tile(np.arange(8), 40))
    assert two_way.one("kendall", gold, one_text).interval.low is None, "of one text"


def test_a_judge_that_says_something_else_to_three_readers_has_no_verdict() -> None:
    examples = [scored(f"{n}-{at}", f"u{n}", 1 + (3 * n + at) % 10, profile=()) for n in range(40) for at in range(4)]
    said = {"3-1": "1", "17-2": "10", "30-0": "9"}
    [sentence] = evaluate(examples, [answered(one.id, said.get(one.id, "6")) for one in examples], train=None).verdict
    assert sentence.startswith("judge: too little to say whether it is better than chance: Kendall tau-b ")
    assert "[undefined (rests on few reviewers)]" in sentence


def test_accuracy_and_order_consistency_of_a_judge_that_is_always_right_have_intervals_with_a_width() -> None:
    examples = [pair(f"{r}-{n}", f"u{r}", "AB"[n % 2]) for r in range(12) for n in range(4)]
    sure = [
        answered(
            e.id, e.truth, distribution={"A": 0.9 if e.truth == "A" else 0.1, "B": 0.1 if e.truth == "A" else 0.9}
        ).model_copy(update={"order_gap": 0.1})
        for e in examples
    ]
    [row] = [one for one in evaluate(examples, sure, train=None).rows if one.name == "judge (likeliest)"]
    for estimate in (row.columns["accuracy"], row.columns["order_consistency"], *row.aspects.values()):
        assert estimate.value == 1 and estimate.interval.high == 1
        assert estimate.interval.low is not None and 0.5 < estimate.interval.low < 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("readers", "items", "true"), [(24, 1, 0.05), (40, 1, 0.03), (10, 16, 0.01), (40, 8, 0.01), (30, 8, 0.98)]
)
def test_rare_answers_are_covered_as_often_as_said(readers: int, items: int, true: float) -> None:
    # 400 worlds: 95 +- 2.2 points; a bootstrap covers 67, 69, 79, 85 and 93. Wilson's own is 93 to 98 of so few single items.
    generator, reviewer = np.random.default_rng(1), np.repeat(np.arange(readers), items)
    hits = [
        covers(interval((generator.random(len(reviewer)) < true).astype(float), reviewer, seed=seed), true)
        for seed in range(400)
    ]
    assert np.mean(hits) >= 0.925


@pytest.mark.slow
def test_readers_who_differ_together_are_covered_too() -> None:
    # The share of each of 20 readers is drawn so that two of their 8 items correlate by 0.4; 400 worlds.
    generator, reviewer = np.random.default_rng(2), np.repeat(np.arange(20), 8)
    hits = []
    for seed in range(400):
        own = generator.beta(0.05 * 1.5, 0.95 * 1.5, 20)[reviewer]
        hits.append(covers(interval((generator.random(160) < own).astype(float), reviewer, seed=seed), 0.05))
    assert np.mean(hits) >= 0.925


@pytest.mark.slow
@pytest.mark.parametrize("different", [6, 12, 20])
def test_few_answers_that_differ_by_chance_are_seldom_called_better_or_worse(different: int) -> None:
    # 600 worlds; of those with an interval 2.5 of 100 on each side, own error (two standard errors) 1.3 points and more.
    generator, reviewer = np.random.default_rng(3), np.repeat(np.arange(40), 8)
    found = []
    for seed in range(600):
        gold = np.clip(np.round(6 + generator.normal(size=40)[reviewer] + generator.normal(0, 1.5, 320)), 1, 10)
        given = np.full(320, 6.0)
        given[generator.choice(320, different, replace=False)] += generator.normal(size=different)
        one = Bootstrap.over(reviewer, resamples=300, seed=seed).one("kendall", gold, given)
        found.append((one.interval.low is not None, one.above_zero, one.below_zero))
    known, above, below = np.sum(found, axis=0)
    assert known == 0 if different < 10 else known > 40
    assert max(above, below) <= 0.025 * known + 3 * np.sqrt(0.025 * known) + 1


@pytest.mark.slow
def test_few_pairs_on_which_a_judge_differs_from_always_saying_a_decide_nothing() -> None:
    generator, reviewer = np.random.default_rng(4), np.repeat(np.arange(40), 6)
    for different in (3, 5, 12, 30):
        above = below = 0
        for seed in range(400):
            right = (generator.random(240) < 0.5).astype(float)
            hits = right.copy()
            other = generator.choice(240, different, replace=False)
            hits[other] = 1 - hits[other]
            found = interval(hits - right, reviewer, low=-1.0, seed=seed)
            assert found.low is not None and found.high is not None
            above, below = above + (found.low > 0), below + (found.high < 0)
        assert max(above, below) <= 0.025 * 400 + 3 * np.sqrt(0.025 * 400), (different, above, below)
