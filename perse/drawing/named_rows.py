"""Marks in rows, each under its name and its value in words, so that no name is too long and no value has to be guessed.

A name beside a mark takes half of a phone's width; above it, it has all. The price is height: a row is a third of an inch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perse.drawing.marks import DIM, INK, LINE, PAPER, Style, plain
from perse.results.result import Estimate
from perse.results.words import UNDEFINED, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.36
"""Inches of a row."""
_LETTERS = 58  # that fit the width of a sheet


LONG_REASON = "no value; why stands below the tables"
"""In place of a reason that a row has no room for: cut, it would not say why."""


@dataclass(frozen=True)
class NamedRow:
    """What stands in a row: a value with its whiskers, or in words why there is none."""

    name: str
    estimate: Estimate | None
    style: Style
    hollow: bool = False
    missing: str = ""
    """Why there is no value."""


def value_in_words(estimate: Estimate | None) -> str:
    """The value and its interval: "0.14 [0.07, 0.20]"."""
    return UNDEFINED if estimate is None else shown(estimate, digits=2, reasons=False)


def no_interval(estimates: Sequence[Estimate | None]) -> str:
    """Why values stand without an interval, as a sentence to add; "" if none does."""
    known = [e.interval.reason for e in estimates if e and e.value is not None]
    reasons = dict.fromkeys(filter(None, known))
    which = "No interval" if all(known) else "Some have no interval"
    return f" {which}: {'; '.join(reasons)}." if reasons else ""


def dots(axis: Axes, rows: Sequence[NamedRow]) -> None:
    """A mark with whiskers in each row, the first row on top."""
    for place, row in enumerate(rows):
        y = -float(place)
        name_row(axis, y, row.name, value_in_words(row.estimate) if row.estimate else "", strong=not row.missing)
        value = None if row.estimate is None else row.estimate.value
        if row.estimate is None or value is None:
            reason = row.missing or (row.estimate.interval.reason if row.estimate else "") or "undefined"
            shown = plain(reason if len(reason) <= _LETTERS else LONG_REASON)
            axis.text(0, y, shown, transform=axis.get_yaxis_transform(), color=DIM, fontsize=8.5, va="center", style="italic")
            continue
        low, high = row.estimate.interval.low, row.estimate.interval.high
        if low is not None and high is not None:
            axis.plot([low, high], [y, y], color=row.style.colour, linewidth=2, solid_capstyle="butt")
        face = PAPER if row.hollow else row.style.colour
        axis.plot(value, y, row.style.marker, color=row.style.colour, markerfacecolor=face, markersize=6.5, zorder=3)
    axis.set_ylim(-len(rows) + 0.5, 0.75)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)


def name_row(axis: Axes, y: float, name: str, value: str, *, strong: bool = True) -> None:
    """Name on the left and value on the right, above the row at `y`."""
    across = axis.get_yaxis_transform()
    shown = plain(name, max(16, _LETTERS - 3 - len(value)))
    axis.text(0, y + 0.26, shown, transform=across, va="bottom", fontsize=9, color=INK if strong else DIM)
    axis.text(1, y + 0.26, value, transform=across, va="bottom", ha="right", fontsize=9, color=INK)


def around(axis: Axes, values: Sequence[float], *, least: float = 0.05) -> None:
    """Limits of x that hold all `values`, with a margin of `least` at least."""
    if values:
        margin = max(least, 0.05 * (max(values) - min(values)))
        axis.set_xlim(min(values) - margin, max(values) + margin)


def reference_line(axis: Axes, x: float, *, rows: Sequence[NamedRow], baseline: bool) -> None:
    """A line through the marks of all rows, but through no words: of a baseline dashed, else faint."""
    from matplotlib.lines import Line2D

    dash = (0, (3, 2)) if baseline else (0, ())
    for place, row in enumerate(rows):
        if row.estimate is None or row.estimate.value is None:
            continue
        axis.add_line(
            Line2D(
                [x, x], [-place - 0.24, -place + 0.22], color=DIM if baseline else LINE, linestyle=dash, linewidth=1.2, zorder=0
            )
        )
