"""How far a difference of two paired shares reaches: Newcombe's hybrid score interval.

Of a failure that no sample shows, resamples of the samples know nothing. Wilson's interval of a share does: none of 100 may be 3.7% of others. Newcombe (1998,
"Improved confidence intervals for the difference between binomial proportions based on paired data", method 10) joins the two shares' by the ends that
matter, less what the pairing takes off. Coverage, where failures take a score to 0, by benchmarks/kgds_failures.py in docs/results.md.
"""

from __future__ import annotations

import math

from scipy import stats

from perse.evaluation.stats.correlation import BoolArray
from perse.evaluation.stats.intervals import LEVEL


def reach(one: BoolArray, other: BoolArray) -> tuple[float, float]:
    """How far below and above the difference of the shares of `one` and `other`, (n,) of the same items, its 95% interval ends."""
    n = len(one)
    shares = [float(side.mean()) for side in (one, other)]
    (low, high), (other_low, other_high) = (
        stats.binomtest(int(side.sum()), n).proportion_ci(LEVEL, method="wilson") for side in (one, other)
    )
    down, up = shares[0] - low, high - shares[0]
    other_down, other_up = shares[1] - other_low, other_high - shares[1]
    together = _correlation(one, other)
    below = down**2 - 2 * together * down * other_up + other_up**2
    above = up**2 - 2 * together * up * other_down + other_down**2
    return math.sqrt(max(0.0, below)), math.sqrt(max(0.0, above))


def _correlation(one: BoolArray, other: BoolArray) -> float:
    """Phi of the two, 0 where either is always the same; above 0 less n / 2 in the numerator, as Newcombe has it."""
    n = len(one)
    both, neither = int((one & other).sum()), int((~one & ~other).sum())
    alone, other_alone = int((one & ~other).sum()), int((~one & other).sum())
    margins = (both + alone) * (other_alone + neither) * (both + other_alone) * (alone + neither)
    if margins == 0:
        return 0.0
    apart = both * neither - alone * other_alone
    return (max(apart - n / 2, 0.0) if apart > 0 else apart) / math.sqrt(margins)
