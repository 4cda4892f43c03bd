"""What a stranger left beside a SQLite file makes SQLite delete or overwrite nothing of the user's."""

from __future__ import annotations

import os
import signal
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perse.errors import BadInput
from perse.files.sqlite_files import refuse_foreign_leftovers
from perse.serving.readers.file import check_file
from perse.writing.cache import AnswerCache

MAGIC = bytes.fromhex("d9d505f920a163d7")


def naming_another(database: Path, named: Path) -> Path:
    """A journal that SQLite plays back when the database is opened, and then deletes `named`."""
    name = str(named).encode()
    header = (MAGIC + struct.pack(">IIIII", 0, 1, database.stat().st_size // 4096, 512, 4096)).ljust(512, b"\0")
    page, end = struct.pack(">I", 0x40000000 // 4096 + 1), struct.pack(">II", len(name), sum(name))
    journal = database.with_name(database.name + "-journal")
    journal.write_bytes(header + page + name + end + MAGIC)
    return journal


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "answers.sqlite"
    AnswerCache(path).close()
    return path


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    return path


OPENED: list[Callable[[Path], object]] = [AnswerCache, check_file]


@pytest.mark.parametrize("opened", OPENED, ids=["answers", "readers"])
def test_a_journal_that_names_another_file_is_refused_and_the_file_stays(
    opened: Callable[[Path], object], database: Path, thesis: Path
) -> None:
    journal = naming_another(database, thesis)
    with pytest.raises(BadInput, match="names another file, which SQLite would delete.*move it away"):
        opened(database)
    assert thesis.read_text() == "years of work" and journal.exists()


def test_a_journal_beside_what_a_link_leads_to_is_refused_too(database: Path, thesis: Path, tmp_path: Path) -> None:
    naming_another(database, thesis)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "readers.sqlite"
    link.symlink_to(database)
    with pytest.raises(BadInput, match="names another file, which SQLite would delete"):
        check_file(link)
    assert thesis.read_text() == "years of work"


def test_a_journal_that_may_not_be_read_is_one_sentence(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = database.with_name(database.name + "-journal")
    journal.write_bytes(bytes(512))
    opened = Path.open

    def refused(path: Path, *given: Any, **more: Any) -> Any:
        if path == journal:
            raise PermissionError(13, "Permission denied")
        return opened(path, *given, **more)

    monkeypatch.setattr(Path, "open", refused)  # root, as whom CI runs, may read everything
    with pytest.raises(BadInput, match="may not be read .Permission denied., and SQLite would play it back"):
        refuse_foreign_leftovers(database)


def test_sqlite_itself_deletes_what_such_a_journal_names(database: Path, thesis: Path) -> None:
    """Else there would be nothing to refuse."""
    naming_another(database, thesis)
    opened = sqlite3.connect(database)
    opened.execute("SELECT count(*) FROM answers")
    opened.close()
    assert not thesis.exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["link", "hard link"])
def test_a_log_that_is_a_link_to_a_file_of_the_users_is_refused(
    link: Callable[[Path, Path], None], ending: str, database: Path, thesis: Path
) -> None:
    link(thesis, database.with_name(database.name + ending))
    for opened in OPENED:
        with pytest.raises(BadInput, match="a link or no plain file, and SQLite would write through it; move it away"):
            opened(database)
    assert thesis.read_text() == "years of work"


@pytest.mark.slow
def test_the_journal_of_a_killed_process_is_played_back(database: Path) -> None:
    """It is killed within a transaction, when its changes stand in the file already."""
    killed = """
import os, signal, sqlite3, sys
opened = sqlite3.connect(sys.argv[1], isolation_level=None)
opened.execute("PRAGMA cache_size = 1"); opened.execute("PRAGMA cache_spill = 1"); opened.execute("BEGIN IMMEDIATE")
for at in range(2000):
    opened.execute("INSERT INTO answers VALUES (?, ?, 'stop', 0, NULL)", (str(at), "words " * 50))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", killed, str(database)], check=False)
    assert done.returncode == -signal.SIGKILL and database.with_name(database.name + "-journal").stat().st_size > 512
    refuse_foreign_leftovers(database)
    with AnswerCache(database):
        pass
    opened = sqlite3.connect(database)
    assert opened.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    opened.close()
