"""Readers who share texts: what other texts would change, intervals by reviewers do not see."""

import itertools

import numpy as np
import pytest

from perse.evaluation.metrics import METRICS, Scored
from perse.evaluation.stats import within_resampled
from perse.evaluation.stats.correlation import Convention, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEW_REVIEWERS, FEW_TEXTS, bootstrap_interval, two_way_interval
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.ties import calibrated_pairs
from perse.evaluation.stats.within import within_every_reviewer
from perse.results.result import Interval
from perse.scale import SCORES


def world(seed: int, *, reviewers: int = 36, texts: int = 12) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
    """Everybody reads 10 of the texts. Two judges of equal worth err by text, in the same way for all readers of it."""
    generator = np.random.default_rng((5, seed))
    reviewer = np.repeat(np.arange(reviewers), 10)
    item = np.concatenate([generator.permutation(texts)[:10] for _ in range(reviewers)])
    quality, wrong = generator.normal(0, 1, texts), generator.normal(0, 0.8, (2, texts))
    gold = np.clip(np.round(6.5 + quality[item] + generator.normal(0, 1.3, len(item))), 1, 10)
    one, other = (0.5 * quality[item] + error[item] + generator.normal(0, 0.4, len(item)) for error in wrong)
    return gold, one, other, reviewer, item


def wide(interval: Interval) -> float:
    assert interval.low is not None and interval.high is not None, interval.reason
    return interval.high - interval.low


def test_intervals_within_readers_widen_where_the_judge_errs_by_text() -> None:
    gold, one, other, reviewer, item = world(0)
    by_reviewers = Bootstrap.over(reviewer, resamples=300, seed=0)
    two_way = Bootstrap.over(reviewer, resamples=300, seed=0, item=item)
    for name in ("within_kendall", "within_spearman", "within_pearson", "within_zero_kendall"):
        plain, both = (boot.scores(gold, one)[name] for boot in (by_reviewers, two_way))
        assert plain.value == both.value
        assert wide(both.interval) > 2 * wide(plain.interval), name
        apart = [boot.resampled(name, gold, one) - boot.resampled(name, gold, other) for boot in (by_reviewers, two_way)]
        found = [boot.interval(0.0, draws, reviewers=36) for boot, draws in zip((by_reviewers, two_way), apart, strict=True)]
        assert wide(found[1]) > 2 * wide(found[0]), name


@pytest.mark.slow
def test_intervals_within_readers_cover_the_truth_where_everybody_reads_the_same_texts() -> None:
    values, intervals = [], []
    for seed in range(200):
        gold, one, _, reviewer, item = world(seed)
        for texts in (None, item):
            estimate = Bootstrap.over(reviewer, resamples=200, seed=seed, item=texts).scores(gold, one)["within_kendall"]
            values.append(estimate.value)
            intervals.append((estimate.interval.low, estimate.interval.high))
    truth = np.mean(values)
    covered = [low <= truth <= high for low, high in intervals]
    assert np.mean(covered[::2]) < 0.7  # by reviewers
    assert np.mean(covered[1::2]) >= 0.92


def test_single_answers_noise_is_not_counted_three_times() -> None:
    # Nothing depends on the text: other texts would change as much as other readers do, no more.
    generator = np.random.default_rng(1)
    reviewer, item = np.repeat(np.arange(40), 40), np.tile(np.arange(40), 40)
    values, everything = generator.normal(size=1600), np.ones(1600, dtype=bool)
    two_way = Bootstrap.over(reviewer, resamples=1000, seed=0, item=item)
    plain = Bootstrap.over(reviewer, resamples=1000, seed=0).mean(values, everything).interval
    pigeonhole = bootstrap_interval(two_way.resampled_mean(values, everything)[:1000], reviewers=40)
    assert wide(two_way.mean(values, everything).interval) < 1.3 * wide(plain) < 0.85 * wide(pigeonhole)


def test_nine_texts_are_too_few_to_speak_of_others() -> None:
    gold, one, _, reviewer, item = world(0, texts=10)
    kept = item < 9
    _, item = np.unique(item[kept], return_inverse=True)
    found = Bootstrap.over(reviewer[kept], resamples=100, seed=0, item=item).scores(gold[kept], one[kept])["within_kendall"]
    assert found.value is not None and found.interval.reason == FEW_TEXTS
    assert (
        two_way_interval(0.0, np.zeros(250), both=100, reviewers=9, texts=30, sizes=np.ones(30, dtype=int)).reason
        == FEW_REVIEWERS
    )


def test_an_interval_of_both_is_never_narrower_than_one_of_either() -> None:
    generator = np.random.default_rng(0)
    shape, reviewers, items, rows = (generator.normal(0, spread, 4000) for spread in (2, 1, 1.2, 1.1))
    drawn = np.concatenate([shape, reviewers, items, rows])
    interval = two_way_interval(0.0, drawn, both=4000, reviewers=500, texts=500, sizes=np.ones(500, dtype=int))
    assert wide(interval) == pytest.approx(2 * 1.96 * 1.2, rel=0.05)  # 1 + 1.44 - 1.21 is less than 1.44


def test_a_text_that_has_many_of_the_items_widens_the_interval() -> None:
    generator = np.random.default_rng(0)
    shape, reviewers, items, rows = (generator.normal(0, spread, 4000) for spread in (2, 0.5, 1, 0.5))
    drawn = np.concatenate([shape, reviewers, items, rows])
    even, skewed = (
        two_way_interval(0.0, drawn, both=4000, reviewers=200, texts=200, sizes=sizes)
        for sizes in (np.full(200, 4), np.array([200, *np.full(199, 3)]))
    )
    # A quarter of the items is of one text: sum of w^2 is 0.0656, so that it counts as one of 15.2 texts, and sum of (w (1 - w))^2 0.0378: the variance
    # by texts is 1.74 times what is seen. With 14.2 degrees of freedom for texts t is 2.14 instead of 1.97.
    assert wide(even) == pytest.approx(2 * 1.97, rel=0.05)
    assert wide(skewed) == pytest.approx(2 * 2.14 * np.sqrt(1.74), rel=0.08)


def test_a_reviewer_with_very_many_rows_is_resampled_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, one, _, reviewer, item = world(3)
    resamples = Resamples.two_way(reviewer, item, resamples=20, seed=1)
    quick = within_resampled.resampled_within(gold, one, resamples)
    monkeypatch.setattr(within_resampled, "_MANY", 3)
    for name, sums in within_resampled.resampled_within(gold, one, resamples).items():
        np.testing.assert_allclose(sums.total, quick[name].total, atol=1e-9)
        np.testing.assert_array_equal(sums.defined, quick[name].defined)


def test_pairs_in_order_are_resampled_as_if_built_row_by_row() -> None:
    gold, one, _, reviewer, item = world(6, reviewers=12)
    one = np.round(one, 1)
    half = np.arange(12) % 2
    resamples = Resamples.two_way(reviewer, item, resamples=20, seed=1)
    ties = calibrated_pairs(gold, one, reviewer, fold_of_reviewer=half)
    found = within_resampled.resampled_pairs(gold, one, resamples, epsilon=ties.of_reviewers(half))
    slow = np.zeros((2, resamples.number))
    weight = resamples.weights_within(np.arange(len(gold)))
    for first, second in itertools.combinations(range(len(gold)), 2):
        if reviewer[first] == reviewer[second]:
            epsilon = ties.epsilons[1 - half[reviewer[first]]]
            assert epsilon is not None
            apart, truly = round(one[first] - one[second], 9), gold[first] - gold[second]
            right = truly == 0 if abs(apart) <= epsilon else truly * apart > 0
            times = resamples.drawn[reviewer[first]] * weight[first] * weight[second]
            slow += np.stack([right * times, times])
    np.testing.assert_allclose(found, slow, atol=1e-9)
    # Everybody drawn once, as in the resamples of rows alone but for those: the value itself.
    once = Resamples(reviewer, np.ones((12, 1), dtype=np.float32), item, np.ones((12, 1), dtype=np.float32))
    right, pairs = within_resampled.resampled_pairs(gold, one, once, epsilon=ties.of_reviewers(half))
    assert right[0] / pairs[0] == pytest.approx(ties.accuracy)


def test_pairs_in_order_have_wider_intervals_where_the_judge_errs_by_text() -> None:
    gold, one, _, reviewer, item = world(0)
    found = [
        METRICS["pair_accuracy"].function(
            Scored(bootstrap=bootstrap, gold=gold, predicted=one, scale=SCORES, half=np.arange(36) % 2, epsilon=0.1)
        )
        for bootstrap in (
            Bootstrap.over(reviewer, resamples=300, seed=0),
            Bootstrap.over(reviewer, resamples=300, seed=0, item=item),
        )
    ]
    assert found[0].value == found[1].value and wide(found[1].interval) > 2 * wide(found[0].interval)


def test_draws_do_not_depend_on_the_order_of_the_rows() -> None:
    gold, one, _, reviewer, item = world(4)
    order = np.random.default_rng(0).permutation(len(gold))
    plain, mixed = (
        Bootstrap.over(reviewer[rows], resamples=50, seed=2, item=item[rows]).resampled("within_kendall", gold[rows], one[rows])
        for rows in (np.arange(len(gold)), order)
    )
    np.testing.assert_allclose(plain, mixed, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("readers", "items", "texts", "noise"), [(79, 5, 250, 0.5), (79, 5, 250, 2.0), (40, 6, 120, 0.5)])
def test_intervals_of_stars_lie_around_their_value_and_cover_the_truth(
    readers: int, items: int, texts: int, noise: float
) -> None:
    """Four scores, many ties: readers drawn with fewer different texts have fewer of these, and a higher correlation."""

    def stars(generator: np.random.Generator) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        quality, lean = generator.normal(0, 0.7, texts), generator.normal(0, 0.5, readers)
        who = np.repeat(np.arange(readers), items)
        item = np.concatenate([generator.choice(texts, items, replace=False) for _ in range(readers)])
        felt = quality[item] + lean[who] + generator.normal(0, 1, len(who))
        gold = np.array([3.0, 6.0, 8.0, 10.0])[np.searchsorted([-1.6, -1.0, -0.3], felt)]
        return gold, gold + generator.normal(0, noise, len(gold)), who, item

    def within(gold: FloatArray, predicted: FloatArray, who: IntArray) -> float:
        value = within_every_reviewer(gold, predicted, who)["kendall"].mean(Convention.SKIP_CONSTANT)
        assert value is not None
        return value

    truth = float(np.mean([within(*stars(np.random.default_rng(seed))[:3]) for seed in range(1000, 1100)]))
    covered, worlds = 0, 40
    for seed in range(worlds):
        gold, predicted, who, item = stars(np.random.default_rng(seed))
        found = Bootstrap.over(who, resamples=200, seed=seed, item=item).one("within_kendall", gold, predicted)
        low, high = found.interval.low, found.interval.high
        assert low is not None and high is not None and found.value is not None and low <= found.value <= high
        covered += low <= truth <= high
    assert covered >= worlds - 5  # below it by chance in 1 of 100, where 95% are meant
