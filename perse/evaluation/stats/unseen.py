"""What no sample shows: answers, or readers, so rare that there is none among those at hand.

Resamples know nothing of them: of a judge that is far off once in two hundred answers most samples of a hundred hold no such answer, and
their intervals lie too near to what is usual; where all answers are right, they are empty. But none of so many says how rare they are:
Clopper and Pearson's upper end of a share of which nothing was seen. Times what such an answer does to the value, it is joined to the
interval's reach as that of an independent part (Zou and Donner, 2008, "Construction of confidence limits about effect measures"). Where none
was seen that is the exact interval of a share; where some were, resamples know of these, and both together reach about as far. Of values
that vary much anyway it adds little. How often the truth lies outside, with it and without: docs/results.md (benchmarks/unseen_worlds.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.intervals import LEVEL
from perse.evaluation.stats.shares import share_interval
from perse.results.result import Estimate, Interval


def none_of(number: int) -> float:
    """The most of all others that may be unlike any of so many independent ones: 1 - 0.025^(1/n), of 40 readers 8.8%."""
    return 1.0 - float(((1 - LEVEL) / 2) ** (1 / number))


def none_among(clusters: Sequence[IntArray]) -> float:
    """The same of items of which some go together: (n,) each, whose an item is, and where texts are drawn which text it is about."""
    size = len(clusters[0])
    high = share_interval(np.zeros(size), np.ones(size), clusters=clusters).high
    assert high is not None
    return high


def joined(value: float, interval: Interval, *, down: float = 0.0, up: float = 0.0) -> Interval:
    """The interval of `value` with ends that reach further by what else may take `down` from it, or bring it `up`; one without ends as it is."""
    if interval.low is None or interval.high is None:
        return interval
    low = value - math.hypot(max(0.0, value - interval.low), down) if down else interval.low
    high = value + math.hypot(max(0.0, interval.high - value), up) if up else interval.high
    return interval.model_copy(update={"low": low, "high": high})


def of_correlations(value: float | None, interval: Interval, parts: Sequence[tuple[float, int]]) -> Interval:
    """The interval of a sum of correlations, such as a difference of two, that knows that so many other items as none of these allows may be
    paired by chance on either side.

    They take their share of a correlation twice, since an item is in pairs with all others: of a perfect one of 100 items 0.93 is left.

    Args:
        parts: what each adds to `value`, weight included, and the items that it is of.
    """
    if value is None:
        return interval
    lost = [min(1.0, 2 * none_of(items)) * part if items else 0.0 for part, items in parts]
    return joined(value, interval, down=sum(one for one in lost if one > 0), up=-sum(one for one in lost if one < 0))


def of_correlation(found: Estimate) -> Estimate:
    """The same of one correlation."""
    parts = [(found.value or 0.0, found.items)]
    return found.model_copy(update={"interval": of_correlations(found.value, found.interval, parts)})


def of_fallen(found: Estimate, fallen: float) -> Estimate:
    """A value whose interval knows that it may have `fallen` to this with so many other items as none of these allows."""
    if found.value is None:
        return found
    return found.model_copy(update={"interval": joined(found.value, found.interval, down=max(0.0, found.value - fallen))})


def of_errors(
    value: float | None, interval: Interval, gold: FloatArray, sides: Sequence[tuple[float, FloatArray]], *, items: int
) -> Interval:
    """The interval of a sum of mean absolute errors, such as a difference of two, that knows that other answers of either side may be as far off as
    the range of true and predicted scores allows.

    Args:
        gold: (n,), and the predictions of each of `sides`, with its weight.
    """
    if value is None or not items:
        return interval
    seen = [gold, *(predicted for _, predicted in sides)]
    worst = farthest(gold, lowest=min(float(one.min()) for one in seen), highest=max(float(one.max()) for one in seen))
    more = [(weight, none_of(items) * max(0.0, worst - float(np.abs(gold - said).mean()))) for weight, said in sides]
    down, up = (sum(abs(weight) * one for weight, one in more if (weight > 0) == above) for above in (False, True))
    reaching = joined(value, interval, down=down, up=up)
    return reaching if any(weight < 0 for weight, _ in sides) else _not_below_0(reaching)


def of_error(found: Estimate, gold: FloatArray, predicted: FloatArray) -> Estimate:
    """The same of one mean absolute error, of `predicted`, (n,)."""
    interval = of_errors(found.value, found.interval, gold, [(1.0, predicted)], items=len(gold))
    return found.model_copy(update={"interval": interval})


def of_bounded(value: float, interval: Interval, *, items: int, least: float, most: float) -> Interval:
    """The interval of a mean that knows that so many other items as none of these allows may have the `least` there can be, or the `most`."""
    more = none_of(items)
    return joined(value, interval, down=more * (value - least), up=more * (most - value))


def of_mean(found: Estimate, most: FloatArray) -> Estimate:
    """The mean of something of which less is better, and nothing is below 0, whose interval knows that other items may have the `most` that these could have had, (n,)."""
    if found.value is None or found.items == 0:
        return found
    more = none_of(found.items) * max(0.0, float(most.mean()) - found.value)
    return found.model_copy(update={"interval": _not_below_0(joined(found.value, found.interval, up=more))})


def _not_below_0(interval: Interval) -> Interval:
    """Where texts are drawn, too, what is usual is moved to a wider spread, beyond what an error can be."""
    return interval if interval.low is None else interval.model_copy(update={"low": max(0.0, interval.low)})


def farthest(gold: FloatArray, *, lowest: float, highest: float) -> float:
    """How far off the worst answers between the two could be, on average over `gold`, (n,)."""
    return float(np.maximum(gold - lowest, highest - gold).mean())
