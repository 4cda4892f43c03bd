"""What a study found, as plain JSON: the points of its plot, its tables, and what a reader of them must know.

Every number stands with its interval or the reason why there is none; plots and tables are made from this alone, so that
they can be made again without asking the judge.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from perse.evaluation.stats.results import Estimate


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Point(_Part):
    """One value of a plot: a series (a judge, a baseline) at a place on the x axis."""

    series: str
    x: str
    """The tick: a k, an aspect, an arm's name. Points of one x are drawn above each other."""
    metric: str
    """As in `perse.evaluation.stats.results`: kendall, accuracy, ..."""
    estimate: Estimate
    spread: float | None = None
    """Standard deviation over repeated passes, where there were several; None for one."""
    baseline: bool = False


class StudyTable(_Part):
    """A table of cells: a value with its interval, a text as it is, or None where there is none."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Estimate | str | None, ...], ...]
    notes: tuple[str, ...] = ()


class StudyResult(_Part):
    """One study, finished. `OUT/study.json` holds it."""

    study: str
    """Its command: k-curve, order, ..."""
    asks: str
    """The question that it answers, in one sentence."""
    answer: str
    """What was found, in one or two sentences with numbers."""
    plot: Literal["lines", "bars"]
    x_label: str
    points: tuple[Point, ...]
    tables: tuple[StudyTable, ...]
    notes: tuple[str, ...] = ()
