"""One writer at a time: a folder or file that is being written is locked from before anything is read until all is written.

The lock is the kernel's (`flock`), so a killed process holds none. The file it is taken on lies beside what is locked, is empty, and goes
when the lock is given back: folders built twice stay alike, byte by byte.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from perse.errors import BadInput, RunMismatch
from perse.files.disk import is_at

SUFFIX = ".perse-lock"
"""How the names of lock files end."""


def lock_file(file: IO[str] | int, target: Path) -> None:
    """Take the lock of an open file; `target` is what is written, for the message. Closing the file gives it back.

    Raises:
        RunMismatch: another process holds it.
        BadInput: the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            raise RunMismatch(f"{target} is being written by another process; wait for it, or choose another place") from None
        raise BadInput(
            f"{target}: the file system there cannot lock a file ({error.strerror}); choose a folder on another"
        ) from None


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold `target` (links resolved), a folder or a file that need not be there yet, to the end of the block.

    Folders above it that are not there are made, and go again if they are empty at the end.

    Raises:
        RunMismatch: another process holds it.
        BadInput: no lock file can be made.
    """
    made = [folder for folder in target.parents if not folder.exists()]
    path = lock_path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _taken(path, target)
    except OSError as error:
        _remove_empty(made)
        raise BadInput(f"{target}: cannot be written ({error.strerror or error}); choose another place") from None
    try:
        yield
    finally:
        if os.fstat(descriptor).st_size == 0:  # ours are empty
            path.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child process may still have the descriptor
        os.close(descriptor)
        _remove_empty(made)


def lock_path(target: Path) -> Path:
    """Beside `target`; in it where it is there and nothing can be written beside it, as where a volume is mounted.

    Raises:
        BadInput: it is the root of the disk.
    """
    if not target.name:
        raise BadInput(f"{target} is the root of the disk, where perse writes nothing; give a folder in it")
    beside = target.with_name(f".{target.name}{SUFFIX}")
    return target / SUFFIX if target.is_dir() and not os.access(target.parent, os.W_OK) else beside


def _taken(path: Path, target: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            lock_file(descriptor, target)
            if is_at(path, descriptor):  # else its last holder removed it between the two calls
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:  # the deepest first
        try:
            folder.rmdir()
        except OSError:
            return
