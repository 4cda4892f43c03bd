"""How far people agree with each other: what a judge's agreement with them is to be read beside.

It is no ceiling: what two annotators share is correlated with each of them by the root of what they reach with each other.

For each annotated dimension: the correlation of every two annotators, of each with the mean of the others, and
Krippendorff's alpha (ordinal). Correlations forgive an annotator who is always stricter, alpha does not; so both are shown.
Intervals resample groups of items (the summaries of one product are not independent of each other); without groups, items.

Notation: n items, A annotators, G groups, V distinct scores, R resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from pydantic import BaseModel, ConfigDict

from perse.evaluation.stats.correlation import COEFFICIENTS, BoolArray, FloatArray, IntArray
from perse.evaluation.stats.departures import FEW_DEPART, Departures, departing, departures
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.shares import deciding
from perse.evaluation.stats.unseen import of_correlation
from perse.progress import OnPart, OnProgress, counted, unseen_part
from perse.results.result import Estimate, Interval

COLUMNS = (*COEFFICIENTS, *(f"{within}{name}" for within in ("within_", "within_zero_") for name in COEFFICIENTS))
"""Pooled; and the mean over groups of a group's own coefficient, groups without one skipped or counted as 0."""


@dataclass(frozen=True)
class Ratings:
    """What the annotators gave the items on one dimension."""

    dimension: str
    annotators: tuple[str, ...]
    scores: FloatArray
    """(n, A), NaN where an annotator did not rate the item."""
    group: IntArray
    """(n,) the group of each item, 0 to G - 1."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Pair(_Result):
    """Two annotators, or one and the mean of the others, on the items that both rated; values by `COLUMNS`."""

    annotator: str
    other: str | None
    """None: the mean of the others."""
    columns: dict[str, Estimate]


class Dimension(_Result):
    """Agreement on one dimension."""

    name: str
    items: int
    """Items that two annotators or more rated."""
    groups: int
    groups_within: int
    """Groups that a mean within groups rests on, of the two annotators who have fewest."""
    alpha: Estimate
    """Krippendorff's alpha, ordinal: 1 is perfect, 0 is chance."""
    mean: dict[str, Estimate]
    """Mean over the pairs; undefined if it is in any of them."""
    pairs: tuple[Pair, ...]
    rest: tuple[Pair, ...]
    """Each annotator and the mean of the others; empty with two annotators, where it says the same."""


class AnnotatorAgreement(_Result):
    """Agreement among the annotators of a file."""

    annotators: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    resamples: int
    seed: int


def annotator_agreement(
    ratings: Sequence[Ratings], *, resamples: int = 1000, seed: int = 0, on_progress: OnPart = unseen_part
) -> AnnotatorAgreement:
    """Agreement on each dimension, with intervals from the same resamples of its groups.

    Args:
        on_progress: told how many pairs of annotators are done, by dimension; their number is quadratic in that of annotators.
    """
    names = tuple(dict.fromkeys(name for one in ratings for name in one.annotators))
    dimensions = tuple(
        _dimension(one, resamples=resamples, seed=seed, on_progress=partial(on_progress, one.dimension)) for one in ratings
    )
    return AnnotatorAgreement(annotators=names, dimensions=dimensions, resamples=resamples, seed=seed)


def alpha_of(coincidences: FloatArray) -> FloatArray:
    """Krippendorff's alpha, ordinal, of each coincidence matrix, (R, V * V): (R,), NaN where nothing varies.

    The distance of two scores is the number of ratings between them, half of those at them included: so the matrices' own
    frequencies say how far apart two scores are, and ties between the ranks need no convention.
    """
    size = round(coincidences.shape[1] ** 0.5)
    matrices = coincidences.reshape(len(coincidences), size, size)
    frequency = matrices.sum(axis=2)  # (R, V)
    middle = frequency.cumsum(axis=1) - frequency / 2
    distance = (middle[:, :, None] - middle[:, None, :]) ** 2  # (R, V, V)
    observed = (matrices * distance).sum(axis=(1, 2)) * (frequency.sum(axis=1) - 1)
    expected = (frequency[:, :, None] * frequency[:, None, :] * distance).sum(axis=(1, 2))
    disagreement: FloatArray = np.divide(observed, expected, out=np.full(len(matrices), np.nan), where=expected > 0)
    return 1 - disagreement


def coincidences(scores: FloatArray) -> FloatArray:
    """Each item's share of the coincidence matrix: (n, V * V), scores (n, A) in ascending order of their V values.

    Every ordered pair of an item's m ratings counts 1 / (m - 1); items with fewer than two are skipped.
    """
    values = np.unique(scores[~np.isnan(scores)])
    given = (scores[:, :, None] == values).sum(axis=1)  # (n, V)
    number = given.sum(axis=1)
    pairs = given[:, :, None] * given[:, None, :] - given[:, :, None] * np.eye(len(values))  # not with itself
    table: FloatArray = (pairs / np.maximum(number - 1, 1)[:, None, None]).reshape(len(scores), -1)
    return table


def _dimension(ratings: Ratings, *, resamples: int, seed: int, on_progress: OnProgress) -> Dimension:
    rated = (~np.isnan(ratings.scores)).sum(axis=1) >= 2
    rows = rated if rated.any() else np.ones(len(rated), dtype=bool)  # of the others nothing is resampled either
    group = np.unique(ratings.group[rows], return_inverse=True)[1].astype(np.int64)
    bootstrap = Bootstrap.over(group, resamples=resamples, seed=seed)
    scores = ratings.scores[rows]
    places = range(len(ratings.annotators))
    pairs = [
        (Pair(annotator=ratings.annotators[a], other=ratings.annotators[b], columns=found.columns), found)
        for a, b in counted([*combinations(places, 2)], on_progress)
        for found in [_correlated(scores[:, a], scores[:, b], bootstrap)]
    ]
    rest = []
    for a in places if len(places) > 2 else ():
        others = np.delete(scores, a, axis=1)
        number = (~np.isnan(others)).sum(axis=1)
        mean = np.divide(np.nansum(others, axis=1), number, out=np.full(len(others), np.nan), where=number > 0)
        rest.append(
            Pair(annotator=ratings.annotators[a], other=None, columns=_correlated(scores[:, a], mean, bootstrap).columns)
        )

    return Dimension(
        name=ratings.dimension,
        items=int(rated.sum()),
        groups=len(np.unique(ratings.group[rated])),
        groups_within=min((found.within for _, found in pairs), default=0),
        alpha=alpha(scores, bootstrap=bootstrap),
        mean={name: _mean(name, [found for _, found in pairs], bootstrap) for name in COLUMNS},
        pairs=tuple(pair for pair, _ in pairs),
        rest=tuple(rest),
    )


@dataclass(frozen=True)
class _Correlated:
    """Two raters by `COLUMNS`, on the items that both rated."""

    columns: dict[str, Estimate]
    resampled: dict[str, FloatArray]
    """(R,) each."""
    behind: dict[str, int]
    """Groups that the values rest on."""
    within: int
    """Groups that both rated and neither is constant in."""


def _correlated(one: FloatArray, other: FloatArray, bootstrap: Bootstrap) -> _Correlated:
    other = np.where(np.isnan(one), np.nan, other)
    both = len(np.unique(bootstrap.reviewer[~np.isnan(other)]))
    one = np.nan_to_num(one)
    estimates, resampled = bootstrap.scores(one, other), bootstrap.resampled_scores(one, other)
    return _Correlated(
        {name: estimates[name] for name in COLUMNS},
        {name: resampled[name] for name in COLUMNS},
        {name: behind.reviewers for name, behind in bootstrap.standing_behind(COLUMNS, one, other).items()},
        both - (estimates["within_pearson"].skipped_reviewers or 0),
    )


def _mean(name: str, of_pairs: Sequence[_Correlated], bootstrap: Bootstrap) -> Estimate:
    """Over the pairs. It rests on no more groups than the pair that has fewest."""
    estimates = [one.columns[name] for one in of_pairs]
    known = [estimate.value for estimate in estimates if estimate.value is not None]
    value = float(np.mean(known)) if known and len(known) == len(estimates) else None
    resampled = np.mean([one.resampled[name] for one in of_pairs], axis=0) if of_pairs else np.empty(0)
    interval = bootstrap.interval(value, resampled, reviewers=min((one.behind[name] for one in of_pairs), default=0))
    if interval.low is not None and FEW_DEPART in (estimate.interval.reason for estimate in estimates):
        interval = Interval(reason=FEW_DEPART, resamples=interval.resamples)
    skipped = [estimate.skipped_reviewers for estimate in estimates if estimate.skipped_reviewers is not None]
    items = max((estimate.items for estimate in estimates), default=0)
    return of_correlation(Estimate(value=value, interval=interval, items=items, skipped_reviewers=max(skipped, default=None)))


def alpha(scores: FloatArray, *, bootstrap: Bootstrap) -> Estimate:
    """Of items that two annotators or more rated; none where there are no such items."""
    table = coincidences(scores)
    plain = float(alpha_of(table.sum(axis=0)[None])[0])
    resampled = alpha_of(bootstrap.resamples.sums(table.T).T)
    value = None if np.isnan(plain) else plain
    items, annotators = np.nonzero(~np.isnan(scores))
    behind = deciding(scores[items, annotators], bootstrap.reviewer[items])
    two = int(((~np.isnan(scores)).sum(axis=1) >= 2).sum())
    interval = _together(scores, bootstrap.reviewer).allowed(bootstrap.interval(value, resampled, reviewers=behind))
    # Items that nobody saw may be rated as far apart as scores go, some twice as far as chance puts them: that takes their share twice, too.
    return of_correlation(Estimate(value=value, interval=interval, items=two))


def _together(scores: FloatArray, group: IntArray) -> Departures:
    """How often two annotators of an item depart together from the answer that is usual among all: of every two of them."""
    known = ~np.isnan(scores)
    others = departing(scores[known])
    if others is None:
        return departures(None, None, clusters=[])
    departs = np.zeros(scores.shape, dtype=bool)
    departs[known] = others
    item, one, other = (np.concatenate(part) for part in zip(*_every_two(known), strict=True))
    return departures(departs[item, one], departs[item, other], clusters=[group[item]])


def _every_two(known: BoolArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Items that two annotators rated, and which two, pair of annotators by pair."""
    for one, other in combinations(range(known.shape[1]), 2):
        items = np.flatnonzero(known[:, one] & known[:, other])
        yield items, np.full(len(items), one), np.full(len(items), other)
