"""Which of two texts does the same reader like better? Pairs within a reviewer, with ties that are calibrated.

Readers give two texts the same score often, a judge's expected scores never tie, so a plain count of equally ordered pairs
would call every such pair wrong. Deutsch, Foster and Freitag ("Ties Matter", 2023) call predictions tied that differ by no
more than epsilon, and choose the epsilon that is right most often. Chosen on the pairs that it is judged by, it would
flatter; so it comes from other reviewers, or from a validation run.

All pairs of a reviewer's items are held at once: 20 items each of 5,000 reviewers are a million pairs and some 50 MB, but
10,000 items of one reviewer would be 50 million. Notation: n items, C reviewers, P pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.identity import shuffled

_DIGITS = 9
"""Decimals that gaps are rounded to, so that gaps that differ by floating-point error only are equal."""


@dataclass(frozen=True)
class TiePairs:
    """Right and all pairs of each reviewer, (C,) each: accuracy is the sum of one over the sum of the other."""

    right: FloatArray
    pairs: FloatArray
    epsilons: tuple[float | None, ...]
    """The epsilon fitted on each half, applied to the other; or the one that was given. None: a half has no pairs, so that
    the other half's reviewers are left out (0 pairs)."""

    def of_reviewers(self, half: IntArray) -> FloatArray:
        """(C,) the epsilon that each reviewer's pairs were judged by, NaN where there is none; `half` as given."""
        applied = np.array([np.nan if one is None else one for one in self.epsilons])
        return applied[1 - half] if len(applied) > 1 else np.repeat(applied, len(half))

    @property
    def accuracy(self) -> float | None:
        """Share of pairs that are right; None without pairs."""
        return float(self.right.sum() / self.pairs.sum()) if self.pairs.sum() else None


def right_order(by_gold: FloatArray, by_judge: FloatArray, *, epsilon: FloatArray) -> BoolArray:
    """Whether pairs that are so far apart are ordered, or tied, as by the reader; arrays of any shape that go together."""
    gap = np.round(by_judge, _DIGITS)
    right: BoolArray = np.where(np.abs(gap) <= epsilon, by_gold == 0, by_gold * gap > 0)
    return right


@dataclass(frozen=True)
class _Pairs:
    """Arrays (P,). `same_way` is false for tied gold."""

    reviewer: IntArray
    gap: FloatArray
    tied: BoolArray
    same_way: BoolArray

    def chosen(self, which: BoolArray) -> _Pairs:
        return _Pairs(self.reviewer[which], self.gap[which], self.tied[which], self.same_way[which])

    def right(self, epsilon: float) -> BoolArray:
        verdict: BoolArray = np.where(self.gap <= epsilon, self.tied, self.same_way)
        return verdict


def reviewer_halves(reviewers: Sequence[str], *, seed: int) -> IntArray:
    """0 or 1 for each reviewer id, (C,): two halves by the seed, equal in size or one apart, in whatever order ids come."""
    place = {reviewer: at % 2 for at, reviewer in enumerate(shuffled(reviewers, seed=seed, purpose="tie calibration"))}
    return np.array([place[reviewer] for reviewer in reviewers], dtype=np.int64)


def fit_epsilon(gold: FloatArray, predicted: FloatArray, reviewer: IntArray) -> float | None:
    """The epsilon by which most pairs within a reviewer are right: 0 or one of the gaps, the least if several; None, no pairs.

    Exact: between two neighbouring gaps nothing changes, so one sweep over the sorted gaps tries all, in P log P.
    """
    return _fit(_pairs_within(gold, predicted, reviewer))


def calibrated_pairs(
    gold: FloatArray,
    predicted: FloatArray,
    reviewer: IntArray,
    *,
    fold_of_reviewer: IntArray,
    epsilon: float | None = None,
) -> TiePairs:
    """Pairs of each reviewer's items, judged with the epsilon of the other half, never with their own.

    A pair is right if both order it the same way and the predictions are more than epsilon apart, or if gold ties and they
    are not.

    Args:
        gold, predicted: (n,), without NaN: leave out unanswered items.
        reviewer: (n,), whose item it is, 0 to C - 1.
        fold_of_reviewer: (C,), 0 or 1, see `reviewer_halves`.
        epsilon: fitted on a separate validation run (`fit_epsilon`); then the halves do not matter.
    """
    pairs = _pairs_within(gold, predicted, reviewer)
    size = len(fold_of_reviewer)
    right, number = np.zeros(size), np.zeros(size)
    half = fold_of_reviewer[pairs.reviewer]
    epsilons = (epsilon,) if epsilon is not None else tuple(_fit(pairs.chosen(half == side)) for side in (0, 1))
    for side in (0, 1):
        theirs = epsilons[1 - side] if epsilon is None else epsilon
        if theirs is not None:
            judged = pairs.chosen(half == side)
            right += np.bincount(judged.reviewer, weights=judged.right(theirs), minlength=size)
            number += np.bincount(judged.reviewer, minlength=size)
    return TiePairs(right, number, epsilons)


def _pairs_within(gold: FloatArray, predicted: FloatArray, reviewer: IntArray) -> _Pairs:
    if not len(gold) == len(predicted) == len(reviewer):
        raise ValueError(f"{len(gold)} gold scores, {len(predicted)} predictions, {len(reviewer)} reviewers: must be as many")
    if np.isnan(predicted).any():
        raise ValueError("a prediction is NaN; leave out what was not answered")
    order = np.argsort(reviewer, kind="stable")
    _, starts, sizes = np.unique(reviewer[order], return_index=True, return_counts=True)
    firsts, seconds = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for size in np.unique(sizes):  # reviewers with as many items at once
        items = order[starts[sizes == size][:, None] + np.arange(size)]  # (reviewers, size)
        one, other = np.triu_indices(size, 1)
        firsts.append(items[:, one].ravel())
        seconds.append(items[:, other].ravel())
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    by_gold = gold[first] - gold[second]
    by_judge = np.round(predicted[first] - predicted[second], _DIGITS)
    return _Pairs(reviewer[first], np.abs(by_judge), by_gold == 0, by_gold * by_judge > 0)


def _fit(pairs: _Pairs) -> float | None:
    if not len(pairs.gap):
        return None
    order = np.argsort(pairs.gap, kind="stable")
    gaps = pairs.gap[order]
    # With the first m pairs called tied, right are the gold ties among them and the equally ordered behind them.
    tied = np.concatenate([[0], np.cumsum(pairs.tied[order])])
    same_way = np.concatenate([[0], np.cumsum(pairs.same_way[order])])
    candidates = np.unique(np.concatenate([[0.0], gaps]))
    called_tied = np.searchsorted(gaps, candidates, side="right")
    right = tied[called_tied] + same_way[-1] - same_way[called_tied]
    return float(candidates[np.argmax(right)])
