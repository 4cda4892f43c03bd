import numpy as np
import pytest
from scipy import stats

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import (
    ALIKE,
    FEW_REVIEWERS,
    FEW_TEXTS,
    ONE_REVIEWER,
    Behind,
    bootstrap_interval,
    expanded_levels,
    logit_interval,
    too_few,
    two_way_interval,
    unless_alike,
)
from perse.results.result import Interval


def test_levels_are_those_of_hesterberg() -> None:
    # Ten reviewers: t(9) at 2.5% is -2.2622 (any table), times sqrt(10 / 9) = -2.3845; the normal share below is 0.00855.
    low, high = expanded_levels(10)
    assert (low, high) == (pytest.approx(0.00855, abs=1e-5), pytest.approx(1 - 0.00855, abs=1e-5))
    # With very many reviewers nothing is left to widen.
    assert expanded_levels(1_000_000) == (pytest.approx(0.025, abs=1e-6), pytest.approx(0.975, abs=1e-6))


def test_fewer_than_ten_reviewers_have_no_interval_and_say_so() -> None:
    few = bootstrap_interval(np.linspace(0, 1, 100), reviewers=9)
    assert (few.low, few.high, few.reason) == (None, None, FEW_REVIEWERS)
    enough = bootstrap_interval(np.linspace(0, 1, 101), reviewers=10)
    # 101 evenly spaced values: a quantile is its own level.
    assert (enough.low, enough.high, enough.reason) == (*map(pytest.approx, expanded_levels(10)), None)


def test_one_reviewer_is_said_to_be_one() -> None:
    assert bootstrap_interval(np.zeros(100), reviewers=1).reason == ONE_REVIEWER


def test_the_reason_counts_those_who_stand_behind_the_value() -> None:
    reasons = [bootstrap_interval(np.linspace(0, 1, 100), reviewers=n, of="sample").reason for n in range(11)]
    few, one = (reason.replace("reviewer", "sample") for reason in (FEW_REVIEWERS, ONE_REVIEWER))
    assert reasons == [few, one, *[few] * 8, None]


def test_undefined_resamples_are_counted_and_too_many_leave_no_interval() -> None:
    some = bootstrap_interval(np.array([np.nan] * 40 + [0.5] * 60), reviewers=20)
    assert (some.low, some.undefined_resamples, some.resamples) == (0.5, 40, 100)
    most = bootstrap_interval(np.array([np.nan] * 60 + [0.5] * 40), reviewers=20)
    assert (most.low, most.undefined_resamples, most.reason) == (None, 60, "undefined (in 60 of 100 resamples)")


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say_at_200_reviewers() -> None:
    # 1,000 simulations: an interval that covers 95% is found to cover 95 +- 1.4 points (two binomial standard errors of
    # 0.7); 93 to 97 is asked. benchmarks/interval_coverage.py does the same for more statistics and fewer reviewers.
    simulations, reviewers, items = 1000, 200, 5
    reviewer = np.repeat(np.arange(reviewers), items)
    generator = np.random.default_rng(11)
    # Gold = g + e, predicted = g + f, of variances: g, shared by a reviewer's items, 1; own parts e 1 and f 1.
    # Pearson: 1 / sqrt(2 * 2). MAE: |e - f| with e - f normal of variance 2: sqrt(2) * sqrt(2 / pi).
    truth = {"pearson": 0.5, "mae": 2 / np.sqrt(np.pi)}
    covered = dict.fromkeys(truth, 0)
    for number in range(simulations):
        shared = generator.normal(size=reviewers)[reviewer]
        gold, predicted = shared + generator.normal(size=(2, len(reviewer)))
        bootstrap = Bootstrap.over(reviewer, resamples=400, seed=number)
        for name, true in truth.items():
            interval = bootstrap_interval(bootstrap.resampled(name, gold, predicted), reviewers=reviewers)
            assert interval.low is not None and interval.high is not None
            covered[name] += interval.low <= true <= interval.high
    assert all(0.93 <= hits / simulations <= 0.97 for hits in covered.values()), covered


def test_a_normal_mean_has_nearly_the_interval_of_students_t() -> None:
    # The levels are chosen so that the interval of a mean of normal values is that of t; ten reviewers, one item each.
    values = stats.norm.ppf((np.arange(10) + 0.5) / 10)
    found = Bootstrap.over(np.arange(10), resamples=20_000, seed=0).mean(values, np.ones(10, dtype=bool)).interval
    reach = stats.t.ppf(0.975, 9) * values.std(ddof=1) / np.sqrt(10)
    assert (found.low, found.high) == (pytest.approx(-reach, rel=0.05), pytest.approx(reach, rel=0.05))


def test_an_interval_near_1_is_of_logits_and_reaches_further_down() -> None:
    # Spread 0.02 sqrt(20 / 19) = 0.02052, times t 2.0930, over 0.95 * 0.05: 0.904 around logit 2.944, so 2.040 and 3.849.
    resampled = 0.95 + 0.02 * stats.norm.ppf((np.arange(400) + 0.5) / 400)
    resampled = 0.95 + (resampled - 0.95) * 0.02 / resampled.std()
    found = logit_interval(0.95, resampled, reviewers=20)
    assert (found.low, found.high) == (pytest.approx(0.885, abs=5e-4), pytest.approx(0.979, abs=5e-4))
    assert logit_interval(1.0, np.ones(400), reviewers=20).low is None
    assert logit_interval(0.95, resampled, reviewers=9).reason == FEW_REVIEWERS


def test_half_of_the_resamples_undefined_are_too_many() -> None:
    half = bootstrap_interval(np.array([np.nan] * 50 + [0.5] * 50), reviewers=20)
    assert (half.low, half.reason) == (None, "undefined (in 50 of 100 resamples)")
    assert bootstrap_interval(np.array([np.nan] * 49 + [0.5] * 51), reviewers=20).low == 0.5
    few = bootstrap_interval(np.array([np.nan] * 3 + [0.5] * 7), reviewers=9)
    assert (few.resamples, few.undefined_resamples) == (10, 3), "also where there is no interval for another reason"


def test_reviewers_of_unequal_weight_count_as_fewer() -> None:
    found = bootstrap_interval(np.linspace(0, 1, 1001), reviewers=100, worth=12.5)
    assert (found.low, found.high) == (*map(pytest.approx, expanded_levels(12.5)),)


def test_an_interval_of_both_needs_ten_of_either() -> None:
    assert too_few(10) is None and too_few(10, texts=10) is None
    assert [found.reason for found in (too_few(9), too_few(9, texts=9), too_few(10, texts=9)) if found] == [
        FEW_REVIEWERS,
        FEW_REVIEWERS,
        FEW_TEXTS,
    ]


def test_a_difference_rests_on_the_fewer_of_either_side() -> None:
    assert Behind.both(Behind(20), Behind(12)) == Behind(12)
    assert Behind.both(Behind(20, texts=30), Behind(12, texts=40)) == Behind(12, texts=30)
    assert Behind.both(Behind(20), Behind(30, texts=40)) == Behind(20, texts=40)


def test_resamples_that_are_all_alike_leave_no_interval() -> None:
    interval = Interval(low=2.0, high=3.0, resamples=100, undefined_resamples=4)
    alike = unless_alike(interval, np.array([-1e6, -1e6 - 1e-4, np.nan]))
    assert alike == Interval(reason=ALIKE, resamples=100, undefined_resamples=4), "what rounding makes of one number"
    for apart in ([-1e6, -1e6 - 1e-2], [0.5, 0.5 + 1e-8], [0.0, 2e-9], [np.nan]):
        assert unless_alike(interval, np.array(apart)) is interval, apart
    assert unless_alike(interval, np.array([0.0, 5e-10])).reason == ALIKE
    none = Interval(reason=FEW_REVIEWERS)
    assert unless_alike(none, np.ones(3)) is none


def evenly(number: int, spread: float, middle: float = 0.0) -> FloatArray:
    """`number` values like normal ones, of this standard deviation."""
    values = stats.norm.ppf((np.arange(number) + 0.5) / number)
    return np.asarray(middle + values * spread / values.std())


@pytest.mark.parametrize(
    ("by_reviewers", "by_items", "by_rows", "wanted"),
    [(3.0, 2.0, 1.0, 9 + 4 - 1), (3.0, 1.0, 2.0, 9.0), (1.0, 3.0, 2.0, 9.0)],
)
def test_an_interval_of_readers_and_texts_by_hand(by_reviewers: float, by_items: float, by_rows: float, wanted: float) -> None:
    """The variance by reviewers plus that by texts less that by rows, at least either: around the value, whatever the resamples lie around."""
    drawn = np.concatenate([evenly(4001, 5.0, middle=97.0), *(evenly(2000, one) for one in (by_reviewers, by_items, by_rows))])
    sizes = np.full(25, 4)
    # One of 25 texts hides 1 / 25 of its own from the value: 25 * 25 * (0.04 * 0.96)^2 = 0.9216 of the variance is seen.
    seen = by_items**2 / (25 * 25 * (0.04 * 0.96) ** 2)
    variance = max(by_reviewers**2, seen, by_reviewers**2 + seen - by_rows**2)
    assert variance == pytest.approx(wanted, rel=0.1)
    freedom = variance**2 / (by_reviewers**4 / 39 + seen**2 / 24)
    levels = expanded_levels(min(25.0, 1 + freedom))
    found = two_way_interval(100.0, drawn, both=4001, reviewers=40, texts=25, sizes=sizes)
    expected = [100 + stats.norm.ppf(level) * np.sqrt(variance) for level in levels]
    assert (found.low, found.high) == (pytest.approx(expected[0], rel=2e-3), pytest.approx(expected[1], rel=2e-3))
    assert (found.resamples, found.undefined_resamples) == (4001, 0)


def test_few_texts_among_many_reviewers_are_said_and_what_was_undefined_counted() -> None:
    drawn = np.concatenate([[np.nan, 1.0, 2.0, np.nan], np.zeros(6)])
    found = two_way_interval(1.0, drawn, both=4, reviewers=10, texts=9, sizes=np.ones(9, dtype=int))
    assert (found.reason, found.resamples, found.undefined_resamples) == (FEW_TEXTS, 4, 2)


def test_where_texts_change_nothing_the_resamples_stay_as_wide_as_they_are() -> None:
    drawn = np.concatenate([evenly(1001, 2.0), evenly(500, 1.0), np.zeros(500), np.zeros(500)])
    found = two_way_interval(0.0, drawn, both=1001, reviewers=30, texts=20, sizes=np.ones(20, dtype=int))
    low, high = (stats.norm.ppf(level) * 2 for level in expanded_levels(20))
    assert [found.low, found.high] == pytest.approx([low, high], rel=0.01)


def test_an_interval_ends_where_values_end() -> None:
    """No resample of a correlation is above 1, so neither is the interval, however far it is moved and widened."""
    shape = np.minimum(evenly(1001, 0.02, middle=0.97), 1.0)
    drawn = np.concatenate([shape, *(evenly(500, 0.05) for _ in range(3))])
    found = two_way_interval(0.99, drawn, both=1001, reviewers=30, texts=20, sizes=np.ones(20, dtype=int))
    assert found.high == 1.0 and found.low is not None and found.low < 0.9
    low = two_way_interval(
        0.99, np.concatenate([shape - 0.5, drawn[1001:]]), both=1001, reviewers=30, texts=20, sizes=np.ones(20, dtype=int)
    )
    assert low.high == 0.99, "the value itself, where every resample is lower"


def test_a_text_that_has_nearly_all_items_counts_as_two_and_hides_no_more_than_nine_tenths() -> None:
    # w = 180 / 200: as one of 1 / (0.81 + 20 / 200^2) = 1.23 texts, of whose variance 1.23 (0.9 * 0.1)^2 + ... = 0.011 would be seen.
    drawn = np.concatenate([evenly(4001, 5.0), *(evenly(2000, one) for one in (2.0, np.sqrt(0.2), 1.0))])
    found = two_way_interval(0.0, drawn, both=4001, reviewers=200, texts=21, sizes=np.array([180, *np.ones(20, dtype=int)]))
    variance = 4 + 0.2 / 0.1 - 1
    freedom = variance**2 / (4**2 / 199 + 2**2 / 1)
    low, high = (stats.norm.ppf(level) * np.sqrt(variance) for level in expanded_levels(1 + freedom))
    assert [found.low, found.high] == pytest.approx([low, high], rel=5e-3)
