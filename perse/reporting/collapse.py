"""Whether a judge answers one thing much more often than the readers do, and tells their texts apart by nothing else either.

A share alone says nothing: readers may themselves nearly always say the same, and a judge that is right then does so, too. So the
judge's other answers must be less than half as frequent as the readers' are. And a judge whose likeliest
answer hardly moves may still order texts by its expected scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.reporting.report_data import RunData

NEARLY_ALL = 0.6
"""From this share of one label on it is asked whether a judge tells texts apart."""
NEARLY_ALL_CHOICES = 0.9
"""The same of two labels."""
_RESAMPLES = 500
_NAMED = 3
"""Labels that are named beside one that is no commoner."""


def is_collapsed(run: RunData, given: FloatArray) -> bool:
    """Whether `given`, (n,) labels as numbers, are nearly one, much more so than the readers', and expected scores order nothing.

    Both by 95% intervals: where there are too few readers for one, nothing is called collapsed.
    """
    rows = run.known & ~np.isnan(given)
    if not often(run, given):
        return False
    said, true = nearest(given[rows], run), nearest(run.gold[rows], run)
    commonest = int(np.bincount(said).argmax())
    bootstrap = Bootstrap.over(run.reviewer, resamples=_RESAMPLES, seed=0, item=run.text).only(rows)
    # Readers' other answers minus twice the judge's.
    excess = (true != commonest).astype(np.float64) - 2 * (said != commonest)
    seldom = bootstrap.shares_apart(excess, np.ones(len(said), dtype=bool), most=2.0)
    return seldom.above_zero and not bootstrap.one("kendall", run.gold[rows], run.expected[rows]).above_zero


def often(run: RunData, given: FloatArray) -> bool:
    """Whether one answer is so frequent that a collapse is to be asked for."""
    said = nearest(given[run.known & ~np.isnan(given)], run)
    most = NEARLY_ALL if len(run.labels) > 2 else NEARLY_ALL_CHOICES
    return len(said) > 0 and bool(np.bincount(said).max() > most * len(said))


def commonest(shares: FloatArray, labels: Sequence[str]) -> str:
    """The label with the largest of `shares`, (L,), beside those that have the same: "3 (7 as often)"."""
    first, *others = [label for label, share in zip(labels, shares, strict=True) if share == shares.max()]
    named = others if len(others) <= _NAMED else [*others[: _NAMED - 1], f"{len(others) - _NAMED + 1} others"]
    also = " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
    return f"{first} ({also} as often)" if also else first


def nearest(values: FloatArray, run: RunData) -> IntArray:
    """Index of the label nearest to each value; the mean score of a summary may lie between two."""
    found: IntArray = np.abs(values[:, None] - run.values).argmin(axis=1)
    return found
