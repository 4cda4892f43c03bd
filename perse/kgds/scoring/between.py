"""What one side is beside others: after reflection, under the other pattern, another model's, and all models together.

All sides stand on the same resamples of the same samples, so that every difference is paired. What different judges verified is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from perse.evaluation.stats.shares import joined
from perse.kgds.benchmark import PARADIGMS, PATTERNS
from perse.kgds.outcomes import ErrorType
from perse.kgds.scoring.results import ALL_METRICS, Across, Average, Delta, Difference, Metric, comparable
from perse.kgds.scoring.sides import Side, difference, estimate, value_of
from perse.results.result import Estimate


def deltas(sides: Sequence[Side]) -> Iterable[Delta]:
    """Reflection minus structured: of the rounded values, so that it equals the difference of a table's values."""
    by_key = {(side.scores.model, side.scores.pattern, side.scores.paradigm): side for side in sides}
    for before in sides:
        after = by_key.get((before.scores.model, before.scores.pattern, "reflection"))
        if before.scores.paradigm != "structured" or after is None:
            continue
        apart = _errors_apart(before, after)
        yield Delta(
            model=before.scores.model,
            pattern=before.scores.pattern,
            values={metric: difference(after, before, metric) for metric in _in_all((before, after))},
            errors=None if apart is None else {kind: one.value or 0.0 for kind, one in apart.items()},
            error_intervals=None if apart is None else {kind: one.interval for kind, one in apart.items()},
        )


def _errors_apart(before: Side, after: Side) -> dict[ErrorType, Estimate] | None:
    """By how much the share of each type is larger after; None where errors were not asked about on both sides, or by others."""
    old, new = before.scores.errors, after.scores.errors
    if not (old and new and old.shares and new.shares) or before.scores.verified_by != after.scores.verified_by:
        return None
    found = {}
    for kind in ErrorType:
        sides = [
            Estimate(value=one.shares[kind], interval=one.intervals[kind], items=one.classified)
            for one in (new, old)
            if one.shares and one.intervals
        ]
        apart = joined(list(zip((1.0, -1.0), sides, strict=True)))
        ends = {end: round(at, 2) for end in ("low", "high") if (at := getattr(apart.interval, end)) is not None}
        interval = apart.interval.model_copy(update=ends)
        found[kind] = Estimate(value=round(apart.value or 0.0, 2) + 0.0, interval=interval, items=apart.items)
    return found


def across(sides: Sequence[Side]) -> Iterable[Across]:
    by_key = {(side.scores.model, side.scores.pattern, side.scores.paradigm): side for side in sides}
    for extracting in sides:
        model, paradigm = extracting.scores.model, extracting.scores.paradigm
        writing = by_key.get((model, "abs-aos", paradigm))
        if extracting.scores.pattern != "ebs-aos" or writing is None:
            continue
        if "op" not in _in_all((extracting, writing)):
            continue
        samples = len(extracting.scores.samples)
        total = sum(round(100 * value_of(side, "op")) for side in (extracting, writing))  # in hundredths
        mean = (total + 1) // 2 / 100  # half a hundredth is rounded up
        both = (extracting.resampled["op"] + writing.resampled["op"]) / 2
        yield Across(
            model=model,
            paradigm=paradigm,
            gap=difference(extracting, writing, "op"),
            mean=estimate(mean, both, samples=samples),
        )


def differences(sides: Sequence[Side]) -> Iterable[Difference]:
    """Each model minus each that was given after it, within a pattern and paradigm."""
    for one, other in combinations(sides, 2):
        if (one.scores.pattern, one.scores.paradigm) == (other.scores.pattern, other.scores.paradigm):
            yield Difference(
                model=one.scores.model,
                minus=other.scores.model,
                pattern=one.scores.pattern,
                paradigm=one.scores.paradigm,
                values={metric: difference(one, other, metric) for metric in _in_all((one, other))},
            )


def _in_all(sides: Sequence[Side]) -> list[Metric]:
    rows = [side.scores for side in sides]
    return [metric for metric in ALL_METRICS if all(metric in side.resampled for side in sides) and comparable(rows, metric)]


def averages(sides: Sequence[Side]) -> Iterable[Average]:
    """Means over two or more models, of the metrics that all of them have."""
    for pattern in PATTERNS:
        for paradigm in PARADIGMS:
            here = [side for side in sides if (side.scores.pattern, side.scores.paradigm) == (pattern, paradigm)]
            metrics = _in_all(here)
            if len(here) < 2 or not metrics:
                continue
            yield Average(
                pattern=pattern,
                paradigm=paradigm,
                models=len(here),
                values={
                    metric: estimate(
                        round(sum(value_of(side, metric) for side in here) / len(here), 2),
                        np.mean([side.resampled[metric] for side in here], axis=0),
                        samples=len(here[0].scores.samples),
                    )
                    for metric in metrics
                },
            )
