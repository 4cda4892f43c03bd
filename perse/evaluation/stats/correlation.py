"""Agreement of predicted with true scores: pooled over all items, and within each reviewer.

A pooled coefficient rewards knowing only how lenient a reviewer is; the within-reviewer one asks whether the judge orders
one reader's texts as that reader does. What cannot be computed is None: never 0, never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Coefficient = Callable[[FloatArray, FloatArray], float | None]


class Convention(StrEnum):
    """How the mean treats reviewers without a coefficient (constant gold or prediction, or fewer than 2 items)."""

    SKIP_CONSTANT = "skip_constant"
    """They are left out of the mean, and counted."""
    CONSTANT_AS_ZERO = "constant_as_zero"
    """They enter the mean as 0: a judge that gives a reader one score for everything has not ordered their texts."""


def pearson(gold: FloatArray, predicted: FloatArray) -> float | None:
    """Sum of products of deviations over the root of the product of their sums of squares; None if either is constant."""
    if _is_undefined(gold, predicted):
        return None
    gold_deviation, predicted_deviation = gold - gold.mean(), predicted - predicted.mean()
    # Normalised one by one: the product of two tiny sums of squares could underflow.
    # Sums, not dot products, whose order of additions depends on the number of threads.
    lengths = [float(np.sqrt(np.square(deviation).sum())) for deviation in (gold_deviation, predicted_deviation)]
    if min(lengths) == 0:  # values that differ by less than their mean can express
        return None
    return float(np.clip((gold_deviation / lengths[0] * (predicted_deviation / lengths[1])).sum(), -1, 1))


def spearman(gold: FloatArray, predicted: FloatArray) -> float | None:
    """Pearson correlation of the ranks, ties sharing their mean rank; None if either is constant."""
    if _is_undefined(gold, predicted):
        return None
    return pearson(stats.rankdata(gold), stats.rankdata(predicted))


def kendall(gold: FloatArray, predicted: FloatArray) -> float | None:
    """Tau-b: (concordant - discordant) / sqrt(pairs not tied in gold * pairs not tied in predicted); None if constant."""
    if _is_undefined(gold, predicted):
        return None
    return float(stats.kendalltau(gold, predicted, variant="b").statistic)


def kendall_c(gold: FloatArray, predicted: FloatArray) -> float | None:
    """Tau-c (Stuart): 2 (concordant - discordant) / (n^2 (m - 1) / m), m the distinct values of the side with fewer.

    For two sides of different numbers of values, as expected scores and whole gold scores are: there tau-b cannot reach 1.
    None if either is constant.
    """
    if _is_undefined(gold, predicted):
        return None
    return float(stats.kendalltau(gold, predicted, variant="c").statistic)


def kendall_a(gold: FloatArray, predicted: FloatArray) -> float | None:
    """2 (concordant - discordant) / n^2: of two sides of the same items a difference in which ties count for neither.

    Tau-b leaves the ties of a prediction out of what it divides by, so breaking them by nothing lowers it. None if either is constant.
    """
    found = kendall_c(gold, predicted)
    fewer = min(len(np.unique(side)) for side in (gold, predicted))
    return None if found is None else found * (fewer - 1) / fewer


COEFFICIENTS: Mapping[str, Coefficient] = MappingProxyType({"pearson": pearson, "spearman": spearman, "kendall": kendall})


@dataclass(frozen=True)
class WithinReviewer:
    """One coefficient per reviewer, in the order of `reviewers`; NaN where it is undefined."""

    reviewers: IntArray
    values: FloatArray

    @property
    def used(self) -> int:
        """Reviewers that have a coefficient."""
        return int(np.isfinite(self.values).sum())

    @property
    def skipped(self) -> int:
        """Reviewers without: constant gold or prediction, or fewer than 2 items."""
        return len(self.values) - self.used

    def mean(self, convention: Convention) -> float | None:
        """The macro mean; None if no reviewer enters it."""
        if convention is Convention.SKIP_CONSTANT:
            return float(np.nanmean(self.values)) if self.used else None
        return float(np.nan_to_num(self.values).mean()) if len(self.values) else None


def within_reviewers(
    coefficient: Coefficient, gold: FloatArray, *, predicted: FloatArray, reviewer: IntArray
) -> WithinReviewer:
    """`coefficient` of the items of each reviewer apart.

    Args:
        coefficient: one of `COEFFICIENTS`.
        gold, predicted: scores, one an item.
        reviewer: whose item it is, as an integer.
    """
    if not len(gold) == len(predicted) == len(reviewer):
        raise ValueError(f"{len(gold)} gold scores, {len(predicted)} predictions, {len(reviewer)} reviewers: must be as many")
    if not len(reviewer):
        return WithinReviewer(np.empty(0, dtype=np.int64), np.empty(0))
    order = np.argsort(reviewer, kind="stable")
    reviewers, starts = np.unique(reviewer[order], return_index=True)
    parts = np.split(order, starts[1:])
    found = (coefficient(gold[part], predicted[part]) for part in parts)
    return WithinReviewer(reviewers, np.array([np.nan if value is None else value for value in found]))


def reviewer_means(values: FloatArray, reviewer: IntArray) -> FloatArray:
    """Mean of `values` by reviewer, in the order of the reviewers, (distinct reviewers,).

    Rounded to 12 decimals, so that means that differ by floating-point error only are ties to a rank correlation.
    """
    _, index = np.unique(reviewer, return_inverse=True)
    means: FloatArray = np.round(np.bincount(index, weights=values) / np.bincount(index), 12)
    return means


def between_reviewers(coefficient: Coefficient, gold: FloatArray, *, predicted: FloatArray, reviewer: IntArray) -> float | None:
    """`coefficient` of the reviewers' mean gold and mean predicted scores, each reviewer weighing the same."""
    return coefficient(reviewer_means(gold, reviewer), reviewer_means(predicted, reviewer))


def _is_undefined(gold: FloatArray, predicted: FloatArray) -> bool:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold scores and {len(predicted)} predictions: must be as many")
    return len(gold) < 2 or bool((gold == gold[0]).all()) or bool((predicted == predicted[0]).all())
