"""Atomic writes, also on a full disk; a failure is one sentence.

Two ways to write: a whole file under another name, then renamed; and lines at the end of a file that only grows. Whatever a
failed write has let in of a line is taken away again at once, so that nothing after it is joined to half a line.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from perse.errors import BadInput, SaveFailed
from perse.formats.plain_files import own_bytes, refuse_other_than_plain
from perse.secrets import without_keys

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_SAID = (
    *("no space left", "disk quota exceeded", "file too large", "database or disk is full", "disk i/o error"),
    *("os error 28", "os error 122", "os error 27"),
    *("pytorchstreamwriter failed writing", "] . unexpected pos ", "basic_ios::clear: iostream error"),  # torch.save
)
"""How libraries that raise errors without a number say it: numpy, torch, safetensors, tokenizers, SQLite."""


def write_failed(error: BaseException) -> bool:
    """Whether this is how a write to a full or read-only disk ends, whichever library wrote."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in (*_FULL, errno.EROFS)
    said = str(error).lower()
    return any(words in said for words in _SAID) or (isinstance(error, OSError) and "requested and" in said)  # numpy's tofile


def save_failed(place: Path | str, error: BaseException) -> SaveFailed:
    """The error for a failed write: what is kept, and how to continue."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _FORBIDDEN:
        remedy = "make it writable, or choose another place"
    elif number is None or number in _FULL:
        remedy = "make room (or raise the quota or `ulimit -f`)"
    else:
        remedy = "look after the disk"
    told = os.strerror(number) if number in (*_FULL, *_FORBIDDEN) else None  # pyarrow has words of its own there
    why = (
        told
        or (error.strerror if isinstance(error, OSError) else None)
        or (str(error).splitlines() or [type(error).__name__])[0]
    )
    return SaveFailed(
        f"{place} could not be written ({why}); what was finished before is kept whole: {remedy}, and the same command resumes from there"
    )


def no_folder(folder: Path, error: OSError) -> str:
    """Why a folder could not be made, in a few words; of a link to nothing the system says only that it is there."""
    if folder.is_symlink() and not folder.exists():
        return f"it is a link to {folder.readlink()}, where nothing is"
    return error.strerror or str(error)


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


def aside(path: Path) -> Path:
    """Where a folder is written before it becomes `path`: a name that is perse's alone, since what a kill left there goes."""
    return path.with_name(f".{path.name.removeprefix('.')}.perse-tmp")


@contextmanager
def staged(stage: Path, place: Path) -> Iterator[None]:
    """What is written in `stage` becomes `place`: where it cannot be written, name that, for nobody but perse knows the other.

    Raises:
        SaveFailed: with the words of what failed.
    """
    try:
        yield
    except SaveFailed as error:
        raise SaveFailed(str(error).replace(str(stage), str(place))) from None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either the old one or the whole new one, never half; without the keys that are known here.

    Raises:
        SaveFailed: it is the old one.
    """
    write_bytes(path, without_keys(text).encode())


def write_bytes(path: Path, content: bytes) -> None:
    """`write_whole` for bytes. Leftovers of killed writers in the folder are removed."""
    with writing(path):
        sweep_temporaries(path.parent)
        temporary, file = _temporary(path)
        try:
            with file:
                file.write(content)
                file.flush()
                share_like(path, temporary)
                os.fsync(file.fileno())
                temporary.replace(path)  # while it is locked
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_first(path: Path, text: str) -> bool:
    """Make the file, whole, unless it is there; whether it was made. Of several processes that try, one makes it.

    Raises:
        SaveFailed: it is not made.
    """
    with writing(path):
        own, file = _temporary(path)  # linked when it is whole, so that nobody reads half of it
        try:
            with file:
                file.write(without_keys(text).encode())
                file.flush()
                os.link(own, path)  # while it is locked
        except FileExistsError:
            return False
        finally:
            own.unlink(missing_ok=True)
    return True


def share_like(old: Path, new: Path) -> None:
    """Gives the new file the permissions of the old one, if there is one, so that private files stay private; and, as far as the
    system lets us, its owner and group, so that what root changes can still be read by whose it is."""
    with suppress(OSError):
        was, now = old.stat(), new.stat()
        if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
            with suppress(OSError):  # only root may give files away
                os.chown(new, was.st_uid, was.st_gid)
        new.chmod(stat.S_IMODE(was.st_mode))


def sweep_temporaries(folder: Path) -> None:
    """Remove the half-written files that killed writers left in a folder: those with our ending that are not locked."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_unlocked(entry)


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.perse-tmp", re.DOTALL)


def _temporary(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, locked while it is open, so that it is not taken for a killed writer's."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.perse-tmp")
        file = temporary.open("xb")
        with suppress(OSError):  # on a file system without locks nothing can be removed safely
            fcntl.flock(file, fcntl.LOCK_EX)
        if is_at(temporary, file.fileno()):  # else it was removed between the two calls
            return temporary, file
        file.close()


def _remove_unlocked(path: Path) -> None:
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_file() and is_at(path, held):
            path.unlink()
    finally:
        os.close(held)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def refuse_link(path: Path) -> None:
    """Check that the target is not a link, which may lead out of its folder.

    Raises:
        BadInput: it is one.
    """
    if path.is_symlink():
        raise BadInput(f"{path} is a link to {path.readlink()}, and is not written through; put the file itself there")


class GrowingFile:
    """A file of lines, open for adding to it; made if absent. To be closed, or used in a `with`.

    Raises:
        BadInput: it is a link, which may lead out of its folder, or no plain file.
        SaveFailed: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        refuse_link(path)
        refuse_other_than_plain(path)
        with writing(path):
            self._file = path.open("ab", buffering=0)
        self._on_disk = os.fstat(self.fileno()).st_size

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
            sync: False for lines that outlive a kill of this process, but a power cut only once something is synced after them.

        Raises:
            SaveFailed: none of them was added; where it failed at the sync, none since the last one is there.
        """
        content = memoryview(without_keys("".join(lines)).encode())
        with writing(self.path):
            end = os.fstat(self.fileno()).st_size
            try:
                while content:
                    content = content[os.write(self.fileno(), content) :]
            except BaseException:  # also a Ctrl-C: the next lines may be added by this very process
                with suppress(OSError):
                    os.ftruncate(self.fileno(), end)
                raise
        if sync:
            self.sync()

    def sync(self) -> None:
        """Wait until all lines are on disk.

        Raises:
            SaveFailed: those added since the last sync are taken away again: it is not known which of them the disk has.
        """
        with writing(self.path):
            try:
                os.fsync(self.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self.fileno(), self._on_disk)
                raise
            self._on_disk = os.fstat(self.fileno()).st_size

    def cut(self, end: int) -> None:
        """Truncate to the first `end` bytes.

        Raises:
            SaveFailed: it cannot be cut.
        """
        with writing(self.path):
            os.ftruncate(self.fileno(), end)
        self._on_disk = min(self._on_disk, end)

    def cut_torn_line(self) -> None:
        """Drop what a kill left half-written at the end of a line of JSON; a last line that is whole gets its line end.

        Raises:
            BadInput: the end was not written by perse, or the file has another name elsewhere, under which it would change, too.
            SaveFailed: it cannot be cut.
        """
        if os.fstat(self.fileno()).st_nlink > 1:
            raise BadInput(
                f"{self.path} is a hard link: the same file has another name, and would change there, too; put a copy in its place"
            )
        data = own_bytes(self.path)
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            if is_whole_line(data[whole:]):
                with writing(self.path):
                    os.write(self.fileno(), b"\n")
                self._on_disk = os.fstat(self.fileno()).st_size
                return
            if data[whole : whole + 1] != b"{":
                raise BadInput(
                    f"{self.path} ends in something that perse did not write; move it away, or end it with a line end"
                )
            self.cut(whole)
        self._on_disk = whole  # another process takes care of what it added before this one had the lock


def is_whole_line(line: bytes) -> bool:
    """Whether a line without its end is a whole value of JSON."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
