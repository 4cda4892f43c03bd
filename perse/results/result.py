"""Result: a question, its answer in words, and the tables and points behind it.

Everything that measures returns one, and every medium (terminal, Markdown, JSON, CSV, HTML, plots) is made from it alone, so that all
agree. Every number comes with its interval or the reason why it has none; undefined is None, never NaN, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

VERSION: Literal[1] = 1
"""Of the JSON form; it grows when a field changes its meaning or goes (docs/results-json.md)."""


FINEST = 5
"""Decimals in which an interval's end counts as different from 0, and the most that are shown so that this can be seen."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Interval(_Part):
    """A 95% interval, or the reason why it is undefined."""

    low: float | None = None
    high: float | None = None
    reason: str | None = None
    """Why `low` and `high` are None."""
    resamples: int = 0
    undefined_resamples: int = 0
    """Resamples in which the value was undefined (for instance constant); the interval is that of the others."""


class Estimate(_Part):
    """One value. None means undefined, never 0; `interval.reason` says why."""

    value: float | None
    interval: Interval
    items: int
    """Items behind the value."""
    skipped_reviewers: int | None = None
    """Within-reviewer values: reviewers with constant gold or prediction, or fewer than 2 items."""
    difference: bool = False
    """Whether it is one value minus another; shown with its sign."""

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above 0, by more than `FINEST` decimals leave out."""
        return self.interval.low is not None and round(self.interval.low, FINEST) > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.interval.high is not None and round(self.interval.high, FINEST) < 0

    @property
    def of_fewer_resamples(self) -> bool:
        """Whether the interval is of fewer resamples than were drawn; marked with an asterisk."""
        return self.interval.low is not None and self.interval.undefined_resamples > 0

    @property
    def turned(self) -> Self:
        """The same with the other sign: of a difference, that of the other side."""
        low, high = self.interval.low, self.interval.high
        ends = {} if low is None or high is None else {"low": 0.0 - high, "high": 0.0 - low}
        value = None if self.value is None else 0.0 - self.value
        return self.model_copy(update={"value": value, "interval": self.interval.model_copy(update=ends)})


Cell = Estimate | str | None
"""A value with its interval; a text as it is; or None where a row has no such value."""


class Table(_Part):
    """Rows of cells under a header. The first columns, as far as they are texts, name the row."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    breaks: tuple[int, ...] = ()
    """Rows before which a line is drawn: baselines stand below the judges."""
    detail: bool = False
    """Shown on a terminal only when asked for."""
    digits: int = 3
    """Decimals of its values."""

    def estimates(self) -> Iterator[Estimate]:
        """The cells that are values."""
        for row in self.rows:
            yield from (cell for cell in row if isinstance(cell, Estimate))


class Point(_Part):
    """One value of a plot: a series (a judge, a baseline) at a place on the x axis."""

    series: str
    x: str
    """The tick: a k, an aspect, an arm's name. Points of one x are drawn above each other."""
    metric: str
    """As in `perse.evaluation.metrics`: kendall, accuracy, ..."""
    estimate: Estimate
    spread: float | None = None
    """Standard deviation over repeated passes, where there were several; None for one."""
    baseline: bool = False


class Result(_Part):
    """One question, answered."""

    version: Literal[1] = VERSION
    name: str
    """The command that asks it: evaluate, compare, k-curve, ..."""
    asks: str
    """The question, in one sentence."""
    answer: str
    """What was found, in one or two sentences with numbers; a line for each judge where several are looked at."""
    plot: Literal["lines", "bars"] = "bars"
    x_label: str = ""
    points: tuple[Point, ...] = ()
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    """Notes on the numbers, one sentence each."""
    details: dict[str, Any] = {}
    """What the tables were made from, as JSON: rows by name, counts, settings. For programs; nothing is shown of it."""
