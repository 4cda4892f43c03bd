"""The answers to a shard: a Parquet file that is there whole or not at all, its rows the shard's examples in their order.

The schema is fixed, and what failed is a row with a status. A file is written under another name, brought to the disk and renamed. Pages have check sums: what a
disk changed since is found when it is read.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.stored import read_stored, rows_of_table
from perse.errors import BadInput
from perse.files.disk import write_bytes
from perse.judgement import Judgement, parse_judgement

STACKED = pa.struct(
    [
        pa.field("expected", pa.float64()),
        pa.field("distribution", pa.map_(pa.string(), pa.float64())),
        pa.field("without", pa.list_(pa.string())),
    ]
)
OWN = pa.struct([pa.field(name, pa.float64()) for name in ("low", "high", "label", "expected", "stacked")])
ANSWERS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("question", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("expected", pa.float64()),
        pa.field("distribution", pa.map_(pa.string(), pa.float64())),
        pa.field("exact", pa.bool_()),
        pa.field("mass", pa.float64()),
        pa.field("text", pa.string(), nullable=False),
        pa.field("mean_logprob", pa.float64()),
        pa.field("stacked", STACKED),
        pa.field("not_stacked", pa.string()),
        pa.field("own_scale", OWN),
        pa.field("order_gap", pa.float64()),
        pa.field("order_probabilities", pa.list_(pa.float64())),
        pa.field("k_effective", pa.int64(), nullable=False),
        pa.field("finish_reason", pa.string()),
        pa.field("tokens", pa.struct([pa.field(name, pa.int64()) for name in ("prompt", "cached", "generated")])),
        pa.field("model", pa.string(), nullable=False),
        pa.field("adapter", pa.string()),
        pa.field("error", pa.string()),
    ]
)


_LATER = {"exact": "mass", "stacked": "order_gap", "own_scale": "order_gap", "not_stacked": "own_scale"}
"""Columns that older files lack, and the column that each stands before."""
_AGAIN = "`perse score audit` sets it aside, and the same command judges its examples again"


def write_answers(path: Path, judgements: Sequence[Judgement]) -> None:
    """Keep the judgements as the file `path`.

    Raises:
        SaveFailed: they are not kept.
    """
    held = io.BytesIO()
    parquet.write_table(answers_table(judgements), held, write_page_checksum=True, compression="zstd")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, held.getvalue())


def answers_table(judgements: Sequence[Judgement]) -> pa.Table:
    """The judgements as a table."""
    return pa.Table.from_pylist([judgement.model_dump(mode="json") for judgement in judgements], ANSWERS)


def read_answers(path: Path) -> list[Judgement]:
    """The judgements of a file that `write_answers` wrote.

    Raises:
        BadInput: it is damaged, or of another schema.
    """
    rows = rows_of_table(read_table(path), path, remedy=_AGAIN)
    return [parse_judgement(_fields(row), f"{path}, row {number}") for number, row in enumerate(rows, start=1)]


def read_table(path: Path) -> pa.Table:
    """All columns of such a file, with their check sums.

    Raises:
        BadInput: it is damaged, or of another schema.
    """
    table = read_stored(path, remedy=_AGAIN)
    for name, follows in _LATER.items():
        if name not in table.schema.names and follows in table.schema.names:  # written before there was this column
            nothing = pa.nulls(table.num_rows, ANSWERS.field(name).type)
            table = table.add_column(table.schema.get_field_index(follows), ANSWERS.field(name), nothing)
    if table.schema.names != ANSWERS.names or table.schema.types != ANSWERS.types:
        raise BadInput(
            f"{path} has columns {', '.join(map(str, table.schema))[:200]}, expected those of a shard of answers; {_AGAIN}"
        )
    return table


def rows_of(path: Path) -> int | None:
    """How many answers a file has, by its footer alone; None where that is damaged, or it is no file."""
    if not path.is_file():  # a pipe would be waited for without end
        return None
    try:
        return parquet.read_metadata(path).num_rows  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError):
        return None


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    told = dict(row)
    if told["distribution"] is not None:
        told["distribution"] = dict(told["distribution"])
    if told["stacked"] is not None:
        told["stacked"] = {
            **told["stacked"],
            "distribution": dict(told["stacked"]["distribution"]),
            "without": tuple(told["stacked"]["without"]),
        }
    if told["order_probabilities"] is not None:
        told["order_probabilities"] = tuple(told["order_probabilities"])
    return told
