"""Accuracy of yes and no and of their probabilities against known labels; and whether two ways of asking agree.

Every value is a function of weights: a claim weighs as often as its sample was drawn, and the first "resample" draws each sample once
and gives the value itself. So value and interval come from the same few lines, and a difference is paired; shares of claims have the intervals
that shares have elsewhere (`perse.evaluation.stats.shares`), and an AUROC one on the scale of logits. The calibration error alone
has no interval, for resampled items make it larger than it is (`perse.evaluation.calibration.reliability`).

Notation: n claims, C samples, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.departures import KNOWN, Departures, departing, departures
from perse.evaluation.stats.intervals import bootstrap_interval, logit_interval, too_few, unless_alike
from perse.evaluation.stats.pooled import divide
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.evaluation.stats.shares import apart_interval, share_interval
from perse.evaluation.stats.unseen import of_bounded
from perse.judgement import Judgement, Status
from perse.kgds.agreement.pairs import Pair
from perse.results.result import Estimate, Interval

NO_ANSWERS = Interval(reason="undefined (no answers)")
NO_PROBABILITIES = Interval(reason="undefined (the judge gives no probabilities)")
ALWAYS_SAME = Interval(reason="undefined (both always say the same)")
ONE_CLASS = Interval(reason="undefined (answers to one class alone)")


@dataclass(frozen=True)
class Answered:
    """The answers about n claims, for one way of asking."""

    truth: BoolArray
    """(n,) whether the claim follows."""
    yes: BoolArray
    """(n,) whether the answer is yes; False without an answer."""
    ok: BoolArray
    """(n,) whether there is an answer."""
    p_yes: FloatArray
    """(n,) P(yes) of the answers; NaN without an answer or a distribution."""
    p_any: FloatArray
    """(n,) the same, also of `unparsed` answers."""
    mass: FloatArray
    """(n,) the mass on yes and no together; NaN if unknown."""
    sample: IntArray
    """(n,) the sample of each, 0 to C - 1."""

    @property
    def right(self) -> BoolArray:
        """(n,) whether the answer equals the label; a missing answer is wrong."""
        right: BoolArray = self.ok & (self.yes == self.truth)
        return right

    @property
    def known(self) -> BoolArray:
        """(n,) whether there is a probability."""
        known: BoolArray = ~np.isnan(self.p_yes)
        return known


@dataclass(frozen=True)
class Value:
    """A value with its resamples, (R,), NaN where undefined, and the numbers of claims and samples behind it."""

    value: float
    resampled: FloatArray
    items: int
    samples: int

    together: Departures = KNOWN
    """Of a kappa: how often both depart from their usual answers together."""
    own: Callable[[], Interval] | None = None
    """The interval of a share of claims, or of a difference of two, which is not resampled; of an AUROC, which may be near 1."""

    def estimate(self, undefined: Interval = ONE_CLASS) -> Estimate:
        """With its interval, or `undefined` where there is no value."""
        if np.isnan(self.value):
            return Estimate(value=None, interval=undefined, items=self.items)
        if self.own is not None:
            interval = too_few(self.samples, of="sample") or self.own()
        else:
            interval = unless_alike(bootstrap_interval(self.resampled, reviewers=self.samples, of="sample"), self.resampled)
            interval = self.together.allowed(interval)
        return Estimate(value=self.value, interval=interval, items=self.items)

    def minus(self, other: Value) -> Value:
        """The paired difference of two values on the same resamples."""
        return replace(self, value=self.value - other.value, resampled=self.resampled - other.resampled, own=None)


class SampleResamples:
    """Values on one set of resamples of `samples` samples."""

    def __init__(self, samples: int, *, resamples: int, seed: int) -> None:
        once = np.ones((samples, 1), dtype=np.float32)
        self._drawn = np.concatenate([once, times_drawn(samples, resamples=resamples, seed=seed)], axis=1)

    def mean(self, values: FloatArray | BoolArray, chosen: BoolArray, sample: IntArray) -> Value:
        """Mean of `values`, (n,), over the `chosen` rows, (n,)."""
        kept = values[chosen].astype(np.float64)
        return self._value(divide(*self._rows(sample[chosen]).sums(np.stack([kept, np.ones_like(kept)]))), sample[chosen])

    def share(self, values: BoolArray, chosen: BoolArray, sample: IntArray) -> Value:
        """The same of what is or is not so."""
        kept, who = values[chosen].astype(np.float64), sample[chosen]
        found = self.mean(values, chosen, sample)
        return replace(found, own=lambda: share_interval(kept, np.ones(len(kept)), clusters=[who]))

    def between_0_and_1(self, values: FloatArray, chosen: BoolArray, sample: IntArray) -> Value:
        """`mean` of probabilities and the like, with ends that know of claims so rare that there is none among these (`unseen`)."""
        found = self.mean(values, chosen, sample)

        def own() -> Interval:
            resampled = unless_alike(bootstrap_interval(found.resampled, reviewers=found.samples, of="sample"), found.resampled)
            return of_bounded(found.value, resampled, items=found.items, least=0.0, most=1.0)

        return replace(found, own=own)

    def shares_apart(self, one: BoolArray, other: BoolArray, sample: IntArray) -> Value:
        """How much more often `one` is so than `other`, both of the same claims, (n,)."""
        differences, every = one.astype(np.float64) - other, np.ones_like(one)
        found = self.mean(differences, every, sample)
        return replace(found, own=lambda: apart_interval(differences, np.ones(len(one)), clusters=[sample]))

    def auroc(self, score: FloatArray, truth: BoolArray, *, chosen: BoolArray, sample: IntArray) -> Value:
        """The probability that a true claim has the higher score than a false one, equal scores counting half; of the `chosen`."""
        _, place = np.unique(score[chosen], return_inverse=True)
        size = int(place.max(initial=-1)) + 1
        tables = self._rows(sample[chosen]).tables(2 * place + truth[chosen], 2 * size)  # (1 + R, 2 * scores)
        false, true = tables[:, 0::2], tables[:, 1::2]
        below = np.cumsum(false, axis=1) - false
        wins = (true * (below + false / 2)).sum(axis=1)
        found = self._value(divide(wins, true.sum(axis=1) * false.sum(axis=1)), sample[chosen])
        return replace(found, own=lambda: logit_interval(found.value, found.resampled, reviewers=found.samples, of="sample"))

    def kappa(self, one: BoolArray, other: BoolArray, *, chosen: BoolArray, sample: IntArray) -> Value:
        """Cohen's kappa of two answers to each of the `chosen`; undefined where chance alone would always agree."""
        cell = (2 * one + other)[chosen].astype(np.int64)
        tables = self._rows(sample[chosen]).tables(cell, 4)  # (1 + R, 4): no no, no yes, yes no, yes yes
        total = tables.sum(axis=1)
        same, yes, other_yes = tables[:, 0] + tables[:, 3], tables[:, 2] + tables[:, 3], tables[:, 1] + tables[:, 3]
        chance = yes * other_yes + (total - yes) * (total - other_yes)  # times total, so that all numbers are whole and exact
        usual = (departing(side[chosen].astype(np.float64)) for side in (one, other))
        together = departures(*usual, clusters=[sample[chosen]])
        return replace(self._value(divide(total * same - chance, total * total - chance), sample[chosen]), together=together)

    def _rows(self, sample: IntArray) -> Resamples:
        return Resamples(sample, self._drawn)

    def _value(self, every: FloatArray, sample: IntArray) -> Value:
        return Value(float(every[0]), every[1:], len(sample), len(np.unique(sample)))


def answered(pairs: Sequence[Pair], judgements: Sequence[Judgement], *, samples: Mapping[int, int]) -> Answered:
    """The judgements of `pairs`, in their order; `samples` has the place of each sample's number."""
    ok = np.array([one.status is Status.OK for one in judgements], dtype=bool)
    p_any = np.array([one.distribution["yes"] if one.distribution else np.nan for one in judgements], dtype=np.float64)
    return Answered(
        truth=np.array([pair.truth for pair in pairs], dtype=bool),
        yes=np.array([one.label == "yes" for one in judgements], dtype=bool),
        ok=ok,
        p_yes=np.where(ok, p_any, np.nan),
        p_any=p_any,
        mass=np.array([np.nan if one.mass is None else one.mass for one in judgements], dtype=np.float64),
        sample=np.array([samples[pair.sample] for pair in pairs], dtype=np.int64),
    )


def measured(given: Answered, shared: SampleResamples) -> dict[str, Value]:
    """Accuracy and its parts over true and over false claims; the share of yes among the answers; AUROC, Brier score and mean P(yes)
    of true and of false claims, over the answers with a probability; mean mass, and AUROC, over whatever has a distribution."""
    every, known, who = np.ones_like(given.ok), given.known, given.sample
    return {
        "accuracy": shared.share(given.right, every, who),
        "true": shared.share(given.right, given.truth, who),
        "false": shared.share(given.right, ~given.truth, who),
        "said yes": shared.share(given.yes, given.ok, who),
        "AUROC": shared.auroc(given.p_yes, given.truth, chosen=known, sample=who),
        "Brier": shared.between_0_and_1((given.p_yes - given.truth) ** 2, known, who),
        "P(yes) of true": shared.between_0_and_1(given.p_yes, known & given.truth, who),
        "P(yes) of false": shared.between_0_and_1(given.p_yes, known & ~given.truth, who),
        "mass": shared.between_0_and_1(given.mass, ~np.isnan(given.mass), who),
        "AUROC of any": shared.auroc(given.p_any, given.truth, chosen=~np.isnan(given.p_any), sample=who),
    }


def same_answers(one: Answered, other: Answered, shared: SampleResamples) -> dict[str, Value]:
    """Of the same claims asked in two ways: the share of equal answers and Cohen's kappa of what was answered in both, and the paired
    differences of accuracy, over all, and of AUROC, over what has a probability in both."""
    both, known = one.ok & other.ok, one.known & other.known
    aurocs = [shared.auroc(given.p_yes, given.truth, chosen=known, sample=given.sample) for given in (one, other)]
    return {
        "equal": shared.share(one.yes == other.yes, both, one.sample),
        "kappa": shared.kappa(one.yes, other.yes, chosen=both, sample=one.sample),
        "accuracy": shared.shares_apart(one.right, other.right, one.sample),
        "AUROC": aurocs[0].minus(aurocs[1]),
    }
