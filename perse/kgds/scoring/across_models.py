"""Do models with better background also cover opinions better? Correlation across models (KGDS, figures 4 and 5).

One point is one model's means. The interval resamples samples, not models: it says how far other samples would have moved the same
models, and nothing about other models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import Coefficient, FloatArray, pearson, spearman
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.kgds.benchmark import PARADIGMS, PATTERNS
from perse.kgds.scoring.results import Correlation, Metric, Scores, comparable
from perse.results.result import Estimate, Interval

FEWEST_MODELS = 3
"""Two points are always on a line."""
FEW_MODELS = f"undefined (fewer than {FEWEST_MODELS} models)"
CONSTANT = "undefined (all models have the same value)"
JUDGES = "undefined (different judges, or one asked in different ways, verified the models)"

_BOTH: tuple[Metric, Metric] = ("f1", "cao")

Measured = tuple[Scores, Mapping[Metric, FloatArray]]
"""A model's scores, and its means in each of R resamples, (R,), as fractions."""


def correlations(measured: Sequence[Measured], *, samples: int) -> tuple[Correlation, ...]:
    """Of F1 with the recall of opinions, within each pattern and paradigm that any model has, over the models that have both.

    Args:
        samples: how many stand behind each mean.
    """
    found = []
    for pattern in PATTERNS:
        for paradigm in PARADIGMS:
            here = [one for one in measured if (one[0].pattern, one[0].paradigm) == (pattern, paradigm)]
            if not here:
                continue
            both = [one for one in here if "f1" in one[1] and "cao" in one[1]]
            found.append(
                Correlation(
                    pattern=pattern,
                    paradigm=paradigm,
                    models=len(both),
                    pearson=_estimate(both, pearson, of_rows=_pearson_of_columns, samples=samples),
                    spearman=_estimate(both, spearman, of_rows=_spearman_of_columns, samples=samples),
                )
            )
    return tuple(found)


def _estimate(
    models: Sequence[Measured],
    coefficient: Coefficient,
    *,
    of_rows: Callable[[FloatArray, FloatArray], FloatArray],
    samples: int,
) -> Estimate:
    if len(models) < FEWEST_MODELS:
        return Estimate(value=None, interval=Interval(reason=FEW_MODELS), items=len(models))
    if not all(comparable([scores for scores, _ in models], metric) for metric in _BOTH):
        return Estimate(value=None, interval=Interval(reason=JUDGES), items=len(models))
    value = coefficient(*(np.array([_mean(scores, metric) for scores, _ in models]) for metric in _BOTH))
    if value is None:
        return Estimate(value=None, interval=Interval(reason=CONSTANT), items=len(models))
    # Means that differ by floating-point error only are ties.
    background, opinions = (np.round([means[metric] for _, means in models], 12) for metric in _BOTH)  # (models, R)
    interval = bootstrap_interval(of_rows(background, opinions), reviewers=samples, of="sample")
    return Estimate(value=value, interval=interval, items=len(models))


def _mean(scores: Scores, metric: Metric) -> float:
    return round(sum(one.values[metric] for one in scores.samples) / len(scores.samples), 12)


def _pearson_of_columns(one: FloatArray, other: FloatArray) -> FloatArray:
    """Pearson of each column: (models, R) twice -> (R,), NaN where either is constant."""
    deviations = [values - values.mean(axis=0) for values in (one, other)]
    lengths = [np.sqrt(np.square(values).sum(axis=0)) for values in deviations]
    constant = (np.ptp(one, axis=0) == 0) | (np.ptp(other, axis=0) == 0)
    lengths = [np.where(constant, np.nan, length) for length in lengths]
    found: FloatArray = np.clip((deviations[0] / lengths[0] * (deviations[1] / lengths[1])).sum(axis=0), -1, 1)
    return found


def _spearman_of_columns(one: FloatArray, other: FloatArray) -> FloatArray:
    """Spearman of each column, ties sharing their mean rank."""
    return _pearson_of_columns(stats.rankdata(one, axis=0), stats.rankdata(other, axis=0))
