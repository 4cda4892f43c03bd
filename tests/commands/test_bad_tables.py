"""Bad tables given to `perse data`: one sentence with file, line and field, exit code 2, nothing half-written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from command_line import perse

GOOD = [
    f'{{"reviewer_id": "r{reader}", "item_id": "i{item}", "review": "fine {reader} {item}", "score": {1 + item}, "text": "plot number {item}"}}'
    for reader in range(4)
    for item in range(7)
]


def table(*changed: str, at: int = 2) -> bytes:
    rows = GOOD.copy()
    rows[at : at + len(changed)] = changed
    return ("\n".join(rows) + "\n").encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (table('{"reviewer_id": "r0", "item_id": "i2", "score": 3, "text": "t"}'), "line 3: no column for field 'review'"),
        (table('{"reviewer_id": "r0", "item_id": "i2", "review": "x", "score": 11, "text": "t"}'), "line 3: field 'score': found 11"),
        (table('{"reviewer_id": "r0", "item_id": "i2", "review": "x", "score": "good", "text": "t"}'), "line 3: field 'score': found"),
        (table('{"reviewer_id": "r0", "item_id": "i0", "review": "x", "score": 3, "text": "plot number 0"}'), "line 3: field 'item_id': 'r0' already reviewed 'i0' on line 1"),
        (table('{"reviewer_id": "r0", "item_id": "i2", "review": " ", "score": 3, "text": "t"}'), "line 3: field 'review'"),
        (table('{"reviewer_id": "r0", '), "line 3: not JSON"),
        (table("x").replace(b"\nx\n", b"\n\xff\xfe\n"), "line 3: byte 0xff at position 1 is not UTF-8"),
        (b"", "empty"),
        (None, "nowhere"),
        (("\n".join(GOOD[:5]) + "\n").encode(), "no reviewer"),
        (b"reviewer_id,item_id,review,rating_out_of,text\nr,i,x,3,t\n", "line 2: no column for field 'score'"),
    ],
    ids=[
        "missing column", "off the scale", "not a number", "duplicate", "empty review", "invalid JSON", "invalid UTF-8",
        "empty file", "absent file", "no reviewer left", "missing CSV column",
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_in_one_sentence(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / (
        "nowhere.jsonl" if content is None else "reviews.csv" if content.startswith(b"reviewer_id,") else "reviews.jsonl"
    )
    if content is not None:
        path.write_bytes(content)
    done = perse("data", "pointwise", "--reviews", path, "--out", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert [entry.name for entry in tmp_path.iterdir() if entry != path] == []


def test_the_good_table_is_good_gzipped_or_not(tmp_path: Path) -> None:
    (tmp_path / "reviews.jsonl").write_bytes(table())
    (tmp_path / "reviews.jsonl.gz").write_bytes(gzip.compress(table()))
    for name in ("reviews.jsonl", "reviews.jsonl.gz"):
        done = perse("data", "pointwise", "--reviews", tmp_path / name, "--valid", 0.3, "--out", tmp_path / f"out-{name}")
        assert done.returncode == 0, done.stderr
    exports = [
        perse("data", "export", tmp_path / f"out-{name}", "--split", "valid").stdout
        for name in ("reviews.jsonl", "reviews.jsonl.gz")
    ]
    assert exports[0] == exports[1] and exports[0].count("\n") >= 7
