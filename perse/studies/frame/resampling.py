"""Intervals for whatever a study computes from weighted items: a statistic of item weights, in every resample of the reviewers.

A resample is described by how often each item is in it, so a study writes its number once, as a function of weights, and gets
value and interval from it. The trade-off: the weights of a chunk of resamples are held at once, items times resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Estimate

Statistic = Callable[[FloatArray], FloatArray]
"""Item weights (R, n) -> values (R, S), NaN where undefined."""

_CHUNK_CELLS = 2_000_000


def estimates(statistic: Statistic, bootstrap: Bootstrap, *, items: Sequence[int]) -> list[Estimate]:
    """Each of the statistic's S values with its interval; `items` says how many stand behind each."""
    rows = np.arange(len(bootstrap.resamples.reviewer))
    values = statistic(np.ones((1, len(rows))))[0]
    size = max(1, _CHUNK_CELLS // max(1, len(rows)))
    chunks = [statistic(part.weights(rows).T.astype(np.float64)) for part in bootstrap.resamples.split(size)]
    resampled = np.concatenate(chunks)
    found = []
    for nth, number in enumerate(items):
        value = None if np.isnan(values[nth]) else float(values[nth])
        interval = bootstrap.interval(value, resampled[:, nth], reviewers=bootstrap.reviewers)
        found.append(Estimate(value=value, interval=interval, items=number))
    return found
