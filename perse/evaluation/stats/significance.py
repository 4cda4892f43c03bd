"""Is the difference of two judges more than chance? Exchange their answers by reviewer, and see how often it is as large.

If two judges are equally good, it makes no difference which of the two answered a reviewer: so all answers to a reviewer are
exchanged, or not, with probability 1/2 each. A reviewer's answers go together, since they are not independent of each other.
An exchange is a resample: of 2C reviewers, those as one judge answered them and those as the other did, the half is drawn
once. So every statistic that the bootstrap has is exact here without code of its own, at the price of twice the items.

Notation: M exchanges, C reviewers, n items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import ONE_REVIEWER
from perse.evaluation.stats.resamples import Resamples
from perse.identity import draw

UNDEFINED = "undefined (one of the values is)"
_SAME = 1e-9
_ROUNDING = 1e-11  # sums of the same numbers in another order differ by less

Columns = Callable[[Bootstrap, FloatArray, FloatArray], Mapping[str, FloatArray]]
"""Statistics by name of gold and predicted scores, in each resample, (R,): as `Bootstrap.resampled_scores`."""


def as_given(values: FloatArray) -> FloatArray:
    """What is exchanged where it is not `standardised`."""
    return values


@dataclass(frozen=True)
class Permutation:
    """The two-sided `p` of an exchange test, or None and a `reason`."""

    p: float | None = None
    reason: str | None = None
    exact: bool = False
    """Whether every exchange was counted; else they were drawn, and p is (b + 1) / (m + 1)."""


def paired_permutation(
    columns: Columns,
    gold: FloatArray,
    *,
    one: FloatArray,
    other: FloatArray,
    reviewer: IntArray,
    permutations: int,
    seed: int,
    scaled: Callable[[FloatArray], FloatArray] = as_given,
) -> dict[str, Permutation]:
    """How often the absolute difference of a statistic is at least as large when answers are exchanged by reviewer.

    Reviewers to whom both say the same stay: to exchange their answers changes nothing but the scale that these were brought to. All 2^D exchanges of
    the D others are counted when there are at most `permutations` of them, else so many are drawn. An exchange that leaves the statistic undefined counts as
    a large difference, which makes p conservative.

    Args:
        columns: the statistics, such as `Bootstrap.resampled_scores`.
        gold: true scores, (n,).
        one, other: what the two judges predict, (n,).
        reviewer: whose item it is, as an integer.
        permutations: exchanges to draw.
        seed: of the draw.
        scaled: what is done to each side before answers are exchanged, such as `standardised`.
    Returns:
        one for each of `columns`, of the same exchanges.
    """
    lengths = {len(gold), len(one), len(other), len(reviewer)}
    if len(lengths) > 1:
        raise ValueError(f"gold, predictions and reviewers must be as many, found {sorted(lengths)}")
    reviewers, who = np.unique(reviewer, return_inverse=True)
    size = len(reviewers)
    same = np.isclose(one, other, rtol=0, atol=_SAME, equal_nan=True)
    differ = np.flatnonzero(np.bincount(who[~same], minlength=size))
    exact = 2 ** len(differ) <= permutations
    exchanged = np.zeros((2 ** max(0, len(differ) - 1) if exact else permutations + 1, size), dtype=bool)
    exchanged[:, differ] = (
        _all_exchanges(len(differ)) if exact else _drawn_exchanges(size, permutations, seed=seed, among=differ)
    )
    swapped = exchanged.astype(np.float32).T  # (C, M)
    twice = np.concatenate([who, who + size]).astype(np.int64)
    halves = np.concatenate([1 - swapped, swapped]), np.concatenate([swapped, 1 - swapped])  # (2C, M) each
    of_one, of_other = (
        columns(Bootstrap(Resamples(twice, half)), np.tile(gold, 2), np.concatenate([scaled(one), scaled(other)]))
        for half in halves
    )
    return {name: _count(of_one[name] - of_other[name], reviewers=size, exact=exact) for name in of_one}


def _count(differences: FloatArray, *, reviewers: int, exact: bool) -> Permutation:
    """`differences` (M,), the first of the answers as they are."""
    if not len(differences) or np.isnan(differences[0]):
        return Permutation(reason=UNDEFINED)
    if reviewers == 1:  # the one exchange negates the difference, which is as large
        return Permutation(reason=ONE_REVIEWER)
    sizes, found = np.abs(differences), abs(float(differences[0]))
    as_large = np.isnan(sizes) | (sizes >= found - _ROUNDING * max(1.0, found))
    return Permutation(p=float(as_large.mean()), exact=exact)


def _all_exchanges(size: int) -> BoolArray:
    """(2^(D - 1), D): the first one's answers stay, since exchanging those of all the others instead only negates the difference."""
    if not size:
        return np.zeros((1, 0), dtype=bool)
    numbers = np.arange(2 ** (size - 1))[:, None]
    bits: BoolArray = (numbers >> np.arange(size - 1)) & 1 == 1
    return np.concatenate([np.zeros((len(bits), 1), dtype=bool), bits], axis=1)


def _drawn_exchanges(size: int, permutations: int, *, seed: int, among: IntArray) -> BoolArray:
    """(m + 1, D): none exchanged, then `permutations` draws of C of which `among`, (D,), count; so that the mean of "as large" is (b + 1) / (m + 1).

    The first one's answers stay here, too.
    """
    generator = np.random.default_rng(draw(seed, "reviewers", "paired permutation").getrandbits(128))
    drawn = (generator.integers(0, 2, size=(permutations, size), dtype=np.int8) == 1)[:, among]
    return np.concatenate([np.zeros((1, len(among)), dtype=bool), drawn ^ drawn[:, :1]])


def standardised(values: FloatArray) -> FloatArray:
    """Mean 0 and standard deviation 1: correlations ignore a judge's leniency and spread, so exchanges must not mix them in.

    So do Deutsch et al. (2021, "A statistical analysis of summarization evaluation metrics using resampling methods").
    """
    if not len(values):
        return values
    centred: FloatArray = values - values.mean()
    spread = float(values.std())
    return centred / spread if spread > 0 else centred


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment (1979): the k-th smallest of m times m - k + 1, at least the one before, at most 1.

    The chance that any true null hypothesis of the family is rejected is then at most the level, however they depend on each
    other. Undefined p-values are skipped.
    """
    defined = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(defined):
        largest = max(largest, min(1.0, p * (len(defined) - rank)))
        adjusted[place] = largest
    return adjusted


@dataclass(frozen=True)
class Williams:
    """Williams' test: t with n - 3 degrees of freedom, and its two-sided p."""

    t: float
    p: float


def williams(r_xy1: float, r_xy2: float, *, r_12: float, n: int) -> Williams | None:
    """Do two judges' Pearson correlations with one gold differ? Williams (1959), as in Steiger (1980), equation 7.

    Assumes that rows are independent, which several items of one reviewer are not, so its p is mostly too small: it is here
    for comparability with papers alone; `paired_permutation` is the test to trust.

        t = (r_xy1 - r_xy2) sqrt((n - 1)(1 + r_12) / (2 |R| (n - 1) / (n - 3) + ((r_xy1 + r_xy2) / 2)^2 (1 - r_12)^3))
        |R| = 1 - r_xy1^2 - r_xy2^2 - r_12^2 + 2 r_xy1 r_xy2 r_12

    Args:
        r_xy1, r_xy2: correlation of each judge with the gold.
        r_12: correlation of the judges with each other.
        n: items.
    Returns:
        None where it is undefined: fewer than 4 items, or two judges that say the same.
    """
    if n < 4:
        return None
    determinant = max(0.0, 1 - r_xy1**2 - r_xy2**2 - r_12**2 + 2 * r_xy1 * r_xy2 * r_12)
    middle = (r_xy1 + r_xy2) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + middle**2 * (1 - r_12) ** 3
    if spread <= _ROUNDING:
        return None
    t = (r_xy1 - r_xy2) * math.sqrt((n - 1) * (1 + r_12) / spread)
    return Williams(t=t, p=float(2 * stats.t.sf(abs(t), n - 3)))
