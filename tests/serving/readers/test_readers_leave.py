"""`perse data forget` reaches the readers that a judge server keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import perse
from places import ROOT
from pyarrow import parquet

from perse.data.pseudonyms import pseudonym
from perse.records import ProfileReview
from perse.serving.readers.mark import is_store
from perse.serving.readers.store import Reader, Readers

KEPT = Reader(reviews=(ProfileReview(text="t", review="SECRETWORDS", score=5),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "readers.db"
    store = Readers.open(str(path))
    for owner, reader in (("alice", "Ann"), ("bob", "Ann"), ("alice", "Bea")):
        store.put(owner, reader, KEPT)
    store.close()
    return path


def names(file: Path) -> dict[str, list[str]]:
    store = Readers.open(str(file))
    return {owner: store.names(owner) for owner in ("alice", "bob")}


def test_a_person_leaves_the_store_whoever_put_them(file: Path) -> None:
    done = perse("data", "forget", "Ann", file, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["readers"] == {str(file): 2}, done.stderr
    assert names(file) == {"alice": ["Bea"], "bob": []}
    again = perse("data", "forget", "Ann", file)
    assert again.returncode == 2 and "nobody was forgotten" in again.stderr


def test_a_person_leaves_a_data_set_and_under_their_pseudonym_the_store(file: Path, tmp_path: Path) -> None:
    samples = ROOT / "perse" / "samples"
    built = perse(
        "data", "pointwise", "--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--k", 3, "--out", tmp_path / "set"
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    example = json.loads(perse("data", "export", tmp_path / "set").stdout.splitlines()[0])
    store = Readers.open(str(file))
    store.put("alice", example["reviewer_id"], KEPT)
    done = perse("data", "forget", example["reviewer_id"], tmp_path / "set", file)
    assert done.returncode == 0 and "1 kept readers removed" in done.stderr, done.stderr
    assert names(file)["alice"] == ["Ann", "Bea"]


def test_a_strangers_file_that_cannot_be_read_keeps_no_removal_from_being_done(file: Path, tmp_path: Path) -> None:
    (tmp_path / "export.jsonl").write_text(
        "".join(json.dumps({"id": f"e{at}", "reviewer_id": one, "prompt": "q"}) + "\n" for at, one in enumerate(("Ann", "Cem")))
    )
    mine = tmp_path / "mine.parquet"
    parquet.write_table(pa.table({"day": pa.array([2**30], pa.date32())}), mine)  # a sound file; Python's dates end before
    done = perse("data", "forget", "Ann", tmp_path / "export.jsonl", file, "--json")
    assert done.returncode == 0 and f"could not be looked into: {mine}" in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["readers"] == {str(file): 2} and told["forgotten"][0]["examples"] == 1 and told["left"]["unread"] == [str(mine)]
    assert names(file) == {"alice": ["Bea"], "bob": []}
    assert "Ann" not in (tmp_path / "export.jsonl").read_text()


def test_a_folder_to_look_in_is_looked_into_beside_a_store_alone(file: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "of-ann.txt").write_text("Ann said so")
    done = perse("data", "forget", "Ann", file, "--look-in", tmp_path / "notes")
    assert done.returncode == 0 and f"still holds the person: {tmp_path / 'notes' / 'of-ann.txt'}" in done.stderr, done.stderr
    assert "looked into 1 files in --look-in; " in done.stderr


def test_a_database_is_reached_by_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = perse("data", "forget", "Ann", file, "--readers")
    assert missing.returncode == 2 and "no address in PERSE_READERS" in missing.stderr and names(file)["bob"] == ["Ann"]
    other = tmp_path / "other.db"
    Readers.open(str(other)).put("o", "Bea", KEPT)
    monkeypatch.setenv("PERSE_READERS", f"sqlite:///{other}")
    assert perse("data", "forget", "Bea", file, "--readers").returncode == 0
    assert names(file)["alice"] == ["Ann"] and Readers.open(str(other)).count() == 0


def test_a_database_may_be_the_only_place(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_READERS", f"sqlite:///{file}")
    nowhere = perse("data", "forget", "Ann")
    assert nowhere.returncode == 2 and "give a PATH, or --readers" in nowhere.stderr and names(file)["bob"] == ["Ann"]
    done = perse("data", "forget", "Ann", "--readers")
    assert done.returncode == 0 and "2 kept readers removed" in done.stderr, done.stderr
    assert names(file) == {"alice": ["Bea"], "bob": []}
    again = perse("data", "forget", "Ann", "--readers")
    assert again.returncode == 2 and "nobody was forgotten" in again.stderr


def test_with_the_salt_a_database_is_searched_for_the_pseudonym_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Readers.open(str(file)).put("bob", pseudonym("Cem", salt="of ours"), KEPT)
    monkeypatch.setenv("PERSE_READERS", f"sqlite:///{file}")
    done = perse("data", "forget", "Cem", "--readers", "--salt", "of ours")
    assert done.returncode == 0 and names(file)["bob"] == ["Ann"], done.stderr


def test_another_programs_database_is_no_place_to_forget_in(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert not is_store(tmp_path / "x.db") and not is_store(tmp_path)
    done = perse("data", "forget", "Ann", tmp_path / "x.db")
    assert done.returncode == 2 and "Traceback" not in done.stderr
