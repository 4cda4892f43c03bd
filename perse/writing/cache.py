"""Answers kept by what they depend on, so that the same thing is never asked twice, even after a kill.

One SQLite file in its plain journal mode and with short transactions: a kill leaves whole answers, two processes take
turns, and it works on a network disk, which the faster write-ahead log does not; storing costs one flush, nothing beside
the time a model needs. Threads take turns too, so that each can keep its answer the moment it has it. Failures are not
kept, so the next run asks again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from perse.engines.base import Sampling, Turns
from perse.errors import BadInput
from perse.files.disk import save_failed, write_failed
from perse.files.sqlite_files import refuse_foreign_leftovers
from perse.judgement import Tokens
from perse.writing.writer import Writer, Written

PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""

_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""SQLite's errors for a file that cannot be written to its end."""

_SOME = 500
"""Keys looked up in one query; SQLite binds at most 999 in old versions."""


def answer_key(writer: Writer, message: str | Turns, wanted: Sampling, seed: int) -> str:
    """sha256 over all that an answer depends on: the writer (weights included), the prompt as its engine gets it (token ids,
    where it takes them), sampling, schema and seed."""
    sampling = writer.sampling(wanted)
    depends = {
        "writer": writer.identity,
        "prompt": writer.prompt(message),
        "temperature": sampling.temperature,
        "max_new_tokens": sampling.max_new_tokens,
        "stop_ids": sorted(sampling.stop_ids),
        "schema": None if sampling.schema is None else json.dumps(dict(sampling.schema)),  # properties are written in its order
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _tokens(kept: str | None) -> Tokens | None:
    """What an answer took; None of an older perse's, or of a damaged line, which does not make the answer another."""
    try:
        return None if kept is None else Tokens.model_validate_json(kept)
    except ValidationError:
        return None


def _text(kept: bytes) -> str | bytes:
    """A text as SQLite has it; its bytes where these are none."""
    try:
        return kept.decode()
    except UnicodeDecodeError:
        return kept


def _refuse_link(path: Path) -> None:
    """Raises:
    BadInput: the file is a link, which may lead to anybody's.
    """
    if path.is_symlink():
        raise BadInput(
            f"{path}: is a link to {path.readlink()}, and is not written through; move it away, or name the file itself"
        )


def _refuse_beside(path: Path) -> None:
    """SQLite removes what it takes for leftovers of a file that it is about to make.

    Raises:
        BadInput: there are some, of a file that is not there.
    """
    for beside in (path.with_name(path.name + ending) for ending in ("-wal", "-journal", "-shm")):
        if not path.exists() and os.path.lexists(beside):
            raise BadInput(f"{beside} is there without {path.name}, and would be removed as a leftover of it; move it away")


def check_cache(path: Path) -> None:
    """That answers can be kept in this file, before a model is loaded; nothing is made.

    Raises:
        BadInput, SaveFailed: as `AnswerCache`.
    """
    if path.is_dir():
        raise BadInput(
            f"{path}: is a folder, where the cache of answers is to be a file; move it away, or choose another place"
        )
    above = next(one for one in path.absolute().parents if os.path.lexists(one))
    if not above.is_dir():
        raise BadInput(f"{path}: the cache of answers cannot be made: {above} is no folder; choose another place")
    if os.path.lexists(path):
        AnswerCache(path).close()
    else:
        _refuse_beside(path)


class AnswerCache:
    """The raw answers of one file, which is made if absent; to be closed, or used in a `with`. Any thread may use it.

    Raises:
        BadInput: the file cannot be made, is a link or no such cache, or stays locked by another process for a minute.
        SaveFailed: the disk is full; what was kept before is kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.Lock()
        _refuse_link(path)
        with self._using():
            path.parent.mkdir(parents=True, exist_ok=True)
            _refuse_beside(path)
            refuse_foreign_leftovers(path)
            self._file = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._file.text_factory = _text
            found = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if found and "answers" not in found:
                self._file.close()
                raise BadInput(
                    f"{path}: is a database of something else (it holds {min(map(str, found))}); give a file that is a cache of answers or does not exist"
                )
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, text TEXT NOT NULL, finish_reason TEXT NOT NULL, "
                "refused INTEGER NOT NULL, tokens TEXT) WITHOUT ROWID"
            )
            self._file.execute("SELECT key, text, finish_reason, refused FROM answers LIMIT 1")
            if not self._has_tokens():  # an older perse's
                self._file.execute("BEGIN IMMEDIATE")
                if not self._has_tokens():  # nor has another process added them meanwhile
                    self._file.execute("ALTER TABLE answers ADD COLUMN tokens TEXT")
                self._file.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Also while threads still wait for answers: what one of them brings later is refused, and what is being stored is
        stored."""
        with self._turn:
            self._file.close()

    def known(self, keys: Sequence[str]) -> dict[str, Written]:
        """The answers kept under these keys, missing ones left out.

        Raises:
            BadInput: one of them is damaged, or as the class says.
        """
        found: dict[str, Written] = {}
        for start in range(0, len(keys), _SOME):
            some = keys[start : start + _SOME]
            marks = ",".join("?" * len(some))
            with self._using():
                query = f"SELECT key, text, finish_reason, refused, tokens FROM answers WHERE key IN ({marks})"
                rows = self._file.execute(query, some).fetchall()
            if odd := [key for key, text, reason, *_ in rows if not (isinstance(text, str) and isinstance(reason, str))]:
                raise BadInput(
                    f"{self.path}: the cache of answers is damaged (the answer under {odd[0]} is no text); move it away, and answers are "
                    "asked for anew"
                )
            found |= {key: Written(text, reason, bool(refused), _tokens(took)) for key, text, reason, refused, took in rows}
        return found

    def keep(self, answers: Mapping[str, Written]) -> dict[str, Written]:
        """Store answers, on disk when this returns, and return those now kept under their keys.

        An answer that another process stored first stays, and is what stands for both: an engine that does not answer twice
        alike then gives no two results.
        """
        rows = [
            (key, one.text, one.finish_reason, int(one.refused), one.tokens.model_dump_json() if one.tokens else None)
            for key, one in answers.items()
        ]
        with self._using():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.executemany(
                    "INSERT OR IGNORE INTO answers (key, text, finish_reason, refused, tokens) VALUES (?, ?, ?, ?, ?)", rows
                )
                self._file.execute("COMMIT")
            except sqlite3.Error:
                if self._file.in_transaction:  # a full disk has ended it already
                    self._file.execute("ROLLBACK")
                raise
        return self.known(list(answers))

    def _has_tokens(self) -> bool:
        return "tokens" in {row[1] for row in self._file.execute("PRAGMA table_info(answers)")}

    @contextmanager
    def _using(self) -> Iterator[None]:
        """One thread at a time, and errors in our words."""
        try:
            with self._turn:
                yield
        except OSError as error:
            if write_failed(error):
                raise save_failed(self.path, error) from None
            raise BadInput(
                f"{self.path}: the cache of answers cannot be made: {error.strerror}; choose another place"
            ) from None
        except sqlite3.Error as error:
            if (
                getattr(error, "sqlite_errorcode", 0) & 0xFF
            ) in _DISK:  # the last byte is the kind, what is above it the finer one
                raise save_failed(self.path, error) from None
            raise BadInput(
                f"{self.path}: the cache of answers cannot be used ({error}); wait for another process that uses it, or give "
                "a file that is a cache of answers or does not exist"
            ) from None
