"""What perse writes is whole or as it was before, also on a disk that is full; why it could not be written is one sentence.

Two ways to write: a whole file under another name, then renamed; and lines at the end of a file that only grows. Whatever a
failed write has let in of a line is taken away again at once, so that nothing after it is joined to half a line.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perse.errors import SaveFailed
from perse.secrets import without_keys

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_SAID = (
    *("no space left", "disk quota exceeded", "file too large", "database or disk is full", "disk i/o error"),
    *("os error 28", "os error 122", "os error 27", "pytorchstreamwriter failed writing"),
)
"""How libraries that raise errors without a number say it: numpy, torch, safetensors, tokenizers, SQLite."""


def write_failed(error: BaseException) -> bool:
    """Whether this is how a write to a full or read-only disk ends, whichever library wrote."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in (*_FULL, errno.EROFS)
    said = str(error).lower()
    return any(words in said for words in _SAID) or (isinstance(error, OSError) and "requested and" in said)  # numpy's tofile


def save_failed(place: Path | str, error: BaseException) -> SaveFailed:
    """What to raise for a write that failed: what is kept, and how to go on."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _FORBIDDEN:
        remedy = "make it writable, or choose another place"
    elif number is None or number in _FULL:
        remedy = "make room (or raise the quota or `ulimit -f`)"
    else:
        remedy = "look after the disk"
    why = (error.strerror if isinstance(error, OSError) else None) or (str(error).splitlines() or [type(error).__name__])[0]
    return SaveFailed(
        f"{place} could not be written ({why}); what was finished before is kept whole: {remedy}, and the same command goes on from there"
    )


@contextmanager
def writing(place: Path | str) -> Iterator[None]:
    """Say in one sentence why `place` cannot be written.

    Raises:
        SaveFailed: it cannot.
    """
    try:
        yield
    except OSError as error:
        raise save_failed(place, error) from None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either the old one or the whole new one, never half; without the keys that are known here.

    Raises:
        SaveFailed: it is the old one.
    """
    write_bytes(path, without_keys(text).encode())


def write_bytes(path: Path, content: bytes) -> None:
    """`write_whole` for what is not text."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


class GrowingFile:
    """A file of lines, open for adding to it; made if absent. To be closed, or used in a `with`.

    Raises:
        SaveFailed: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self._file = path.open("ab", buffering=0)

    def __enter__(self) -> GrowingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Of the open file, for a lock."""
        return self._file.fileno()

    def close(self) -> None:
        """Nothing waits to be written, so nothing can fail."""
        with suppress(OSError):
            self._file.close()

    def append(self, lines: Iterable[str], *, sync: bool = True) -> None:
        """Add lines (each ending in a newline), on disk when this returns; without the keys that are known here.

        Args:
            sync: False for lines that need not outlive a power cut; a kill they do outlive.

        Raises:
            SaveFailed: none of them was added.
        """
        content = memoryview(without_keys("".join(lines)).encode())
        with writing(self.path):
            end = os.fstat(self.fileno()).st_size
            try:
                while content:
                    content = content[os.write(self.fileno(), content) :]
                if sync:
                    os.fsync(self.fileno())
            except BaseException:  # also a Ctrl-C: the next lines may be added by this very process
                with suppress(OSError):
                    os.ftruncate(self.fileno(), end)
                raise

    def cut_torn_line(self) -> None:
        """Drop what a kill left half-written at the end.

        Raises:
            SaveFailed: it cannot be cut.
        """
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with writing(self.path):
                os.ftruncate(self.fileno(), whole)
