"""Runs and evaluations to draw, of given answers, and what a figure says by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.drawing.figure import Cell, Figure
from perse.evaluation.stats.results import Evaluation, JudgeSummary, Row, Spent
from perse.judgement import Status
from perse.reporting.report_data import RunData
from perse.results.result import Estimate, Interval

SCORES = tuple(map(str, range(1, 11)))


def estimate(value: float | None, *, reason: str | None = None) -> Estimate:
    if value is None or reason:
        return Estimate(value=value, interval=Interval(reason=reason or "undefined (constant)"), items=0)
    return Estimate(value=value, interval=Interval(low=value - 0.125, high=value + 0.125, resamples=50), items=40)


def scores(name: str, gold: Sequence[float], label: Sequence[float], *, readers: int = 12, told: bool = True) -> RunData:
    """A judge that gives its label 80% and spreads the rest; NaN is a failure."""
    size, given = len(gold), np.array(label, dtype=np.float64)
    distributions = np.full((size, 10), np.nan)
    for row, one in zip(distributions, given, strict=True):
        if told and not np.isnan(one):
            row[:] = 0.2 / 9
            row[int(one) - 1] = 0.8
    return RunData(
        name=name,
        kind="pointwise",
        labels=SCORES,
        ids=tuple(f"e{n}" for n in range(size)),
        reviewers=tuple(f"r{n % readers}" for n in range(size)),
        aspects=("",) * size,
        gold=np.array(gold, dtype=np.float64),
        label=given,
        expected=distributions @ np.arange(1, 11) if told else given,
        distributions=distributions,
        order_gap=np.full(size, np.nan),
        statuses=tuple(Status.UNPARSED if np.isnan(one) else Status.OK for one in given),
        tokens=np.tile(np.array([100, 25, 20], dtype=np.int64), (size, 1)),
    )


def evaluation(*runs: RunData, value: float | None = 0.25, spent: Spent | None = None) -> Evaluation:
    """Every column of every judge's row has this value; the profile average 0.5, user+item bias none."""
    pairs = runs[0].kind == "pairwise"
    columns = (
        ("accuracy", "order_gap", "order_consistency") if pairs else ("kendall", "within_kendall", "mae", "between_kendall")
    )
    counts = {"A": {"A": 3, "B": 1, "N/A": 1}, "B": {"A": 2, "B": 4, "N/A": 0}}
    rows = []
    for run in runs:
        for reading in ("likeliest" if pairs else "expected", "label"):
            rows.append(
                Row(
                    name=f"{run.name} ({reading})",
                    judge=run.name,
                    asked=40,
                    ok=40,
                    columns={column: estimate(value) for column in columns},
                    aspects={aspect: estimate(value) for aspect in ("Ending", "Surprise")} if pairs else {},
                    counts=dict.fromkeys(("Ending", "Surprise"), counts) if pairs else {},
                )
            )
    best = {column: estimate(None if value is None else 0.5) for column in columns}
    aspects = dict.fromkeys(("Ending", "Surprise"), best["accuracy"]) if pairs else {}
    rows.append(Row(name="profile average", judge=None, asked=40, ok=40, columns=best, aspects=aspects))
    rows.append(Row(name="user+item bias", judge=None, unavailable="no training data at hand", asked=40, ok=0))
    summary = JudgeSummary(models=("m",), adapters=(), statuses=dict.fromkeys(Status, 0), spent=spent)
    return Evaluation(
        kind="pairwise" if pairs else "pointwise",
        examples=40,
        without_reference=0,
        items=40,
        ok_items=40,
        reviewers=12,
        judges={run.name: summary for run in runs},
        rows=tuple(rows),
        resamples=50,
        seed=0,
    )


def choices(name: str, *, size: int = 48) -> RunData:
    chance = np.linspace(0.05, 0.95, size)  # of B
    gold = np.array([float(n % 3 == 0 or n > size / 2) for n in range(size)])
    base = scores(name, [1.0] * size, [1.0] * size)
    return RunData(
        name=name,
        kind="pairwise",
        labels=("A", "B"),
        ids=base.ids,
        reviewers=base.reviewers,
        aspects=("Ending", "Surprise") * (size // 2),
        gold=gold,
        label=(chance > 0.5).astype(np.float64),
        expected=chance,
        distributions=np.stack([1 - chance, chance], axis=1),
        order_gap=np.full(size, 0.25),
        statuses=base.statuses,
        tokens=base.tokens,
    )


GOLD = [float(1 + n % 10) for n in range(40)]


NEAR = [float(min(10, max(1, 1 + n % 10 + (-1) ** n))) for n in range(40)]


def by_name(figures: list[Figure]) -> dict[str, Figure]:
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: figure for figure in figures}


def column(figure: Figure, name: str) -> list[Cell]:
    return [row[figure.header.index(name)] for row in figure.rows]
