"""One model under one pattern and paradigm on some samples: its means, and its means in each resample of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.intervals import bootstrap_interval, unless_alike
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.shares import apart_interval
from perse.kgds.benchmark import Benchmark
from perse.kgds.outcomes import ErrorType, Outcome, Outcomes
from perse.kgds.scoring.formulas import sample_values, strange
from perse.kgds.scoring.proportions import proportions
from perse.kgds.scoring.results import ALL_METRICS, Errors, Metric, SampleScores, Scores
from perse.results.result import Estimate, Interval

ENOUGH = 20
"""So many samples at which one side alone failed are enough for a bootstrap."""
FEW_FAILURES = "undefined (rests on few summaries that failed)"


@dataclass(frozen=True)
class Side:
    """One model under one pattern and paradigm: its scores, and its means in each resample."""

    scores: Scores
    resampled: Mapping[Metric, FloatArray]
    """(R,) fractions."""
    draws: Resamples
    """Of its samples, in their order; of all sides the same."""

    def of_samples(self, metric: Metric) -> FloatArray:
        """(S,) fractions."""
        return np.array([sample.values[metric] for sample in self.scores.samples])

    def failed(self) -> BoolArray:
        """(S,) whether there is no summary, which scores 0."""
        return np.array([sample.failed is not None for sample in self.scores.samples], dtype=bool)


def side_of(benchmark: Benchmark, one: Outcomes, *, numbers: Sequence[int], draws: Resamples, as_published: bool) -> Side:
    here = {number: one.samples[number] for number in numbers}
    try:
        values = {
            number: sample_values(outcome, benchmark.samples[number], pattern=one.pattern, as_published=as_published)
            for number, outcome in here.items()
        }
    except BadInput as error:
        raise BadInput(f"{one.source}: {error}") from None
    known = [metric for metric in ALL_METRICS if all(metric in of_sample for of_sample in values.values())]
    table = np.array([[of_sample[metric] for of_sample in values.values()] for metric in known])  # (k, S)
    resampled: dict[Metric, FloatArray] = dict(zip(known, draws.sums(table) / len(numbers) if known else (), strict=True))
    scores = Scores(
        model=one.model,
        pattern=one.pattern,
        paradigm=one.paradigm,
        values={
            metric: estimate(percent(math.fsum(row) / len(row)), resampled[metric], samples=len(numbers))
            for metric, row in zip(known, table.tolist(), strict=True)
        },
        errors=_errors(here, benchmark),
        verified_by=one.verified_by,
        failed=sum(outcome.failed is not None for outcome in here.values()),
        unanswered=sum(outcome.unanswered for outcome in here.values()),
        odd=sum(outcome.odd for outcome in here.values()),
        strange=sum(strange(outcome.cited or (), benchmark.samples[number]) for number, outcome in here.items()),
        samples=tuple(
            SampleScores(sample=number, values=values[number], failed=outcome.failed) for number, outcome in here.items()
        ),
    )
    return Side(scores, resampled, draws)


def _errors(here: Mapping[int, Outcome], benchmark: Benchmark) -> Errors | None:
    found = [outcome for outcome in here.values() if outcome.errors is not None]
    if not found:
        return None
    kinds = [kind for outcome in found for kind in outcome.errors or ()]
    counted = Counter(kinds)  # in the order of their first occurrence, which decides between ties as in the authors' script
    shares = [outcome.error_shares for outcome in found if outcome.errors]
    known = [one for one in shares if one is not None]
    sums = {kind: math.fsum(one.get(kind, 0.0) for one in known) for kind in ErrorType}
    return Errors(
        classified=len(kinds),
        uncovered=sum(
            _uncovered(outcome, opinions=len(benchmark.samples[number].opinions)) for number, outcome in here.items()
        ),
        shares=proportions(counted) if kinds else None,
        probable=proportions(sums) if kinds and len(known) == len(shares) and any(sums.values()) else None,
    )


def _uncovered(outcome: Outcome, *, opinions: int) -> int:
    """Opinions that the summary does not cover, as far as it was asked; a failed one covers none."""
    if outcome.failed is not None:
        return opinions
    return sum(not covered for covered in outcome.opinions or ())


def difference(more: Side, less: Side, metric: Metric) -> Estimate:
    """Paired. No interval where fewer than `ENOUGH` samples at which one side alone failed decide it, and who fails more often is not
    shown: resamples of a few know little of how often a side fails."""
    value = round(value_of(more, metric) - value_of(less, metric), 2)
    found = estimate(value, more.resampled[metric] - less.resampled[metric], samples=len(more.scores.samples))
    if _rests_on_few_failures(found, more, less, metric):
        interval = Interval(reason=FEW_FAILURES, resamples=found.interval.resamples)
        found = found.model_copy(update={"interval": interval})
    return found.model_copy(update={"difference": True})


def _rests_on_few_failures(found: Estimate, more: Side, less: Side, metric: Metric) -> bool:
    """Whether the side of 0 on which the interval lies is another without the samples at which one side alone failed, which are few and may as well
    have been the other's (by the exact interval of how much more often one fails, which is the sign test)."""
    one, other = more.of_samples(metric), less.of_samples(metric)
    more_often = less.failed().astype(np.float64) - more.failed()
    failed = more_often != 0
    if not (found.above_zero or found.below_zero) or not 0 < failed.sum() < ENOUGH:
        return False
    rest = more.draws.only(~failed)
    total = rest.totals()
    means = np.divide(rest.sums((one - other)[~failed][None])[0], total, out=np.full(len(total), np.nan), where=total > 0)
    without = estimate(found.value or 0.0, means, samples=int((~failed).sum()))
    if (without.above_zero, without.below_zero) == (found.above_zero, found.below_zero):
        return False
    interval = apart_interval(more_often, np.ones(len(failed)), clusters=[np.arange(len(failed))])
    shown = Estimate(value=None, interval=interval, items=len(failed))
    return (shown.above_zero, shown.below_zero) != (found.above_zero, found.below_zero)


def value_of(side: Side, metric: Metric) -> float:
    value = side.scores.values[metric].value
    if value is None:
        raise ValueError(f"{side.scores.model} has no {metric}")
    return value


def estimate(value: float, resampled: FloatArray, *, samples: int) -> Estimate:
    """`value` in percent, with the interval of the fractions `resampled`, (R,), in percent and rounded as it is."""
    interval = unless_alike(bootstrap_interval(resampled, reviewers=samples, of="sample"), resampled)
    ends = {end: percent(at) for end, at in (("low", interval.low), ("high", interval.high)) if at is not None}
    return Estimate(value=value, interval=interval.model_copy(update=ends), items=samples)


def percent(fraction: float) -> float:
    return round(100 * fraction, 2) + 0.0  # never -0.0
