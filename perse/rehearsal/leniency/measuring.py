"""What a judge gives graded summaries beside what people gave them: how much more, in what order, and what it gives summaries with
the reviews of other products.

Intervals draw products anew, with all their summaries. Coefficients are within products: a judge that scores the summaries of one product in people's order
orders them well, however much it gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.unseen import joined, none_among
from perse.rehearsal.judging import ASPECTS, Aspect
from perse.rehearsal.leniency.asking import Asked
from perse.rehearsal.settings import WIDE, Labels
from perse.results.result import Estimate

GRADE = 25.0
"""Points of 100 between two grades of 1 to 5."""
HIGHEST = 100.0
"""What a judge can give at most; the least is 0."""


@dataclass(frozen=True)
class OfGrade:
    """The summaries that people gave this grade, their mean rounded, halves up. The two are means on the judge's scale."""

    grade: int
    summaries: int
    people: float
    judge: Estimate


@dataclass(frozen=True)
class OfQuestion:
    """One question; points of 100."""

    aspect: Aspect
    answered: int
    difference: Estimate
    """Judge minus people, mean over summaries."""
    higher: Estimate
    """The share of summaries to which the judge gives more than people."""
    kendall: Estimate
    spearman: Estimate
    own: Estimate
    """What the judge gives, on average."""
    people: float
    """What people give the same summaries."""
    grades: tuple[OfGrade, ...]
    unrelated: Estimate
    """What it gives summaries that are shown with another product's reviews ..."""
    apart: Estimate
    """... and how much more it gives the same summaries with their own product's reviews."""


@dataclass(frozen=True)
class Leniency:
    """A judge's, by question."""

    judge: str
    labels: Labels
    products: int
    summaries: int
    questions: tuple[OfQuestion, ...]
    resamples: int
    seed: int


def leniency(asked: Sequence[Asked], *, judge: str, labels: Labels = WIDE, resamples: int, seed: int) -> Leniency:
    """What the answers come to; those that are none are left out, and counted."""
    own = [one for one in asked if one.people is not None]
    other = [one for one in asked if one.people is None]
    return Leniency(
        judge=judge,
        labels=labels,
        products=len({one.product for one in own}),
        summaries=len(own),
        questions=tuple(_of_question(aspect, own, other, resamples=resamples, seed=seed) for aspect in ASPECTS),
        resamples=resamples,
        seed=seed,
    )


def _of_question(aspect: Aspect, own: Sequence[Asked], other: Sequence[Asked], *, resamples: int, seed: int) -> OfQuestion:
    people = np.array([one.people[aspect] for one in own if one.people is not None], dtype=np.float64)
    judged, unrelated = _given(aspect, own), _given(aspect, other)
    product, shown_with = _products(own), _products(other)
    draws = Bootstrap.over(_numbered(product), resamples=resamples, seed=seed)
    known = ~np.isnan(judged)
    return OfQuestion(
        aspect=aspect,
        answered=int(known.sum()),
        difference=more_than_people(draws, judged, people).model_copy(update={"difference": True}),
        higher=_of_products(draws.share((judged > people).astype(np.float64), known)),
        kendall=_of_products(draws.one("within_kendall", people, judged)),
        spearman=_of_products(draws.one("within_spearman", people, judged)),
        own=_mean(draws, judged, known),
        people=float(people[known].mean()) if known.any() else float("nan"),
        grades=_by_grade(people, judged, known, draws),
        unrelated=_alone(unrelated, shown_with, resamples=resamples, seed=seed),
        apart=_apart(aspect, own, other, resamples=resamples, seed=seed),
    )


def more_than_people(draws: Bootstrap, judged: FloatArray, people: FloatArray) -> Estimate:
    """Judge minus people, (n,) each, NaN where the judge gave nothing.

    Of answers so rare that no summary has one, resamples know nothing: a judge of 80 may now and then give 0, or 100. The interval reaches as far as so
    many of them as none among these allows (`unseen`), of fewer where those of a product go together.
    """
    known = ~np.isnan(judged)
    found = _mean(draws, judged - people, known)
    if found.value is None:
        return found
    share, given = none_among(draws.only(known).clusters), float(judged[known].mean())
    interval = joined(found.value, found.interval, down=share * given, up=share * (HIGHEST - given))
    return found.model_copy(update={"interval": interval})


def _by_grade(people: FloatArray, judged: FloatArray, known: BoolArray, draws: Bootstrap) -> tuple[OfGrade, ...]:
    grade = np.floor(people / GRADE + 1 + 0.5).astype(np.int64)
    found = []
    for one in np.unique(grade[known]):
        chosen = known & (grade == one)
        found.append(OfGrade(int(one), int(chosen.sum()), float(people[chosen].mean()), _mean(draws, judged, chosen)))
    return tuple(found)


def _alone(values: FloatArray, product: IntArray, *, resamples: int, seed: int) -> Estimate:
    """The mean of values that are of other rows than the graded summaries."""
    if not len(values):
        return Bootstrap.over(np.zeros(1, dtype=np.int64), resamples=1, seed=seed).mean(np.zeros(1), np.zeros(1, dtype=bool))
    draws = Bootstrap.over(_numbered(product), resamples=resamples, seed=seed)
    return _mean(draws, values, ~np.isnan(values))


def _apart(aspect: Aspect, own: Sequence[Asked], other: Sequence[Asked], *, resamples: int, seed: int) -> Estimate:
    """How much more the judge gives a summary with its own product's reviews than with another's: the mean over those shown with both, drawn with the
    product that they are of. Each is held against itself, so a judge that looks at the text alone has 0, whichever summaries were shown."""
    with_own = dict(zip((one.summary for one in own), _given(aspect, own), strict=True))
    gaps = np.array([with_own[one.summary] for one in other], dtype=np.float64) - _given(aspect, other)
    product = np.array([one.summary[0] for one in other], dtype=np.int64)
    return _alone(gaps, product, resamples=resamples, seed=seed).model_copy(update={"difference": True})


def _given(aspect: Aspect, asked: Sequence[Asked]) -> FloatArray:
    """(n,) what the judge gave, NaN where nothing."""
    return np.array([np.nan if one.judge[aspect] is None else one.judge[aspect] for one in asked], dtype=np.float64)


def _products(asked: Sequence[Asked]) -> IntArray:
    return np.array([one.product for one in asked], dtype=np.int64)


def _numbered(products: IntArray) -> IntArray:
    return np.unique(products, return_inverse=True)[1].astype(np.int64)


def _mean(draws: Bootstrap, values: FloatArray, chosen: BoolArray) -> Estimate:
    return _of_products(draws.mean(values, chosen))


def _of_products(estimate: Estimate) -> Estimate:
    """What is drawn here is products, not reviewers."""
    if not estimate.interval.reason:
        return estimate
    reason = estimate.interval.reason.replace("reviewer", "product")
    return estimate.model_copy(update={"interval": estimate.interval.model_copy(update={"reason": reason})})
