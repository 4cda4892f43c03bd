import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perse.evaluation.stats.correlation import (
    COEFFICIENTS,
    Convention,
    between_reviewers,
    kendall,
    kendall_a,
    kendall_c,
    pearson,
    reviewer_means,
    spearman,
    within_reviewers,
)
from perse.evaluation.stats.within import within_every_reviewer

ALL = {**COEFFICIENTS, "kendall_c": kendall_c}

REFERENCE = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
    "kendall_c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
}


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", range(5))
def test_coefficients_equal_scipy_with_and_without_ties(name: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    gold = generator.integers(1, 11, 60).astype(float)
    for predicted in (gold + generator.normal(0, 2, 60), np.round(gold + generator.normal(0, 2, 60))):
        assert ALL[name](gold, predicted) == pytest.approx(REFERENCE[name](gold, predicted), abs=1e-12)


def test_coefficients_equal_hand_derived_values() -> None:
    # x = 1 2 3 4, y = 1 3 2 4. Deviations -1.5 -.5 .5 1.5 and -1.5 .5 -.5 1.5: products 2.25 -.25 -.25 2.25 = 4; squares 5, 5.
    assert pearson(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 5)
    # The values are their own ranks.
    assert spearman(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 5)
    # Of 6 pairs one (2, 3) is discordant: (5 - 1) / 6.
    assert kendall(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 6)
    # x = 1 1 2, y = 1 2 3: the pair tied in x counts nowhere; 2 concordant / sqrt(2 untied in x * 3 untied in y).
    assert kendall(floats(1, 1, 2), floats(1, 2, 3)) == pytest.approx(2 / math.sqrt(6))
    # The same for tau-c: 2 concordant, n = 3, x has m = 2 values: 2 * 2 / (9 * 1/2).
    assert kendall_c(floats(1, 1, 2), floats(1, 2, 3)) == pytest.approx(8 / 9)
    # The same less concordant ones over all 9 ordered pairs, of which a tie is for neither: 2 * 2 / 9, and for three tied pairs 0 of them.
    assert kendall_a(floats(1, 1, 2), floats(1, 2, 3)) == pytest.approx(4 / 9)
    assert kendall_a(floats(1, 2, 3, 4), floats(1, 1, 2, 2)) == pytest.approx(2 * 4 / 16)


@pytest.mark.parametrize("coefficient", ALL.values(), ids=ALL)
def test_constant_and_too_short_inputs_are_undefined_not_zero(coefficient) -> None:
    assert coefficient(floats(5, 5, 5), floats(1, 2, 3)) is None
    assert coefficient(floats(1, 2, 3), floats(5, 5, 5)) is None
    assert coefficient(floats(1), floats(1)) is None
    assert coefficient(floats(), floats()) is None


def test_values_that_differ_by_less_than_their_squares_can_tell_have_no_pearson() -> None:
    assert pearson(floats(1e-200, 2e-200, 3e-200), floats(1, 2, 3)) is None
    assert pearson(floats(1, 2, 3), floats(1e-200, 2e-200, 3e-200)) is None
    assert pearson(floats(1e-100, 2e-100, 3e-100), floats(1, 2, 3)) == pytest.approx(1)


@pytest.mark.parametrize("coefficient", ALL.values(), ids=ALL)
def test_lengths_that_differ_are_refused(coefficient) -> None:
    with pytest.raises(ValueError, match="3 gold scores and 2 predictions"):
        coefficient(floats(1, 2, 3), floats(1, 2))
    with pytest.raises(ValueError, match="2 gold scores and 3 predictions"):
        coefficient(floats(1, 2), floats(1, 2, 3))


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), max_size=12))
def test_coefficients_are_none_or_between_minus_one_and_one_and_symmetric(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = floats(*(x for x, _ in pairs)), floats(*(y for _, y in pairs))
    for coefficient in ALL.values():
        value = coefficient(gold, predicted)
        defined = len(set(gold)) > 1 and len(set(predicted)) > 1
        assert (value is not None) == defined
        if value is not None:
            assert -1 <= value <= 1
            assert coefficient(predicted, gold) == pytest.approx(value)


def test_within_reviewer_is_the_mean_of_each_reviewers_own_and_counts_the_skipped() -> None:
    # Reader 0: perfectly ordered (1). Reader 1: reversed (-1). Reader 2: constant gold. 3: one item. 4: 4/5, as above.
    gold = floats(1, 2, 3, 4, 5, 6, 7, 7, 3, 1, 2, 3, 4)
    predicted = floats(2, 3, 4, 9, 8, 7, 1, 2, 3, 1, 3, 2, 4)
    reviewer = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 4, 4])
    within = within_reviewers(pearson, gold, predicted=predicted, reviewer=reviewer)
    assert (within.used, within.skipped) == (3, 2)
    assert within.mean(Convention.SKIP_CONSTANT) == pytest.approx((1 - 1 + 0.8) / 3)
    assert within.mean(Convention.CONSTANT_AS_ZERO) == pytest.approx((1 - 1 + 0.8 + 0 + 0) / 5)


@pytest.mark.parametrize("lengths", [(2, 3, 3), (3, 2, 3), (3, 3, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2)])
def test_rows_without_a_reader_or_a_score_are_refused(lengths: tuple[int, int, int]) -> None:
    gold, predicted, reviewer = (np.arange(length) for length in lengths)
    with pytest.raises(ValueError, match="must be as many"):
        within_reviewers(kendall, gold.astype(float), predicted=predicted.astype(float), reviewer=reviewer)


def test_within_reviewer_ignores_the_order_of_rows() -> None:
    generator = np.random.default_rng(3)
    reviewer = np.repeat(np.arange(6), 5)
    gold, predicted = generator.integers(1, 11, 30).astype(float), generator.normal(size=30)
    shuffled = generator.permutation(30)
    plain = within_reviewers(kendall, gold, predicted=predicted, reviewer=reviewer)
    mixed = within_reviewers(kendall, gold[shuffled], predicted=predicted[shuffled], reviewer=reviewer[shuffled])
    np.testing.assert_allclose(plain.values, mixed.values)


def test_knowing_only_leniency_is_rewarded_pooled_and_undefined_within() -> None:
    gold, predicted = floats(1, 2, 3, 8, 9, 10), floats(2, 2, 2, 9, 9, 9)
    pooled = pearson(gold, predicted)
    assert pooled is not None and pooled > 0.9
    within = within_reviewers(pearson, gold, predicted=predicted, reviewer=np.array([0, 0, 0, 1, 1, 1]))
    assert within.mean(Convention.SKIP_CONSTANT) is None
    assert within.mean(Convention.CONSTANT_AS_ZERO) == 0


def test_no_items_have_no_macro_mean_under_either_convention() -> None:
    within = within_reviewers(pearson, floats(), predicted=floats(), reviewer=np.array([], dtype=np.int64))
    assert [within.mean(convention) for convention in Convention] == [None, None]


def test_between_reviewers_compares_their_means_each_weighing_the_same() -> None:
    gold, predicted = floats(1, 2, 3, 5, 7, 9), floats(3, 3, 3, 2, 4, 6)
    reviewer = np.array([4, 4, 4, 0, 7, 7])
    np.testing.assert_array_equal(reviewer_means(gold, reviewer), [5, 2, 8])  # of reviewers 0, 4, 7
    np.testing.assert_array_equal(reviewer_means(predicted, reviewer), [2, 3, 5])
    # Of 3 pairs of reviewers (0, 4) is discordant: (2 - 1) / 3.
    assert between_reviewers(kendall, gold, predicted=predicted, reviewer=reviewer) == pytest.approx(1 / 3)
    # Deviations 0 -3 3 and -4/3 -1/3 5/3: products 0 + 1 + 5 = 6; squares 18 and 42/9.
    expected = 6 / math.sqrt(18 * 42 / 9)
    assert between_reviewers(pearson, gold, predicted=predicted, reviewer=reviewer) == pytest.approx(expected)


def test_one_reviewer_has_nothing_between() -> None:
    assert between_reviewers(pearson, floats(1, 2), predicted=floats(1, 2), reviewer=np.array([0, 0])) is None


def test_means_that_differ_only_by_the_order_of_their_additions_are_ties() -> None:
    values, reviewer = floats(0.1, 0.2, 0.3, 0.3, 0.2, 0.1), np.array([0, 0, 0, 1, 1, 1])
    assert (values[:3].sum() == values[3:].sum()) is np.False_  # 0.6000000000000001 and 0.6
    means = reviewer_means(values, reviewer)
    assert means[0] == means[1]


RATED = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.sampled_from([0.1, 0.3, 0.30000000000000004, 2.0, 7.0])))


@given(RATED)
def test_every_reviewer_at_once_equals_one_by_one(rows: list[tuple[int, int, float]]) -> None:
    reviewer = np.array([who for who, _, _ in rows], dtype=np.int64)
    gold, predicted = floats(*(x for _, x, _ in rows)), floats(*(y for _, _, y in rows))
    _compare_to_one_by_one(gold, predicted, reviewer)


def test_reviewers_with_very_many_items_equal_one_by_one_too() -> None:
    generator = np.random.default_rng(5)
    reviewer = generator.permutation(np.repeat([0, 1, 2, 3], [600, 7, 501, 30]))
    gold = generator.integers(1, 11, len(reviewer)).astype(float)
    gold[reviewer == 2] = 4  # constant
    _compare_to_one_by_one(gold, np.round(gold + generator.normal(0, 3, len(gold)), 1), reviewer)


def _compare_to_one_by_one(gold: np.ndarray, predicted: np.ndarray, reviewer: np.ndarray) -> None:
    together = within_every_reviewer(gold, predicted, reviewer)
    assert list(together) == list(COEFFICIENTS)
    for name, coefficient in COEFFICIENTS.items():
        apart = within_reviewers(coefficient, gold, predicted=predicted, reviewer=reviewer)
        np.testing.assert_array_equal(together[name].reviewers, apart.reviewers)
        np.testing.assert_allclose(together[name].values, apart.values, atol=1e-12)
