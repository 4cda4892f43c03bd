"""Exchanging answers by reviewer: equal to trying all exchanges one by one, and p is what a p should be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perse.evaluation.stats.correlation import COEFFICIENTS, Convention, FloatArray, IntArray, within_reviewers
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.significance import Permutation, holm, paired_permutation, standardised, williams

NAMES = ("pearson", "spearman", "kendall", "within_kendall", "mae")
SIMULATED = ("pearson", "kendall", "mae")


def permuted(
    gold: FloatArray,
    one: FloatArray,
    other: FloatArray,
    reviewer: IntArray,
    *,
    permutations: int = 2000,
    seed: int = 0,
    names: tuple[str, ...] = NAMES,
) -> dict[str, Permutation]:
    def columns(bootstrap: Bootstrap, truth: FloatArray, predicted: FloatArray) -> dict[str, FloatArray]:
        return {name: bootstrap.resampled(name, truth, predicted) for name in names}

    return paired_permutation(columns, gold, one=one, other=other, reviewer=reviewer, permutations=permutations, seed=seed)


def value(name: str, gold: FloatArray, predicted: FloatArray, reviewer: IntArray) -> float | None:
    if name == "mae":
        return float(np.abs(gold - predicted).mean())
    if name == "within_kendall":
        within = within_reviewers(COEFFICIENTS["kendall"], gold, predicted=predicted, reviewer=reviewer)
        return within.mean(Convention.SKIP_CONSTANT)
    return COEFFICIENTS[name](gold, predicted)


def one_by_one(name: str, gold: FloatArray, one: FloatArray, other: FloatArray, reviewer: IntArray) -> float | None:
    """The slow twin: every exchange, built row by row."""
    differences: list[float | None] = []
    reviewers = np.unique(reviewer)
    for exchanged in product([False, True], repeat=len(reviewers)):
        swapped = np.isin(reviewer, reviewers[list(exchanged)])
        first = value(name, gold, np.where(swapped, other, one), reviewer)
        second = value(name, gold, np.where(swapped, one, other), reviewer)
        differences.append(None if first is None or second is None else abs(first - second))
    found = differences[0]
    if found is None:
        return None
    return float(np.mean([each is None or each >= found - 1e-9 for each in differences]))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_all_exchanges_at_once_are_all_exchanges_one_by_one(reviewers: int, items: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    reviewer = np.repeat(np.arange(reviewers), items) * 3  # numbers need not be consecutive
    gold, one, other = generator.integers(1, 4, size=(3, len(reviewer))).astype(np.float64)
    found = permuted(gold, one, other, reviewer)
    for name in NAMES:
        expected = one_by_one(name, gold, one, other, reviewer)
        if expected is None:
            assert found[name].p is None and found[name].reason == "undefined (one of the values is)"
        else:
            assert found[name].exact and found[name].p == pytest.approx(expected)


def test_three_reviewers_by_hand() -> None:
    # One judge is off by 0 everywhere, the other by 1, 2 and 3: the differences of the sums of errors are +-1 +-2 +-3, of
    # which 6 and -6, two of eight, are as large as that of no exchange.
    gold = np.array([5.0, 5.0, 5.0])
    found = permuted(gold, gold, np.array([6.0, 7.0, 8.0]), np.arange(3))
    assert found["mae"] == Permutation(p=0.25, exact=True)


def test_an_exchange_that_leaves_a_value_undefined_counts_as_large() -> None:
    # Pearson with 1 2 3: of 1 2 3 it is 1, of 2 1 2 it is 0, so the difference is 1. The first answers stay, of the others either,
    # both or none are exchanged: 1 1 3 and 2 2 2 (undefined), 1 2 2 and 2 1 3 (0.37), 1 1 2 and 2 2 3 (0). Two of four.
    gold = np.array([1.0, 2.0, 3.0])
    found = permuted(gold, gold, np.array([2.0, 1.0, 2.0]), np.arange(3), names=("pearson",))
    assert found["pearson"] == Permutation(p=0.5, exact=True)


def test_a_drawn_p_is_never_zero() -> None:
    gold = np.random.default_rng(0).integers(1, 11, 60).astype(np.float64)
    found = permuted(gold, gold, gold + 1.5, np.arange(60) // 2, permutations=199)
    assert found["mae"] == Permutation(p=1 / 200, exact=False)


def test_judges_that_say_the_same_have_p_one() -> None:
    generator = np.random.default_rng(1)
    gold, both = generator.integers(1, 11, size=(2, 60)).astype(np.float64)
    assert {found.p for found in permuted(gold, both, both, np.arange(60) // 3, permutations=199).values()} == {1.0}


def test_one_reviewer_has_no_p_and_says_so() -> None:
    gold, one, other = np.random.default_rng(2).normal(size=(3, 8))
    assert permuted(gold, one, other, np.zeros(8, dtype=np.int64))["kendall"].reason == "undefined (one reviewer)"


def test_no_items_have_no_p() -> None:
    nothing = np.empty(0)
    found = permuted(nothing, nothing, nothing, np.empty(0, dtype=np.int64))
    assert {each.reason for each in found.values()} == {"undefined (one of the values is)"}


def test_the_order_of_the_items_does_not_matter_and_the_seed_does() -> None:
    generator = np.random.default_rng(3)
    reviewer = np.arange(90) // 3
    gold, one, other = generator.normal(size=(3, 90))
    order = generator.permutation(90)
    found = permuted(gold, one, other, reviewer, permutations=199)
    assert permuted(gold[order], one[order], other[order], reviewer[order], permutations=199) == found
    assert permuted(gold, one, other, reviewer, permutations=199, seed=1) != found


def simulated(seed: int, *, better: float) -> dict[str, Permutation]:
    """Two judges of 12 readers, 4 items each, whose mistakes depend on the reader; the second noisier by `better`."""
    generator = np.random.default_rng(seed)
    reviewer = np.repeat(np.arange(12), 4)
    gold = generator.normal(6, 2, 48)
    judges = []
    for noise in (1.0, 1.0 + better):
        of_reader = generator.normal(0, noise, 12)[reviewer]
        judges.append(gold + of_reader + generator.normal(0, noise, 48))
    return permuted(gold, judges[0], judges[1], reviewer, permutations=199, names=SIMULATED)


@pytest.mark.slow
def test_p_is_uniform_when_judges_are_equally_good() -> None:
    # 250 simulations: Kolmogorov-Smirnov against steps of 1/200, and the share at or below 0.05 within three binomial
    # standard deviations (0.014 each) of 0.05. Items of a reader depend on each other: exchanging items alone would fail.
    found = [simulated(seed, better=0.0) for seed in range(250)]
    for name in SIMULATED:
        p = np.array([each[name].p for each in found], dtype=np.float64)
        assert stats.kstest(p, "uniform").pvalue > 0.01, name
        assert 0.008 <= (p <= 0.05).mean() <= 0.092, name


@pytest.mark.slow
def test_a_planted_difference_is_found() -> None:
    found = [simulated(seed, better=2.0) for seed in range(40)]
    for name in SIMULATED:
        assert np.mean([(each[name].p or 0) <= 0.05 for each in found]) >= 0.8, name


def test_holm_by_hand() -> None:
    # In order 0.005 * 4 = 0.02, 0.01 * 3 = 0.03, 0.03 * 2 = 0.06, and 0.04 * 1 raised to the 0.06 before it.
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([None]) == [None]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p: list[float]) -> None:
    adjusted = [each for each in holm(p) if each is not None]
    assert all(one <= other <= min(1.0, one * len(p)) for one, other in zip(p, adjusted, strict=True))
    assert [adjusted[place] for place in np.argsort(p, kind="stable")] == sorted(adjusted)


def test_williams_by_hand() -> None:
    # |R| = 1 - 0.25 - 0.09 = 0.66; 2 * 0.66 * 102 / 100 + 0.4^2 * 1 = 1.5064; t = 0.2 * sqrt(102 / 1.5064) = 1.64574
    found = williams(0.5, 0.3, r_12=0.0, n=103)
    assert found is not None
    assert found.t == pytest.approx(1.64574, abs=1e-5)
    assert found.p == pytest.approx(2 * stats.t.sf(1.64574, 100), abs=1e-5)


def test_williams_is_that_of_steigers_case_a() -> None:
    # Correlations 0.4, 0.5 and 0.1 of 103 rows, the example of `r.test` of the R package psych: t = -0.89, p < 0.37 (0.375).
    found = williams(0.4, 0.5, r_12=0.1, n=103)
    assert found is not None
    assert (round(found.t, 2), int(found.p * 100)) == (-0.89, 37)


def test_williams_is_undefined_for_too_few_rows_and_for_judges_that_say_the_same() -> None:
    assert williams(0.5, 0.3, r_12=0.1, n=3) is None
    assert williams(0.5, 0.5, r_12=1.0, n=100) is None


def test_what_is_exchanged_may_be_standardised_first() -> None:
    found = standardised(np.array([2.0, 4.0, 9.0]))
    assert found.mean() == pytest.approx(0) and found.std() == pytest.approx(1)
    assert found == pytest.approx(stats.zscore([2.0, 4.0, 9.0]))
    assert standardised(np.array([3.0, 3.0])).tolist() == [0.0, 0.0], "a judge that says one thing has no spread to divide by"
    assert standardised(np.array([])).tolist() == []


def test_answers_that_are_not_as_many_are_refused() -> None:
    three, two = np.zeros(3), np.zeros(2)
    for gold, one, other, reviewer in (
        (two, three, three, three),
        (three, two, three, three),
        (three, three, two, three),
        (three, three, three, two),
    ):
        with pytest.raises(ValueError, match=r"must be as many, found \[2, 3\]"):
            permuted(gold, one, other, reviewer.astype(int))


def test_exchanges_are_all_counted_where_there_are_no_more_than_asked_for() -> None:
    gold, one, other, reviewer = np.arange(3.0), np.array([0.0, 1.1, 2.5]), np.array([0.3, 1.2, 2.0]), np.arange(3)
    exact = [permuted(gold, one, other, reviewer, permutations=n, names=("mae",))["mae"].exact for n in (7, 8, 9)]
    assert exact == [False, True, True]


@pytest.mark.parametrize("permutations", [100, 2000])
def test_of_readers_to_whom_both_say_the_same_the_exchange_makes_no_p_smaller(permutations: int) -> None:
    """Five of 30 are told the truth by one side: of 32 ways to exchange them, none and all are as far apart. The answers of the others, brought to
    another scale on each side, would be exchanged as if they differed."""
    generator = np.random.default_rng(0)
    reviewer = np.repeat(np.arange(30), 6)
    gold, other = generator.normal(size=(2, 180))
    one = np.where(reviewer < 5, gold, other)

    def columns(drawn: Bootstrap, true: FloatArray, said: FloatArray) -> dict[str, FloatArray]:
        return {name: drawn.resampled(name, true, said) for name in ("kendall", "pearson")}

    asked = {"one": one, "other": other, "reviewer": reviewer, "permutations": permutations, "seed": 0}
    found = paired_permutation(columns, gold, **asked, scaled=standardised)  # type: ignore[arg-type]
    assert found["kendall"] == Permutation(p=2 / 32, exact=True)
    assert found["pearson"].exact and (found["pearson"].p or 0) >= 2 / 32
    asked["other"] = one
    assert paired_permutation(columns, gold, **asked)["kendall"] == Permutation(p=1.0, exact=True)  # type: ignore[arg-type]
