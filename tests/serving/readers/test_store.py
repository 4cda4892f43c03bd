"""The store of readers: what was acknowledged is there, others' readers are not, and whoever left is gone from the bytes."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.errors import BadInput
from perse.records import ProfileComparison, ProfileReview
from perse.secrets import without_keys
from perse.serving.front.keys import add_key
from perse.serving.problems import StoreFailed
from perse.serving.readers.mark import is_store
from perse.serving.readers.store import MOST_ENTRIES, Reader, Readers


def reader(*words: str) -> Reader:
    return Reader(reviews=tuple(ProfileReview(text=f"text {word}", review=f"said {word}", score=5) for word in words))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "readers.db"


def test_a_reader_comes_back_whole_also_after_a_restart(file: Path) -> None:
    whole = Reader(
        reviews=(ProfileReview(text="ein Stück 🎭", review=None, score=1, item_id="x", time="2020-01-01"),),
        comparisons=(ProfileComparison(text_a="a", text_b="b", premise="p", preference={"Ending": "A"}),),
    )
    with_file = Readers.open(str(file))
    assert with_file.put("alice", "ann/1", whole) is True
    with_file.close()
    again = Readers.open(str(file))
    kept = again.get("alice", "ann/1")
    assert kept and kept.record == whole and kept.updated > 1.7e9
    assert file.stat().st_mode & 0o777 == 0o600


NAMES = st.sampled_from(["a", "b", "ä/..", "x" * 200])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "delete", "everywhere"]), st.sampled_from("OP"), NAMES, st.text(max_size=9)))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(STEPS)
def test_it_holds_what_a_dictionary_would(steps: list[tuple[str, str, str, str]]) -> None:
    with ExitStack() as stack:
        _holds_what_a_dictionary_would(steps, stack)


def _holds_what_a_dictionary_would(steps: list[tuple[str, str, str, str]], stack: ExitStack) -> None:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    store = Readers.open(f"{folder}/readers.db")
    held: dict[tuple[str, str], Reader] = {}
    for what, owner, name, word in steps:
        if what == "put":
            assert store.put(owner, name, reader(word)) == ((owner, name) not in held)
            held[owner, name] = reader(word)
        elif what == "delete":
            assert store.delete(owner, name) == (held.pop((owner, name), None) is not None)
        else:
            gone = [key for key in held if key[1] == name]
            assert store.delete_everywhere(name) == len(gone)
            held = {key: kept for key, kept in held.items() if key not in gone}
    for owner in "OPQ":
        assert store.names(owner) == sorted(name for who, name in held if who == owner)
        for name in store.names(owner):
            kept = store.get(owner, name)
            assert kept and kept.record == held[owner, name]
    assert store.count() == len(held)


def test_names_come_page_by_page(file: Path) -> None:
    store = Readers.open(str(file))
    for n in range(25):
        store.put("o", f"r{n:02}", reader())
    pages = [store.names("o", count=10)]
    while pages[-1]:
        pages.append(store.names("o", after=pages[-1][-1], count=10))
    assert [len(page) for page in pages] == [10, 10, 5, 0]


def test_whoever_is_deleted_is_in_no_byte_of_the_files(file: Path) -> None:
    store = Readers.open(str(file))
    store.put("o", "stays", reader("remains"))
    for _ in range(3):
        store.put("o", "goes", reader(*(f"SECRET{n}" for n in range(200))))
    assert b"SECRET" in b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert store.delete("o", "goes")
    for path in file.parent.iterdir():
        assert b"SECRET" not in path.read_bytes(), path.name
    store.close()
    assert not any(b"SECRET" in path.read_bytes() for path in file.parent.iterdir())
    assert b"remains" in file.read_bytes()


def strangers(folder: Path) -> dict[str, Callable[[Path], Any]]:
    def database(path: Path) -> None:
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE mine (a)")
        made.close()

    return {
        "a text": lambda path: path.write_text("my notes\n" * 500),
        "another program's database": database,
        "a folder": lambda path: path.mkdir(),
        "a pipe": os.mkfifo,
    }


@pytest.mark.parametrize("what", ["a text", "another program's database", "a folder", "a pipe"])
def test_a_strangers_file_is_refused_and_kept(file: Path, what: str) -> None:
    strangers(file.parent)[what](file)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(BadInput, match="no file of perse's readers; give another path"):
        Readers.open(str(file))
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert before is None or file.read_bytes() == before


def test_tables_of_a_newer_perse_are_refused(file: Path) -> None:
    Readers.open(str(file)).close()
    with sqlite3.connect(file) as made:
        made.execute("UPDATE perse_meta SET version = 99")
    made.close()
    with pytest.raises(BadInput, match="made by a newer perse"):
        Readers.open(str(file))


def test_a_place_that_cannot_be_is_refused_without_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in (
        str(tmp_path / "nowhere" / "x.db"),
        "nosuch+driver://me:PASSWORD1@host/db",
        "postgresql+psycopg://me:PASSWORD1@127.0.0.1:1/db",
        "://me:PASSWORD1@",
        "sqlite:////nowhere/else.db",
        "sqlite://",
        "sqlite:///:memory:",
    ):
        with pytest.raises((BadInput, StoreFailed)) as refused:
            Readers.open(where)
        assert "PASSWORD1" not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "where",
    [
        "postgresql+psycopg//me:PASSWORD1@host/db",
        "postgresql+psycopg:/me:PASSWORD1@host/db",
        "//me:PASSWORD1@host/db",
        "me:PASSWORD1@host",
        "postgresql://host:PASSWORD1/db",
        "postgresql://me@host:PASSWORD1/db",
        "postgresql+psycopg://127.0.0.1:1/db?user=me&password=PASSWORD1",
        "sqlite:////nowhere/else.db?password=PASSWORD1",
    ],
)
def test_a_slip_in_an_address_makes_no_file_and_shows_no_password(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((BadInput, StoreFailed)) as refused:
        Readers.open(where)
    assert "PASSWORD1" not in str(refused.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("where", ["postgresql+psycopg://me:PASS@WORD1@host/db", "postgresql+psycopg:///me:PASSWORD1@host/db"])
def test_a_password_that_would_be_taken_for_a_host_or_a_name_is_refused(where: str) -> None:
    with pytest.raises(BadInput, match="an '@' too many; write one in a password as %40") as refused:
        Readers.open(where)
    assert "WORD1" not in str(refused.value)


def test_a_folder_may_be_called_like_an_address(tmp_path: Path) -> None:
    home = tmp_path / "me@corp.example"
    home.mkdir()
    Readers.open(f"{home}//readers.db").close()
    assert (home / "readers.db").is_file()


@pytest.mark.skipif(find_spec("psycopg") is not None, reason="psycopg is installed here")
def test_a_driver_that_is_not_installed_is_named() -> None:
    with pytest.raises(BadInput, match="needs the driver psycopg, which is not installed; run: pip install psycopg"):
        Readers.open("postgresql+psycopg://me:secret@127.0.0.1:1/db")


def test_too_much_of_one_reader_is_refused_with_the_numbers(file: Path) -> None:
    store = Readers.open(str(file))
    for many in (reader(*map(str, range(MOST_ENTRIES + 1))), reader(*["x" * 30_000] * 40)):
        with pytest.raises(BadInput, match="leave out the oldest"):
            store.put("o", "r", many)
    assert store.count() == 0


@pytest.mark.parametrize(
    ("name", "word"), [("ann", "so it was, sk-of-the-server-0123456789"), ("SK-of-the-server-0123456789", "good")]
)
def test_no_key_of_the_server_is_kept_as_a_readers_words(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str, word: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server-0123456789")
    store = Readers.open(str(file))
    with pytest.raises(BadInput, match="found a key of this server in the reader's name or reviews") as refused:
        store.put("alice", name, reader(word))
    store.close()
    assert "0123456789" not in str(refused.value)
    assert not [place for place in file.parent.iterdir() if b"0123456789" in place.read_bytes()]


def test_no_callers_key_is_kept_as_a_readers_words(file: Path, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice", ["readers"])
    with pytest.raises(BadInput, match="found a key of this server"):
        Readers.open(str(file)).put("bob", "ann", reader(f"so it was, {key}"))
    assert without_keys(f"so it was, {key}.") == "so it was, ***."


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_nothing_is_acknowledged_that_goes_into_a_file_without_a_name(file: Path, what: str) -> None:
    store = Readers.open(str(file))
    store.put("alice", "ann", reader("a"))
    aside = file.with_name("aside")
    file.rename(aside)
    if what == "replaced":
        file.touch()
    for change in (lambda: store.put("alice", "bob", reader("b")), lambda: store.delete("alice", "ann")):
        with pytest.raises(StoreFailed, match="was moved, removed or replaced under this server; put it back"):
            change()
    aside.replace(file)
    assert store.put("alice", "bob", reader("b")) and store.names("alice") == ["ann", "bob"]


def test_a_damaged_row_is_said_to_be_damaged(file: Path) -> None:
    store = Readers.open(str(file))
    store.put("o", "r", reader("a"))
    with sqlite3.connect(file) as made:
        made.execute("UPDATE perse_readers SET record = '{\"reviews\": [1]}'")
    made.close()
    with pytest.raises(StoreFailed, match="is damaged"):
        store.get("o", "r")


def test_a_database_that_others_hold_is_said_to_be_busy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.serving.readers.store.BUSY_SECONDS", 0.05)
    store = Readers.open(str(file))
    store.put("o", "r", reader("a"))
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match=r"readers.db cannot be used now \(database is locked\)"):
        store.put("o", "r", reader("b"))
    holder.execute("ROLLBACK")
    holder.close()
    kept = store.get("o", "r")
    assert kept and kept.record == reader("a")


def test_many_threads_write_and_read_at_once(file: Path) -> None:
    store = Readers.open(str(file))

    def work(n: int) -> None:
        for turn in range(10):
            store.put(f"o{n % 3}", f"r{n}", reader(f"{n}-{turn}"))
            kept = store.get(f"o{n % 3}", f"r{n}")
            assert kept and kept.record == reader(f"{n}-{turn}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(16)))
    assert store.count() == 16


def puts_and_deletes(file: Path, owner: str) -> None:
    """Eight threads that put readers and delete them."""
    store = Readers.open(str(file))

    def work(n: int) -> None:
        for turn in range(8):
            store.put(owner, f"r{n}", reader(f"SECRET {turn}"))
            assert store.delete(owner, f"r{n}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


@pytest.mark.slow
def test_many_that_delete_at_once_are_each_gone_from_the_files(file: Path) -> None:
    Readers.open(str(file)).put("o", "stays", reader("remains"))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for done in [processes.submit(puts_and_deletes, file, owner) for owner in "OP"]:
            done.result()
    assert not any(b"SECRET" in path.read_bytes() for path in file.parent.iterdir())
    assert Readers.open(str(file)).count() == 1


def test_a_deletion_says_so_where_another_reads_for_long(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.serving.readers.store.BUSY_SECONDS", 0.05)
    store = Readers.open(str(file))
    store.put("o", "r", reader("a"))
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN")
    holder.execute("SELECT count(*) FROM perse_readers").fetchone()
    with pytest.raises(StoreFailed, match="is being read; what was deleted is still in its log; delete it again"):
        store.delete("o", "r")
    holder.close()
    assert not store.delete("o", "r"), "gone from the tables before"
    assert b"text a" not in b"".join(path.read_bytes() for path in file.parent.iterdir())


def writes(file: Path, owner: str, acknowledged: Path) -> None:
    """Puts readers one after the other, and says of each that it is there."""
    store = Readers.open(str(file))
    with acknowledged.open("a") as told:
        for n in range(len(acknowledged.read_text().splitlines()), 10**6):
            store.put(owner, f"r{n:05}", reader(*[f"{owner} {n}"] * 20))
            told.write(f"r{n:05}\n")
            told.flush()


def test_a_backup_is_restored_as_documented_also_after_a_kill(file: Path, tmp_path: Path) -> None:
    """docs/operating.md: what a killed server had written ahead goes first; left there, SQLite takes it for the copy's."""
    copy = tmp_path / "copy.db"
    store = Readers.open(str(file))
    store.put("o", "before", reader("then"))
    with closing(sqlite3.connect(file)) as reading, closing(sqlite3.connect(copy)) as writing:
        reading.backup(writing)
    store.close()
    killed = "import os, sys; from perse.serving.readers.store import Reader, Readers; store = Readers.open(sys.argv[1])\n"
    killed += "for n in range(9): store.put('o', f'after {n}', Reader())\nos._exit(9)"
    subprocess.run([sys.executable, "-c", killed, file], check=False)
    ahead = [file.with_name(f"{file.name}-{end}") for end in ("wal", "shm")]
    assert all(one.is_file() for one in ahead)
    for one in ahead:
        one.unlink()
    shutil.copy(copy, file)
    assert is_store(file) and Readers.open(str(file)).names("o") == ["before"]


@pytest.mark.slow
def test_two_writers_that_are_killed_again_and_again_lose_nothing_acknowledged(file: Path, tmp_path: Path) -> None:
    for _ in range(6):
        before = {owner: (tmp_path / owner).read_text() if (tmp_path / owner).exists() else "" for owner in "OP"}
        children = []
        for owner in "OP":
            (tmp_path / owner).touch()
            child = os.fork()
            if not child:
                signal.alarm(900)  # whatever becomes of the test, nobody writes for ever
                writes(file, owner, tmp_path / owner)
                os._exit(1)
            children.append(child)
        while any((tmp_path / owner).read_text() == before[owner] for owner in "OP"):
            pass
        for child in children:
            os.kill(child, signal.SIGKILL)
        assert {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children} == {-signal.SIGKILL}
    store = Readers.open(str(file))
    for owner in "OP":
        told = (tmp_path / owner).read_text().splitlines()
        there = store.names(owner, count=10**6)
        assert set(told) <= set(there) and len(there) <= len(told) + 1, (
            "what was not acknowledged is there whole, or not at all"
        )
        for name in there:
            kept = store.get(owner, name)
            assert kept and kept.record == reader(*[f"{owner} {int(name[1:])}"] * 20)
    assert is_store(file)


def test_a_damaged_database_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "readers.db"
    Readers.open(str(path)).close()
    for left in (path.with_name("readers.db-wal"), path.with_name("readers.db-shm")):
        left.unlink(missing_ok=True)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(BadInput, match="it is damaged; restore a backup"):
        Readers.open(str(path))


def opened_by_nobody(file: Path) -> str:
    """How many readers another user finds in a file, one who owns nothing, or why that user cannot open it."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            told = str(Readers.open(str(file)).count())
        except Exception as error:  # noqa: BLE001  # the child says what it is, and ends
            told = f"{type(error).__name__}: {error}"
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        return said.read()


OPENED = """
import sys
from perse.errors import BadInput
from perse.serving.readers.store import Readers
try:
    print(Readers.open(sys.argv[1]).count())
except BadInput as error:
    print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_database_of_another_user_is_said_to_be_theirs_and_not_to_be_none_of_ours(open_folder: Path) -> None:
    file = open_folder / "readers.db"
    Readers.open(str(file)).close()
    for mode in (0o600, 0o444):
        file.chmod(mode)
        assert "may not be read and written by this user; start as the user whose file it is" in opened_by_nobody(file)
    file.chmod(0o666)
    assert opened_by_nobody(file) == "0"
    open_folder.chmod(0o755)
    assert "is in a folder where this user may make no files" in opened_by_nobody(file)


@pytest.mark.slow
@pytest.mark.parametrize("left", ["closed", "killed", "empty"])
def test_a_database_on_a_disk_that_is_mounted_read_only_is_said_to_be_there(open_folder: Path, left: str) -> None:
    made = {
        "closed": "from perse.serving.readers.store import *; Readers.open(sys.argv[1]).close()",
        "killed": "from perse.serving.readers.store import *; s = Readers.open(sys.argv[1]); s.put('o', 'r', Reader()); os._exit(0)",
        "empty": "open(sys.argv[1], 'w').close()",
    }
    file = open_folder / "readers.db"
    subprocess.run([sys.executable, "-c", f"import os, sys; {made[left]}", file], check=True)
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 9; exec "$2" -c "$3" "$1/readers.db"'
    words = ["unshare", "--mount", "sh", "-c", mount, "sh", open_folder, sys.executable, OPENED]
    if not shutil.which("unshare"):
        pytest.skip("no unshare here")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode in (1, 9):
        pytest.skip("nothing may be mounted here")
    assert "readers.db is on a disk that is mounted read-only, and readers are written; mount it writable" in done.stdout, (
        done.stderr
    )
