"""Answers that an older perse kept are not asked for again."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from perse.batch.sharded.shard import read_answers, write_answers
from perse.judgement import Judgement, OnOwnScale, Stacked, Status, Tokens


def test_a_shard_of_before_it_was_said_whether_answers_are_exact_is_read(tmp_path: Path) -> None:
    tokens = Tokens(prompt=1, cached=0, generated=1)
    known = Judgement(
        id="a", question="q", status=Status.OK, label="7", distribution={"7": 1.0}, exact=True, mass=0.9, k_effective=1, tokens=tokens, model="m"
    )  # fmt: skip
    write_answers(tmp_path / "new.parquet", [known])
    assert read_answers(tmp_path / "new.parquet") == [known]
    older = parquet.read_table(tmp_path / "new.parquet").drop_columns(["exact"])
    parquet.write_table(older, tmp_path / "older.parquet", write_page_checksum=True)
    assert read_answers(tmp_path / "older.parquet") == [known.model_copy(update={"exact": None})]


def test_a_shard_of_before_there_was_a_stacking_or_a_scale_of_one_s_own_is_read(tmp_path: Path) -> None:
    known = Judgement(
        id="a", question="q", status=Status.OK, label="7", distribution={"7": 1.0}, exact=True, mass=0.9, k_effective=1, model="m",
        tokens=Tokens(prompt=1, cached=0, generated=1), own_scale=OnOwnScale(low=1, high=5, label=3.7),
        stacked=Stacked(expected=6.0, distribution={"7": 0.5, "5": 0.5}, without=("content",)), not_stacked="why",
    )  # fmt: skip
    write_answers(tmp_path / "new.parquet", [known])
    assert read_answers(tmp_path / "new.parquet") == [known]
    older = parquet.read_table(tmp_path / "new.parquet").drop_columns(["stacked", "not_stacked", "own_scale"])
    parquet.write_table(older, tmp_path / "older.parquet", write_page_checksum=True)
    assert read_answers(tmp_path / "older.parquet") == [
        known.model_copy(update={"stacked": None, "not_stacked": None, "own_scale": None})
    ]
