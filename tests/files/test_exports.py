"""Which files an export replaces: such as it writes, and nothing else that a user names by mistake."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from builders import pointwise_examples
from pyarrow import parquet

from perse.batch.sharded.finishing import MERGED
from perse.batch.sharded.ranking import RANKED
from perse.batch.sharded.shard import ANSWERS
from perse.commands.scoring.exporting import as_csv
from perse.errors import BadInput
from perse.files.belongings import check_file
from perse.files.exports import Fields
from perse.judgement import Judgement, Status, Tokens, judgement_line
from perse.judging.judged import JUDGED
from perse.records import example_lines
from perse.records.kinds import example_fields

EXAMPLES = example_fields()
EXAMPLE = next(iter(example_lines(pointwise_examples(1, 1))))
ANSWER = Judgement(
    id=pointwise_examples(1, 1)[0].id,
    question="pointwise",
    status=Status.UNPARSED,
    k_effective=3,
    model="m",
    tokens=Tokens(prompt=1, cached=0, generated=1),
)

OTHERS = {
    "keys.json": json.dumps({"keys": [{"name": "me", "sha256": "0" * 64}]}),
    "reviews.jsonl": json.dumps({"reviewer_id": "r", "item_id": "m", "score": 3, "review": "good"}),
    "items.jsonl": json.dumps({"item_id": "m", "title": "A", "text": "mine"}),
    "array.jsonl": json.dumps([1, 2]),
    "notes.txt": "mine",
    "deep.jsonl": "[" * 100_000,
    "reviews.csv": "reviewer_id,item_id,score,review\nr,m,3,good\n",
    "annotated.csv": "id,question,status,my notes\n1,pointwise,ok,precious\n",
    "quotes.csv": 'a,"b\n',
    "zero.csv": "\0\0\0\0",
    "half.parquet": "PAR1",
}


@pytest.mark.parametrize("name", OTHERS)
def test_no_export_replaces_a_file_of_another_kind(name: str, tmp_path: Path) -> None:
    there = tmp_path / name
    there.write_text(OTHERS[name])
    table = Fields(needed=("item_id", "text"), known=("item_id", "text"))
    with pytest.raises(
        BadInput, match="no file that this command writes, so --overwrite does not replace it; remove it yourself"
    ):
        check_file(there, alike=[*EXAMPLES, JUDGED, MERGED, RANKED, table], overwrite=True)
    assert there.read_text() == OTHERS[name]


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8bbroken", gzip.compress(b"mine", mtime=0)[:-6], b"\xff\xfe{\x00"])
def test_what_cannot_be_unpacked_or_decoded_is_no_export(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(content)
    with pytest.raises(BadInput, match="is no file that this command writes"):
        check_file(tmp_path / "x.jsonl.gz", alike=EXAMPLES, overwrite=True)


def test_what_an_export_wrote_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "valid.jsonl").write_text(EXAMPLE)
    (tmp_path / "valid.gz").write_bytes(gzip.compress(EXAMPLE.encode()))
    (tmp_path / "empty").touch()
    for name in ("valid.jsonl", "valid.gz", "empty"):
        check_file(tmp_path / name, alike=EXAMPLES, overwrite=True)
    (tmp_path / "run.csv").write_text(as_csv([ANSWER], pointwise_examples(1, 1)))
    check_file(tmp_path / "run.csv", alike=[JUDGED], overwrite=True)
    (tmp_path / "all.jsonl").write_text(judgement_line(ANSWER))
    parquet.write_table(pa.Table.from_pylist([], ANSWERS), tmp_path / "all.parquet")
    for name in ("all.jsonl", "all.parquet"):
        check_file(tmp_path / name, alike=[MERGED, RANKED], overwrite=True)
