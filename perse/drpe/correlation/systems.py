"""Correlation of systems' means: does a metric order the systems as people do?

A system's mean is over its candidates. Documents are drawn anew, with all their candidates; the systems stay, so the interval speaks of these systems and as many
other documents. A system of which no candidate was drawn is not in that resample.

Means of few documents are noisy, which makes correlations smaller, and those of resamples are noisier still, so that their quantiles lie too low, and moved to lie
around the value they may be too narrow where documents are few: the interval reaches over both, which is rather too wide than too narrow (benchmarks/drpe_worlds.py).
Of many more documents the correlation would be larger, and no interval here speaks of that one.

A metric may be far off a candidate so rarely that there is none such here (`perse.evaluation.stats.unseen`). So many as none of n allows, each off by the range of the
metric's scores, add to the variance of a system's mean, and lower what it correlates: by that the interval reaches further towards 0.

Notation: n candidates, S systems, D documents, R resamples.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import COEFFICIENTS, FloatArray, IntArray
from perse.evaluation.stats.estimates import NO_COEFFICIENT
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.pooled import divide
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.unseen import joined, none_of
from perse.results.result import Estimate, Interval

_ROUNDED = 12
"""Decimals: means of the same values in another order are ties."""


def by_system(people: FloatArray, scores: FloatArray, *, system: IntArray, resamples: Resamples) -> dict[str, Estimate]:
    """`COEFFICIENTS` of the systems' means; the items behind a value are the systems.

    Args:
        people, scores: (n,), no NaN.
        system: (n,) whose candidate it is, as an integer.
        resamples: of the documents.
    """
    found = by_resamples_alone(people, scores, system=system, resamples=resamples)
    size = np.bincount(system)
    lost = _lost_unseen(scores, np.bincount(system, weights=scores)[size > 0] / size[size > 0])

    def told(one: Estimate) -> Estimate:
        if one.value is None:
            return one
        end = "down" if one.value > 0 else "up"
        wider = joined(one.value, one.interval, **{end: lost * abs(one.value)})
        if wider.low is None or wider.high is None:
            return one.model_copy(update={"interval": wider})
        ends = {"low": max(-1.0, wider.low), "high": min(1.0, wider.high)}
        return one.model_copy(update={"interval": wider.model_copy(update=ends)})

    return {name: told(one) for name, one in found.items()}


def by_resamples_alone(
    people: FloatArray, scores: FloatArray, *, system: IntArray, resamples: Resamples
) -> dict[str, Estimate]:
    """As `by_system`, with intervals that know nothing of what no sample shows."""
    system = np.unique(system, return_inverse=True)[1]
    once = Resamples(resamples.reviewer, np.ones((len(resamples.drawn), 1), dtype=np.float32))
    plain = [_means(values, system, once)[:, 0] for values in (people, scores)]
    drawn = _coefficients(*(_means(values, system, resamples) for values in (people, scores)))
    documents = len(np.unique(resamples.reviewer))
    found = {}
    for name, coefficient in COEFFICIENTS.items():
        value = coefficient(*plain)
        around = NO_COEFFICIENT if value is None else _around(value, drawn[name], documents=documents)
        found[name] = Estimate(value=value, interval=around, items=len(plain[0]))
    return found


def _lost_unseen(scores: FloatArray, means: FloatArray) -> float:
    """The share of a correlation of systems' `means`, (S,), that unseen candidates of the metric, `scores` (n,), may take."""
    spread = float(means.var())
    if spread <= 0:
        return 0.0
    noise = none_of(len(scores)) * float(np.ptp(scores)) ** 2 * len(means) / len(scores)
    return 1.0 - float((1 + noise / spread) ** -0.5)


def _around(value: float, drawn: FloatArray, *, documents: int) -> Interval:
    plain = bootstrap_interval(drawn, reviewers=documents, of="document")
    if plain.low is None or plain.high is None:
        return plain
    moved = value - float(np.nanmean(drawn))
    ends = {"low": max(-1.0, min(plain.low, plain.low + moved)), "high": min(1.0, max(plain.high, plain.high + moved))}
    return plain.model_copy(update=ends)


def _means(values: FloatArray, system: IntArray, resamples: Resamples) -> FloatArray:
    """(S, R), NaN where a system has none."""
    size = int(system.max()) + 1
    found = []
    for one in range(size):
        own = resamples.only(system == one)
        total, number = own.sums(np.stack([values[system == one], np.ones(int((system == one).sum()))]))
        found.append(divide(total, number))
    return np.round(np.stack(found), _ROUNDED).astype(np.float64)


def _coefficients(people: FloatArray, scores: FloatArray) -> dict[str, FloatArray]:
    """Of each column of (S, R): (R,) each, NaN where undefined."""
    ranks = (stats.rankdata(side, axis=0, nan_policy="omit") for side in (people, scores))
    return {"pearson": _pearson(people, scores), "spearman": _pearson(*ranks), "kendall": _kendall(people, scores)}


def _pearson(x: FloatArray, y: FloatArray) -> FloatArray:
    there = ~np.isnan(x)
    number = np.maximum(there.sum(axis=0), 1)
    sides = []
    for side in (x, y):
        filled = np.where(there, side, 0.0)
        sides.append(np.where(there, side - filled.sum(axis=0) / number, 0.0))
    spread = np.sqrt(np.square(sides[0]).sum(axis=0)) * np.sqrt(np.square(sides[1]).sum(axis=0))
    value: FloatArray = np.clip(divide((sides[0] * sides[1]).sum(axis=0), np.where(spread > 1e-12, spread, 0.0)), -1, 1)
    return value


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    net, untied_x, untied_y = np.zeros((3, x.shape[1]))
    for lag in range(1, len(x)):
        up = [np.nan_to_num(np.sign(side[lag:] - side[:-lag])) for side in (x, y)]
        net += (up[0] * up[1]).sum(axis=0)
        untied_x += np.abs(up[0]).sum(axis=0)
        untied_y += np.abs(up[1]).sum(axis=0)
    value: FloatArray = np.clip(divide(net, np.sqrt(untied_x) * np.sqrt(untied_y)), -1, 1)
    return value
