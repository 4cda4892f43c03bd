"""One model under one pattern and paradigm on some samples: its means, and its means in each resample of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.failures import Failing, where_alike, with_failures
from perse.evaluation.stats.intervals import bootstrap_interval, too_few, unless_alike
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.shares import share_interval
from perse.kgds.benchmark import Benchmark
from perse.kgds.outcomes import ErrorType, Outcome, Outcomes
from perse.kgds.scoring.formulas import sample_values, strange
from perse.kgds.scoring.proportions import proportions
from perse.kgds.scoring.results import ALL_METRICS, Errors, Metric, SampleScores, Scores
from perse.results.result import Estimate, Interval


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
        facts_asked=one.facts_asked,
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
    sample = np.array([number for number, outcome in here.items() for _ in outcome.errors or ()], dtype=np.int64)
    sums = {kind: math.fsum(one.get(kind, 0.0) for one in known) for kind in ErrorType}
    return Errors(
        classified=len(kinds),
        uncovered=sum(
            _uncovered(outcome, opinions=len(benchmark.samples[number].opinions)) for number, outcome in here.items()
        ),
        shares=proportions(counted) if kinds else None,
        intervals={kind: _share_of(kind, kinds, sample) for kind in ErrorType} if kinds else None,
        probable=proportions(sums) if kinds and len(known) == len(shares) and any(sums.values()) else None,
    )


def _share_of(kind: ErrorType, kinds: Sequence[ErrorType], sample: IntArray) -> Interval:
    """The interval, in percent, of the share of `kind`; `sample`: (n,), of which each is."""
    if none := too_few(len(np.unique(sample)), of="sample"):
        return none
    found = share_interval(np.array([one == kind for one in kinds], dtype=np.float64), np.ones(len(kinds)), clusters=[sample])
    return found.model_copy(update={"low": percent(found.low or 0.0), "high": percent(found.high or 0.0)})


def _uncovered(outcome: Outcome, *, opinions: int) -> int:
    """Opinions that the summary does not cover, as far as it was asked; a failed one covers none."""
    if outcome.failed is not None:
        return opinions
    return sum(not covered for covered in outcome.opinions or ())


def difference(more: Side, less: Side, metric: Metric) -> Estimate:
    """Paired, of whatever samples there may be, those that one of the two fails at among them (`failures`)."""
    samples = len(more.scores.samples)
    value = round(value_of(more, metric) - value_of(less, metric), 2)
    found = estimate(value, more.resampled[metric] - less.resampled[metric], samples=samples)
    sides = [Failing(side.of_samples(metric), side.failed()) for side in (more, less)]
    rest = bootstrap_interval(more.draws.sums(where_alike(*sides)[None])[0] / samples, reviewers=samples, of="sample")
    interval = with_failures(found.interval, *sides, rest=rest, most=1.0)
    if interval.low is not None and interval.high is not None:
        interval = interval.model_copy(update={"low": percent(interval.low), "high": percent(interval.high)})
    return found.model_copy(update={"interval": interval, "difference": True})


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
