"""Where two sides nearly always give one answer: is what a bootstrap says of their correlation more than what it never saw?

A correlation of such sides rests on the few items on which both depart from their usual answer. Where chance would leave one or two of these
there are often none, in the items and so in every resample, and the interval lies below 0 however independent the sides are. Each side has
many items that depart; it is those on which both do that must be many. Their share has an exact interval (`shares`), and chance makes it
the product of both sides' shares:

- where the interval of none at all reaches that product, fewer than chance could not be noticed: no interval is given, unless more
  than chance are seen (of single items: fewer than 3.7 that both depart on are expected);
- where up to `ENOUGH` are expected, an interval below 0 is given only if fewer than chance depart together.

Within readers it is each reader's own usual answer that counts, and what chance makes is the product of that reader's shares.

How often intervals of independent sides lie below 0 or above it, before and after: docs/results.md (benchmarks/verdict_worlds.py --only rare).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.shares import share_interval
from perse.evaluation.stats.within import vary_in_all
from perse.results.result import Estimate, Interval

ENOUGH = 30
"""With so many expected a bootstrap of independent sides is below 0 in about 3 of 100 (with 12 in 5, with 3 in 7, with 1 in 35)."""
FEW_DEPART = "undefined (too few texts on which both depart from their usual answer)"
_DECIMALS = 9


@dataclass(frozen=True)
class Departures:
    """What is known of how often two sides depart from their usual answers together."""

    too_few: bool
    """Whether neither fewer nor more than chance would do so could be told."""
    may_be_chance: bool
    """Whether they are few, and not shown to be fewer than chance makes them."""

    def allowed(self, interval: Interval, *, below: bool = True) -> Interval:
        """The interval, or none where it rests on too few departures.

        Args:
            below: whether fewer of them make the value less, as for a correlation; more, as for a difference from one: False.
        """
        estimate = Estimate(value=None, interval=interval, items=0)
        misled = estimate.below_zero if below else estimate.above_zero
        if interval.low is not None and (self.too_few or (misled and self.may_be_chance)):
            return Interval(reason=FEW_DEPART, resamples=interval.resamples, undefined_resamples=interval.undefined_resamples)
        return interval


KNOWN = Departures(too_few=False, may_be_chance=False)


def departing(values: FloatArray, *, near: float = 0.0) -> BoolArray | None:
    """(n,) which values are another than the one that more than half of them have, give or take `near`; None if there is no such value."""
    if not len(values):
        return None
    usual = float(np.median(values))  # of more than half the middle one is
    others: BoolArray = np.abs(np.round(values - usual, _DECIMALS)) > near
    return others if 2 * others.sum() < len(values) else None


def departures(one: BoolArray | None, other: BoolArray | None, *, clusters: Sequence[IntArray]) -> Departures:
    """Of the items on which each of two sides departs (`departing`), (n,).

    Args:
        clusters: (n,) each: whose an item is, and where texts are shared which text it is about.
    """
    if one is None or other is None or not one.any() or not other.any():
        return KNOWN
    return _told(one & other, float(one.mean() * other.mean()), clusters)


def departures_within(gold: FloatArray, predicted: FloatArray, *, reviewer: IntArray) -> Departures:
    """Of two sides of the items of each reader, (n,) each: how often both depart from what they usually say to that reader.

    Readers to whom a side always says the same have no value and do not count. Where half of the others or more have no usual answer on one side,
    all of their items decide. Given how often a reader's items depart, they meet as if each were of its own.
    """
    kept = vary_in_all(reviewer, gold, predicted)
    reviewer = np.unique(reviewer[kept], return_inverse=True)[1]
    if not len(reviewer):
        return KNOWN
    (one, has_one), (other, has_other) = (_departing_by(side[kept], reviewer) for side in (gold, predicted))
    usual = has_one & has_other  # (readers,)
    if 2 * usual.sum() <= len(usual):
        return KNOWN
    rows = usual[reviewer]
    size = np.bincount(reviewer)
    shares = [np.bincount(reviewer, weights=side) / size for side in (one, other)]
    chance = float((shares[0] * shares[1])[reviewer[rows]].mean())
    return _told((one & other)[rows], chance, [np.arange(int(rows.sum()))])


def _departing_by(values: FloatArray, reviewer: IntArray) -> tuple[BoolArray, BoolArray]:
    """(n,) which values are another than their reader's usual one, and (readers,) who has one: the same to more than half of the items."""
    _, value = np.unique(np.round(values, _DECIMALS), return_inverse=True)
    pairs, pair, counts = np.unique(reviewer * (value.max() + 1) + value, return_inverse=True, return_counts=True)
    size = np.bincount(reviewer)
    usual = 2 * counts > size[pairs // (value.max() + 1)]  # of each reader one pair at most
    has = np.bincount(reviewer, weights=usual[pair]) > 0
    others: BoolArray = ~usual[pair] & has[reviewer]
    return others, has


def _told(both: BoolArray, chance: float, clusters: Sequence[IntArray]) -> Departures:
    """Where `both` depart, (n,), of which share `chance` is expected."""
    alike = np.ones(len(both))
    found, of_none = (
        share_interval(values, alike, clusters=clusters) for values in (both.astype(np.float64), np.zeros(len(both)))
    )
    assert found.low is not None and found.high is not None and of_none.high is not None
    return Departures(
        too_few=of_none.high >= chance >= found.low,
        may_be_chance=chance * len(both) < ENOUGH and found.high >= chance,
    )
