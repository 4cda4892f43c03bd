"""Where a person still stands after they were forgotten: exports, scored runs, reports, other data sets and what killed builds left.

What perse writes of a person has their pseudonym in it, 13 letters and digits that nothing else has, so files are looked through for it;
a name is looked for as JSON has it, in quotation marks. What lies elsewhere cannot be known, and what is compressed is not seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perse.belongings import MANIFEST
from perse.data.folder import is_data_folder
from perse.data.parquet import read_parquet
from perse.data.pseudonyms import is_pseudonym
from perse.errors import BadInput

FILES = 20_000
"""Looked into at most: a home folder may hold millions."""

_NOT_LOOKED_INTO = {".git", ".venv", "venv", "node_modules", "__pycache__"}
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
_PIECE = 1 << 20


@dataclass(frozen=True)
class Remaining:
    """What was found."""

    places: tuple[Path, ...]
    """Runs, data sets and other folders of perse by their top, other files by name."""
    files: int
    """How many were looked into."""
    all: bool
    """False where there were more."""


def remaining(ids: Collection[str], folders: Iterable[Path]) -> Remaining:
    """The places in these folders, and below, that still name the person."""
    words = [(one if is_pseudonym(one) else json.dumps(one, ensure_ascii=False)).encode() for one in ids]
    tops = sorted({folder.resolve() for folder in folders if folder.is_dir()})
    roots = [top for top in tops if not any(other in top.parents for other in tops)]
    places: dict[Path, None] = {}
    count = 0
    for root in roots:
        for path in _files(root):
            if count == FILES:
                return Remaining(tuple(places), count, all=False)
            count += 1
            if _names_them(path, words, ids):
                places[_place(path, root)] = None
    return Remaining(tuple(places), count, all=True)


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = sorted(one for one in below if one not in _NOT_LOOKED_INTO)
        yield from (Path(folder) / name for name in sorted(names) if Path(name).suffix not in _WEIGHTS)


def _place(path: Path, root: Path) -> Path:
    """The topmost folder of perse's that a file lies in, or the file: what the person would be forgotten in."""
    for folder in path.parents:
        if (folder / MANIFEST).is_file() and folder.is_relative_to(root) and folder != root:
            return path if is_data_folder(folder) and path.suffix != ".parquet" else folder
    return path


def _names_them(path: Path, words: Collection[bytes], ids: Collection[str]) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        if path.name == "examples.parquet":
            return any(row["reviewer_id"] in ids for row in read_parquet(path))
        with path.open("rb") as file:
            end = b""
            while piece := file.read(_PIECE):
                if any(word in end + piece for word in words):
                    return True
                end = piece[-200:]
    except (OSError, BadInput):
        return False
    return False
