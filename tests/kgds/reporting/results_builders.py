"""Results made by hand: round numbers that differ by model, so that each can be found again in a table or a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perse.kgds.benchmark import PATTERNS, Paradigm, Pattern
from perse.kgds.outcomes import ErrorType
from perse.kgds.scoring.results import METRICS, Across, Correlation, Delta, Errors, Results, SampleScores, Scores, WinRate
from perse.results.result import Estimate, Interval

FEW = "undefined (few samples)"


def estimate(value: float | None, *, wide: float | None = 2.5, reason: str = FEW, items: int = 60) -> Estimate:
    """A value with an interval of +- `wide`, or without one, for `reason`."""
    if value is None or wide is None:
        return Estimate(value=value, interval=Interval(reason=reason), items=items)
    return Estimate(value=value, interval=Interval(low=value - wide, high=value + wide, resamples=1000), items=items)


def scores(
    model: str, pattern: Pattern = "ebs-aos", paradigm: Paradigm = "structured", *, start: float = 80.0, **changes: Any
) -> Scores:
    """R = start, P = start - 1, F1 = start - 2, CAO R = start - 3, OP = start - 4, retrieved = start - 50."""
    values: dict[Any, Estimate] = {metric: estimate(start - n) for n, metric in enumerate(METRICS)}
    if pattern == "ebs-aos":
        values["retrieved"] = estimate(start - 50)
    given: dict[str, Any] = {
        "model": model,
        "pattern": pattern,
        "paradigm": paradigm,
        "values": values,
        "errors": Errors(classified=210, uncovered=211, shares=shares(8.57, 6.19, 26.67, 55.71, 2.86)),
        "failed": 0,
        "unanswered": 0,
        "strange": 0,
        "samples": (SampleScores(sample=1, values={"f1": 0.5}), SampleScores(sample=2, values={"f1": 1.0})),
    }
    return Scores(**{**given, **changes})


def shares(*values: float) -> dict[ErrorType, float]:
    return dict(zip(ErrorType, values, strict=True))


def delta(model: str, pattern: Pattern, change: float) -> Delta:
    errors = shares(change, -change, 0.0, 0.0, 0.0)
    return Delta(model=model, pattern=pattern, values={metric: estimate(change) for metric in METRICS}, errors=errors)


def results(*rows: Scores, **changes: Any) -> Results:
    """Of these rows, with across and correlations as far as there are rows for them."""
    given: dict[str, Any] = {
        "benchmark": "ab" * 32,
        "samples": tuple(range(1, 61)),
        "left_out": {},
        "supporting_share": 32.5,
        "scores": rows,
        "deltas": (),
        "across": (),
        "correlations": (),
        "resamples": 1000,
        "seed": 0,
    }
    return Results(**{**given, **changes})


def many(names: Sequence[str], *, paradigms: Sequence[Paradigm] = ("structured", "reflection")) -> Results:
    """All models under both patterns; the first is best. Reflection is 1.5 lower under EBS-AOS and 1.5 higher under ABS-AOS."""
    rows, across = [], []
    for n, name in enumerate(names):
        for paradigm in paradigms:
            change = 1.5 if paradigm == "reflection" else 0.0
            rows.append(scores(name, "ebs-aos", paradigm, start=85 - 2.5 * n - change))
            rows.append(scores(name, "abs-aos", paradigm, start=64 - 2.0 * n + change))
            gap, mean = 21 - 0.5 * n - 2 * change, 70.5 - 2.25 * n
            across.append(Across(model=name, paradigm=paradigm, gap=estimate(gap), mean=estimate(mean)))
    deltas = [delta(name, p, d) for name in names for p, d in (("ebs-aos", -1.5), ("abs-aos", 1.5)) if len(paradigms) > 1]
    few = len(names) < 3
    one = estimate(None, reason="undefined (fewer than 3 models)") if few else estimate(0.75, wide=0.2)
    correlations = [
        Correlation(pattern=pattern, paradigm=paradigm, models=len(names), pearson=one, spearman=one)
        for pattern in PATTERNS
        for paradigm in paradigms
    ]
    wins = tuple(
        WinRate(model=name, judge=name, second_turn=True, differs=50, answered=50, share=estimate(95 - n))
        for n, name in enumerate(names)
    )
    return results(*rows, across=tuple(across), deltas=tuple(deltas), correlations=tuple(correlations), win_rates=wins)
