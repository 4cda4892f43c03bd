"""Rows of a raw file and the fields in them: one place where a value is read as a text, a score or an answer.

Whatever is wrong with a field raises `BadRow` with file, line and field, so that readers hold no wording of their own; `usable`
hands it to the faults. A field is looked up by our name when it is needed, so a file may lack columns that are not used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.lines import read_records
from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.records import Choice
from perse.records.columns import ITEMS, REVIEWS, Header, Role
from perse.records.scores import NoScore, score_in
from perse.strict import name_problem

T = TypeVar("T")

NAMES = frozenset({"reviewer_id", "item_id", "aspect", "item_a", "item_b"})
"""Fields that are names: no control character may stand in them."""
NUL = "found a NUL character (U+0000), expected a text; was a file damaged, or is it UTF-16? save it as UTF-8"
"""No reader writes it, and it ends a text in C and is refused by PostgreSQL; other control characters are taken out of prompts."""
NO_COLUMN = "column missing"
_UNDECIDED = {"both": "preference 'both'", "neither": "preference 'neither'", "tie": "preference 'tie'", "": "no preference"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row with the place it came from; fields are looked up by our names."""

    path: Path
    line: int
    values: Mapping[str, object]
    header: Header
    role: Role = REVIEWS

    def bad(self, field: str, message: str, *, reason: str) -> NoReturn:
        """Raises `BadRow` that says where `field` stands."""
        raise BadRow(self.path, self.line, message, reason=reason, field=field)

    def get(self, field: str) -> object:
        """The value of `field`; several columns are joined by newlines; None where it is absent and was not mapped.

        Raises:
            BadRow: the user mapped the field to a column that this row lacks.
        """
        columns = self.header.columns_for(field)
        if columns is None:
            if self.header.is_mapped(field):
                self.missing(field)
            return None
        if len(columns) == 1:
            return self.values[columns[0]]
        parts = [self._as_text(field, self.values[column]) for column in columns]
        return "\n".join(part for part in parts if part)

    def need(self, field: str) -> object:
        """The value of a field that must have a column. Raises `BadRow` where it has none."""
        if self.header.columns_for(field) is None:
            self.missing(field)
        return self.get(field)

    def text(self, field: str, *, reason: str) -> str:
        """The text of a field that must not be empty; `reason` is what a row without it is counted as."""
        found = self._as_text(field, self.need(field)).strip()
        if field in NAMES and (problem := name_problem(found)):
            self.bad(field, problem, reason="a control character in a name")
        if not found:
            self.bad(field, "found nothing, expected a text; fill it in, or take the row out", reason=reason)
        return found

    def optional_text(self, field: str) -> str | None:
        """The text of a field that may be absent or empty; then None."""
        found = self._as_text(field, self.get(field)).strip() or None
        if found and field in NAMES and (problem := name_problem(found)):
            self.bad(field, problem, reason="a control character in a name")
        return found

    def missing(self, field: str) -> NoReturn:
        """Raises `BadRow`: the row has no column for `field`."""
        option = f"items.{field}" if self.role is ITEMS else field
        raise BadRow(self.path, self.line, self.header.explain_missing(field, option=option), reason=NO_COLUMN)

    def _as_text(self, field: str, value: object) -> str:
        if isinstance(value, str):
            if "\0" in value and field not in NAMES:
                self.bad(field, NUL, reason="a NUL character")
            return value
        if value is None:
            return ""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)  # ids are often numbers
        if field == "time" and isinstance(value, float) and math.isfinite(value):
            return repr(value)
        self.bad(field, f"found {shortened(value)}, expected a text", reason="not a text")


def read_rows(
    path: Path,
    columns: Mapping[str, str],
    faults: Faults | None = None,
    *,
    role: Role = REVIEWS,
    hints: Mapping[str, str] | None = None,
    header: Sequence[str] | None = None,
    literals: bool = False,
) -> Iterator[Row]:
    """Rows of a `.jsonl`, `.json` (one object a line), `.csv` or `.tsv` file, each also as `.gz`.

    Args:
        columns: our field -> the user's column, binding; several columns are joined by newlines (`story_a+ending_a`).
        faults: takes what is wrong with a single row; without it such a row is an error.
        role: what the rows are: which other names of a field are known, and what messages call it.
        hints: instead of the role's: field -> a column to take for it where there is one of that name, before guessing.
        header: the columns of a CSV file that has no header line.
        literals: a line that is no JSON may be a Python literal (see `read_json_lines`).
    Raises:
        BadInput: the file as a whole cannot be used. Fields are checked when they are looked up (see `Row`).
    """
    headers: dict[tuple[str, ...], Header] = {}
    for line, values in read_records(path, faults, header=header, literals=literals):
        names = tuple(values)
        known = headers.get(names)
        if known is None:
            known = headers[names] = Header(names, columns, role=role, hints=hints)
        yield Row(path, line, values, known, role)


def usable(rows: Iterator[Row], read: Callable[[Row], T], faults: Faults) -> list[T]:
    """The result of `read` for each row; a `BadRow` that it raises goes to `faults`. If no row is left, the first is an error."""
    made: list[T] = []
    before = len(faults.rows)
    for row in rows:
        try:
            made.append(read(row))
        except BadRow as error:
            faults.add(error)
    if not made and len(faults.rows) > before:
        # Skipping all rows would hide a column that was not mapped or a scale that was not given.
        raise BadInput(f"no usable row; the first: {faults.rows[before]}")
    return made


def read_choice(row: Row, value: object, faults: Faults, *, field: str = "preference") -> Choice | None:
    """ "A" or "B"; None for an undecided answer, which is counted (PerSE, section 4.1).

    Plot 1 is A. A bare 1 is no answer, since some tables count from 0.

    Raises:
        BadRow: anything else.
    """
    plain = " ".join(value.split()).casefold() if isinstance(value, str) else "" if value is None else None
    if plain is not None:
        undecided = re.sub(r"^(both|neither)(?: (?:are|is))? good\.?$", r"\1", plain)
        if undecided in _UNDECIDED:
            faults.left_out[_UNDECIDED[undecided]] += 1
            return None
        if found := re.fullmatch(r"(?:plot[ _]?)?([ab])|plot[ _]?([12])", plain):
            return "A" if found.group(1) == "a" or found.group(2) == "1" else "B"
    row.bad(field, f"found {shortened(value)}, expected A or B (or both, neither, tie)", reason="preference not A or B")


def read_score(row: Row, scale: tuple[float, float], *, fixed: bool = False) -> float:
    """The score as a number on the scale, not yet rescaled (`perse.records.scores.score_in`).

    Args:
        fixed: the scale is the corpus's, not the user's to give.

    Raises:
        BadRow: it is none.
    """
    try:
        return score_in(row.need("score"), scale)
    except NoScore as error:
        remedy = ""
        if error.out_of is not None:
            remedy = f"; write all out of {scale[1]:g}"
            if not fixed:
                remedy = f"; give --scale LOW-{error.out_of:g} if all scores are out of {error.out_of:g}, else write all out of {scale[1]:g}"
        elif error.off and not fixed:
            remedy = "; give --scale LOW-HIGH if the scores run on another scale"
        row.bad("score", f"{error}{remedy}", reason=error.reason)
