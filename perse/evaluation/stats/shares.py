"""95% intervals of shares, and of differences of two shares, from as many independent items as their readers leave.

A bootstrap knows nothing of what it never saw: where few readers differ its intervals are too short, and where all items are alike they are empty
(benchmarks/nearly_constant.py). Clopper and Pearson's (1934) knows it, given how many independent items there are: the number of items by
their design effect, as in surveys (Korn and Graubard, 1998, "Confidence intervals for proportions with small expected number of positive
counts estimated from survey data"). What a few items say of the design effect is not much, so some items that
are made up are counted with them; the more differ, the less these weigh. So one rule holds from none to all.

A difference of two shares is the share of items on which they differ, times how many more of these speak for the one than for the other. Where
every reader differs on one item at most, the interval of the difference leaves out 0 exactly where the sign test finds p below 0.05. Both
shares have the interval above, and that of their product is from the least to the most within the ellipse that these span (after Zou and
Donner, 2008, "Construction of confidence limits about effect measures").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.intervals import LEVEL
from perse.results.result import Estimate, Interval

_DECIMALS = 9  # beyond which values count as equal
_ANGLES = 361  # one a degree, those at which only one of two shares is moved among them


@dataclass(frozen=True)
class MadeUp:
    """What is supposed of a design effect before anything is seen: so many items that differ, and how those of one reader correlate."""

    items: float
    correlated: float


DIFFER = MadeUp(4, 0.3)
"""Of how often items differ. With fewer the first errors would raise the lower end of an accuracy, since they show that it is not all of a
reader's items that are wrong; with these, and an error of each reader in turn, they do by 0.016 at most (10 readers with 50 items each)."""
SPEAK = MadeUp(2, 1.0)
"""Of whom those that differ speak for: a reader's all for the same, until they are seen not to."""


def share_note(of: str = "reader") -> str:
    """The note of a table that has such intervals; `of`: whose items go together."""
    return (
        "intervals of shares (such as accuracy) and of differences of shares are not resampled but exact (Clopper and Pearson's), of fewer "
        f"items where those of one {of} go together"
    )


def deciding(values: FloatArray, cluster: IntArray) -> int:
    """Clusters that a correlation rests on: those with another value than one that more than half of all items have.

    If no value is so common, all do. Both are (n,).
    """
    found, counts = np.unique(np.round(values, _DECIMALS), return_counts=True)
    if not len(found):
        return 0
    others: BoolArray = np.round(values, _DECIMALS) != found[counts.argmax()]
    return len(np.unique(cluster[others] if 2 * others.sum() < len(values) else cluster))


def counted_alike(groups: Sequence[BoolArray]) -> FloatArray:
    """(n,) weights with which every one of `groups`, (n,) each, counts alike, however many rows it has."""
    weights: FloatArray = np.sum([group / group.sum() for group in groups if group.any()], axis=0)
    return weights


def share_interval(values: FloatArray, weights: FloatArray, *, clusters: Sequence[IntArray]) -> Interval:
    """The interval of a weighted mean of values from 0 to 1, most of which are 0 or 1.

    Args:
        values, weights: (n,); weights are positive.
        clusters: (n,) each: whose an item is, and where texts are shared which text it is about; (n, m) where an item is of m of one kind, as a
            pair is of two texts.
    """
    share = _Share.of(values, weights, clusters, DIFFER)
    return Interval(low=round(share.low, _DECIMALS), high=round(share.high, _DECIMALS))


def apart_interval(values: FloatArray, weights: FloatArray, *, clusters: Sequence[IntArray]) -> Interval:
    """The interval of a weighted mean of differences from -1 to 1, most of which are -1, 0 or 1; arguments as above."""
    sizes = np.abs(values)
    differ = _Share.of(sizes, weights, clusters, DIFFER)
    some = sizes > 0
    if not some.any():
        return Interval(low=-round(differ.high, _DECIMALS), high=round(differ.high, _DECIMALS))
    own = [one[some] for one in clusters]
    first = _Share.of((values[some] > 0).astype(np.float64), (weights * sizes)[some], own, SPEAK)
    low, high = _least_and_most(differ, first)
    return Interval(low=round(low, _DECIMALS), high=round(high, _DECIMALS))


def joined(parts: Sequence[tuple[float, Estimate]], *, correlated: float = 0.0) -> Estimate:
    """The sum of a weight times each share, with the interval of parts that correlate by so much (Zou and Donner, 2008); none where a part has none."""
    value = sum(weight * (share.value or 0.0) for weight, share in parts)
    items = sum(share.items for _, share in parts)
    if reason := next((share.interval.reason for _, share in parts if share.interval.low is None), None):
        return Estimate(value=value, interval=Interval(reason=reason), items=items)
    ends = [
        sorted(weight * (end - (share.value or 0.0)) for end in (share.interval.low or 0.0, share.interval.high or 0.0))
        for weight, share in parts
    ]
    reaches = np.abs(np.array(ends)).T
    below, above = np.sqrt((1 - correlated) * (reaches**2).sum(axis=1) + correlated * reaches.sum(axis=1) ** 2).tolist()
    return Estimate(value=value, interval=Interval(low=value - below, high=value + above), items=items)


def independent_items(values: FloatArray, weights: FloatArray, clusters: Sequence[IntArray], made_up: MadeUp) -> float:
    """How many independent items that are 0 or 1 know as much of a share as these, at least as many as the fewest clusters.

    Args:
        values: (n,) from 0 to 1.
        weights: (n,) with sum 1.
        clusters: as in `share_interval`. Of items that are of m of a kind each of these adds what its items have in common: with one item each nothing.
    """
    share, items = float((weights * values).sum()), 1 / float((weights**2).sum())
    rare = items * share * (1 - share)  # about the number of those that differ, where they are few
    strayed = weights * (values - share)

    def effect(spread: float, size: float) -> float:
        """The design effect of clusters of `size` items, of which `spread` is the variance of the share."""
        supposed = 1 + made_up.correlated * (size - 1)
        return (items**2 * spread + made_up.items * supposed) / (rare + made_up.items)

    alone = together = effect(float((strayed**2).sum()), 1.0)  # 1 where all values are 0 or 1
    fewest = items
    for cluster in clusters:
        index = np.unique(cluster, return_inverse=True)[1].reshape(len(values), -1)
        number, of_each = int(index.max()) + 1, index.shape[1]
        weighed, straying = (
            float((np.bincount(index.ravel(), weights=np.repeat(one, of_each)) ** 2).sum()) / of_each
            for one in (weights, strayed)
        )
        size, spread = weighed * items, straying * number / max(1, number - 1)
        together += of_each * max(0.0, effect(spread, size) - alone)
        fewest = min(fewest, items / (of_each * size - (of_each - 1)))
    return max(items / together, fewest)


@dataclass(frozen=True)
class _Share:
    """A share with its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray, clusters: Sequence[IntArray], made_up: MadeUp) -> _Share:
        weights = weights / weights.sum()
        share = min(1.0, round(float((weights * values).sum()), _DECIMALS))
        items = independent_items(values, weights, clusters, made_up)
        ours, others, tail = share * items, (1 - share) * items, (1 - LEVEL) / 2
        low = float(stats.beta.ppf(tail, ours, others + 1)) if share > 0 else 0.0
        high = float(stats.beta.ppf(1 - tail, ours + 1, others)) if share < 1 else 1.0
        return cls(share, low, high)

    def towards(self, part: FloatArray) -> FloatArray:
        """The value moved towards its upper end by a part from 0 to 1, or its lower one by 0 to -1."""
        moved: FloatArray = self.value + np.where(part > 0, self.high - self.value, self.value - self.low) * part
        return moved


def _least_and_most(differ: _Share, first: _Share) -> tuple[float, float]:
    """Of the share that differs times how much more of it speaks for the first, within the ellipse that both intervals span.

    The least is above 0 exactly where more than half is shown to speak for the first: how many differ does not say for whom.
    """
    angle = np.linspace(0, 2 * np.pi, _ANGLES)
    sizes, ahead = differ.towards(np.sin(angle)), 2 * first.towards(np.cos(angle)) - 1
    return float((sizes * ahead).min()), float((sizes * ahead).max())
