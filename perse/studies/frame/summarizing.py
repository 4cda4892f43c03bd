"""From the answers of several arms to values that can be compared: the same items, the same resamples of the reviewers.

A value is a weighted sum of one metric over predictions: weights (1,) make a plain value, (1, -1) a difference, (1/3, 1/3,
1/3) the mean of three passes. Its interval resamples the whole sum, so that a difference is a paired one. Metrics are named
as in `perse.evaluation.metrics`.

Notation: n items, R resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

import numpy as np

from perse.evaluation.baselines.ratings import pairwise_baselines, pointwise_baselines
from perse.evaluation.comparing.results import LEVEL
from perse.evaluation.comparing.words import p_shown
from perse.evaluation.differences import same_side
from perse.evaluation.metrics import METRICS
from perse.evaluation.metrics.metric import WITHIN
from perse.evaluation.predictions import expected_values, label_values, only
from perse.evaluation.shared_texts import (
    OF_THESE_TEXTS,
    both_drawn,
    of_these_texts,
    several_readers,
    texts_in_several_pairs,
    to_draw,
    works,
)
from perse.evaluation.stats.accuracy import correct, likeliest_correct
from perse.evaluation.stats.correlation import COEFFICIENTS, BoolArray, Convention, FloatArray, IntArray, kendall_a
from perse.evaluation.stats.estimates import EVEN, Bootstrap
from perse.evaluation.stats.intervals import Behind
from perse.evaluation.stats.shares import counted_alike, share_note
from perse.evaluation.stats.significance import as_given, paired_permutation, standardised
from perse.evaluation.stats.unseen import of_errors
from perse.evaluation.stats.within import within_every_reviewer
from perse.evaluation.verdict import ON_THESE_TEXTS
from perse.judgement import Judgement, Status
from perse.records import Example, PairwiseExample, PointwiseExample, chooses
from perse.results.result import Estimate, Interval, Point, Result
from perse.results.words import shown as cell
from perse.studies.frame.arms import Answers

POINTWISE = ("pearson", "spearman", "kendall", "within_pearson", "within_spearman", "within_kendall", "mae")
PAIRWISE = ("accuracy",)

Reading = Literal["expected", "label"]
"""What of an answer is taken: what its exact distribution says (expected score, likeliest choice), or the label it gave."""

NOTHING = "nothing was answered"
PERMUTATIONS = 2000
"""Exchanges behind a p, as `perse compare` has them unless it is told otherwise."""

Terms = Sequence[tuple[float, FloatArray]]
"""(weight, predictions (n,)): scores, or for pairs 1 where right."""


@dataclass(frozen=True)
class SharedResamples:
    """Items, whose they are, and the resamples that every value of a study shares. For pairs `gold` is not used."""

    gold: FloatArray
    reviewer: IntArray
    bootstrap: Bootstrap
    known: dict[bytes, dict[str, FloatArray]] = field(default_factory=dict, compare=False, repr=False)
    """Resampled values by prediction, all metrics at once: each enters a value and several differences, and is resampled once."""

    @classmethod
    def over(cls, examples: Sequence[Example], *, resamples: int, seed: int) -> SharedResamples:
        """For these examples, in this order; texts are resampled, too, where readers share them."""
        _, reviewer = np.unique(np.array([one.reviewer_id or one.id for one in examples], dtype=object), return_inverse=True)
        gold = np.array([one.truth if isinstance(one.truth, float | int) else np.nan for one in examples])
        index, item = reviewer.astype(np.int64), None
        if _two_way(examples):
            item = works(examples)
        return cls(gold.astype(np.float64), index, Bootstrap.over(index, resamples=resamples, seed=seed, item=item))

    def value(self, metric: str, terms: Terms, *, chosen: BoolArray | None = None) -> Estimate:
        """The weighted sum of `metric` over `terms`, with its interval; a difference where the weights sum to 0.

        Args:
            chosen: (n,) the items that count, for `accuracy` and `mae`; all by default.
        """
        estimate = self._value(metric, terms, chosen=chosen)
        return estimate.model_copy(update={"difference": True}) if _is_difference(terms) else estimate

    def _value(self, metric: str, terms: Terms, *, chosen: BoolArray | None) -> Estimate:
        everything = np.ones(len(self.reviewer), dtype=bool) if chosen is None else chosen
        if metric == "accuracy":
            return self._of_shares(terms, everything)
        if metric == "mae":
            apart = self.bootstrap.mean(_weighted([(weight, abs(self.gold - given)) for weight, given in terms]), everything)
            kept = [(weight, given[everything]) for weight, given in terms]
            interval = of_errors(apart.value, apart.interval, self.gold[everything], kept, items=apart.items)
            interval = self._unless_few_differ(interval, metric, terms, everything)
            return apart.model_copy(update={"interval": interval})
        found = [self._coefficient(metric, given) for _, given in terms]
        skipped = max((count for _, count in found if count is not None), default=None)
        values = [value for value, _ in found if value is not None]
        if len(values) < len(found):
            reason = Interval(reason="undefined (constant or too few items)")
            return Estimate(value=None, interval=reason, items=len(self.gold), skipped_reviewers=skipped)
        value = fsum(weight * value for (weight, _), value in zip(terms, values, strict=True))
        resampled = _weighted([(weight, self._resampled(metric, given)) for weight, given in terms])
        behind = Behind.both(*(self.bootstrap.standing_behind((metric,), self.gold, given)[metric] for _, given in terms))
        interval = self.bootstrap.interval(value, resampled, reviewers=behind.reviewers, texts=behind.texts)
        interval = self.bootstrap.unless_rare(interval, metric, self.gold, sides=terms)
        interval = self.bootstrap.with_unseen(interval, metric, self.gold, sides=terms, values=values)
        interval = self._unless_few_differ(interval, metric, terms, everything)
        return Estimate(value=value, interval=interval, items=len(self.gold), skipped_reviewers=skipped)

    def _unless_few_differ(self, interval: Interval, metric: str, terms: Terms, chosen: BoolArray) -> Interval:
        if not _is_difference(terms):
            return interval
        sides = [(weight, given[chosen]) for weight, given in terms]
        return self.bootstrap.only(chosen).unless_few_differ(interval, metric, self.gold[chosen], sides=sides)

    def told(self, metric: str, terms: Terms, *, holm: float | None = None) -> str:
        """A difference in words (`verdict`), where it is one of several with its p, adjusted for them. One of Kendall tau-b that is not there where ties count for neither side is not shown: tau-b leaves
        ties out of what it divides by, so that rounding may raise it and breaking ties by nothing lowers it."""
        difference = self.value(metric, terms)
        even = difference if metric != "kendall" or not shown_apart(difference) else self.value(EVEN, terms)
        if same_side(even, difference):
            return verdict(difference, holm=holm)
        return f"{_with_p(difference, holm)}, not shown, since it is {words(even, signed=True)} of all pairs where ties count for neither"

    def exchanged(self, metric: str, one: FloatArray, other: FloatArray, *, seed: int) -> float | None:
        """p of `metric` ("accuracy" or a coefficient), two-sided: the two exchanged reader by reader, correlations at one mean and spread, as in `perse compare`."""
        of_items = metric == "accuracy"

        def columns(exchanges: Bootstrap, gold: FloatArray, given: FloatArray) -> dict[str, FloatArray]:
            everything = np.ones(len(given), dtype=bool)
            return {
                metric: exchanges.resampled_mean(given, everything) if of_items else exchanges.resampled(metric, gold, given)
            }

        return paired_permutation(
            columns,
            np.zeros(len(one)) if of_items else self.gold,
            one=one,
            other=other,
            reviewer=self.reviewer,
            permutations=PERMUTATIONS,
            seed=seed,
            scaled=as_given if of_items else standardised,
        )[metric].p

    def macro(self, terms: Terms, groups: Sequence[BoolArray]) -> Estimate:
        """As `value` of accuracy, as the mean over `groups` of items, (n,), which count alike."""
        return self._of_shares(terms, counted_alike(groups))

    def _of_shares(self, terms: Terms, counted: FloatArray | BoolArray) -> Estimate:
        """A difference of shares is as far from 0 at most as the weights of one side add up to."""
        values, most = _weighted(terms), fsum(weight for weight, _ in terms if weight > 0)
        apart = any(weight < 0 for weight, _ in terms)
        return self.bootstrap.shares_apart(values, counted, most=most) if apart else self.bootstrap.share(values, counted)

    def share(self, values: FloatArray) -> Estimate:
        """As `mean`, of values from 0 to 1 that are mostly one or the other."""
        return self.bootstrap.share(np.nan_to_num(values), ~np.isnan(values))

    def mean(self, values: FloatArray) -> Estimate:
        """Mean of one value an item, (n,), NaN where an item has none."""
        return self.bootstrap.mean(values, ~np.isnan(values))

    def _coefficient(self, metric: str, predicted: FloatArray) -> tuple[float | None, int | None]:
        """The value, and for a within-reviewer one how many reviewers have none."""
        name = metric.removeprefix("within_")
        if name == metric:
            return (kendall_a if name == EVEN else COEFFICIENTS[name])(self.gold, predicted), None
        within = within_every_reviewer(self.gold, predicted, self.reviewer)[name]
        return within.mean(Convention.SKIP_CONSTANT), within.skipped

    def _resampled(self, metric: str, predicted: FloatArray) -> FloatArray:
        """In each resample, (R,)."""
        if metric == EVEN:  # looked at seldom
            return self.bootstrap.resampled(EVEN, self.gold, predicted)
        key = predicted.tobytes()
        if key not in self.known:
            self.known[key] = self.bootstrap.resampled_scores(self.gold, predicted)
        return self.known[key][metric]


def _is_difference(terms: Terms) -> bool:
    return abs(fsum(weight for weight, _ in terms)) < 1e-9  # thirds, as of three passes, do not sum to 0 exactly


def _weighted(terms: Terms) -> FloatArray:
    total: FloatArray = np.sum([weight * values for weight, values in terms], axis=0)
    return total


def mean_of(passes: Sequence[FloatArray]) -> Terms:
    """The mean over several passes."""
    return tuple((1 / len(passes), values) for values in passes)


def minus(left: Terms, right: Terms) -> Terms:
    """The difference of two."""
    return (*left, *((-weight, values) for weight, values in right))


def spread(shared: SharedResamples, metric: str, passes: Sequence[FloatArray]) -> float | None:
    """Standard deviation (n - 1) of `metric` over several passes; None for one pass or an undefined value."""
    values = [shared.value(metric, mean_of([given])).value for given in passes]
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) == len(values) > 1 else None


def answered_by_all(examples: Sequence[Example], answers: Mapping[str, Answers]) -> list[Example]:
    """The examples of which every arm has an ok answer; pairs all, as one not answered is a wrong one.

    An arm without any ok answer is left out of it: its values are undefined, the others' are not.
    """
    if chooses(examples):
        return list(examples)
    arms = [given for given in answers.values() if any(map(_ok, given.values()))]
    if not arms:
        return []
    return [example for example in examples if all(example.id in given and _ok(given[example.id]) for given in arms)]


def _ok(judgement: Judgement) -> bool:
    return judgement.status is Status.OK


def predictions(examples: Sequence[Example], answers: Answers, reading: Reading) -> FloatArray | None:
    """(n,): predicted scores, or for pairs 1 where right and 0 where wrong or not answered.

    None if a score is missing, no pair was answered, or n is 0: nothing can be said of a judge that answered nothing.
    A judgement without distribution is read by its label.
    """
    given = [answers[example.id] for example in examples if example.id in answers]
    if not any(map(_ok, given)):
        return None
    if chooses(examples):
        gold = [str(example.truth) for example in examples if example.truth is not None]
        return likeliest_correct(gold, given) if reading == "expected" else correct(gold, [one.label for one in given])
    scores = expected_values(given) if reading == "expected" else label_values(given)
    return scores if len(scores) == len(examples) and not np.isnan(scores).any() else None


def arithmetic(examples: Sequence[Example], *, seed: int) -> dict[str, FloatArray]:
    """What needs no judge, as `predictions` are: the average of the shown profile and a random score; for pairs copying it.

    There is no average where an example shows no profile: the paper's random score at k = 0 (PerSE, figure 3) is `random`.
    """
    if chooses(examples):
        pairs = only(PairwiseExample, examples)
        gold = [example.reference.preference for example in pairs if example.reference]
        chosen = pairwise_baselines(pairs, None, seed=seed)
        return {one.name: correct(gold, one.predictions) for one in chosen if one.predictions}
    scored = pointwise_baselines(only(PointwiseExample, examples), None, seed=seed)
    return {one.name: np.array(one.predictions, dtype=np.float64) for one in scored if one.predictions}


def crossed_note(examples: Sequence[Example]) -> list[str]:
    """What to say of texts that several readers judged."""
    if _two_way(examples):
        return [both_drawn(examples)]
    said = "; ".join(one for one in (several_readers(examples), texts_in_several_pairs(examples)) if one)
    if not said:
        return []
    if not of_these_texts(examples, two_way=False):
        return [f"{said}: too few between readers to matter to an interval"]
    return [f"{OF_THESE_TEXTS}: {said}; they hold for other readers, not for other texts"]


def with_reach(result: Result) -> Result:
    """The result whose answer says, too, where its intervals are of these texts alone (`crossed_note`)."""
    return result.model_copy(update={"answer": reaching(result.answer, result.notes)})


def reaching(answer: str, notes: Sequence[str]) -> str:
    """The same of an answer whose intervals have these notes."""
    if ON_THESE_TEXTS in answer or not any(note.startswith(OF_THESE_TEXTS) for note in notes):
        return answer
    return f"{answer} {OF_THESE_TEXTS[0].upper()}{OF_THESE_TEXTS[1:]}."


def note_of_shares(examples: Sequence[Example]) -> list[str]:
    """What to say of intervals of accuracy, which are not resampled."""
    return [share_note()] if chooses(examples) else []


def _two_way(examples: Sequence[Example]) -> bool:
    return to_draw(examples, "auto") == "two-way"


def metrics_of(examples: Sequence[Example]) -> tuple[str, ...]:
    """The metrics that suit these examples."""
    return PAIRWISE if chooses(examples) else POINTWISE


def headline(examples: Sequence[Example]) -> str:
    """The metric that a study's answer is told in: Kendall, as in the paper's figures 3 and 4, or accuracy."""
    return "accuracy" if chooses(examples) else "kendall"


def heading(metric: str) -> str:
    """What a metric is called in a table or a sentence."""
    known = METRICS[metric]
    return f"within {known.title}" if known.sheet == WITHIN else known.title


def undefined(reason: str, *, items: int = 0) -> Estimate:
    """No value, and why."""
    return Estimate(value=None, interval=Interval(reason=f"undefined ({reason})"), items=items)


def words(estimate: Estimate, *, signed: bool = False) -> str:
    """A value with its interval in a sentence; `signed`: it is a change."""
    return cell(estimate.model_copy(update={"difference": True}) if signed else estimate)


def shown_apart(difference: Estimate) -> bool:
    """Whether the interval of a difference leaves 0 out."""
    return difference.above_zero or difference.below_zero


def verdict(difference: Estimate, *, holm: float | None = None) -> str:
    """A difference in words: with "not shown" where its interval holds 0 or there is none, or where p that is adjusted for several is above the level."""
    if difference.value is None:
        return words(difference)
    said, chance = _with_p(difference, holm), holm is not None and holm > LEVEL
    return said if shown_apart(difference) and not chance else f"{said}, not shown"


def _with_p(difference: Estimate, holm: float | None) -> str:
    said = words(difference, signed=True)
    return said if holm is None else f"{said} (p by Holm {p_shown(holm)})"


def readings(name: str, examples: Sequence[Example], passes: Sequence[Answers]) -> dict[str, tuple[FloatArray, ...]]:
    """The predictions of one or more passes by series: NAME is what the distributions say, "NAME (label)" what was given.

    Without distributions NAME is the label. A series of which a pass has no answer is empty.
    """
    kinds: dict[str, Reading] = {name: "expected"}
    if any(judgement.distribution for answers in passes for judgement in answers.values()):
        kinds[f"{name} (label)"] = "label"
    found = {}
    for series, reading in kinds.items():
        read = [predictions(examples, answers, reading) for answers in passes]
        found[series] = tuple(one for one in read if one is not None) if all(one is not None for one in read) else ()
    return found


def points(
    shared: SharedResamples,
    series: str,
    x: str,
    *,
    metrics: Sequence[str],
    passes: Sequence[FloatArray],
    baseline: bool = False,
) -> list[Point]:
    """One point for each metric: the mean over the passes and their standard deviation; undefined without a pass."""
    return [
        Point(
            series=series,
            x=x,
            metric=metric,
            estimate=shared.value(metric, mean_of(passes)) if passes else undefined(NOTHING),
            spread=spread(shared, metric, passes),
            baseline=baseline,
        )
        for metric in metrics
    ]
