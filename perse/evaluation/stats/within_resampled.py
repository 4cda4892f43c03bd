"""Every reviewer's correlations in every resample of the items: what two-way resampling makes of values within reviewers.

In a resample a row counts as often as its item was drawn, and a pair of rows by the product. With w the draws of a reviewer's
rows and S the signs of their differences, `S w` are the rows' places in the resample (weight below minus weight above: twice
their mean rank but for a constant), and `w' (Sx * Sy) w` is twice its concordant minus discordant pairs. So nothing is sorted
again, and copies of one row, tied on both sides, count for no pair. All of this is of whole numbers: exact in any order of
additions, so also by BLAS.

Notation: R resamples, n rows, C reviewers, B reviewers that have m rows each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from perse.evaluation.stats.correlation import COEFFICIENTS, BoolArray, FloatArray, IntArray
from perse.evaluation.stats.pooled import divide, resampled_pearson, resampled_ranks
from perse.evaluation.stats.resamples import Resamples, SingleArray
from perse.evaluation.stats.ties import right_order

_MANY = 200  # rows of a reviewer from which going through them in order is quicker than comparing all with all
_HELD = 2**19  # weights held at a time, 2 MB


@dataclass(frozen=True)
class WithinSums:
    """Over the reviewers, each as often as drawn: the sum of the values, and the weight of those that have one, (R,) each."""

    total: FloatArray
    defined: FloatArray


def resampled_within(
    gold: FloatArray, predicted: FloatArray, resamples: Resamples, *, names: tuple[str, ...] = tuple(COEFFICIENTS)
) -> dict[str, WithinSums]:
    """`names` of `COEFFICIENTS` by reviewer in each two-way resample, summed over the reviewers. Arrays are (n,)."""
    sums = {name: WithinSums(*np.zeros((2, resamples.number))) for name in names}
    for rows in _by_size(resamples.reviewer, number=resamples.number):  # (B, m)
        drawn = resamples.drawn[resamples.reviewer[rows[:, 0]]]  # (B, R)
        for name, values in _values(gold[rows], predicted[rows], rows, resamples=resamples, names=names).items():
            known = np.isfinite(values)
            sums[name].total[:] += np.where(known, drawn * values, 0).sum(axis=0)
            sums[name].defined[:] += np.where(known, drawn, 0).sum(axis=0)
    return sums


def resampled_pairs(
    gold: FloatArray, predicted: FloatArray, resamples: Resamples, *, epsilon: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pairs of a reviewer's rows that are right (`ties.right_order`), and all, in each two-way resample: (R,) each.

    Args:
        gold, predicted: (n,).
        epsilon: (C,) of each reviewer; NaN: their pairs do not count.
    """
    right, pairs = np.zeros((2, resamples.number))
    for rows in _by_size(resamples.reviewer, number=resamples.number):
        reviewer = resamples.reviewer[rows[:, 0]]
        chosen = ~np.isnan(epsilon[reviewer])
        rows, reviewer = rows[chosen], reviewer[chosen]
        apart = ~np.eye(rows.shape[1], dtype=bool)  # copies of one row are no pair
        by_gold, by_judge = (side[rows][:, :, None] - side[rows][:, None, :] for side in (gold, predicted))
        are_right = right_order(by_gold, by_judge, epsilon=epsilon[reviewer][:, None, None]) & apart
        weight, drawn = resamples.weights_within(rows), resamples.drawn[reviewer]
        right += (drawn * _pairs(are_right.astype(np.float32), weight)).sum(axis=0)
        pairs += (drawn * _pairs(np.broadcast_to(apart, are_right.shape).astype(np.float32), weight)).sum(axis=0)
    return right / 2, pairs / 2


def _by_size(reviewer: IntArray, *, number: int) -> Iterator[IntArray]:
    """(B, m) the rows of reviewers that have as many; those of one row have no value."""
    order = np.argsort(reviewer, kind="stable")
    _, starts, sizes = np.unique(reviewer[order], return_index=True, return_counts=True)
    for size in np.unique(sizes[sizes > 1]):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        step = 1 if size > _MANY else max(1, _HELD // (int(size) * number))
        for start in range(0, len(rows), step):
            yield rows[start : start + step]


def _values(
    gold: FloatArray, predicted: FloatArray, rows: IntArray, *, resamples: Resamples, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """`gold`, `predicted` and `rows` are (B, m); values are (B, R)."""
    if rows.shape[1] > _MANY:  # one reviewer, whose own draws do not matter here
        once = np.ones((len(resamples.drawn), resamples.number), dtype=np.float32)
        chosen = np.zeros(len(resamples.reviewer), dtype=bool)
        chosen[rows[0]] = True
        own = replace(resamples, drawn=once).only(chosen)
        found = {"pearson": resampled_pearson(gold[0], predicted[0], own)} if "pearson" in names else {}
        found |= resampled_ranks(gold[0], predicted[0], own) if {"spearman", "kendall"} & set(names) else {}
        return {name: found[name][None] for name in names}
    weight = resamples.weights_within(rows)  # (B, m, R)
    x, y = _signs(gold), _signs(predicted)  # (B, m, m)
    untied = [_pairs(np.abs(side), weight) for side in (x, y)]
    found = {}
    if "kendall" in names:
        found["kendall"] = _ratio(_pairs(x * y, weight), *untied)
    if "spearman" in names:
        place_x, place_y = (side @ weight for side in (x, y))
        sums = [_weighted(weight, one, other) for one, other in ((place_x, place_y), (place_x, place_x), (place_y, place_y))]
        found["spearman"] = _ratio(*sums)
    if "pearson" in names:
        found["pearson"] = _pearson(gold, predicted, weight.astype(np.float64), varies=(untied[0] > 0) & (untied[1] > 0))
    return found


def _signs(values: FloatArray) -> SingleArray:
    """(B, m) -> (B, m, m)"""
    signs: SingleArray = np.sign(values[:, :, None] - values[:, None, :]).astype(np.float32)
    return signs


def _pairs(of_pair: SingleArray, weight: SingleArray) -> FloatArray:
    """Sum over all ordered pairs, each weighing what its two rows weigh: (B, R)."""
    return _weighted(weight, of_pair @ weight, None)


def _weighted(weight: SingleArray, one: SingleArray, other: SingleArray | None) -> FloatArray:
    """Sum over the rows: (B, m, R) each -> (B, R)."""
    if other is None:
        total: FloatArray = np.einsum("bmr,bmr->br", weight, one, dtype=np.float64)
    else:
        total = np.einsum("bmr,bmr,bmr->br", weight, one, other, dtype=np.float64)
    return total


def _pearson(gold: FloatArray, predicted: FloatArray, weight: FloatArray, *, varies: BoolArray) -> FloatArray:
    """Of weighted rows. `varies` (B, R): both sides hold two values, which rounding could hide."""
    mass = np.maximum(weight.sum(axis=1), 1)[:, None]  # (B, 1, R)
    apart = []
    for side in (gold, predicted):
        mean = np.einsum("bm,bmr->br", side, weight)[:, None] / mass
        apart.append(side[:, :, None] - mean)
    x, y = apart
    sums = [np.einsum("bmr,bmr,bmr->br", weight, one, other) for one, other in ((x, y), (x, x), (y, y))]
    value: FloatArray = np.where(varies, _ratio(*sums), np.nan)
    return value


def _ratio(shared: FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """shared / sqrt(one * other), NaN where that is 0; all (B, R)."""
    flat = divide(shared.ravel(), (np.sqrt(one) * np.sqrt(other)).ravel())
    value: FloatArray = np.clip(flat.reshape(shared.shape), -1, 1)
    return value
