"""The rows of a Python program's tables: of a data frame, of dicts, or of tuples; and the values in them, as texts, ids and scores.

A data frame is whatever exports Arrow (pandas, polars, pyarrow, duckdb); a single column of one is its values. Every problem is one sentence with table, row (counted from 1) and field.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NoReturn, Protocol, runtime_checkable

from perse.errors import BadInput
from perse.formats.json_text import json_kind, shortened
from perse.records.columns import Header, Role
from perse.records.scores import NoScore, score_in
from perse.scale import OwnScale, float_of
from perse.strict import HALF, is_half, name_problem


@runtime_checkable
class Frame(Protocol):
    """A data frame of any library that exports Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows = Iterable[Mapping[str, Any] | Sequence[Any]]
Table = Frame | Rows
"""A data frame; dicts by column; or tuples (texts: also bare texts)."""


@dataclass(frozen=True)
class TableRow:
    """A row, its fields looked up by our names."""

    table: str
    number: int
    values: Mapping[str, Any]
    header: Header
    option: str = ""

    def bad(self, field: str, message: str) -> NoReturn:
        raise BadInput(f"the {self.table}, row {self.number}: field '{field}': {message}")

    def has(self, field: str) -> bool:
        return self.header.columns_for(field) is not None

    def value(self, field: str, *, else_give: str = "") -> Any:
        """None: the cell is empty; several columns are joined by newlines.

        Raises:
            BadInput: there is no column for it.
        """
        columns = self.header.columns_for(field)
        if columns is None:
            remedy = f"; rename one, or give columns={{'{self.option}{field}': 'COLUMN'}}{else_give}"
            raise BadInput(f"the {self.table}: {self.header.lacking(field)}{remedy}")
        if len(columns) == 1:
            return _plain(self.values[columns[0]])
        parts = [_plain(self.values[column]) for column in columns]
        return "\n".join(str(part) for part in parts if part is not None)

    def text(self, field: str) -> str:
        value = self.value(field)
        if value is not None and not isinstance(value, str):
            self.bad(field, f"found {shortened(value)}, expected a text")
        if value is None or not value.strip():
            self.bad(field, f"found nothing, expected {_WANTED.get(field, 'a text')}; fill it in, or leave the row out")
        if is_half(value):
            self.bad(field, HALF)
        return value.strip()

    def numbered(self, field: str) -> bool:
        """Whether what stands there is a whole number."""
        return self.has(field) and isinstance(value := self.value(field), int | float) and not isinstance(value, bool)

    def name(self, field: str, *, else_give: str = "") -> str:
        value = self.value(field, else_give=else_give)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # pandas has whole numbers as floats where another of the column is missing
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            self.bad(field, f"found {shortened(value)}, expected an id: a text or a whole number")
        found = "" if value is None else str(value).strip()
        if not found:
            self.bad(field, "found nothing, expected an id; fill it in, or leave the row out")
        if problem := name_problem(found):
            self.bad(field, problem)
        return found

    def score(self, scale: OwnScale) -> float:
        try:
            return score_in(self.value("score"), scale)
        except NoScore as error:
            remedy = f"; write all out of {scale[1]:g}" if error.out_of is not None else ""
            remedy = "; give scale=(LOWEST, HIGHEST) if the scores run on another scale" if error.off else remedy
            self.bad("score", f"{error}{remedy}")

    def time(self) -> str | None:
        value = self.value("time") if self.has("time") else None
        return None if value is None else str(value)


_BITS = 1024
"""Of a whole number that a float holds; one that is longer is infinite, and no id and no score."""
_WANTED = {"text": "a text", "review": "what the reader wrote"}


def rows_of(
    table: Any,
    name: str,
    role: Role,
    mapping: Mapping[str, str],
    parts: Sequence[str],
    *,
    option: str = "",
    bare: str | None = None,
    hints: Mapping[str, str] | None = None,
    elsewhere: Iterable[str] = (),
) -> Iterator[TableRow]:
    """The rows of a table.

    Args:
        mapping: binding; `hints` are taken where there is such a column.
        parts: the fields of a tuple; `bare` is the field of a text that is no tuple.
        option: begins a field's name where the user maps it.
        elsewhere: columns of another table, to which a field may be mapped as well.
    Raises:
        BadInput: it is no table, or a row is none.
    """
    headers: dict[tuple[str, ...], Header] = {}
    elsewhere = frozenset(elsewhere)
    for number, values in enumerate(_records(table, name, parts, bare), start=1):
        names = tuple(values)
        if names not in headers:
            mine = {field: column for field, column in mapping.items() if column in names or column not in elsewhere}
            headers[names] = Header(names, mine, role=role, hints={**role.hints, **(hints or {})})
            for field in mine:
                if headers[names].columns_for(field) is None:
                    raise BadInput(f"the {name}: {headers[names].lacking(field)}; name one of these in columns")
        yield TableRow(name, number, values, headers[names], option)


def _records(table: Any, name: str, parts: Sequence[str], bare: str | None) -> Iterator[Mapping[str, Any]]:
    if isinstance(table, Frame):
        table = _of_frame(table, name)
    expected = f"expected a data frame, dicts, or tuples of ({', '.join(parts)})"
    if isinstance(table, str | bytes | Mapping) or not isinstance(table, Iterable):
        raise BadInput(f"the {name} are {json_kind(table)}, {expected}")
    for number, row in enumerate(table, start=1):
        if isinstance(row, Mapping):
            if other := [key for key in row if not isinstance(key, str)]:
                raise BadInput(f"the {name}, row {number}: a column is called {shortened(other[0])}, expected a text")
            yield row
        elif isinstance(row, str) and bare is not None:
            yield {bare: row}
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == len(parts):
            yield dict(zip(parts, row, strict=True))
        else:
            found = f"{len(row)} values" if isinstance(row, list | tuple) else json_kind(row)
            raise BadInput(f"the {name}, row {number}: found {found}, {expected}")


def _of_frame(frame: Frame, name: str) -> Iterable[Any]:
    """Its rows, by column; of a single column, as pandas' Series is one, the values."""
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except Exception as error:  # noqa: BLE001 - whatever the library that made it raises, and Arrow of numbers too large for it
        if (values := _of_series(frame)) is not None:
            return values
        raise BadInput(
            f"the {name}: the data frame has a column that is no plain one ({_said(error)}); give each column one type and a name of its own"
        ) from None
    if twice := [column for column, times in Counter(table.column_names).items() if times > 1]:
        raise BadInput(f"the {name}: the data frame has two columns called '{twice[0]}'; rename one")
    return _of_arrow(table, name)


def _of_arrow(table: Any, name: str) -> Iterator[dict[str, Any]]:
    """The rows of an Arrow table, which holds more than Python has: times after the year 9999, zones that are not known here, bytes in the place of
    text."""
    for batch in table.to_batches(max_chunksize=1024):
        columns: dict[str, list[Any]] = {}
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            try:
                columns[column] = values.to_pylist()
            except Exception as error:  # noqa: BLE001 - Arrow's own, and those of Python's dates and texts
                raise BadInput(
                    f"the {name}: column '{column}' holds what cannot be read ({_said(error)}); give it as text, or leave the column out"
                ) from None
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _said(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _of_series(column: Frame) -> list[Any] | None:
    """None: it is no column of plain values."""
    import pyarrow as pa

    try:
        values = pa.chunked_array(column)
        return None if pa.types.is_struct(values.type) else values.to_pylist()
    except Exception:  # noqa: BLE001 - as above
        return None


def _plain(value: Any) -> Any:
    """As a file would have it: None for what is missing, Python's own numbers, ISO dates."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        whole = int(value)
        return whole if whole.bit_length() < _BITS else float_of(whole)
    if isinstance(value, Real | Decimal):
        number = float_of(value)
        return None if math.isnan(number) else number
    if isinstance(value, date):  # a datetime, too
        return None if value != value else value.isoformat()  # pandas' NaT is one, and not itself
    if type(value).__name__ == "NAType":  # pandas.NA, as `to_dict` leaves it
        return None
    return value
