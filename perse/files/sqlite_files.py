"""Looks at what lies beside a SQLite file before SQLite does, which believes all of it.

SQLite plays a journal back as soon as it opens the file. A journal may name a super-journal, which SQLite then deletes,
whatever it is; and a log that is a link is written through. A folder may come from somebody else, so both are refused.
perse opens one file at a time, without ATTACH, so its own journals name none.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from perse.errors import BadInput

ENDINGS = ("-journal", "-wal", "-shm")
_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The last eight bytes of a journal that names a super-journal (SQLite's file format, section 3), and the first of every header."""


def refuse_foreign_leftovers(path: Path) -> None:
    """To be called right before a SQLite file is opened. What a killed process of perse left is fine.

    Raises:
        BadInput: a file beside `path` is none that perse leaves: SQLite would delete or overwrite another one by it.
    """
    file = Path(os.path.realpath(path))  # where a link leads SQLite, too, looks beside what it leads to
    for beside in (file.with_name(file.name + ending) for ending in ENDINGS):
        try:
            found = beside.lstat()
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise BadInput(f"{beside} is a link or no plain file, and SQLite would write through it; move it away")
        if _names_another(beside, found.st_size):
            raise BadInput(
                f"{beside} names another file, which SQLite would delete; perse leaves no such journal, so whoever made this folder "
                "did not mean well, or uses the file for something else: move it away"
            )


def _names_another(journal: Path, size: int) -> bool:
    if not journal.name.endswith("-journal") or size < 2 * len(_MAGIC):
        return False
    try:
        with journal.open("rb") as file:
            file.seek(-len(_MAGIC), os.SEEK_END)
            return file.read() == _MAGIC
    except FileNotFoundError:  # of another process of ours, which has ended its transaction
        return False
    except PermissionError as error:
        raise BadInput(
            f"{journal} may not be read ({error.strerror}), and SQLite would play it back; make it readable, or move it away"
        ) from None
