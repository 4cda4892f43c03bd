"""Whatever a disk or a stranger made of the Parquet files of a run in shards is one sentence, and no answer is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from test_hostile_runs import answered, begun

from perse.batch.sharded.catalogue import make_catalogue
from perse.batch.sharded.catalogue_inputs import CatalogueReader, CatalogueText
from perse.batch.sharded.finishing import audit, merge
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.ranking import best
from perse.batch.sharded.reading import read_sharded
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import read_answers
from perse.errors import BadInput
from perse.records import ProfileReview

DEEP = "[" * 100_000


def no_text(count: int) -> pa.Array:
    """A column of texts that are not UTF-8, as a flipped bit makes them."""
    ends = pa.array([2 * n for n in range(count + 1)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), count, [None, ends, pa.py_buffer(b"\xff\xfe" * count)])


def put(path: Path, column: str, values: pa.Array | Sequence[Any]) -> None:
    """The file with another column in the place of this."""
    table = parquet.read_table(path)
    sizes = parquet.ParquetFile(path).metadata.row_group(0).num_rows
    changed = table.set_column(
        table.schema.get_field_index(column), column, values if isinstance(values, pa.Array) else pa.array(values)
    )
    parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), path, row_group_size=sizes)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda count: no_text(count),
        lambda count: ['{"id": "a"'] * count,
        lambda count: [DEEP] * count,
        lambda count: ["1" * 5000] * count,
        lambda count: ["[]"] * count,
        lambda count: ["{}"] * count,
        lambda count: [None] * count,
        lambda count: [7] * count,
        lambda count: pa.array([2**62] * count, pa.timestamp("us")),
    ],
    ids=["no UTF-8", "cut", "deep", "long number", "list", "empty", "null", "number", "time"],
)
def test_examples_of_a_plan_that_are_none_are_named(tmp_path: Path, damaged: Callable[[int], Any]) -> None:
    answered(begun(tmp_path))
    file = tmp_path / "plan" / "rows-00000.parquet"
    put(file, "example", damaged(16))
    with pytest.raises(BadInput, match=r"rows-00000.parquet is damaged \(.+\); score into another folder"):
        read_sharded(tmp_path)


@pytest.mark.parametrize("ids", [no_text(16), [None] * 16, [7] * 16], ids=["no UTF-8", "null", "number"])
def test_an_audit_of_a_damaged_plan_sets_no_answer_aside(tmp_path: Path, ids: Any) -> None:
    answered(begun(tmp_path))
    put(tmp_path / "plan" / "rows-00000.parquet", "id", ids)
    places, plan = Places(tmp_path), read_plan(tmp_path)
    for read in (lambda: audit(places, plan), lambda: merge(places, plan, tmp_path / "out.jsonl")):
        with pytest.raises(BadInput, match="rows-00000.parquet is damaged"):
            read()
    assert all(places.answers(shard).exists() for shard in plan.shards)


@pytest.mark.parametrize(
    ("column", "value"),
    [("group", 2**62), ("group", 2**31), ("file", 2**62), ("rows", 2**62), ("rows", 3), ("id", no_text(4)), ("chars", "x")],
)
def test_a_list_of_shards_that_names_what_is_not_there_is_named(tmp_path: Path, column: str, value: Any) -> None:
    answered(begun(tmp_path))
    put(tmp_path / "plan" / "shards.parquet", column, value if isinstance(value, pa.Array) else [value] * 4)
    with pytest.raises(BadInput, match=r"parquet is damaged \(.+\); score into another folder"):
        read_plan(tmp_path).ids(read_plan(tmp_path).shards[0])


@pytest.mark.parametrize("column", ["id", "text", "model", "error"])
def test_answers_that_are_no_text_are_set_aside_by_an_audit(tmp_path: Path, column: str) -> None:
    run = begun(tmp_path)
    answered(run)
    path = Places(tmp_path).answers(run.plan.shards[0])
    put(path, column, no_text(4))
    with pytest.raises(BadInput, match="sets it aside"):
        read_answers(path)
    assert audit(Places(tmp_path), run.plan).damaged == (run.plan.shards[0].id,)
    assert path.with_name(path.name + ".damaged").exists()


@pytest.mark.parametrize(
    ("file", "column", "values"),
    [
        ("readers-00000.parquet", "profile", ["{"] * 2),
        ("readers-00000.parquet", "profile", ['[{"score": 1}]'] * 2),
        ("readers-00000.parquet", "without", pa.array([[99]] * 2, pa.list_(pa.int32()))),
        ("readers-00000.parquet", "without", pa.array([[-1]] * 2, pa.list_(pa.int32()))),
        ("readers-00000.parquet", "only", pa.array([[99]] * 2, pa.list_(pa.int32()))),
        ("readers-00000.parquet", "reader", no_text(2)),
        ("texts.parquet", "text", no_text(3)),
        ("texts.parquet", "shown", no_text(3)),
        ("groups.parquet", "name", no_text(1)),
        ("groups.parquet", "pairs", [7]),
    ],
)
def test_a_damaged_catalogue_is_named(tmp_path: Path, file: str, column: str, values: Any) -> None:
    past = (ProfileReview(text="p", review="r", score=4),)
    readers = [CatalogueReader(name, past, None, "r") for name in "ab"]
    make_catalogue(tmp_path, readers, [CatalogueText(name, f"text {name}", "t") for name in "xyz"], identity="i", size=9)
    put(tmp_path / "plan" / file, column, values)
    with pytest.raises(BadInput, match=rf"{file} is damaged|readers-00000.parquet is damaged"):
        plan = read_plan(tmp_path)
        plan.examples(plan.shards[0])


def test_the_best_texts_of_a_damaged_run_are_none(tmp_path: Path) -> None:
    answered(begun(tmp_path))
    put(tmp_path / "plan" / "rows-00000.parquet", "example", ["7"] * 16)
    with pytest.raises(BadInput, match="rows-00000.parquet is damaged"):
        [*best(Places(tmp_path), read_plan(tmp_path), 3)]
