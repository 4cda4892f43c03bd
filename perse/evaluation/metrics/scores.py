"""The metrics of scores: correlations pooled, within and between reviewers, and errors in points or labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from perse.evaluation.metrics.metric import BETWEEN, ERRORS, POOLED, WITHIN, WITHIN_ZERO, Metric, Sheet
from perse.evaluation.metrics.samples import Scored
from perse.evaluation.metrics.shapes import mean_of
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.departures import departing, departures
from perse.evaluation.stats.ordinal import point_masses, qwk_of_tables, rps_values, table_cells
from perse.evaluation.stats.unseen import none_of, of_correlation, of_fallen, of_mean
from perse.evaluation.stats.within_resampled import resampled_pairs
from perse.results.result import Estimate, Interval

OFF_SCALE = "undefined (true scores lie between labels)"
NO_PAIRS = "undefined (no two items of one reviewer)"
NO_OTHERS = "undefined (no pairs of other reviewers to calibrate ties on)"
_COEFFICIENTS = {
    "pearson": ("Pearson", "how near gold and prediction lie to a straight line"),
    "spearman": ("Spearman", "Pearson of the ranks"),
    "kendall": ("Kendall tau-b", "pairs of items in the right order minus those in the wrong one, ties left out"),
    "kendall_c": ("Kendall tau-c", "as tau-b, for sides with different numbers of values"),
}
_THREE = ("pearson", "spearman", "kendall")
_DRAWN = {"kendall": "Kendall's tau-b, over all items", "within_kendall": "Kendall's tau-b, within each reviewer"}


def _shared(name: str) -> Callable[[Scored], Estimate]:
    """A column of what is computed once for all correlations."""
    return lambda scored: scored.correlations[name]


def _correlation(sheet: Sheet, prefix: str, name: str) -> Metric:
    title, about = _COEFFICIENTS[name]
    column = prefix + name
    return Metric(column, title, "higher", about, sheet, _shared(column), chance=0.0, drawn=_DRAWN.get(column), range=(-1, 1))


def _absolute_error(scored: Scored) -> FloatArray:
    error: FloatArray = np.abs(scored.gold - scored.predicted)
    return error


def _qwk(scored: Scored) -> Estimate:
    if not scored.on_scale:
        return _undefined(scored, OFF_SCALE)
    cells, size = table_cells(scored.gold, scored.predicted, scale=scored.scale), len(scored.scale.labels)
    found = scored.bootstrap.of_tables(cells, size**2, qwk_of_tables, np.ones(len(cells), dtype=bool))
    usual = (departing(side.astype(np.float64)) for side in (cells // size, cells % size))
    together = departures(*usual, clusters=scored.bootstrap.clusters)
    found = found.model_copy(update={"interval": together.allowed(found.interval)})
    return found if found.value is None else of_fallen(found, _fallen(cells, size))


def _fallen(cells: IntArray, size: int) -> float:
    """Weighted kappa where so many other items as none of these allows are answered as far off their true labels as the scale has labels."""
    true = cells // size
    worst = true * size + np.where(2 * true < size - 1, size - 1, 0)
    seen, unseen = (np.bincount(given, minlength=size**2) / len(cells) for given in (cells, worst))
    more = none_of(len(cells))
    return float(qwk_of_tables(((1 - more) * seen + more * unseen)[None])[0])


def _rps(scored: Scored) -> Estimate:
    if not scored.on_scale:
        return _undefined(scored, OFF_SCALE)
    values = scored.scale.values or ()
    ends = (point_masses(np.full(len(scored.gold), end), scale=scored.scale) for end in (values[0], values[-1]))
    return of_mean(_RPS(scored), np.maximum(*(rps_values(scored.gold, end, scale=scored.scale) for end in ends)))


_RPS = mean_of(lambda scored: rps_values(scored.gold, scored.masses, scale=scored.scale))


def _pair_accuracy(scored: Scored) -> Estimate:
    ties, bootstrap = scored.ties, scored.bootstrap
    if not ties.pairs.sum():
        there_are = np.unique(bootstrap.reviewer).size < len(scored.gold)
        return _undefined(scored, NO_OTHERS if there_are else NO_PAIRS)
    sums = None
    if bootstrap.two_way:
        epsilon = ties.of_reviewers(scored.half)
        sums = resampled_pairs(scored.gold, scored.predicted, bootstrap.resamples, epsilon=epsilon)
    of_pairs = bootstrap.ratio(ties.right, ties.pairs, sums=sums)
    told = of_correlation(
        of_pairs.model_copy(update={"items": len(scored.gold)})
    )  # an item is in pairs with all others, as there
    return of_pairs.model_copy(update={"interval": told.interval})


def _undefined(scored: Scored, reason: str) -> Estimate:
    return Estimate(value=None, interval=Interval(reason=reason), items=len(scored.gold))


SCORES = (
    *(_correlation(POOLED, "", name) for name in _COEFFICIENTS),
    *(_correlation(WITHIN, "within_", name) for name in _THREE),
    *(_correlation(WITHIN_ZERO, "within_zero_", name) for name in _THREE),
    *(_correlation(BETWEEN, "between_", name) for name in _THREE),
    Metric(
        "mae",
        "MAE",
        "lower",
        "mean absolute error in points of the scale",
        ERRORS,
        replace(mean_of(_absolute_error), estimate=_shared("mae")),
        drawn="Mean absolute error of the score",
        range=(0, math.inf),
    ),
    Metric(
        "qwk",
        "weighted kappa",
        "higher",
        "quadratic, of predictions rounded to the nearest label",
        ERRORS,
        _qwk,
        0.0,
        range=(-1, 1),
    ),
    Metric("rps", "RPS", "lower", "ranked probability score of the distribution, 0 to 1", ERRORS, _rps, range=(0, 1)),
    Metric(
        "pair_accuracy",
        "pairs in order",
        "higher",
        "two texts of one reviewer, ordered or tied as by the reader; two predictions tie up to the difference that fits best on "
        "the other half of the reviewers, or on the validation run",
        ERRORS,
        _pair_accuracy,
        range=(0, 1),
    ),
)
