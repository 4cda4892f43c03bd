"""Files are read by these functions, so that nothing is waited for, or read, without end.

A named pipe that nobody writes to never answers, and a device such as /dev/zero never stops. Either can stand in the place of a file
that perse wrote, as a link too. What a person names may be a pipe of the shell (`/dev/stdin`, `<(...)`), which ends.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from perse.errors import BadInput


def own_bytes(path: Path) -> bytes:
    """The bytes of a file that perse or a library wrote.

    Raises:
        BadInput: it is no plain file.
        OSError: as `Path.read_bytes`.
    """
    _refuse(path)
    return path.read_bytes()


def refuse_larger(path: Path, found: int, *, most: int, remedy: str) -> None:
    """That a file which is read whole is no larger than such files are: beyond that its reader takes all memory before it finds fault.

    Raises:
        BadInput: it is.
    """
    if found > most:
        raise BadInput(f"{path} has {found:,} bytes, expected at most {most:,}; {remedy}")


def own_text(path: Path) -> str:
    """`own_bytes` as text.

    Raises:
        BadInput: it is no plain file, or not UTF-8.
        OSError: as `Path.read_text`.
    """
    _refuse(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8; save it as UTF-8, or move it away") from None


def open_own(path: Path) -> BufferedReader:
    """`own_bytes`, to be read piece by piece."""
    _refuse(path)
    return path.open("rb")


def refuse_other_than_plain(path: Path) -> None:
    """That it is a file, where it is there: a pipe would be waited for without end.

    Raises:
        BadInput: it is something else.
    """
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no plain file; move it away")


def refuse_endless(path: Path) -> None:
    """That what a person named is a file, or a pipe of the shell, a terminal or /dev/null, which end.

    Raises:
        BadInput: it is a named pipe, or a device.
    """
    try:
        mode, place = path.stat().st_mode, path.resolve()
    except (OSError, ValueError, RuntimeError):  # whoever opens it says why
        return
    shell = stat.S_ISFIFO(mode) and not place.is_fifo()  # its pipes have no name in a folder
    ends = place == Path(os.devnull) or place.is_relative_to("/dev/pts") or place == Path("/dev/tty")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or shell or ends):
        raise BadInput(f"{path} is no plain file; move it away, or give a file")


def _refuse(path: Path) -> None:
    if not path.is_dir():  # of which the system says so
        refuse_other_than_plain(path)
