"""PerSE's Table 1 for a data set: reviewers, examples and average prompt length, for each k or each aspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from perse.data.profiles.lengths import Cell

if TYPE_CHECKING:
    from perse.data.dataset.summary import Summary


@dataclass(frozen=True)
class _Side:
    name: str
    cells: tuple[Cell, ...]


def table1(summary: Summary) -> Table:
    """The table as a person sees it; a side's columns are those of its cells."""
    table = Table(title="PerSE, table 1", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    sides = [_Side(part.name, part.cells) for part in summary.parts]
    for name in _columns(sides):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for part in sides:
        for place, (what, values) in enumerate(_lines(part, _columns(sides))):
            table.add_row("" if place else part.name, what, *values)
    return table


def table1_cells(sides: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for the data card; `sides` as the manifest has them."""
    parts = [_Side(side["name"], tuple(Cell.model_validate(cell) for cell in side["cells"])) for side in sides]
    names = _columns(parts)
    return ["", "", *names], [[part.name, what, *values] for part in parts for what, values in _lines(part, names)]


def _columns(parts: Iterable[_Side]) -> list[str]:
    return list(dict.fromkeys(cell.name for part in parts for cell in part.cells))


def _lines(part: _Side, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    cells = {cell.name: cell for cell in part.cells}
    shown = [cells.get(name) for name in names]
    lines = [
        ("# reviewers", [f"{cell.reviewers:,}" if cell else "" for cell in shown]),
        ("# examples", [f"{cell.examples:,}" if cell else "" for cell in shown]),
        ("avg. length", [f"{cell.words:.1f}" if cell else "" for cell in shown]),
    ]
    if any(cell.shortened for cell in part.cells):
        lines.append(("shortened", [f"{cell.shortened:,}" if cell else "" for cell in shown]))
    if any(cell.too_long for cell in part.cells):
        lines.append(("too long", [f"{cell.too_long:,}" if cell else "" for cell in shown]))
    return lines
