"""The pictures of a vote: how often each role votes for the candidates, and how far each score agrees with people.

Both are always drawn, so that every report has the same files; one without data says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Figure
from perse.drawing.marks import DIM, draw, empty, style
from perse.drawing.named_rows import ROW, NamedRow, around, dots, no_interval, value_in_words
from perse.drpe.correlation.correlating import Correlations
from perse.drpe.votes.by_role import ByRole
from perse.reporting.trust_figures import listed
from perse.results.result import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

_VALUES = ("value", "low", "high", "items")
_LOOKS = {"static": 0, "manual": 0, "coarse": 1, "fine": 2, "reader": 3}


def by_role_figure(found: Sequence[ByRole]) -> Figure:
    """A row for each role that votes on several documents, and for those that were invented together: its share of votes for the candidates."""
    name, title = "votes-by-role", "Votes for the candidate, by role"
    rows = [NamedRow(one.name, one.votes, style(_LOOKS.get(one.source, 0))) for one in found]
    return _dots(name, title, rows, header=("role", *_VALUES), axis="share of votes for the candidate", middle=0.5)


def agreement(found: Correlations | None, ours: Sequence[str]) -> Figure:
    """A row for each method: its pooled Pearson correlation with people's mean.

    Args:
        found: None where people scored nothing.
        ours: methods that are votes; the others are metrics beside them.
    """
    name, title = "agreement-with-people", "Pooled Pearson correlation with people"
    header = ("method", *_VALUES)
    if found is None:
        return empty(name, title=title, reason="people's scores are not there", header=header)
    values: Mapping[str, Estimate] = {method: row.mean["pooled"]["pearson"] for method, row in found.rows.items()}
    rows = [NamedRow(method, value, style(0 if method in ours else 1)) for method, value in values.items()]
    return _dots(name, title, rows, header=header, axis="Pearson correlation", middle=0.0)


def _dots(name: str, title: str, rows: Sequence[NamedRow], *, header: Sequence[str], axis: str, middle: float) -> Figure:
    """Args:
    middle: a value that always lies on the picture.
    """
    if not any(row.estimate is not None and row.estimate.value is not None for row in rows):
        return empty(name, title=title, reason="no value is defined", header=header)
    known = [row.estimate for row in rows if row.estimate is not None]

    def paint(sheet: Sheet) -> None:
        axes = sheet.subplots()
        dots(axes, rows)
        ends = [end for e in known for end in (e.value, e.interval.low, e.interval.high) if end is not None]
        around(axes, [*ends, middle], least=0.1)
        axes.set_xlabel(axis)
        axes.xaxis.label.set_color(DIM)

    said = [f"{row.name} {value_in_words(row.estimate)}" for row in rows]
    return draw(
        name,
        paint,
        height=0.6 + ROW * len(rows),
        title=title,
        alt=f"{title}: {listed(said)}.{no_interval([row.estimate for row in rows])}",
        header=header,
        rows=[
            (row.name, row.estimate.value, row.estimate.interval.low, row.estimate.interval.high, row.estimate.items)
            for row in rows
            if row.estimate is not None
        ],
    )
