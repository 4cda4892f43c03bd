"""The tables of a data set folder as Parquet files: their columns, written the same way every time.

Both ways rows are streamed: at most `ROWS` of them exist as columns at a time, and what rows share (the text of an item)
exists once. The price is that a shared text is written once for each row group rather than once for the file. A comparison's
preferences are stored as JSON text (`{"Ending": "A"}`), which every reader of Parquet can show.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice, pairwise
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perse.errors import BadInput
from perse.formats.json_text import GET_RIGHTS
from perse.formats.plain_files import refuse_endless

ROWS = 200_000
"""Rows of a row group. A million reviews of 20,000 items make a file of 540 MB in groups of 50,000, of 415 MB in these."""

_ID = pa.string()

# Columns with repeated values: in memory, equal values are one string.
_REPEATED = ("reviewer_id", "item_id", "pair_id", "text", "text_a", "text_b", "premise", "query_id", "aspect", "split")

SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "reviews.parquet": pa.schema(
            [
                pa.field("review_id", _ID, nullable=False),
                pa.field("reviewer_id", _ID, nullable=False),
                pa.field("item_id", _ID, nullable=False),
                pa.field("text", pa.string(), nullable=False),
                pa.field("review", pa.string(), nullable=False),
                pa.field("score", pa.int8(), nullable=False),
                pa.field("original_score", pa.float64(), nullable=False),
                pa.field("time", pa.string()),
            ]
        ),
        "comparisons.parquet": pa.schema(
            [
                pa.field("comparison_id", _ID, nullable=False),
                pa.field("reviewer_id", _ID, nullable=False),
                pa.field("pair_id", _ID, nullable=False),
                pa.field("text_a", pa.string(), nullable=False),
                pa.field("text_b", pa.string(), nullable=False),
                pa.field("premise", pa.string()),
                pa.field("preference", pa.string(), nullable=False),
                pa.field("time", pa.string()),
            ]
        ),
        "examples.parquet": pa.schema(
            [
                pa.field("example_id", _ID, nullable=False),
                pa.field("split", pa.string()),
                pa.field("fold", pa.int32()),
                pa.field("reviewer_id", _ID, nullable=False),
                pa.field("query_id", _ID, nullable=False),
                pa.field("profile_ids", pa.list_(pa.field("element", _ID, nullable=False)), nullable=False),
                pa.field("aspect", pa.string()),
            ]
        ),
        "evidence.parquet": pa.schema(
            [
                pa.field("fold", pa.int32()),
                pa.field("review_id", _ID, nullable=False),
                pa.field("part", pa.int32()),
                pa.field("others", pa.int32(), nullable=False),
                pa.field("mean", pa.float64()),
                pa.field("spread", pa.float64()),
                pa.field("estimate", pa.float64(), nullable=False),
                pa.field("shrinkage", pa.float64(), nullable=False),
            ]
        ),
    }
)
"""The columns of each file. A change here is a change of `folder.SCHEMA`."""


def write_parquet(path: Path, rows: Iterable[object]) -> None:
    """Writes `rows` with the columns that belong to the file's name, `ROWS` rows at a time.

    Args:
        rows: `Review`, `Comparison`, `ExampleRow` or `EvidenceRow`, or others with the columns as attributes.
    """
    _write(path, path.name, rows)


def parquet_bytes(name: str, rows: Iterable[object]) -> bytes:
    """What `write_parquet` would write into a file of this name: of few and small columns, to be put into a folder whole."""
    held = BytesIO()
    _write(held, name, rows)
    return held.getvalue()


def _write(into: Path | BytesIO, name: str, rows: Iterable[object]) -> None:
    schema = pa.schema([_written(field) for field in SCHEMAS[name]])
    waiting = iter(rows)
    # The file itself has plain strings, for every reader. A dictionary page that holds all texts of a group keeps it small.
    limit = 64 * 1024 * 1024
    with pq.ParquetWriter(into, schema, compression="zstd", store_schema=False, dictionary_pagesize_limit=limit) as writer:
        while batch := list(islice(waiting, ROWS)):
            writer.write_table(pa.table([_column(batch, field) for field in schema], schema=schema))


def read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that `write_parquet` wrote, read `ROWS` at a time. Equal texts and ids are one string in memory.

    Raises:
        BadInput: the file is absent, damaged or has other columns.
    """
    shared: dict[str, str] = {}
    refuse_endless(path)
    try:
        schema = pq.read_schema(path)
        if not schema.equals(SCHEMAS[path.name]):
            expected = ", ".join(SCHEMAS[path.name].names)
            raise BadInput(f"{path}: found columns {', '.join(schema.names)}, expected {expected} with perse's types")
        repeated = [name for name in schema.names if name in _REPEATED]
        with pq.ParquetFile(path, read_dictionary=repeated) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                batch.validate(
                    full=True
                )  # that places in its lists and dictionaries are there: a damaged byte makes them any number
                for values in zip(*(_values(column, shared) for column in batch.columns), strict=True):
                    yield dict(zip(schema.names, values, strict=True))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; the folder is no whole perse data set, build it again") from None
    except PermissionError:
        raise BadInput(f"{path}: cannot be read (Permission denied); {GET_RIGHTS}") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = str(error).splitlines()[0]
        raise BadInput(f"{path}: cannot be read as Parquet ({first_line}); build the data set again") from None


def _written(field: pa.Field) -> pa.Field:
    # large_string: a string array ends at 2 GB, which the long texts of one group may pass.
    return field.with_type(pa.dictionary(pa.int32(), pa.large_string())) if field.name in _REPEATED else field


def _column(rows: Sequence[object], field: pa.Field) -> pa.Array:
    values: Iterable[Any] = map(attrgetter(field.name), rows)
    if pa.types.is_dictionary(field.type):
        places: dict[str, int] = {}
        found = [None if value is None else places.setdefault(value, len(places)) for value in values]
        return pa.DictionaryArray.from_arrays(pa.array(found, pa.int32()), pa.array(list(places), pa.large_string()))
    if field.name == "preference":
        values = (json.dumps(value, sort_keys=True, ensure_ascii=False) for value in values)
    return pa.array(list(values), field.type)


def _values(column: pa.Array, shared: dict[str, str]) -> list[Any]:
    """The column as Python values, lists as tuples; texts of dictionary and list columns are those of `shared`."""
    if pa.types.is_list(column.type):
        texts = [shared.setdefault(text, text) for text in column.flatten().to_pylist()]
        ends = column.offsets.to_pylist()
        return [tuple(texts[begin - ends[0] : end - ends[0]]) for begin, end in pairwise(ends)]
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    texts = [shared.setdefault(text, text) for text in column.dictionary.to_pylist()]
    return [None if place is None else texts[place] for place in column.indices.to_pylist()]
