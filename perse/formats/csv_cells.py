"""Cells of the CSV files that perse writes: a text that a spreadsheet would take for a formula begins with an apostrophe.

`=HYPERLINK(...)` in a reader's name or a review is data here and a command in a spreadsheet. So a text that begins with = + - @,
a tab or a line break gets an apostrophe before it, and so does one that begins with apostrophes and then one of these, so that
`plain` gives back exactly what was written: take one apostrophe off a cell that begins so. Numbers stay as they are, whether
they are numbers or written as text.

A spreadsheet whose decimal mark is the comma takes cells apart at semicolons, and one that is asked to at tabs; to it a quote within a line is a
letter, but one that begins a cell is taken off it, and a line break ends the row. So within a text, too, what follows these gets an apostrophe where
it begins a formula (`;=1`, `;"=1`, a list's `- item` at the beginning of a line, which is one to Excel; but not `;-)`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

Cell = str | int | float | None

_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20][\s\S]")
_GUARDED = re.compile(r"'" + _FORMULA.pattern)
_WITHIN = re.compile(r"([;\t\r\n][\s\"]*+)(?='*[=+\-@\uff0b\uff0d\uff1d\uff20][^)])")
_GUARDED_WITHIN = re.compile(r"([;\t\r\n][\s\"]*+)'(?='*[=+\-@\uff0b\uff0d\uff1d\uff20][^)])")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]], *, line_end: str = "\r\n") -> str:
    """A CSV file of these rows, its header first; line ends are those of RFC 4180 by default."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow([guarded(name) for name in header])
    writer.writerows([guarded(cell) for cell in row] for row in rows)
    return out.getvalue()


def guarded(cell: Cell) -> Cell:
    """A cell that no spreadsheet computes, nor any part of it."""
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    return ("'" if _FORMULA.match(cell) else "") + _WITHIN.sub(r"\1'", cell)


def plain(cell: str) -> str:
    """What `guarded` was given, from what stands in the file."""
    if _NUMBER.fullmatch(cell):
        return cell
    return _GUARDED_WITHIN.sub(r"\1", cell[1:] if _GUARDED.match(cell) else cell)
