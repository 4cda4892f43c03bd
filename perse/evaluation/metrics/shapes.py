"""The two common shapes of a metric: a mean over items, and any function of the whole sample.

A mean is resampled by sums, exactly and for all resamples at once. Any other statistic is computed anew in every resample, its
rows repeated as often as they were drawn: 1,000 resamples cost 1,000 times the statistic.

Notation: n items, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from perse.evaluation.metrics.samples import Sample
from perse.evaluation.stats.correlation import FloatArray
from perse.results.result import Estimate, Interval

NO_ITEMS = "undefined (no items)"
_WEIGHTS = 2**22  # held at a time


@dataclass(frozen=True)
class Resampled:
    """A metric's function whose value in every resample is known, so that two judges can be compared by it."""

    estimate: Callable[[Any], Estimate]
    resampled: Callable[[Any], FloatArray]
    """The value in each resample, (R,), NaN where undefined."""
    per_item: Callable[[Any], FloatArray] | None = None
    """The values, (n,), that it is the mean of; None if it is no mean."""

    def __call__(self, sample: Any) -> Estimate:
        return self.estimate(sample)


def mean_of(per_item: Callable[[Any], FloatArray], *, otherwise: str = NO_ITEMS, share: bool = False) -> Resampled:
    """The mean of one value an item.

    Args:
        per_item: of a sample, (n,); NaN where an item has no value.
        otherwise: why it is undefined where no item has a value.
        share: whether the values are 0, 1 and halves (`Bootstrap.share`).
    """

    def values(sample: Sample) -> FloatArray:
        found = np.asarray(per_item(sample), dtype=np.float64)
        if found.shape != sample.reviewer.shape:
            raise ValueError(f"values of shape {found.shape}, expected {sample.reviewer.shape}, one an item")
        if np.isinf(found).any():
            raise ValueError("a value is infinite")
        return found

    def estimate(sample: Sample) -> Estimate:
        found = values(sample)
        known = ~np.isnan(found)
        if not known.any():
            return Estimate(value=None, interval=Interval(reason=otherwise), items=0)
        bootstrap = sample.bootstrap
        return bootstrap.share(found, known) if share else bootstrap.mean(found, known)

    def resampled(sample: Sample) -> FloatArray:
        found = values(sample)
        return sample.bootstrap.resampled_mean(found, ~np.isnan(found))

    return Resampled(estimate, resampled, values)


def of_sample(statistic: Callable[[Any, Any], float | None]) -> Resampled:
    """Any statistic of two arrays, what is true and what was said: gold and predicted scores, true and given choices, the
    readers' own reviews and the written ones.

    Args:
        statistic: None or NaN where it is undefined.
    """

    def resampled(sample: Sample) -> FloatArray:
        true, said = sample.both
        rows = np.arange(len(true))
        found: list[float] = []
        for part in sample.bootstrap.resamples.split(max(1, _WEIGHTS // max(1, len(rows)))):
            for times in part.weights(rows).T.astype(np.int64):
                drawn = np.repeat(rows, times)
                found.append(_number(statistic(true[drawn], said[drawn])) if len(drawn) else np.nan)
        return np.array(found, dtype=np.float64)

    def estimate(sample: Sample) -> Estimate:
        true, said = sample.both
        plain = _number(statistic(true.copy(), said.copy()))
        value = None if np.isnan(plain) else plain
        behind = len(np.unique(sample.reviewer))
        draws = resampled(sample) if value is not None else np.empty(0)
        interval = sample.bootstrap.interval(value, draws, reviewers=behind)
        return Estimate(value=value, interval=interval, items=len(true))

    return Resampled(estimate, resampled)


def _number(value: float | None) -> float:
    found = np.nan if value is None else float(value)
    if np.isinf(found):
        raise ValueError("a value is infinite")
    return found
