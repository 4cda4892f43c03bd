"""95% intervals of shares that are nearly the same everywhere: a bootstrap of them is too short, and empty where all values are equal.

Where fewer than 10 readers have another value than the commonest, resamples know too little of how often that happens: of 10 readers with 16
pairs each of which 1% differ, their interval covers the truth in 79%, of 24 single pairs of which 5% differ in 68% (benchmarks/nearly_constant.py). Wilson's
(1927) knows it, given how many independent items there are. That is the number of items by their design effect: how often two
differing items are of one reader, one more counted as of a reader all whose items differ. So of items that all agree the
readers' numbers remain nearly as they are, and of single items all count.

A value may also lie on both sides of the commonest one, as a bias or a difference of two judges does (-1, 0 or 1): each side is
a share, and both intervals are joined (Zou and Donner, 2008, "Construction of confidence limits about effect measures").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.intervals import LEVEL
from perse.results.result import Interval

_Z = float(stats.norm.ppf((1 + LEVEL) / 2))
_DECIMALS = 9  # beyond which values count as equal


def other_than_commonest(values: FloatArray) -> BoolArray:
    """(n,): which values are not the commonest one, but for rounding."""
    others: BoolArray = np.round(values, _DECIMALS) != _commonest(values)
    return others


def deciding(values: FloatArray, cluster: IntArray) -> int:
    """Clusters that a correlation rests on: those with another value than one that more than half of all items have.

    If no value is so common, all do. Both are (n,).
    """
    others = other_than_commonest(values)
    return len(np.unique(cluster[others] if 2 * others.sum() < len(values) else cluster))


def share_interval(
    values: FloatArray, weights: FloatArray, *, clusters: Sequence[IntArray], low: float, high: float
) -> Interval:
    """The interval of a weighted mean of values from `low` to `high`, nearly all of which are the same.

    Args:
        values, weights: (n,); weights are positive.
        clusters: (n,) each: whose an item is, and where texts are shared which text it is about.
    """
    weights = weights / weights.sum()
    commonest = _commonest(values)
    up = _Side.of(np.maximum(values - commonest, 0), high - commonest, weights, clusters)
    down = _Side.of(np.maximum(commonest - values, 0), commonest - low, weights, clusters)
    mean = float((weights * values).sum())
    together = _correlation(up.share, down.share)
    least = round(mean - _joined(up.below, down.above, together), _DECIMALS)
    most = round(mean + _joined(up.above, down.below, together), _DECIMALS)
    return Interval(low=max(low, least), high=min(high, most))


@dataclass(frozen=True)
class _Side:
    """How far values lie on one side of the commonest one, as a share of how far they could; and how far Wilson's interval reaches
    from its mean, in units of the values."""

    share: float
    below: float
    above: float

    @classmethod
    def of(cls, apart: FloatArray, most: float, weights: FloatArray, clusters: Sequence[IntArray]) -> _Side:
        if most <= 0:
            return cls(0.0, 0.0, 0.0)
        parts = apart / most
        share = float((weights * parts).sum())
        low, high = _wilson(share, independent_items(parts, weights, clusters))
        return cls(share, most * (share - low), most * (high - share))


def independent_items(parts: FloatArray, weights: FloatArray, clusters: Sequence[IntArray]) -> float:
    """How many independent items know as much of a share as these.

    Args:
        parts: (n,) how far each item differs, 0 to 1.
        weights: (n,) with sum 1.
    """
    items = 1 / float((weights**2).sum())
    fewest, effect = items, 1.0
    for cluster in clusters:
        index = np.unique(cluster, return_inverse=True)[1]
        of_cluster = np.bincount(index, weights=weights)
        size = float((of_cluster**2).sum()) * items  # items of a cluster
        differ = np.bincount(index, weights=weights * parts) * items
        effect += max(0.0, float((differ**2).sum() + size) / float(differ.sum() + 1) - 1)
        fewest = min(fewest, items / size)
    return min(items, max(fewest, items / effect))


def _wilson(share: float, items: float) -> tuple[float, float]:
    centre = share + _Z**2 / (2 * items)
    reach = _Z * np.sqrt(share * (1 - share) / items + _Z**2 / (4 * items**2))
    low, high = (float(one) / (1 + _Z**2 / items) for one in (centre - reach, centre + reach))
    return min(low, share), max(high, share)


def _correlation(up: float, down: float) -> float:
    """Of two shares that exclude each other."""
    left = (1 - up) * (1 - down)
    return -float(np.sqrt(min(1.0, up * down / left))) if left > 0 else 0.0


def _joined(one: float, other: float, correlation: float) -> float:
    """How far the difference of two values reaches, that reach so far themselves."""
    return float(np.sqrt(one**2 + other**2 - 2 * correlation * one * other))


def _commonest(values: FloatArray) -> float:
    found, counts = np.unique(np.round(values, _DECIMALS), return_counts=True)
    return float(found[counts.argmax()]) if len(found) else np.nan
