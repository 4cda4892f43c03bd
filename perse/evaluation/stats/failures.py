"""The difference of two paired means of which failures make single values 0, those that no sample shows among them.

How far the two are apart where both have something, or neither, is resampled. Of what one alone failed at resamples know little, and nothing where
there is nothing: how much more often one fails has Newcombe's interval (`paired_shares`), times what a failure takes. The ends of both are joined as those
of independent parts (Zou and Donner, 2008). How often two that are equal with failures counted are told apart: docs/results.md
(benchmarks/kgds_failures.py, benchmarks/rehearsal_errors.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.paired_shares import reach
from perse.results.result import Interval


@dataclass(frozen=True)
class Failing:
    """One side: its `values`, (n,), 0 where it `failed`, (n,)."""

    values: FloatArray
    failed: BoolArray


def where_alike(more: Failing, less: Failing) -> FloatArray:
    """(n,) how far the two are apart where both failed or neither did, else 0: what resamples know of."""
    alike: FloatArray = np.where(more.failed == less.failed, more.values - less.values, 0.0)
    return alike


def with_failures(found: Interval, more: Failing, less: Failing, *, rest: Interval, most: float) -> Interval:
    """The interval of the mean of `more` minus `less` of whatever items there may be.

    Args:
        found: by resamples alone; where it has no ends, it stays.
        rest: of the mean of `where_alike`; without ends it has none further out.
        most: that a value can be.
    """
    if found.low is None:
        return found
    apart, known = float((more.values - less.values).mean()), float(where_alike(more, less).mean())
    rest_low, rest_high = (known if end is None else end for end in (rest.low, rest.high))
    lost = _lost_by_failing(more, less)
    below, above = (lost * part for part in reach(less.failed, more.failed))
    low = max(-most, apart - math.hypot(min(0.0, rest_low - known), below))
    high = min(most, apart + math.hypot(max(0.0, rest_high - known), above))
    return found.model_copy(update={"low": low, "high": high})


def _lost_by_failing(more: Failing, less: Failing) -> float:
    """What a failure takes: the root of the mean square, which is what the variance is of, of a side's values where it did not fail, or where the
    other did; the larger."""
    alone = more.failed != less.failed
    sizes = [more.values[~more.failed], less.values[~less.failed], (more.values - less.values)[alone]]
    return max((math.sqrt(float((size**2).mean())) for size in sizes if len(size)), default=0.0)
