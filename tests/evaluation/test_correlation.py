import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perse.evaluation.correlation import (
    COEFFICIENTS,
    Convention,
    kendall,
    pearson,
    spearman,
    within_reviewers,
)

REFERENCE = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
}


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("name", COEFFICIENTS)
@pytest.mark.parametrize("seed", range(5))
def test_coefficients_equal_scipy_with_and_without_ties(name: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    gold = generator.integers(1, 11, 60).astype(float)
    for predicted in (gold + generator.normal(0, 2, 60), np.round(gold + generator.normal(0, 2, 60))):
        assert COEFFICIENTS[name](gold, predicted) == pytest.approx(REFERENCE[name](gold, predicted), abs=1e-12)


def test_coefficients_equal_hand_derived_values() -> None:
    # x = 1 2 3 4, y = 1 3 2 4. Deviations -1.5 -.5 .5 1.5 and -1.5 .5 -.5 1.5: products 2.25 -.25 -.25 2.25 = 4; squares 5, 5.
    assert pearson(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 5)
    # The values are their own ranks.
    assert spearman(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 5)
    # Of 6 pairs one (2, 3) is discordant: (5 - 1) / 6.
    assert kendall(floats(1, 2, 3, 4), floats(1, 3, 2, 4)) == pytest.approx(4 / 6)
    # x = 1 1 2, y = 1 2 3: the pair tied in x counts nowhere; 2 concordant / sqrt(2 untied in x * 3 untied in y).
    assert kendall(floats(1, 1, 2), floats(1, 2, 3)) == pytest.approx(2 / math.sqrt(6))


@pytest.mark.parametrize("coefficient", COEFFICIENTS.values())
def test_constant_and_too_short_inputs_are_undefined_not_zero(coefficient) -> None:
    assert coefficient(floats(5, 5, 5), floats(1, 2, 3)) is None
    assert coefficient(floats(1, 2, 3), floats(5, 5, 5)) is None
    assert coefficient(floats(1), floats(1)) is None
    assert coefficient(floats(), floats()) is None


@pytest.mark.parametrize("coefficient", COEFFICIENTS.values())
def test_lengths_that_differ_are_refused(coefficient) -> None:
    with pytest.raises(ValueError, match="3 gold scores and 2 predictions"):
        coefficient(floats(1, 2, 3), floats(1, 2))


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), max_size=12))
def test_coefficients_are_none_or_between_minus_one_and_one_and_symmetric(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = floats(*(x for x, _ in pairs)), floats(*(y for _, y in pairs))
    for coefficient in COEFFICIENTS.values():
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
