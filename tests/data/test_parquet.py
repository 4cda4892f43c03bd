"""Tables of a data set folder: what is written is read, in several row groups, with equal texts as one string."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset import parquet
from perse.data.dataset.folder import load_folder
from perse.data.dataset.parquet import SCHEMAS, read_parquet, write_parquet
from perse.data.profiles.profiles import ExampleRow
from perse.errors import BadInput
from perse.records import Comparison, Review

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
reviews = st.builds(
    Review,
    review_id=texts,
    reviewer_id=texts,
    item_id=texts,
    text=texts,
    review=texts,
    score=st.integers(1, 10),
    original_score=st.floats(allow_nan=False),
    time=st.none() | texts,
)
comparisons = st.builds(
    Comparison,
    comparison_id=texts,
    reviewer_id=texts,
    pair_id=texts,
    text_a=texts,
    text_b=texts,
    premise=st.none() | texts,
    preference=st.dictionaries(texts, st.sampled_from("AB")),
    time=st.none() | texts,
)
examples = st.builds(
    ExampleRow,
    example_id=texts,
    reviewer_id=texts,
    query_id=texts,
    profile_ids=st.lists(texts, max_size=3).map(tuple),
    aspect=st.none() | texts,
    split=st.none() | st.sampled_from(["train", "valid"]),
    fold=st.none() | st.integers(0, 9),
)


@pytest.fixture
def groups_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 3)


def same(name: str, rows: Sequence[Any], folder: Path) -> None:
    write_parquet(folder / name, iter(rows))
    kept = [asdict(row) for row in rows]
    if name == "comparisons.parquet":
        kept = [row | {"preference": json.dumps(row["preference"], sort_keys=True, ensure_ascii=False)} for row in kept]
    assert list(read_parquet(folder / name)) == kept
    # Any other reader sees plain strings, under the schema that the folder promises.
    assert pq.read_table(folder / name).schema.equals(SCHEMAS[name])
    assert pq.read_metadata(folder / name).num_row_groups == -(-len(rows) // 3)
    before = (folder / name).read_bytes()
    write_parquet(folder / name, rows)
    assert (folder / name).read_bytes() == before


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_three")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(reviews, max_size=10), st.lists(comparisons, max_size=10), st.lists(examples, max_size=10))
def test_what_is_written_is_read(tmp_path: Path, some: list[Review], pairs: list[Comparison], rows: list[ExampleRow]) -> None:
    same("reviews.parquet", some, tmp_path)
    same("comparisons.parquet", pairs, tmp_path)
    same("examples.parquet", rows, tmp_path)


@pytest.mark.usefixtures("groups_of_three")
def test_equal_texts_are_one_string_across_row_groups(tmp_path: Path) -> None:
    one = Review(
        review_id="r1", reviewer_id="ann", item_id="i1", text="a plot " * 9, review="x", score=3, original_score=3.0, time=None
    )
    write_parquet(tmp_path / "reviews.parquet", [replace(one, review_id=f"r{n}") for n in range(8)])
    rows = list(read_parquet(tmp_path / "reviews.parquet"))
    for field in ("reviewer_id", "item_id", "text"):
        assert len({id(row[field]) for row in rows}) == 1
    asked = [ExampleRow(f"e{n}", "ann", f"ann-r{n}", (f"ann-r{n + 1}", f"ann-r{(n + 3) % 8}")) for n in range(7)]
    write_parquet(tmp_path / "examples.parquet", asked)
    ids = [one for row in read_parquet(tmp_path / "examples.parquet") for one in (row["query_id"], *row["profile_ids"])]
    assert len({id(one) for one in ids}) == 8


def changed(path: Path, column: str, value: Any) -> None:
    """The second row of a table with another value in one column."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[1][column] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


@pytest.mark.parametrize("score", [0, 11])
def test_a_score_that_is_none_is_named_with_its_row(raw: Path, tmp_path: Path, score: int) -> None:
    build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "set"))
    changed(tmp_path / "set" / "reviews.parquet", "score", score)
    with pytest.raises(BadInput, match=r"reviews\.parquet, row 2: field 'score': input should be (greater|less) than or equal"):
        load_folder(tmp_path / "set")


def test_an_example_of_reviews_that_asks_about_an_aspect_is_named_with_its_row(raw: Path, tmp_path: Path) -> None:
    build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "set"))
    changed(tmp_path / "set" / "examples.parquet", "aspect", "Ending")
    with pytest.raises(BadInput, match=r"examples\.parquet, row 2: found aspect 'Ending', expected none"):
        load_folder(tmp_path / "set")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"Ending": "C"}', r"field 'preference\.Ending': input should be 'A' or 'B'"),
        ('{"Ending"', "field 'preference': not JSON"),
        ("7", "field 'preference': input should be a valid dictionary"),
    ],
)
def test_a_preference_that_is_none_is_named_with_its_row(raw: Path, tmp_path: Path, value: str, expected: str) -> None:
    build_pairwise(PairwiseOptions(pairs=raw / "pairs.jsonl", out=tmp_path / "set"))
    changed(tmp_path / "set" / "comparisons.parquet", "preference", value)
    with pytest.raises(BadInput, match=rf"comparisons\.parquet, row 2: {expected}"):
        load_folder(tmp_path / "set")


def test_loaded_records_keep_the_shared_strings(raw: Path, tmp_path: Path) -> None:
    build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "set"))
    loaded = list(load_folder(tmp_path / "set").reviews.values())
    for field in ("reviewer_id", "item_id", "text"):
        values = [getattr(one, field) for one in loaded]
        assert len({id(value) for value in values}) == len(set(values)) < len(values)


def test_a_text_that_is_not_utf_8_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "reviews.parquet"
    write_parquet(
        path, [Review(review_id="r", reviewer_id="u", item_id="i", text="t", review="fine", score=5, original_score=5.0)]
    )
    table = pq.read_table(path)
    broken = pa.array([b"\xff bad"], pa.binary())
    at = table.schema.get_field_index("review")
    field, column = table.schema.field("review"), pa.Array.from_buffers(pa.string(), 1, broken.buffers())
    pq.write_table(table.set_column(at, field, column), path, store_schema=False)
    with pytest.raises(BadInput, match="reviews.parquet: cannot be read as Parquet"):
        list(read_parquet(path))


@pytest.mark.slow
def test_whatever_byte_of_a_file_is_damaged_its_rows_are_read_or_it_is_refused(raw: Path, tmp_path: Path) -> None:
    """A damaged byte can make the place of a text any number: below 0 it would be another reader's text."""
    build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "set", k=1))
    drawn = random.Random(3)
    refused = 0
    for name in ("examples.parquet", "reviews.parquet"):
        whole = (tmp_path / "set" / name).read_bytes()
        (tmp_path / "damaged").mkdir(exist_ok=True)
        for _ in range(300):
            damaged = bytearray(whole)
            for _ in range(drawn.choice([1, 3])):
                damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
            (tmp_path / "damaged" / name).write_bytes(damaged)
            try:
                list(read_parquet(tmp_path / "damaged" / name))
            except BadInput:
                refused += 1
    assert 100 < refused < 600
