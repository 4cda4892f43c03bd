"""What cannot be written is said before a model is loaded, a server asked or a text rewritten."""

import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from perse.commands.data.build import app
from perse.data.rewriting import plots
from perse.errors import BadInput

COMMANDS = ("anonymize", "summarize", "per-mpst")


@pytest.fixture(autouse=True)
def _no_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a writer is loaded nor a rule applied."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("began to rewrite")

    monkeypatch.setattr(plots.Writer, "load", never)
    monkeypatch.setattr(plots, "anonymize_by_rules", never)
    monkeypatch.setattr(plots, "summarize_by_rules", never)


def refused(tmp_path: Path, command: str, *more: str) -> str:
    """What the command says; nothing that was there is changed, and nothing is made."""
    table = tmp_path / "plots.jsonl"
    table.write_text("".join(f'{{"item_id": "{item}", "text": "Anna Berg left Paris {item}."}}\n' for item in range(6)))
    reviews = tmp_path / "reviews.jsonl"
    row = '{{"reviewer_id": "{0}", "item_id": "{1}", "review": "good {1}", "score": 5}}\n'
    reviews.write_text("".join(row.format(who, item) for who in ("ann", "bob") for item in range(6)))
    before = sorted(os.walk(tmp_path))
    given = ["--plots", str(table), "--reviews", str(reviews)] if command == "per-mpst" else ["--items", str(table)]
    said = CliRunner().invoke(app, [command, *given, "--out", str(tmp_path / "out.jsonl"), *more]).exception
    assert isinstance(said, BadInput), said
    assert sorted(os.walk(tmp_path)) == before
    return str(said)


def database(place: Path) -> None:
    file = sqlite3.connect(place)
    file.execute("CREATE TABLE bookmarks (url TEXT)")
    file.close()


CACHES: dict[str, tuple[Callable[[Path], object], str]] = {
    "foreign": (database, "is a database of something else .*give a file that is a cache of answers or does not exist"),
    "text": (lambda place: place.write_text("no database " * 100), "give a file that is a cache of answers or does not exist"),
    "folder": (Path.mkdir, "is a folder, where the cache of answers is to be a file; move it away, or choose another place"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CACHES)
def test_a_cache_that_is_none_is_found_before_the_model_is_loaded(tmp_path: Path, command: str, case: str) -> None:
    make, expected = CACHES[case]
    make(tmp_path / "answers.sqlite")
    given = ("--writer", "a-model", "--cache", str(tmp_path / "answers.sqlite"))
    said = refused(tmp_path, command, *given)
    assert re.search(expected, said), said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cache_below_a_file_is_found_before_the_model_is_loaded(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("mine")
    said = refused(tmp_path, command, "--writer", "a-model", "--cache", str(tmp_path / "file" / "a" / "answers.sqlite"))
    assert "file is no folder; choose another place" in said


WORKS: dict[str, tuple[Callable[[Path, str], object], str]] = {
    "file": (lambda work, _: work.write_text("mine"), "is no folder, and the original names are to be kept there; move it away, or"),
    "link": (lambda work, _: work.symlink_to("nowhere"), "is a link to nowhere, which is no folder, and"),
    "folder": (lambda work, name: (work / name).mkdir(parents=True), "is a folder, where a file is to be written; move it away"),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("writer", ["rules", "a-model"])
@pytest.mark.parametrize("case", WORKS)
def test_a_work_folder_that_cannot_be_written_is_found_before_any_text_is_rewritten(
    tmp_path: Path, command: str, writer: str, case: str
) -> None:
    make, expected = WORKS[case]
    make(tmp_path / "out.jsonl.work", "names.jsonl" if command == "per-mpst" else "rewriting.jsonl")
    assert expected in refused(tmp_path, command, "--writer", writer)
