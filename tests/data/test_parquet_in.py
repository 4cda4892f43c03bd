"""Wherever JSON lines are read, the same rows may come as Parquet: nested fields, and null where a row has no such field."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from pyarrow import parquet

from perse.batch.sharded.inputs import nested
from perse.data.examples_file import read_examples, read_profile
from perse.data.load import load_examples
from perse.data.sources.lines import read_json_lines
from perse.data.sources.whole import parquet_records
from perse.errors import BadInput
from perse.records import parse_example


def as_parquet(rows: list[Any], path: Path) -> Path:
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("examples", [pointwise_examples(2, 3), pairwise_examples(2)], ids=["pointwise", "pairwise"])
def test_examples_in_parquet_are_those_of_json_lines(examples: list[Any], tmp_path: Path) -> None:
    rows = [json.loads(one.model_dump_json(exclude_none=True)) for one in examples]
    lines = tmp_path / "examples.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = as_parquet(rows, tmp_path / "examples.parquet")
    assert read_examples(table) == read_examples(lines) == examples
    assert load_examples(table, split="valid").examples == examples


def test_a_row_without_a_field_that_others_have_lacks_it(tmp_path: Path) -> None:
    rows = [{"text": "a", "nested": {"x": 1}, "on": date(2020, 1, 2)}, {"text": "b", "nested": {"y": [{"z": 1}, {"w": 2}]}}]
    found = [row for _, row in read_json_lines(as_parquet(rows, tmp_path / "rows.parquet"))]
    assert found == [rows[0] | {"on": "2020-01-02"}, rows[1]]


def test_past_reviews_in_parquet_are_a_profile(tmp_path: Path) -> None:
    table = as_parquet(
        [{"text": "A story", "review": "Nice", "score": 5}, {"text": "Another", "review": None, "score": 7}],
        tmp_path / "p.parquet",
    )
    first, second = read_profile(table)
    assert (first.review, first.score, second.review) == ("Nice", 5, None)


def test_what_is_wrong_in_a_row_of_parquet_is_said_with_its_number(tmp_path: Path) -> None:
    table = as_parquet(
        [{"text": "A story", "review": "Nice", "score": 5}, {"text": "B", "review": "C", "score": 50}], tmp_path / "p.parquet"
    )
    with pytest.raises(BadInput, match="p.parquet, line 2: .*score"):
        read_profile(table)
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(BadInput, match="bad.parquet: cannot be read as Parquet"):
        read_examples(tmp_path / "bad.parquet")


@pytest.mark.slow
def test_a_parquet_file_of_examples_is_scored_without_shards(tiny_model_folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(one.model_dump_json(exclude_none=True)) for one in pointwise_examples(1, 2)]
    table = as_parquet(rows, tmp_path / "examples.parquet")
    asked = (
        "score",
        "--examples",
        table,
        "--judge",
        tiny_model_folder,
        "--question",
        "pointwise_score",
        "--out",
        tmp_path / "run",
    )
    done = perse(*asked)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run" / "judgements.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            pa.array([2**62], type=pa.int64()).cast(pa.timestamp("us")),
            "row 1 or a later one holds a date or time that cannot be read",
        ),
        (
            pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]),
            "is not UTF-8",
        ),
    ],
    ids=["a time without an end", "bytes that are no text"],
)
def test_what_python_cannot_hold_of_a_parquet_file_is_told_in_a_sentence(column: Any, said: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"when": column}), tmp_path / "odd.parquet")
    with pytest.raises(BadInput, match=said):
        list(parquet_records(tmp_path / "odd.parquet"))


def test_a_number_of_a_thousand_digits_in_a_cell_is_told_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="column 'profile' holds no JSON .a number has 5000 digits"):
        nested({"profile": "[" + "1" * 5000 + "]"})


def test_a_nested_number_that_is_none_is_told_as_what_it_is_and_not_as_missing() -> None:
    past = [{"text": "a", "review": "b", "score": float("nan")}]
    told = nested({"id": "a", "reviewer_id": "r", "item_id": "i", "profile": past, "query": "q"})
    with pytest.raises(BadInput, match=r"field 'profile.0.score': found nan, expected a finite number"):
        parse_example(told)
