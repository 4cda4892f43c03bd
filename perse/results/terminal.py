"""A Result on a terminal of any width: the answer, its tables, its notes; no word and no number is broken.

A table that is too wide sets intervals below their values, then is cut between columns, and each part repeats what names the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from perse.results.columns import is_number, naming
from perse.results.result import Cell, Estimate, Result, Table
from perse.results.words import footnotes, shown, value_and_interval

_GAP = 2
"""Blanks between two columns."""

_LEAST = 40
"""Columns that a terminal is taken to have that says fewer, in which no table could be read."""


@dataclass(frozen=True)
class _Column:
    """One column as lines of text; `cells` may hold line ends."""

    header: str
    cells: tuple[str, ...]
    number: bool

    @property
    def least(self) -> int:
        """Its width when broken at every blank; numbers break at line ends only."""
        words = (word for text in self.cells for word in (text.split("\n") if self.number else text.split()))
        return max(map(cell_len, (*words, *self.header.split())), default=1)

    @property
    def most(self) -> int:
        """Its width when nothing is broken."""
        return max((cell_len(line) for text in (self.header, *self.cells) for line in text.split("\n")), default=1)


def print_result(result: Result, console: Console, *, everything: bool = False) -> None:
    """Print the answer, the tables and the notes.

    Args:
        everything: also tables that are details (see `Table.detail`).
    """
    console.width = max(console.width, _LEAST)
    for line in result.answer.splitlines():
        console.print(safe(line), style="bold", highlight=False)
    for table in result.tables:
        if everything or not table.detail:
            print_table(table, console)
    if result.notes:
        console.print()
        _print_notes(result.notes, console)


def hidden(result: Result) -> list[str]:
    """Beginnings of the titles of tables that only `everything` shows."""
    return list(dict.fromkeys(table.title.partition(":")[0] for table in result.tables if table.detail))


def print_table(table: Table, console: Console) -> None:
    """A table in as many parts as its width asks for, and its footnotes."""
    console.width = max(console.width, _LEAST)
    console.print()
    console.print(safe(table.title), style="bold", highlight=False)
    names, parts = _parts(table, console.width)
    for part in parts:
        console.print()
        console.print(_drawn([*names, *part], table.breaks, console.width))
    console.print()
    _print_notes(footnotes(table), console)


def safe(text: str) -> Text:
    """A text from a file: no markup, no control characters but line ends."""
    return Text("".join(letter for letter in text if letter.isprintable() or letter == "\n"))


def _print_notes(notes: Sequence[str], console: Console) -> None:
    listed = RichTable.grid(padding=(0, 1, 0, 0))
    for note in notes:
        listed.add_row(Text("-", style="dim"), Text(safe(note).plain, style="dim"))
    if notes:
        console.print(listed)


def _parts(table: Table, width: int) -> tuple[list[_Column], list[list[_Column]]]:
    """The columns that name the rows, and the others, cut into as few parts as fit beside them."""
    at = _telling_apart(table)
    for stacked in (False, True):
        columns = [_column(table, place, stacked=stacked) for place in range(len(table.header))]
        if _width(columns) <= width:
            return columns[:at], [columns[at:]]
    names = columns[: max((n for n in range(1, at + 1) if _width(columns[:n]) <= width // 2), default=1)]
    return names, list(_cut(columns[len(names) :], width - _width(names)))


def _telling_apart(table: Table) -> int:
    """How many of the first columns name the rows: those that are texts, and after them, such as a number of reviews, what tells rows of one name apart."""
    at = naming(table)
    while at < len(table.header) and len({row[:at] for row in table.rows}) < len(table.rows):
        if any(isinstance(row[at], Estimate) for row in table.rows):
            break
        at += 1
    return at


def _cut(columns: Sequence[_Column], room: int) -> Iterator[list[_Column]]:
    part: list[_Column] = []
    for column in columns:
        if part and _width([*part, column]) + _GAP > room:
            yield part
            part = []
        part.append(column)
    yield part


def _column(table: Table, at: int, *, stacked: bool) -> _Column:
    cells = tuple(row[at] for row in table.rows)
    texts = tuple(safe(_text(cell, table.digits, stacked=stacked)).plain for cell in cells)
    return _Column(safe(table.header[at]).plain, texts, is_number(cells))


def _text(cell: Cell, digits: int, *, stacked: bool) -> str:
    if isinstance(cell, Estimate):
        return ("\n" if stacked else " ").join(filter(None, value_and_interval(cell, digits=digits, reasons=False)))
    return shown(cell)


def _width(columns: Sequence[_Column]) -> int:
    """What columns need when texts are broken at blanks."""
    return sum(column.least + _GAP for column in columns) - _GAP


def _drawn(columns: Sequence[_Column], breaks: Sequence[int], width: int) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
    for column, wide in zip(columns, _widths(columns, width), strict=True):
        justify = "right" if column.number else "left"
        table.add_column(Text(column.header), justify=justify, width=wide, overflow="fold")  # type: ignore[arg-type]
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if number in breaks:
            table.add_section()
        table.add_row(*map(Text, row))
    return table


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Each column's least width, and what is left of the line to those that would need more, the narrowest first."""
    widths = [column.least for column in columns]
    left = max(0, width - _width(columns))
    wanting = sorted(range(len(columns)), key=lambda at: columns[at].most - widths[at])
    for place, at in enumerate(wanting):
        more = min(columns[at].most - widths[at], left // (len(wanting) - place))
        widths[at], left = widths[at] + more, left - more
    return [min(wide, width) for wide in widths]
