"""From outcomes to the numbers of KGDS: macro-averages over the samples that all models have, with intervals (tables 1 and 2).

A sample weighs the same whatever its length (KGDS, table 1), and intervals are of bootstrap resamples of samples. All values of a
call stand on the same resamples, so that differences between paradigms and patterns are paired. `formulas` has the metrics of one
summary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Sample
from perse.kgds.outcomes import ErrorType, Outcome, Outcomes
from perse.kgds.scoring.across_models import correlations
from perse.kgds.scoring.formulas import sample_values, strange
from perse.kgds.scoring.proportions import proportions
from perse.kgds.scoring.results import METRICS, Across, Delta, Errors, Metric, Results, SampleScores, Scores
from perse.kgds.scoring.words import named
from perse.results.result import Estimate

_ALL: tuple[Metric, ...] = (*METRICS, "retrieved")


def results(benchmark: Benchmark, outcomes: Sequence[Outcomes], *, resamples: int = 1000, seed: int = 0) -> Results:
    """All numbers of `outcomes`, on their common samples.

    A metric that is not known of every compared sample of a model (it was not verified) is left out, with a note; it is never 0.

    Args:
        resamples: of the bootstrap over samples, 100 or more.
        seed: of the resamples.
    Raises:
        BadInput: nothing to compare, the same model, pattern and paradigm twice, a sample that the benchmark does not have, or
            verifications that do not fit their sample.
    """
    if resamples < 100:
        raise BadInput(f"{resamples} resamples say little about an interval; use 100 or more")
    _refuse_odd(benchmark, outcomes)
    complete = [_complete(one) for one in outcomes]
    numbers = tuple(number for number in benchmark.samples if all(number in have for have in complete))
    if not numbers:
        sources = ", ".join(dict.fromkeys(one.source for one in outcomes))
        raise BadInput(f"no sample is in all of {sources}, and verified where others are; compare runs that share samples")
    draws = Resamples(np.arange(len(numbers)), times_drawn(len(numbers), resamples=resamples, seed=seed))
    ordered = sorted(outcomes, key=lambda one: (PATTERNS.index(one.pattern), PARADIGMS.index(one.paradigm)))
    sides = [_side(benchmark, one, numbers=numbers, draws=draws) for one in ordered]
    left_out = _left_out(benchmark, [(one.model, have) for one, have in zip(outcomes, complete, strict=True)])
    return Results(
        benchmark=benchmark.digest,
        samples=numbers,
        left_out=left_out,
        supporting_share=_supporting_share([benchmark.samples[number] for number in numbers]),
        scores=tuple(side.scores for side in sides),
        deltas=tuple(_deltas(sides)),
        across=tuple(_across(sides)),
        correlations=correlations([(side.scores, side.resampled) for side in sides], samples=len(numbers)),
        resamples=resamples,
        seed=seed,
        notes=(*_left_out_notes(left_out, benchmark), *_incomplete_notes(sides), *_source_notes(outcomes)),
    )


@dataclass(frozen=True)
class _Side:
    """One model under one pattern and paradigm: its scores, and its means in each resample."""

    scores: Scores
    resampled: Mapping[Metric, FloatArray]
    """(R,) fractions."""


def _refuse_odd(benchmark: Benchmark, outcomes: Sequence[Outcomes]) -> None:
    if not outcomes:
        raise BadInput("there are no summaries to measure; give one or more RUN folders, or the authors' `outputs`")
    seen: dict[tuple[str, str, str], str] = {}
    for one in outcomes:
        key = (one.model, one.pattern, one.paradigm)
        if key in seen:
            raise BadInput(
                f"{seen[key]} and {one.source} both hold '{one.model}' with {one.pattern} and {one.paradigm}; give one of them"
            )
        seen[key] = one.source
        if foreign := sorted(set(one.samples) - set(benchmark.samples)):
            raise BadInput(
                f"{one.source} holds sample {foreign[0]}, which {benchmark.path} with its {len(benchmark.samples)} samples does not; "
                "give the benchmark that it was made from"
            )


def _complete(one: Outcomes) -> set[int]:
    """Samples that were summarized, and verified if any were; a metric that was verified nowhere is left out instead."""
    read = [outcome for outcome in one.samples.values() if outcome.failed is None]
    facts, opinions = any(outcome.facts is not None for outcome in read), any(outcome.opinions is not None for outcome in read)
    return {
        number
        for number, outcome in one.samples.items()
        if outcome.failed is not None
        or ((outcome.facts is not None or not facts) and (outcome.opinions is not None or not opinions))
    }


def _left_out(benchmark: Benchmark, complete: Sequence[tuple[str, set[int]]]) -> dict[str, tuple[int, ...]]:
    """See `Results.left_out`; `complete` are models and the samples that they have."""
    found: dict[str, list[int]] = {}
    for number in benchmark.samples:
        without = [model for model, have in complete if number not in have]
        if without:
            found.setdefault("" if len(without) == len(complete) else without[0], []).append(number)
    return {model: tuple(numbers) for model, numbers in found.items()}


def _supporting_share(samples: Sequence[Sample]) -> float:
    return _percent(math.fsum(len(one.supporting) / len(one.article) for one in samples) / len(samples))


def _side(benchmark: Benchmark, one: Outcomes, *, numbers: Sequence[int], draws: Resamples) -> _Side:
    here = {number: one.samples[number] for number in numbers}
    try:
        values = {
            number: sample_values(outcome, benchmark.samples[number], pattern=one.pattern) for number, outcome in here.items()
        }
    except BadInput as error:
        raise BadInput(f"{one.source}: {error}") from None
    known = [metric for metric in _ALL if all(metric in of_sample for of_sample in values.values())]
    table = np.array([[of_sample[metric] for of_sample in values.values()] for metric in known])  # (k, S)
    resampled: dict[Metric, FloatArray] = dict(zip(known, draws.sums(table) / len(numbers) if known else (), strict=True))
    scores = Scores(
        model=one.model,
        pattern=one.pattern,
        paradigm=one.paradigm,
        values={
            metric: _estimate(_percent(math.fsum(row) / len(row)), resampled[metric], samples=len(numbers))
            for metric, row in zip(known, table.tolist(), strict=True)
        },
        errors=_errors(here, benchmark),
        verified_by=one.verified_by,
        failed=sum(outcome.failed is not None for outcome in here.values()),
        unanswered=sum(outcome.unanswered for outcome in here.values()),
        strange=sum(strange(outcome.cited or (), benchmark.samples[number]) for number, outcome in here.items()),
        samples=tuple(
            SampleScores(sample=number, values=values[number], failed=outcome.failed) for number, outcome in here.items()
        ),
    )
    return _Side(scores, resampled)


def _errors(here: Mapping[int, Outcome], benchmark: Benchmark) -> Errors | None:
    found = [outcome for outcome in here.values() if outcome.errors is not None]
    if not found:
        return None
    kinds = [kind for outcome in found for kind in outcome.errors or ()]
    counted = {kind: kinds.count(kind) for kind in ErrorType}
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


def _deltas(sides: Sequence[_Side]) -> Iterable[Delta]:
    """Reflection minus structured: of the rounded values, so that it equals the difference of a table's values."""
    by_key = {(side.scores.model, side.scores.pattern, side.scores.paradigm): side for side in sides}
    for before in sides:
        after = by_key.get((before.scores.model, before.scores.pattern, "reflection"))
        if before.scores.paradigm != "structured" or after is None:
            continue
        errors = [side.scores.errors.shares if side.scores.errors else None for side in (before, after)]
        old, new = errors
        yield Delta(
            model=before.scores.model,
            pattern=before.scores.pattern,
            values={
                metric: _difference(after, before, metric)
                for metric in _ALL
                if metric in before.resampled and metric in after.resampled
            },
            errors={kind: round(new[kind] - old[kind], 2) for kind in ErrorType} if old and new else None,
        )


def _across(sides: Sequence[_Side]) -> Iterable[Across]:
    by_key = {(side.scores.model, side.scores.pattern, side.scores.paradigm): side for side in sides}
    for extracting in sides:
        model, paradigm = extracting.scores.model, extracting.scores.paradigm
        writing = by_key.get((model, "abs-aos", paradigm))
        if extracting.scores.pattern != "ebs-aos" or writing is None:
            continue
        if "op" not in extracting.resampled or "op" not in writing.resampled:
            continue
        samples = len(extracting.scores.samples)
        total = sum(round(100 * _value(side, "op")) for side in (extracting, writing))  # in hundredths
        mean = (total + 1) // 2 / 100  # half a hundredth is rounded up
        both = (extracting.resampled["op"] + writing.resampled["op"]) / 2
        yield Across(
            model=model,
            paradigm=paradigm,
            gap=_difference(extracting, writing, "op"),
            mean=_estimate(mean, both, samples=samples),
        )


def _difference(more: _Side, less: _Side, metric: Metric) -> Estimate:
    value = round(_value(more, metric) - _value(less, metric), 2)
    found = _estimate(value, more.resampled[metric] - less.resampled[metric], samples=len(more.scores.samples))
    return found.model_copy(update={"difference": True})


def _value(side: _Side, metric: Metric) -> float:
    value = side.scores.values[metric].value
    if value is None:
        raise ValueError(f"{side.scores.model} has no {metric}")
    return value


def _estimate(value: float, resampled: FloatArray, *, samples: int) -> Estimate:
    """`value` in percent, with the interval of the fractions `resampled`, (R,), in percent and rounded as it is."""
    interval = bootstrap_interval(resampled, reviewers=samples, of="sample")
    ends = {end: _percent(at) for end, at in (("low", interval.low), ("high", interval.high)) if at is not None}
    return Estimate(value=value, interval=interval.model_copy(update=ends), items=samples)


def _percent(fraction: float) -> float:
    return round(100 * fraction, 2) + 0.0  # never -0.0


def _left_out_notes(left_out: Mapping[str, Sequence[int]], benchmark: Benchmark) -> Iterable[str]:
    if left_out:
        total = sum(map(len, left_out.values()))
        reasons = (
            f"{f'{model} has no summary' if model else 'nobody has a summary'}, or no verification, of {named(numbers)}"
            for model, numbers in left_out.items()
        )
        yield f"{total} of {len(benchmark.samples)} samples are left out: {'; '.join(reasons)}"


def _incomplete_notes(sides: Sequence[_Side]) -> Iterable[str]:
    for side in sides:
        scores = side.scores
        background = "key facts" if scores.pattern == "abs-aos" else "extracted paragraphs"
        for metric, what in (("f1", background), ("cao", "opinions")):
            missing = [one.sample for one in scores.samples if metric not in one.values]
            if missing:
                where = "" if len(missing) == len(scores.samples) else f" of {named(missing)}"
                yield f"{scores.model}, {scores.pattern}, {scores.paradigm}: {what}{where} are not known"


def _source_notes(outcomes: Sequence[Outcomes]) -> Iterable[str]:
    verifiers: dict[str, list[str]] = {}
    for one in outcomes:
        models = verifiers.setdefault(one.verified_by or "a judge that is not known", [])
        models += [one.model] if one.model not in models else []
    if len(verifiers) > 1:
        told = "; ".join(f"{judge} verified {', '.join(models)}" for judge, models in verifiers.items())
        yield f"values that different judges made, or ways of asking, cannot be compared: {told}"
    elif outcomes[0].verified_by:
        yield f"verified by {outcomes[0].verified_by}"
    yield from [f"{one.model}, {one.pattern}, {one.paradigm}: {note}" for one in outcomes for note in one.notes]
