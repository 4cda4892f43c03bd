"""Files are read by these functions, so that nothing is waited for, or read, without end.

A named pipe that nobody writes to never answers, and a device such as /dev/zero never stops. Either can stand in the place of a file
that perse wrote, as a link too. What a person names may be a pipe of the shell (`/dev/stdin`, `<(...)`), which ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def unchanged_while_read(*paths: Path) -> Iterator[None]:
    """That what is read and digested within is one state of each file. What is no plain file, such as a pipe, is not looked at.

    Raises:
        BadInput: one was written to, replaced or removed meanwhile.
    """
    before = states(paths)
    yield
    refuse_changed(before)


State = tuple[int, ...] | None


def states(paths: Iterable[Path]) -> dict[Path, State]:
    """The states of files as they are now, for `refuse_changed`: where what is read lies apart from what checks it."""
    return {path: _state(path) for path in paths}


def refuse_changed(before: Mapping[Path, State]) -> None:
    """That files are as `states` found them.

    Raises:
        BadInput: one was written to, replaced or removed since.
    """
    for path, state in before.items():
        if _state(path) != state:
            raise BadInput(f"{path} was changed while it was read; give the command again once nothing writes to it")


def _state(path: Path) -> State:
    """What another write to a plain file, or another file in its place, cannot leave as it is: the time of the last change is the
    system's, and nobody can set it."""
    try:
        found = path.stat()
    except (OSError, ValueError, RuntimeError):  # whoever opens it says why
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _refuse(path: Path) -> None:
    if not path.is_dir():  # of which the system says so
        refuse_other_than_plain(path)
