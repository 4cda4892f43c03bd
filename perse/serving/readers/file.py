"""The file that keeps readers: made its owner's alone, or looked at before it is opened, and why it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from perse.errors import BadInput
from perse.files.sqlite_files import refuse_foreign_leftovers
from perse.serving.readers.mark import MARK, is_store

BUSY_SECONDS = 10.0
"""For another process that writes."""


def check_file(path: Path) -> None:
    """Makes the file, its owner's alone, or checks that it is ours and can be written.

    Raises:
        BadInput: it is not, or cannot be made, read or written; the message says which of these.
    """
    if path.name.startswith((":memory:", "file:")):
        raise BadInput("readers= in memory would be lost with the server; give a file's path")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise BadInput(f"{path} cannot be made ({error.strerror}); give a path in a folder that is there") from None
    theirs = BadInput(f"{path} is no file of perse's readers; give another path")
    if not stat.S_ISREG(path.stat().st_mode):
        raise theirs
    refuse_foreign_leftovers(path)
    if not path.stat().st_size:  # new, or made by a server that was killed at once
        _refuse_unwritable(path)
        marking = sqlite3.connect(path, timeout=BUSY_SECONDS)
        marking.execute(f"PRAGMA application_id = {MARK}")  # before there is a write-ahead log, so that the file itself says it
        marking.close()
        return
    if os.access(path, os.R_OK) and is_store(path):  # else it is somebody else's, which need not be writable
        _refuse_unwritable(path)
    try:
        reading = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            mark = reading.execute("PRAGMA application_id").fetchone()[0]
            tables = reading.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            reading.close()
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise theirs from None
        _refuse_unwritable(path)  # where SQLite cannot read either, since it wants to write beside it
        raise BadInput(f"{path} cannot be opened ({error}): it is damaged; restore a backup, or give another path") from None
    if mark != MARK and tables:
        raise theirs


def _refuse_unwritable(path: Path) -> None:
    """Raises:
    BadInput: this process cannot write the file, or not beside it, as SQLite does.
    """
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        why = "is on a disk that is mounted read-only, and readers are written; mount it writable, or give a path elsewhere"
    elif not os.access(path, os.R_OK | os.W_OK):
        why = "may not be read and written by this user; start as the user whose file it is, or give another path"
    elif not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        why = "is in a folder where this user may make no files, which SQLite does beside it; make it writable, or give another path"
    else:
        return
    raise BadInput(f"{path} {why}")
