"""Values that nearly all readers have alike: what they rest on, and intervals that hold all the same."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, pair, scored
from scipy import stats

from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.evaluate import evaluate
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import ALIKE, FEW_REVIEWERS, FEW_TEXTS, RESTS_ON_FEW
from perse.evaluation.stats.shares import DIFFER, apart_interval, deciding, independent_items, joined, share_interval
from perse.results.result import Estimate, Interval


def interval(values: np.ndarray, reviewer: np.ndarray) -> Interval:
    return share_interval(values, np.ones(len(values)), clusters=[reviewer])


def apart(values: np.ndarray, reviewer: np.ndarray) -> Interval:
    return apart_interval(values, np.ones(len(values)), clusters=[reviewer])


def ends(found: Interval) -> tuple[float, float]:
    assert found.low is not None and found.high is not None, found.reason
    return found.low, found.high


def covers(found: Interval, truth: float) -> bool:
    low, high = ends(found)
    return low <= truth <= high


def one_item_each(readers: int, items: int, differ: int) -> tuple[np.ndarray, np.ndarray]:
    """1 on the first item of so many readers, else 0; and whose each item is."""
    values = np.zeros(readers * items)
    values[np.arange(differ) * items] = 1
    return values, np.repeat(np.arange(readers), items)


@pytest.mark.parametrize("right", [0, 1, 9, 23, 24])
def test_a_share_of_single_items_has_the_exact_interval(right: int) -> None:
    found = interval((np.arange(24) < right).astype(float), np.arange(24))
    exact = stats.binomtest(right, 24).proportion_ci(method="exact")
    assert (found.low, found.high) == (pytest.approx(exact.low, abs=1e-8), pytest.approx(exact.high, abs=1e-8))


def test_items_of_one_reader_who_differ_together_count_as_one() -> None:
    weights, reviewer = np.full(160, 1 / 160), np.repeat(np.arange(10), 16)
    alike, apart = (reviewer == 3).astype(float), (np.arange(160) % 16 == 0).astype(float)
    # items^2 * spread is 15 * (16 * 0.9)^2 and 9 readers' 1.6^2, times 10 / 9; 14.4 differ; with 4 made up items of design effect 5.5
    effect = (10 / 9 * ((16 * 0.9) ** 2 + 9 * 1.6**2) + 4 * 5.5) / (14.4 + 4)
    assert independent_items(alike, weights, [reviewer], DIFFER) == pytest.approx(max(10, 160 / effect))
    assert 60 < independent_items(apart, weights, [reviewer], DIFFER) < 160
    nothing_seen = independent_items(np.zeros(160), weights, [reviewer], DIFFER)
    assert nothing_seen == pytest.approx(160 / 5.5), "items of one reader are supposed to correlate by 0.3"
    assert independent_items(alike, weights, [np.arange(160)], DIFFER) == pytest.approx(160)


def test_items_of_two_of_a_kind_know_less_where_these_have_several_and_no_less_where_each_has_one() -> None:
    weights, alone = np.full(60, 1 / 60), np.arange(120).reshape(60, 2)
    values = (np.arange(60) < 24).astype(float)
    single = independent_items(values, weights, [np.arange(60)], DIFFER)
    assert independent_items(values, weights, [alone], DIFFER) == pytest.approx(single) == pytest.approx(60)
    # The first of two decides, and each of 12 is the first of 5: as items of 12 readers who always say the same.
    together = np.column_stack([np.arange(60) // 5, 100 + np.arange(60)])
    decided = (np.arange(60) // 5 < 5).astype(float)
    assert independent_items(decided, weights, [together], DIFFER) < 20 < 60
    ours, theirs = (share_interval(decided, np.ones(60), clusters=[one]) for one in (together, together[:, ::-1]))
    assert ours == theirs, "whichever of the two stands first"


def test_values_between_0_and_1_count_for_more_items_than_those_at_the_ends() -> None:
    weights, single = np.full(40, 1 / 40), [np.arange(40)]
    assert independent_items(np.arange(40) % 2 / 1.0, weights, single, DIFFER) == pytest.approx(40)
    assert independent_items(0.25 + np.arange(40) % 2 / 2, weights, single, DIFFER) > 80


@pytest.mark.parametrize(("readers", "items"), [(12, 4), (20, 8), (40, 6)])
def test_more_errors_lower_both_ends_from_the_first_to_the_last(readers: int, items: int) -> None:
    reviewer, right = np.repeat(np.arange(readers), items), np.ones(readers * items)
    before = ends(interval(right, reviewer))
    for place in range(items):
        for reader in range(readers):
            right[reader * items + place] = 0
            found = ends(interval(right, reviewer))
            assert found[0] <= before[0] and found[1] <= before[1], (place, reader)
            before = found


def test_no_interval_jumps_where_a_tenth_reader_differs() -> None:
    shares, differences = ([ends(kind(*one_item_each(60, 4, differ))) for differ in range(7, 14)] for kind in (interval, apart))
    for found in (shares, differences):
        steps = np.diff(np.array(found), axis=0)
        assert (steps > 0).all() and (steps.max(axis=0) < 1.5 * steps.min(axis=0)).all()


@pytest.mark.parametrize(("readers", "items"), [(15, 1), (40, 6)])
def test_a_difference_is_shown_where_the_sign_test_shows_it(readers: int, items: int) -> None:
    for differ in range(readers + 1):
        for against in range(differ + 1):
            values, reviewer = one_item_each(readers, items, differ)
            values[: against * items] *= -1
            low, high = ends(apart(values, reviewer))
            p = stats.binomtest(against, differ).pvalue if differ else 1.0
            assert (low > 0 or high < 0) == (p <= 0.05), (differ, against)
            if differ > 12:
                break


def test_values_on_both_sides_of_0_reach_both_ways() -> None:
    equal = ends(apart(np.zeros(40), np.arange(40)))
    assert equal[0] == pytest.approx(-equal[1]) and 0.08 < equal[1] < 0.15
    always = ends(apart(np.ones(40), np.arange(40)))
    assert always[1] == 1.0 and 0.8 < always[0] < 0.95
    assert ends(apart(-np.ones(40), np.arange(40))) == (-1.0, pytest.approx(-always[0]))


def test_shares_of_few_readers_or_texts_have_no_interval_and_say_why() -> None:
    values, every = np.arange(72) % 2 / 1.0, np.ones(72, dtype=bool)
    nine = Bootstrap.over(np.repeat(np.arange(9), 8), resamples=100, seed=0)
    many = Bootstrap.over(np.repeat(np.arange(12), 6), resamples=100, seed=0)
    assert nine.share(values, every).interval.reason == FEW_REVIEWERS
    assert many.share(values, np.arange(72) < 30).interval.reason == RESTS_ON_FEW
    texts = Bootstrap.over(np.repeat(np.arange(12), 6), resamples=100, seed=0, item=np.tile(np.arange(6), 12))
    assert texts.shares_apart(values, every).interval.reason == FEW_TEXTS


def test_errors_and_tables_of_which_all_items_are_alike_have_no_interval_and_say_why() -> None:
    reviewer = np.repeat(np.arange(20), 3)
    bootstrap, gold = Bootstrap.over(reviewer, resamples=100, seed=0), 3.0 + np.arange(60) % 5
    off_by_one = bootstrap.one("mae", gold, gold + 1)
    assert (off_by_one.value, off_by_one.interval.reason) == (1.0, ALIKE)
    assert bootstrap.difference("mae", gold, gold + 1, gold).interval.reason == ALIKE
    assert bootstrap.mean(np.full(60, 0.25), np.ones(60, dtype=bool)).interval.reason == ALIKE
    agreeing = bootstrap.of_tables(np.zeros(60, dtype=np.int64), 2, lambda tables: tables[:, 0] / tables.sum(axis=1), gold > 0)
    assert (agreeing.value, agreeing.interval.reason) == (1.0, ALIKE)
    assert bootstrap.one("mae", gold, gold + reviewer % 2).interval.low is not None


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


def test_a_perfect_judge_is_better_than_a_constant_that_is_nearly_always_right() -> None:
    examples = [pair(f"{r}-{n}", f"u{r}", "B" if n == 0 and r < 9 else "A") for r in range(40) for n in range(4)]
    said = [answered(one.id, str(one.truth)) for one in examples]
    [sentence] = evaluate(examples, said, train=None).verdict
    assert sentence.startswith("judge: better than the best constant answer and than chance, ")
    always = [answered(one.id, "A") for one in examples]
    found = compare({"always": always, "judge": said}, [Fold(examples, None)], resamples=100)
    contrast = found.pairings[0].contrasts[0]
    assert contrast.p is not None and contrast.p < 0.01 and contrast.better is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("readers", "items", "true"), [(24, 1, 0.05), (40, 1, 0.03), (10, 16, 0.01), (40, 8, 0.01), (30, 8, 0.98), (12, 8, 0.5)]
)
@pytest.mark.parametrize("together", [0.0, 0.4])
def test_shares_are_covered_as_often_as_said(readers: int, items: int, true: float, together: float) -> None:
    # Two items of a reader correlate by `together`; 1,000 worlds: 95 +- 1.4 points, and more is allowed.
    generator, reviewer = np.random.default_rng(1), np.repeat(np.arange(readers), items)
    a, b = (part * (1 - together) / max(together, 1e-9) for part in (true, 1 - true))
    hits = []
    for _ in range(1000):
        own = generator.beta(a, b, readers) if together else np.full(readers, true)
        hits.append(covers(interval((generator.random(len(reviewer)) < own[reviewer]).astype(float), reviewer), true))
    assert np.mean(hits) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("differ", [0.03, 0.2, 0.9])
@pytest.mark.parametrize("together", [0.0, 0.6])
def test_equal_judges_are_seldom_called_better_or_worse_and_differences_are_covered(differ: float, together: float) -> None:
    # 20 readers of 6 pairs; whom a reader's differing items speak for correlates by `together`; 1,000 worlds each.
    generator, reviewer = np.random.default_rng(4), np.repeat(np.arange(20), 6)
    for first in (0.5, 0.8):
        a, b = (part * (1 - together) / max(together, 1e-9) for part in (first, 1 - first))
        found = []
        for _ in range(1000):
            own = generator.beta(a, b, 20) if together else np.full(20, first)
            signs = np.where(generator.random(120) < own[reviewer], 1.0, -1.0)
            found.append(ends(apart(np.where(generator.random(120) < differ, signs, 0.0), reviewer)))
        low, high = np.array(found).T
        truth = differ * (2 * first - 1)
        assert ((low <= truth) & (truth <= high)).mean() >= 0.93, first
        if first == 0.5:
            assert (low > 0).mean() <= 0.04 and (high < 0).mean() <= 0.04


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


def test_a_sum_of_shares_reaches_as_far_as_its_parts_do_together() -> None:
    first = Estimate(value=0.5, interval=Interval(low=0.2, high=0.6), items=10)
    second = Estimate(value=0.25, interval=Interval(low=0.21, high=0.55), items=20)
    apart = joined([(1.0, first), (-1.0, second)])
    assert apart.value == 0.25 and apart.items == 30
    # Down by 0.3 of the first and by 0.3 of the second's upper end; up by 0.1 and 0.04.
    assert apart.interval.low == pytest.approx(0.25 - (0.3**2 + 0.3**2) ** 0.5)
    assert apart.interval.high == pytest.approx(0.25 + (0.1**2 + 0.04**2) ** 0.5)
    few = Estimate(value=0.5, interval=Interval(reason="undefined (few items)"), items=3)
    assert joined([(1.0, first), (1.0, few)]).interval.reason == "undefined (few items)"
