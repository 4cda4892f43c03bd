"""Every reviewer's own correlations at once: `correlation.within_reviewers` for all coefficients and thousands of reviewers.

A call of scipy for each reviewer takes longer than all resamples together. Here rows that lie `lag` apart are compared for all
reviewers in one step, the rows of a reviewer together: every pair of a reviewer once. That is as many steps as the longest
reviewer has rows, so reviewers with very many are left to scipy.
"""

from __future__ import annotations

import numpy as np

from perse.evaluation.stats.correlation import COEFFICIENTS, BoolArray, FloatArray, IntArray, WithinReviewer

_MANY = 500  # rows of a reviewer from which a call of scipy is quicker


def within_every_reviewer(gold: FloatArray, predicted: FloatArray, reviewer: IntArray) -> dict[str, WithinReviewer]:
    """`pearson`, `spearman` and `kendall` of the items of each reviewer apart. All arrays are (n,)."""
    reviewers, index, sizes = np.unique(reviewer, return_inverse=True, return_counts=True)
    order = np.argsort(index, kind="stable")
    x, y, who = gold[order], predicted[order], index[order]
    values = {name: np.full(len(reviewers), np.nan) for name in COEFFICIENTS}
    if len(who):
        starts = np.searchsorted(who, np.arange(len(reviewers) + 1))
        defined = _varies(x, starts[:-1]) & _varies(y, starts[:-1])
        few = defined & (sizes <= _MANY)
        for name, found in _of_few(x[few[who]], y[few[who]], np.repeat(np.arange(few.sum()), sizes[few])).items():
            values[name][few] = found
        for one in np.flatnonzero(defined & ~few):
            rows = slice(starts[one], starts[one + 1])
            for name, coefficient in COEFFICIENTS.items():
                value = coefficient(x[rows], y[rows])
                values[name][one] = np.nan if value is None else value
    return {name: WithinReviewer(reviewers, found) for name, found in values.items()}


def vary_in_all(reviewer: IntArray, *sides: FloatArray) -> BoolArray:
    """(n,): rows of reviewers whose values vary in each of `sides`, (n,) each, no NaN: the reviewers whose correlations can be compared."""
    varies = np.ones(len(reviewer), dtype=bool)
    if len(reviewer):
        _, index = np.unique(reviewer, return_inverse=True)
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(index.max() + 1))
        for side in sides:
            varies &= _varies(side[order], starts)[index]
    return varies


def _of_few(x: FloatArray, y: FloatArray, who: IntArray) -> dict[str, FloatArray]:
    """Rows of a reviewer together, none of them constant; values in the order of `who`."""
    size = int(who[-1]) + 1 if len(who) else 0
    place_x, place_y = np.zeros(
        (2, len(who))
    )  # rows of the reviewer below minus rows above: twice the rank, but for a constant
    net, untied_x, untied_y = np.zeros((3, size))
    rows = np.arange(len(who))
    for lag in range(1, len(who)):
        rows = rows[rows + lag < len(who)]
        rows = rows[who[rows + lag] == who[rows]]
        if not len(rows):
            break
        ahead = rows + lag
        up_x, up_y = np.sign(x[ahead] - x[rows]), np.sign(y[ahead] - y[rows])
        for place, up in ((place_x, up_x), (place_y, up_y)):
            place[ahead] += up
            place[rows] -= up
        net += np.bincount(who[rows], weights=up_x * up_y, minlength=size)
        untied_x += np.bincount(who[rows], weights=np.abs(up_x), minlength=size)
        untied_y += np.bincount(who[rows], weights=np.abs(up_y), minlength=size)
    return {
        "pearson": _pearson(x, y, who, size),
        "spearman": _pearson(place_x, place_y, who, size),
        "kendall": np.clip(net / np.sqrt(untied_x) / np.sqrt(untied_y), -1, 1),
    }


def _pearson(x: FloatArray, y: FloatArray, who: IntArray, size: int) -> FloatArray:
    sides = []
    for side in (x, y):
        deviation = side - (np.bincount(who, weights=side, minlength=size) / np.bincount(who, minlength=size))[who]
        length = np.sqrt(np.bincount(who, weights=deviation * deviation, minlength=size))
        length[length == 0] = np.nan  # values that differ by less than their mean can express
        sides.append(deviation / length[who])
    value: FloatArray = np.clip(np.bincount(who, weights=sides[0] * sides[1], minlength=size), -1, 1)
    return value


def _varies(values: FloatArray, starts: IntArray) -> BoolArray:
    varies: BoolArray = np.minimum.reduceat(values, starts) < np.maximum.reduceat(values, starts)
    return varies
