"""Finds where a person remains after they were forgotten: exports, scored runs, reports, other data sets, leftovers of killed builds.

What perse writes of a person has their pseudonym in it, 13 letters and digits that nothing else has, so files are looked through for it,
and for the name as a word of its own, as raw files, pages and addresses have it (`_letter`). Parquet files and gzip,
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
import unicodedata
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from html.entities import html5
from itertools import chain
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
    named = _finder(ids)
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
                if _names_them(path, named):
                    places[_place(path, root)] = None
            except Exception:  # noqa: BLE001  # six libraries raise what they like at a stranger's file; it is named instead
                unread.append(path)
    return Remaining(tuple(places), count, all=True, unread=tuple(unread))


def _finder(ids: Collection[str]) -> Callable[[bytes], bool]:
    """Whether any of them is in a piece of a file: as a word of its own, or, of one or two characters, in quotation marks or alone in a cell."""
    spelled = {unicodedata.normalize(form, one) for one in ids for form in ("NFC", "NFD")} | set(ids)
    of_letters = {one: b"".join(map(_letter, one)) for one in spelled}
    long = [letters for one, letters in of_letters.items() if len(one) > 2]
    short = [letters for one, letters in of_letters.items() if len(one) <= 2]
    alone = [letters for one, letters in of_letters.items() if len(one) <= 2 and not _common(one)]
    words = re.compile(_any(long) + rb"(?!\w)") if long else None
    patterns = [_QUOTE + rb"'?" + _any(short) + _QUOTE] if short else []
    # After the apostrophe that keeps a spreadsheet from reckoning with it, perhaps.
    patterns += [rb"(?<![^,;\t\r\n])'?" + _any(alone) + rb"(?![^,;\t\r\n])"] if alone else []
    values = re.compile(b"|".join(patterns)) if patterns else None

    def found(piece: bytes) -> bool:
        # What stands before a word is looked at where there is one: as a part of the pattern it would be looked at everywhere.
        as_word = words is not None and any(_BEGIN.match(piece, one.start()) for one in words.finditer(piece))
        return as_word or (values is not None and values.search(piece) is not None)

    return found


def _common(name: str) -> bool:
    """Whether cells hold this and mean no reader: a number is a score, a letter a choice."""
    return name.isdigit() or (len(name) == 1 and name.isascii() and name.isalnum())


_BEGIN = re.compile(rb"(?<!\w)|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})")
"""Where a word begins: also after an escaped line end, sign or space, whose last letter is none of the word's."""
_QUOTE = rb"(?:\\?\"|&quot;|&#34;|%22|\\u0022)"


def _any(patterns: Collection[bytes]) -> bytes:
    return b"(?:" + b"|".join(sorted(patterns)) + b")"


def _letter(letter: str) -> bytes:
    """A pattern for a letter as it stands in UTF-8 or Latin-1, or escaped as JSON, HTML, CSV and addresses do."""
    if letter.isascii() and letter.isalnum():
        return letter.encode()
    plain = letter.encode()
    units = letter.encode("utf-16-be").hex()
    json_escape = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)).encode()
    percent = "".join(f"%{byte:02x}" for byte in plain).encode()
    forms = {plain, json.dumps(letter, ensure_ascii=False)[1:-1].encode(), b"\\" + plain, *_ENTITIES.get(letter, ())}
    forms |= {" ": {b"+"}, '"': {b'""'}}.get(letter, set())
    numbered = f"&#(?:0*{ord(letter)}|[xX]0*(?i:{ord(letter):x}));".encode()
    others = [numbered, *(b"(?i:" + re.escape(one) + b")" for one in (json_escape, percent))]
    with suppress(UnicodeEncodeError):
        others.append(re.escape(letter.encode("latin-1")) + rb"(?![\x80-\xbf])")  # which would make it another letter in UTF-8
    return _any([*map(re.escape, forms), *others])


def _named_entities() -> dict[str, list[bytes]]:
    named: dict[str, list[bytes]] = {}
    for name, letter in html5.items():
        if name.endswith(";"):
            named.setdefault(letter, []).append(f"&{name}".encode())
    return named


_ENTITIES = _named_entities()


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


def _names_them(path: Path, named: Callable[[bytes], bool]) -> bool:
    """Whether a piece of the file names them. Raises what reading a damaged one does."""
    if (
        path.is_symlink() or not path.is_file() or not path.stat().st_size
    ):  # the kernel's own files, which may never end, have none
        return False
    return any(map(named, chain.from_iterable(_streams(path))))


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
    """The file in overlapping pieces: every word of up to 2,000 bytes is whole in one of them."""
    end = b""
    while piece := file.read(_PIECE):
        yield end + piece
        end = piece[-2000:]
