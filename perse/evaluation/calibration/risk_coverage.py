"""Risk against coverage: the mean error of the answers that are kept when only the surest are, and the area under that curve.

Answers are ordered by how sure the judge was, such as by little entropy of the label distribution. *Risk* is the mean error of
the answers that are kept; the area under it (AURC) is the mean, over all answers, of the risk among those at least as sure.
Random order has the risk of all answers as its area, the oracle orders by the error itself.

Answers that are equally sure come and go together (where a share cuts through them, with their mean risk), so no order of the
file decides anything.

Notation: R resamples, n answers, L labels, G groups of equally sure answers, S shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)

_DIGITS = 12
"""Sureness that should be equal may differ behind these decimals, its probabilities having been summed in another order."""


def entropy(probabilities: FloatArray) -> FloatArray:
    """(n,) bits of each row of (n, L): -sum p log2 p, 0 for certainty, log2 L where all labels are as likely, NaN for a row with NaN."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    bits: FloatArray = np.where(np.isnan(probabilities).any(axis=1), np.nan, 0.0 - (safe * np.log2(safe)).sum(axis=1))
    return bits


def equally_sure(sureness: FloatArray) -> bool:
    """Whether no answer is surer than another, so that there is no surest half: all are of one group."""
    return len(np.unique(np.round(sureness, _DIGITS))) < 2


def by_what_is_said(said: FloatArray, sureness: FloatArray) -> FloatArray:
    """(n,) how sure the judge is where it says about that score: what the score alone tells of sureness, which near an end of the scale is large only because
    it is an end.

    The straight line between the two other answers whose scores lie next to it, so that a judge whose sureness follows from the score has the same order,
    and what its own sureness says beside that is in it of others only.

    Args:
        said: (n,) expected scores.
    """
    if len(said) < 2:
        return sureness.copy()
    order = np.argsort(said, kind="stable")
    x, y = said[order], sureness[order]
    gap = x[2:] - x[:-2]
    share = np.divide(x[1:-1] - x[:-2], gap, out=np.full(len(gap), 0.5), where=gap > 0)
    told = np.empty_like(y)
    told[order] = np.concatenate([y[1:2], y[:-2] + share * (y[2:] - y[:-2]), y[-2:-1]])
    return told


def area(risk: FloatArray, sureness: FloatArray, *, weights: FloatArray) -> FloatArray:
    """The area under the risk of what is kept.

    Args:
        risk: (n,) the error of each answer.
        sureness: (n,) greater is surer.
        weights: (R, n) how often each answer counts.
    Returns:
        (R,), NaN where a row of weights is all 0.
    """
    weight, total = _by_group(risk, sureness, weights=weights)
    kept = weight.cumsum(axis=1)
    mean = np.divide(total.cumsum(axis=1), kept, out=np.zeros_like(kept), where=kept > 0)
    whole = weight.sum(axis=1)
    found: FloatArray = np.divide((weight * mean).sum(axis=1), whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return found


def curve(
    risk: FloatArray, sureness: FloatArray, *, weights: FloatArray | None = None, shares: Sequence[float] = SHARES
) -> FloatArray:
    """The risk of the surest share of the answers, (R, S), for each row of `weights` (as of `area`; each answer once) and share."""
    counted = np.ones((1, len(risk))) if weights is None else weights
    weight, total = _by_group(risk, sureness, weights=counted)
    start = np.zeros((len(counted), 1))
    kept, lost = np.hstack([start, weight.cumsum(axis=1)]), np.hstack([start, total.cumsum(axis=1)])
    found = np.full((len(counted), len(shares)), np.nan)
    for row in range(len(counted)):
        wanted = np.array(shares) * kept[row, -1]
        if kept[row, -1] > 0:
            found[row] = np.interp(wanted, kept[row], lost[row]) / wanted
    return found


def kept(sureness: FloatArray, share: float) -> FloatArray:
    """(n,) how much of each answer is among the surest `share`: all, none, or, of equally sure ones of which only some fit, the same part of each.

    The mean risk with these weights is that of `curve`.
    """
    groups, counts = np.unique(np.round(-sureness, _DIGITS), return_inverse=True)[1], share * len(sureness)
    sizes = np.bincount(groups)
    before = np.concatenate([[0], sizes.cumsum()[:-1]])
    part: FloatArray = np.clip((counts - before) / sizes, 0.0, 1.0)[groups]
    return part


def _by_group(risk: FloatArray, sureness: FloatArray, *, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight and weighted risk of each group of equally sure answers, surest first: twice (R, G)."""
    doubt = np.round(-sureness, _DIGITS)
    order = np.argsort(doubt, kind="stable")
    _, starts = np.unique(doubt[order], return_index=True)
    ordered = weights[:, order]
    return np.add.reduceat(ordered, starts, axis=1), np.add.reduceat(ordered * risk[order], starts, axis=1)
