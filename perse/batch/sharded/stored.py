"""Parquet files of a run in shards, read: whatever a disk, or a stranger, made of one is one sentence.

pyarrow hands over what a damaged file says: texts that are no UTF-8, places outside their lists, dates that Python has not. So every value is looked at
here, once, and no caller meets an error of pyarrow's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from perse.bounded import first_line
from perse.errors import BadInput
from perse.formats.json_text import parsed
from perse.formats.plain_files import refuse_endless
from perse.records import Example, parse_example

ELSEWHERE = "score into another folder"


def read_stored(
    path: Path, fields: Sequence[pa.Field] | None = None, *, group: int | None = None, remedy: str = ELSEWHERE
) -> pa.Table:
    """A file's table, of which every value can be made one of Python's.

    Args:
        fields: the columns to read, which must be of these types; None for all there are.
        group: the row group to read; None for all.
    Raises:
        BadInput: the file is damaged or gone, or lacks this row group or these columns.
    """
    try:
        refuse_endless(path)
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            if group is not None and group >= file.num_row_groups:
                raise pa.ArrowInvalid(f"it has {file.num_row_groups} row groups, and the plan asks for number {group}")
            if lacking := [one.name for one in fields or () if one.name not in file.schema_arrow.names]:
                raise pa.ArrowInvalid(f"it lacks columns {', '.join(lacking)}")
            columns = None if fields is None else [one.name for one in fields]
            table = file.read(columns) if group is None else file.read_row_group(group, columns)
        table.validate(full=True)
        for one in fields or ():
            found = table.column(one.name)
            if found.type != one.type or (found.null_count and not one.nullable):
                raise pa.ArrowInvalid(f"column {one.name} is of type {found.type}, expected {one}")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _damaged(path, first_line(error).partition(": ")[2] or "it cannot be read", remedy) from None
    return table


def rows_of_table(table: pa.Table, path: Path, *, remedy: str = ELSEWHERE) -> list[dict[str, Any]]:
    """The rows of a table that `read_stored` read from `path` without saying of which types its columns are.

    Raises:
        BadInput: it has values that Python has not.
    """
    try:
        return table.to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _damaged(path, first_line(error), remedy) from None


def parsed_examples(lines: Iterable[str], path: Path) -> list[Example]:
    """The examples that a file keeps as JSON.

    Raises:
        BadInput: one is none.
    """
    found = []
    for line in lines:
        try:
            found.append(parse_example(parsed(line)))
        except (ValueError, BadInput) as error:
            raise _damaged(path, f"an example of it is none: {error}", ELSEWHERE) from None
    return found


def _damaged(path: Path, why: str, remedy: str) -> BadInput:
    return BadInput(f"{path} is damaged ({why}); {remedy}")
