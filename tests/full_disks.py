"""Disks that fill up at a chosen place, for any user and beside other tests: by the size that a file may reach, or at a sync.

A limit on the size of files (`ulimit -f`) is this process's own, needs no rights, and cuts a write in the middle as a full disk
does: some bytes are written, then comes an error. A sync that fails is how a network disk says that it was full all along.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from perse.errors import SaveFailed

_LEFT_OUT = ("timing.jsonl", "answers.sqlite-journal", ".perse-files.json")
"""Times; what SQLite undoes a torn write from; the list of own files, which grows as they are written."""

_STAGED = re.compile(r"\.perse-(new|commit|tmp)")
"""Where perse writes what then gets its name."""

Files = dict[str, bytes | list[object]]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file gets larger than this; what would write more gets EFBIG. What is printed goes nowhere: pytest keeps it in a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def failing_sync(nth: int, number: int) -> Iterator[None]:
    """The sync of this number, from 0, fails with this error, and all after it."""
    left = nth
    sync = os.fsync

    def fsync(file: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(number, os.strerror(number))
        sync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@contextmanager
def every_answer_synced() -> Iterator[None]:
    """So that each sync can be the one that fails, however fast the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perse.judging.loop.SYNC_EVERY", 0.0)
        yield


def syncs(work: Callable[[], object]) -> int:
    """How often a work syncs."""
    counted = 0
    sync = os.fsync

    def fsync(file: int) -> None:
        nonlocal counted
        counted += 1
        sync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        work()
    return counted


def contents(folder: Path) -> Files:
    """Every file below, times and what depends on them left out: of a database its rows, of a manifest the run."""
    found: Files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in _LEFT_OUT):
        name = str(path.relative_to(folder))
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as file:
                begun = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                found[name] = file.execute("SELECT * FROM answers ORDER BY key").fetchall() if begun else []
        elif path.name == "manifest.json":
            manifest = json.loads(path.read_text("utf-8"))
            manifest.get("environment", {}).pop("started", None)
            found[name] = json.dumps(manifest).encode()
        else:
            found[name] = path.read_bytes()
    return found


def check_nothing_half(folder: Path, whole: Files) -> None:
    """Every file is as it will be in the end, or has the first whole lines of that."""
    for name, content in contents(folder).items() if folder.exists() else ():
        assert name in whole, f"{name} was left behind"
        if name.endswith(".jsonl"):
            assert isinstance(content, bytes) and whole[name].startswith(content), f"{name} has other lines"  # type: ignore[union-attr]
            assert not content or content.endswith(b"\n"), f"{name} ends in half a line"
        elif not name.endswith(".sqlite"):
            assert content == whole[name], f"{name} is half-written"


def hit_every_write(
    work: Callable[[Path], object],
    place: Path,
    *,
    out: str = "run",
    sizes: int = 12,
    prepare: Callable[[Path], object] = lambda folder: None,
) -> int:
    """Have the disk fill up in `work(folder)`, which writes to FOLDER/out, at every file and every sync; then make room and
    have it go on to what it would have come to without.

    Args:
        prepare: puts into a folder what the work begins with, with room for it.
        sizes: at most so many limits, spread over all that cut a file (each file at its first and last byte and in its middle).
    Returns:
        how often the disk was full.
    """

    def prepared(name: str) -> Path:
        (place / name).mkdir(parents=True)
        prepare(place / name)
        return place / name

    there = {path: path.read_bytes() for path in (prepared("whole") / out).rglob("*") if path.is_file()}
    work(place / "whole")
    whole = contents(place / "whole" / out)
    written = {path for path in (place / "whole" / out).rglob("*") if path.is_file() and there.get(path) != path.read_bytes()}
    lengths = {path.stat().st_size for path in written}
    limits = sorted({0, *(length - 1 for length in lengths if length), *(length // 2 for length in lengths)})
    limits = limits[:: max(1, len(limits) // sizes)]
    counted = prepared("counted")
    with every_answer_synced():
        number = syncs(lambda: work(counted))
    numbers = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    failures: list[tuple[str, Callable[[], object]]] = [
        *((f"size-{limit}", lambda limit=limit: files_of_at_most(limit)) for limit in limits),  # type: ignore[misc]
        *((f"sync-{nth}", lambda nth=nth: failing_sync(nth, numbers[nth % 4])) for nth in range(number)),  # type: ignore[misc]
    ]
    for name, failure in failures:
        folder = prepared(name)
        with pytest.raises(SaveFailed) as said, every_answer_synced(), failure():  # type: ignore[attr-defined]
            work(folder)
        words = str(said.value)
        assert "\n" not in words and "could not be written" in words and "the same command resumes" in words, words
        assert not _STAGED.search(words), f"a path that only perse knows: {words}"
        check_nothing_half(folder / out, whole)
        work(folder)
        now = contents(folder / out)
        assert now == whole, f"{name}: {[each for each in {*now, *whole} if now.get(each) != whole.get(each)]}"
    return len(failures)
