"""Agreement on ordered labels: how far off, not only whether in the same order.

A correlation forgives a judge that is always two points too kind. Quadratic weighted kappa does not, and the ranked
probability score asks in addition whether the judge knew how sure it was. Kappa needs labels, so predictions are rounded to
the nearest one (halves up): an average of 6.4 and one of 5.6 are both 6, which costs a fine-grained judge something.

Notation: n items, L labels, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.judgement import Judgement, Status
from perse.scale import SCORES, Scale


def nearest_label(values: FloatArray, *, scale: Scale = SCORES) -> IntArray:
    """Index of the label nearest to each value, halves up, values off the scale to its end: (n,)."""
    labels = _values(scale)
    if np.isnan(values).any():
        raise ValueError("a value is NaN and has no nearest label; leave out what was not answered")
    return np.searchsorted((labels[1:] + labels[:-1]) / 2, values, side="right").astype(np.int64)


def on_scale(values: FloatArray, *, scale: Scale = SCORES) -> bool:
    """Whether every value is a label; an average of several people's scores need not be."""
    return bool(np.isin(values, _values(scale)).all())


def table_cells(gold: FloatArray, predicted: FloatArray, *, scale: Scale = SCORES) -> IntArray:
    """The cell of the L x L table that each item falls into, gold down and prediction across: (n,), 0 to L * L - 1."""
    return nearest_label(gold, scale=scale) * len(_values(scale)) + nearest_label(predicted, scale=scale)


def qwk_of_tables(tables: FloatArray) -> FloatArray:
    """Quadratic weighted kappa of each weighted table, (R, L * L) with gold down: (R,).

    1 - (mean squared distance in labels) / (the same if gold and prediction were independent): 1 is perfect, 0 is what chance
    gives with the same frequencies. A constant prediction is 0, unless gold is constant at the same label: NaN, as with no
    items. Labels count as equally far apart. scikit-learn has it for one table of whole counts, and is what the tests compare with.
    """
    size = round(tables.shape[1] ** 0.5)
    if size * size != tables.shape[1]:
        raise ValueError(f"tables of {tables.shape[1]} cells; expected L * L")
    label = np.arange(size)
    distance = (label[:, None] - label) ** 2.0  # (L, L)
    counts = tables.reshape(len(tables), size, size)
    of_gold, of_predicted = counts.sum(axis=2), counts.sum(axis=1)  # (R, L)
    observed = tables @ distance.ravel() * of_gold.sum(axis=1)
    independent = ((of_gold @ distance) * of_predicted).sum(axis=1)
    quotient: FloatArray = np.divide(observed, independent, out=np.full(len(tables), np.nan), where=independent > 0)
    return 1 - quotient


def label_distributions(judgements: Sequence[Judgement], *, scale: Scale = SCORES) -> FloatArray:
    """The probability that each judgement gives every label: (n, L), NaN where it is not ok.

    A judgement without a distribution counts as sure of its label.
    """
    rows = np.full((len(judgements), len(scale.labels)), np.nan)
    for row, judgement in zip(rows, judgements, strict=True):
        if judgement.status is Status.OK:
            given = judgement.distribution or {judgement.label or "": 1.0}
            row[:] = [given.get(label, 0.0) for label in scale.labels]
    return rows


def point_masses(predicted: FloatArray, *, scale: Scale = SCORES) -> FloatArray:
    """The distributions of predictions that are sure of the label nearest to them: (n, L). Baselines are such."""
    masses: FloatArray = np.eye(len(_values(scale)))[nearest_label(predicted, scale=scale)]
    return masses


def rps_values(gold: FloatArray, distributions: FloatArray, *, scale: Scale = SCORES) -> FloatArray:
    """Ranked probability score of each item (Epstein, 1969): (n,), 0 is certain and right, 1 is certain at the far end.

    The sum over the labels of (P(prediction <= label) - [gold <= label])^2, over L - 1. For a point mass it is the distance
    in labels over L - 1. It is least, on average, for who says what they believe (a proper score). NaN where the
    distribution is.

    Raises:
        ValueError: a gold value is not a label; check with `on_scale` first.
    """
    if not on_scale(gold, scale=scale):
        raise ValueError(f"a gold score is none of the labels {', '.join(scale.labels)}")
    labels = _values(scale)
    reached = gold[:, None] <= labels  # (n, L)
    misses = distributions.cumsum(axis=1) - reached
    scores: FloatArray = (misses[:, :-1] ** 2).sum(axis=1) / (len(labels) - 1)  # at the last label both have reached 1
    return scores


def _values(scale: Scale) -> FloatArray:
    if scale.values is None:
        raise ValueError(f"scale {scale.name} has no order")
    return np.array(scale.values)
