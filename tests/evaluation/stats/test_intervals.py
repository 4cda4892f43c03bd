import numpy as np
import pytest
from scipy import stats

from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEW_REVIEWERS, ONE_REVIEWER, bootstrap_interval, expanded_levels, logit_interval


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
