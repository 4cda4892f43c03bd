"""Finds where a person remains after they were forgotten: exports, scored runs, reports, other data sets, leftovers of killed builds.

What perse writes of a person has their pseudonym in it, 13 letters and digits that nothing else has, so files are looked through for it,
and for the name as a word of its own, as raw files have it: plain, in Latin-1, or escaped as JSON does. Parquet files and gzip,
bzip2, xz, zip and tar archives are searched, too, whatever their names; unreadable files are counted. Files
elsewhere, and names in other encodings (UTF-16, encrypted) are not found.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from perse.data.dataset.folder import is_data_folder
from perse.data.forgetting.lines import is_own
from perse.files.belongings import MANIFEST

FILES = 20_000
"""Most files to search: a home folder may hold millions."""

_NOT_LOOKED_INTO = {".git", ".venv", "venv", "node_modules", "__pycache__"}
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
_PIECE = 1 << 20
_HEAD = 512
_DEEPEST = 4
"""Deepest nesting of archives: a compressed archive of compressed files has 3."""
_PACKED: tuple[tuple[bytes, str, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b\x08", ".gz", lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file))),
    (b"BZh", ".bz2", lambda file: cast(IO[bytes], bz2.BZ2File(file))),
    (b"\xfd7zXZ\x00", ".xz", lambda file: cast(IO[bytes], lzma.LZMAFile(file))),  # noqa: SIM115
)
"""Archive formats: first bytes, suffix, and opener."""


@dataclass(frozen=True)
class Remaining:
    """Where the person remains."""

    places: tuple[Path, ...]
    """Runs, data sets and other folders of perse by their top, other files by name."""
    files: int
    """Number of files searched."""
    all: bool
    """False if there were more."""
    unread: tuple[Path, ...] = ()
    """Files that could not be read: damaged, encrypted, with values beyond Python's, or not this user's to read."""


def remaining(ids: Collection[str], folders: Iterable[Path]) -> Remaining:
    """The places in these folders, and below, that still name the person."""
    words = _words(ids)
    tops = sorted({folder.resolve() for folder in folders if folder.is_dir()})
    roots = [top for top in tops if not any(other in top.parents for other in tops)]
    places: dict[Path, None] = {}
    unread: list[Path] = []
    count = 0
    for root in roots:
        for path in _files(root):
            if count == FILES:
                return Remaining(tuple(places), count, all=False, unread=tuple(unread))
            count += 1
            try:
                if _names_them(path, words):
                    places[_place(path, root)] = None
            except Exception:  # noqa: BLE001  # six libraries raise what they like at a stranger's file; it is named instead
                unread.append(path)
    return Remaining(tuple(places), count, all=True, unread=tuple(unread))


def _words(ids: Collection[str]) -> re.Pattern[bytes]:
    """A pattern for any of them; names of one or two letters only in quotation marks."""
    spelled: set[bytes] = set()
    for one in ids:
        shown = json.dumps(one, ensure_ascii=False)
        forms = {shown, json.dumps(one)} if len(one) < 3 else {one, shown[1:-1], json.dumps(one)[1:-1]}
        spelled |= {form.encode() for form in forms}
        with suppress(UnicodeEncodeError):
            spelled |= {form.encode("latin-1") for form in forms}
    return re.compile(rb"(?<!\w)(?:" + b"|".join(map(re.escape, sorted(spelled))) + rb")(?!\w)")


def other_names(places: Iterable[Path]) -> list[Path]:
    """Files of these places that have another name on the disk (hard links)."""
    files = [file for place in places for file in (sorted(place.iterdir()) if place.is_dir() else [place])]
    return [file for file in files if file.is_file() and not file.is_symlink() and file.stat().st_nlink > 1]


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = sorted(one for one in below if one not in _NOT_LOOKED_INTO)
        yield from (Path(folder) / name for name in sorted(names) if Path(name).suffix not in _WEIGHTS)


def _place(path: Path, root: Path) -> Path:
    """The folder of perse's that a file belongs to, if the person can be forgotten there, or the file."""
    folder = path.parent
    if folder == root or not folder.is_relative_to(root) or not (folder / MANIFEST).is_file():
        return path
    reached = path.suffix == ".parquet" if is_data_folder(folder) else is_own(path) or path.name == MANIFEST
    return folder if reached else path


def _names_them(path: Path, words: re.Pattern[bytes]) -> bool:
    """Whether one of `words` is in the file. Raises what reading a damaged one does."""
    if (
        path.is_symlink() or not path.is_file() or not path.stat().st_size
    ):  # the kernel's own files, which may never end, have none
        return False
    return any(_holds(stream, words) for stream in _streams(path))


def _streams(path: Path) -> Iterator[Iterator[bytes]]:
    if path.suffix == ".parquet":
        yield _rows(path)
        return
    with path.open("rb") as file:
        yield from _unpacked(file, path.suffix)


def _unpacked(file: IO[bytes], ending: str = "", depth: int = 0) -> Iterator[Iterator[bytes]]:
    """The content of a file and of archives in it, which are recognized by their first bytes."""
    head = file.read(_HEAD)
    file.seek(0)
    packed = [opener for begin, suffix, opener in _PACKED if head.startswith(begin) or suffix == ending]
    if depth == _DEEPEST:
        yield _pieces(file)
    elif packed:
        with packed[0](file) as inner:
            yield from _unpacked(inner, depth=depth + 1)
    elif head.startswith(b"PK\x03\x04") or ending == ".zip":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    yield from _unpacked(member, depth=depth + 1)
    else:
        yield _pieces(file)  # of a tar, too: uncompressed content and file names
        if head[257:262] == b"ustar":
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r:") as members:
                for each in members:
                    if (inside := members.extractfile(each)) is not None:
                        yield from _unpacked(inside, depth=depth + 1)


def _rows(path: Path) -> Iterator[bytes]:
    """A table as lines of JSON, so that names look as in other files."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=1024):
            yield json.dumps(batch.to_pylist(), ensure_ascii=False, default=str).encode()


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The file in overlapping pieces: every word of up to 200 bytes is whole in one of them."""
    end = b""
    while piece := file.read(_PIECE):
        yield end + piece
        end = piece[-200:]


def _holds(pieces: Iterator[bytes], words: re.Pattern[bytes]) -> bool:
    return any(words.search(piece) for piece in pieces)
