"""Shares of the error types in percent that sum to exactly 100.00 (KGDS, table 2).

Each share is rounded to two digits, and the remainder goes to the smallest class that occurs, as in the paper's
table. All is counted in whole hundredths: sums of rounded floats would not be 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from perse.kgds.outcomes import ErrorType


def proportions(counts: Mapping[ErrorType, float]) -> dict[ErrorType, float]:
    """Percent of each type, all five of them, in the order of table 2.

    Of classes that are equally small, the first in the order of `counts` takes the remainder. A class that does not occur stays 0. Where the
    smallest has less than what is too much, it is left with 0 and the next smallest gives the rest: no share is negative.

    Args:
        counts: how often each was found, or sums of probabilities; not negative; types that are left out count 0.
    Raises:
        ValueError: they are all 0, or one is negative.
    """
    exact = {kind: Fraction(counts.get(kind, 0)) for kind in (*counts, *ErrorType)}
    total = sum(exact.values())
    if min(exact.values()) < 0 or not total:
        raise ValueError(f"proportions of {dict(counts)}: expected counts that are not negative and not all 0")
    hundredths = {kind: round(10_000 * count / total) for kind, count in exact.items()}
    missing = 10_000 - sum(hundredths.values())
    for kind in sorted((kind for kind in exact if exact[kind]), key=lambda kind: exact[kind]):  # sorted keeps ties in order
        before = hundredths[kind]
        hundredths[kind] = max(0, before + missing)
        missing -= hundredths[kind] - before
    return {kind: hundredths[kind] / 100 for kind in ErrorType}
