"""A Result as CSV: one line a cell, whatever the table, so that a spreadsheet or data frame can filter and pivot it."""

from __future__ import annotations

from collections.abc import Iterator

from perse.formats.csv_cells import Cell as Plain
from perse.formats.csv_cells import csv_text
from perse.results.columns import naming
from perse.results.result import Cell, Estimate, Result
from perse.results.words import ABSENT
from perse.secrets import printable

HEADER = ("table", "row", "column", "text", "value", "low", "high", "reason", "items")


def csv(result: Result) -> str:
    """All cells of all tables, under `HEADER`; what is undefined is an empty cell with its reason beside it. What a terminal would
    obey is written as an escape: it is printed there."""
    lines = ([printable(cell) if isinstance(cell, str) else cell for cell in line] for line in _lines(result))
    return csv_text(HEADER, lines, line_end="\n")


def _lines(result: Result) -> Iterator[tuple[Plain, ...]]:
    for table in result.tables:
        names = naming(table)
        for row in table.rows:
            name = ", ".join(ABSENT if cell is None else str(cell) for cell in row[:names])
            for column, cell in zip(table.header[names:], row[names:], strict=True):
                yield (table.title, name, " ".join(column.split()), *_values(cell))


def _values(cell: Cell) -> tuple[Plain, ...]:
    if not isinstance(cell, Estimate):
        return (cell, None, None, None, None, None)
    interval = cell.interval
    return (None, cell.value, interval.low, interval.high, interval.reason, cell.items)
