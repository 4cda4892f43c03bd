"""The two tables of a data set folder as Parquet files: their columns, written the same way every time.

A comparison's preferences are stored as JSON text (`{"Ending": "A"}`), which every reader of Parquet can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perse.errors import BadInput

_ID = pa.string()

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
    }
)
"""The columns of each file. A change here is a change of `folder.SCHEMA`."""


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes `rows` with the columns that belong to the file's name."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMAS[path.name])
    # The texts of items repeat with every review of them: a dictionary that holds them all keeps the file small.
    pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=64 * 1024 * 1024)


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that `write_parquet` wrote.

    Raises:
        BadInput: the file is absent, damaged or has other columns.
    """
    try:
        table = pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; the folder is no whole perse data set, build it again") from None
    except (pa.ArrowException, OSError) as error:
        first_line = str(error).splitlines()[0]
        raise BadInput(f"{path}: cannot be read as Parquet ({first_line}); build the data set again") from None
    if not table.schema.equals(SCHEMAS[path.name]):
        expected = ", ".join(SCHEMAS[path.name].names)
        raise BadInput(f"{path}: found columns {', '.join(table.schema.names)}, expected {expected} with perse's types")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
