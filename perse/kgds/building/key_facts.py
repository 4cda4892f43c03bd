"""The sheet on which two annotators say which facts of supporting paragraphs are key facts (KGDS, section 4.4).

One CSV file with a row for each fact and a column for each annotator: any spreadsheet opens it. It holds people's work, so it is never
written over, and what comes back is compared with what was asked, row by row, before any of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.data.sources.lines import is_csv, read_records
from perse.errors import BadInput
from perse.formats.csv_cells import Cell, csv_text, plain
from perse.formats.json_text import shortened
from perse.kgds.building.decomposing import Facts, Place
from perse.kgds.building.drafts import SHEET_COLUMNS, Agreed

NOT_ASKED = "-"
"""In the column of an annotator of other samples."""

_ANSWERS = {"yes": True, "no": False}


@dataclass(frozen=True)
class SheetFact:
    """A row: a fact that is no repetition, of a supporting paragraph. `shown` are sample, the *draft's* paragraph, and fact number."""

    place: Place
    shown: tuple[int, int, int]
    fact: str
    annotators: tuple[str, str]


def sheet_facts(drafts: Sequence[Agreed], facts: Facts, repeated: set[Place]) -> list[SheetFact]:
    """The rows of the sheet, in the order of samples, paragraphs and facts."""
    return [
        SheetFact((one.number, paragraph, at), (one.number, one.kept[paragraph - 1], at), fact, one.annotators)
        for one in drafts
        for paragraph in one.supporting
        for at, fact in enumerate(facts[one.number, paragraph], start=1)
        if (one.number, paragraph, at) not in repeated
    ]


def sheet_text(rows: Sequence[SheetFact]) -> str:
    """The sheet as it is given to the annotators, with the mark by which spreadsheets know UTF-8."""
    annotators = _annotators(rows)
    cells: list[tuple[Cell, ...]] = [
        (*row.shown, row.fact, *("" if name in row.annotators else NOT_ASKED for name in annotators)) for row in rows
    ]
    return "\ufeff" + csv_text([*SHEET_COLUMNS, *annotators], cells, line_end="\n")


def read_sheet(path: Path, rows: Sequence[SheetFact]) -> dict[Place, tuple[bool, bool]] | None:
    """What the two annotators of each sample said of each fact; None while the sheet is empty.

    Raises:
        BadInput: something other than the answers was changed, or an answer is missing or is neither yes nor no; the
            message names line and column.
    """
    assert is_csv(path), path
    by_key = {tuple(map(str, row.shown)): row for row in rows}
    lines = list(read_records(path))
    _check_columns(path, [plain(name) for name in lines[0][1]], _annotators(rows))
    found: dict[Place, tuple[str, str]] = {}
    line_of: dict[Place, int] = {}
    for line, values in lines:
        cells = {plain(name): plain(str(value).strip()) for name, value in values.items()}
        row = _row(path, line, cells, by_key)
        if row.place in line_of:
            raise BadInput(f"{path}, line {line}: the fact of line {line_of[row.place]} stands here again; remove one of them")
        line_of[row.place] = line
        one, other = row.annotators
        found[row.place] = cells[one], cells[other]
    if missing := [row for row in rows if row.place not in found]:
        sample, paragraph, at = missing[0].shown
        raise BadInput(
            f"{path}: the row of sample {sample}, paragraph {paragraph}, fact {at} is missing ({shortened(missing[0].fact)}); put it back: "
            f"{_REMEDY}"
        )
    if not any(cell for cells_ in found.values() for cell in cells_):
        return None
    return {
        row.place: (
            _answer(path, line_of[row.place], row.annotators[0], found[row.place][0]),
            _answer(path, line_of[row.place], row.annotators[1], found[row.place][1]),
        )
        for row in sorted(rows, key=lambda one: line_of[one.place])
    }


_REMEDY = "or, if drafts or writer have changed, give those of before, or move the sheet away to have a new one filled in"


def _annotators(rows: Sequence[SheetFact]) -> list[str]:
    """All annotators, in the order of their first sample."""
    return list(dict.fromkeys(name for row in rows for name in row.annotators))


def _check_columns(path: Path, header: Sequence[str], annotators: Sequence[str]) -> None:
    wanted = [*SHEET_COLUMNS, *annotators]
    if sorted(header) != sorted(wanted):
        raise BadInput(
            f"{path}, line 1: found the columns {', '.join(header)}, expected {', '.join(wanted)}; save the sheet as CSV "
            "and leave the header as it was"
        )


def _row(path: Path, line: int, cells: Mapping[str, str], by_key: Mapping[tuple[str, ...], SheetFact]) -> SheetFact:
    """The fact that a line is about, if line and fact are as they were asked."""
    key = tuple(cells[name] for name in SHEET_COLUMNS[:3])
    row = by_key.get(key)
    if row is None:
        raise BadInput(
            f"{path}, line {line}: sample {key[0]}, paragraph {key[1]} has no fact {key[2]}; remove the line, {_REMEDY}"
        )
    if cells["fact"] != row.fact:
        raise BadInput(
            f"{path}, line {line}, column 'fact': found {shortened(cells['fact'])}, expected {shortened(row.fact)}; leave facts as "
            f"they were, {_REMEDY}"
        )
    for name, cell in cells.items():
        if name not in (*SHEET_COLUMNS, *row.annotators) and cell not in ("", NOT_ASKED):
            raise BadInput(
                f"{path}, line {line}, column '{name}': found {shortened(cell)}, but '{name}' did not annotate sample {key[0]}; leave it empty"
            )
    return row


def _answer(path: Path, line: int, annotator: str, cell: str) -> bool:
    answer = _ANSWERS.get(cell.casefold())
    if answer is None:
        what = f"found {shortened(cell)}" if cell else "is empty"
        raise BadInput(f"{path}, line {line}, column '{annotator}': {what}, expected yes or no; fill in every row")
    return answer
