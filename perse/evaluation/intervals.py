"""95% bootstrap intervals that resample reviewers, not rows: one reader's items are not independent of each other.

A resample draws as many reviewers as there are, with replacement, and all their items go along. So it is fully described by
how often each reviewer was drawn, an item's weight is that of its reviewer, and every statistic below is computed exactly
for all resamples at once from these weights: the slow twins in the tests build each resample row by row.

Notation: R resamples, C reviewers, n items, V distinct values. `reviewer` (n,) holds each item's reviewer, 0 to C - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from pydantic import BaseModel, ConfigDict

from perse.evaluation.correlation import BoolArray, FloatArray, IntArray

FEWEST_REVIEWERS = 10
"""Percentile intervals over fewer clusters than this promise a precision that they do not have."""
FEW_REVIEWERS = "undefined (few reviewers)"
LEVEL = 0.95
_CHUNK_CELLS = 2_000_000  # item weights held at once, about 16 MB


class Interval(BaseModel):
    """A percentile interval, or the reason why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: float | None = None
    high: float | None = None
    reason: str | None = None
    """Why `low` and `high` are None."""
    resamples: int = 0
    undefined_resamples: int = 0
    """Resamples in which the value was undefined (for instance constant); the interval is that of the others."""


def draw_reviewers(reviewers: int, *, resamples: int = 1000, seed: int = 0) -> IntArray:
    """Which reviewers each resample holds: (R, C) indices, drawn uniformly with replacement."""
    return np.random.default_rng(seed).integers(0, reviewers, size=(resamples, reviewers))


def times_drawn(drawn: IntArray) -> FloatArray:
    """How often each reviewer was drawn: (R, C) indices -> (R, C) counts."""
    resamples, reviewers = drawn.shape
    flat = (drawn + reviewers * np.arange(resamples)[:, None]).ravel()
    return _sum_by(flat, np.ones(len(flat)), size=resamples * reviewers).reshape(resamples, reviewers)


def percentile_interval(resampled: FloatArray, *, reviewers: int) -> Interval:
    """The middle 95% of `resampled`, (R,), NaN where undefined.

    None with a reason when fewer than 10 `reviewers` stand behind the value, or when most resamples are undefined: an
    interval of the few that are not would be one of a luckier data set.
    """
    undefined = int(np.isnan(resampled).sum())
    if reviewers < FEWEST_REVIEWERS:
        return Interval(reason=FEW_REVIEWERS, resamples=len(resampled), undefined_resamples=undefined)
    if 2 * undefined >= len(resampled):
        reason = f"undefined (in {undefined} of {len(resampled)} resamples)"
        return Interval(reason=reason, resamples=len(resampled), undefined_resamples=undefined)
    low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(low=float(low), high=float(high), resamples=len(resampled), undefined_resamples=undefined)


def resampled_ratio(numerator: FloatArray, denominator: FloatArray, *, counts: FloatArray) -> FloatArray:
    """Sum of `numerator` over sum of `denominator`, both (C,), in each resample: means, accuracies, macro coefficients."""
    return _divide(counts @ numerator, counts @ denominator)


def resampled_pearson(gold: FloatArray, predicted: FloatArray, *, reviewer: IntArray, counts: FloatArray) -> FloatArray:
    """Pooled Pearson correlation in each resample, from each reviewer's sums: (R,), NaN where undefined."""
    if not len(gold):
        return np.full(len(counts), np.nan)
    x, y = gold - gold.mean(), predicted - predicted.mean()  # centred, so that the sums of squares do not cancel
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    per_reviewer = np.stack([_sum_by(reviewer, column, size=counts.shape[1]) for column in columns], axis=1)  # (C, 6)
    n, sx, sy, sxx, syy, sxy = (counts @ per_reviewer).T
    covariance = n * sxy - sx * sy
    spread_x, spread_y = n * sxx - sx * sx, n * syy - sy * sy
    # Constancy is decided on the values: rounding leaves a constant resample a tiny spread.
    varies = _varies(x, reviewer=reviewer, counts=counts) & _varies(y, reviewer=reviewer, counts=counts)
    varies &= (spread_x > 0) & (spread_y > 0)
    scale = np.sqrt(np.where(varies, spread_x, np.nan)) * np.sqrt(np.where(varies, spread_y, np.nan))
    coefficient: FloatArray = np.clip(covariance / scale, -1, 1)
    return coefficient


def resampled_spearman(gold: FloatArray, predicted: FloatArray, *, reviewer: IntArray, counts: FloatArray) -> FloatArray:
    """Pooled Spearman correlation in each resample, ranks taken anew in each: (R,), NaN where undefined."""
    gold_ranks, predicted_ranks = _ranker(gold), _ranker(predicted)

    def of_chunk(weights: FloatArray) -> FloatArray:
        middle = (weights.sum(axis=1, keepdims=True) + 1) / 2  # the mean rank, exact: constant means a spread of exactly 0
        x, y = gold_ranks(weights) - middle, predicted_ranks(weights) - middle  # (R', n)
        spread = np.sqrt((weights * x * x).sum(axis=1)) * np.sqrt((weights * y * y).sum(axis=1))
        return np.clip(_divide((weights * x * y).sum(axis=1), spread), -1, 1)

    return _by_chunks(of_chunk, reviewer, counts=counts)


def resampled_kendall(gold: FloatArray, predicted: FloatArray, *, reviewer: IntArray, counts: FloatArray) -> FloatArray:
    """Pooled Kendall tau-b in each resample: (R,), NaN where undefined.

    Exact in R * n * (distinct values of one side): gold scores have ten, so no comparison of all pairs is needed.
    """
    few, many = _Groups(gold), _Groups(predicted)
    if few.count > many.count:  # tau-b is symmetric
        few, many = many, few
    by_value = np.argsort(many.of_item, kind="stable")
    levels = []  # of each level: its items by value, the values it has, and where each of these starts
    for level in range(few.count):
        columns = by_value[few.of_item[by_value] == level]
        levels.append((columns, *np.unique(many.of_item[columns], return_index=True)))

    def of_chunk(weights: FloatArray) -> FloatArray:
        net = np.zeros(len(weights))  # concordant minus discordant pairs
        lead = np.zeros((len(weights), many.count))  # (R', V): items of lesser levels that stand below, minus those above
        for columns, present, starts in levels:
            weight = np.zeros_like(lead)
            weight[:, present] = np.add.reduceat(weights[:, columns], starts, axis=1)
            net += (weight * lead).sum(axis=1)
            up_to = weight.cumsum(axis=1)
            lead += (up_to - weight) - (up_to[:, -1:] - up_to)
        untied = [_pairs(weights.sum(axis=1)) - _pairs(side.sums(weights)).sum(axis=1) for side in (few, many)]
        return _divide(net, np.sqrt(untied[0]) * np.sqrt(untied[1]))

    return _by_chunks(of_chunk, reviewer, counts=counts)


class _Groups:
    """Items grouped by equal values, groups in ascending order."""

    def __init__(self, values: FloatArray) -> None:
        unique, inverse = np.unique(values, return_inverse=True)
        self.count = len(unique)
        self.of_item: IntArray = inverse.astype(np.int64)
        self._order = np.argsort(self.of_item, kind="stable")
        self._starts = np.searchsorted(self.of_item[self._order], np.arange(self.count))

    def sums(self, weights: FloatArray) -> FloatArray:
        """Weight of each group: (R', n) -> (R', V)."""
        total: FloatArray = np.add.reduceat(weights[:, self._order], self._starts, axis=1)
        return total


def _ranker(values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Weights (R', n) -> mean ranks (R', n) among the items repeated as often as their weight says."""
    groups = _Groups(values)

    def ranks(weights: FloatArray) -> FloatArray:
        totals = groups.sums(weights)
        middle: FloatArray = totals.cumsum(axis=1) - (totals - 1) / 2
        return middle[:, groups.of_item]

    return ranks


def _by_chunks(statistic: Callable[[FloatArray], FloatArray], reviewer: IntArray, *, counts: FloatArray) -> FloatArray:
    """`statistic` of the item weights (R', n), a bounded number of resamples at a time."""
    if not len(reviewer):
        return np.full(len(counts), np.nan)
    return np.concatenate([statistic(chunk[:, reviewer]) for chunk in _chunks(counts, items=len(reviewer))])


def _chunks(counts: FloatArray, *, items: int) -> Iterator[FloatArray]:
    step = max(1, _CHUNK_CELLS // items)
    for start in range(0, len(counts), step):
        yield counts[start : start + step]


def _sum_by(reviewer: IntArray, values: FloatArray, *, size: int) -> FloatArray:
    total: FloatArray = np.bincount(reviewer, weights=values, minlength=size).astype(np.float64)
    return total


def _varies(values: FloatArray, *, reviewer: IntArray, counts: FloatArray) -> BoolArray:
    """Whether a resample holds two different values: (R,)."""
    lowest, highest = np.full(counts.shape[1], np.inf), np.full(counts.shape[1], -np.inf)
    np.minimum.at(lowest, reviewer, values)
    np.maximum.at(highest, reviewer, values)
    drawn = counts > 0
    result: BoolArray = np.where(drawn, lowest, np.inf).min(axis=1) < np.where(drawn, highest, -np.inf).max(axis=1)
    return result


def _pairs(n: FloatArray) -> FloatArray:
    return n * (n - 1) / 2


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """NaN where the denominator is 0."""
    result: FloatArray = np.divide(numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator > 0)
    return result
