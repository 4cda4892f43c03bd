"""Files in a run folder that perse writes anew, such as a table or a card: nothing of a person's is lost under their names.

A list in the folder (`LIST`) says what perse wrote there, by digest. What is as perse wrote it is replaced; whatever else lies under the
name, a person's own file or one that was edited, gets another name first (`table.kept-1.md`). A refusal would come after hours of work.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from perse.disk import write_bytes, write_whole, writing
from perse.errors import BadInput
from perse.secrets import without_keys

LIST = ".perse-files.json"

_log = logging.getLogger(__name__)


def write_own(path: Path, text: str) -> None:
    """`write_whole`, after what is not perse's was given another name.

    Raises:
        BadInput: a folder is in the way.
        SaveFailed: it cannot be written; what was there before is there.
    """
    write_own_bytes(path, without_keys(text).encode())


def write_own_bytes(path: Path, content: bytes) -> None:
    """`write_own` for what is not text."""
    digest = hashlib.sha256(content).hexdigest()
    known = _listed(path.parent)
    ours = known.get(path.name, [])
    if path.is_dir():
        raise BadInput(f"{path} is a folder, where a file is to be written; move it away")
    if os.path.lexists(path) and (path.is_symlink() or _digest(path) not in (*ours, digest)):
        _keep(path)
    # Before it is written, so that a kill between the two leaves no file of ours that is taken for somebody else's.
    if ours[-1:] != [digest]:
        write_whole(path.parent / LIST, json.dumps({**known, path.name: [*ours[-1:], digest]}, indent=1, sort_keys=True) + "\n")
    write_bytes(path, content)


def replace_folder(fresh: Path, place: Path) -> None:
    """Put a folder that was just made in its place. Of the one there goes what has a successor; whatever else is in it stays.

    Raises:
        SaveFailed: it cannot be put there.
    """
    old = place.with_name(f".{place.name}.old")
    with writing(place):
        if place.is_symlink() or place.is_file():
            _keep(place)
        if place.is_dir():
            if old.is_dir():
                _merge(old, place)
            place.rename(old)
        fresh.rename(place)
        if old.is_dir():  # also one that a kill has left
            _merge(old, place)


def remove_own(folder: Path, names: Iterable[str]) -> None:
    """Remove these files of a folder, and the folder if nothing else is in it.

    Args:
        names: by path in the folder; one that leads out of it is left alone.
    """
    for name in names:
        path = folder / name
        if _within(folder, name) and path.is_file():
            path.unlink()
    for place in sorted((path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()), reverse=True):
        _remove_empty(place)
    _remove_empty(folder)


def _merge(old: Path, place: Path) -> None:
    """Move what `place` has not got there, and remove the rest."""
    for path in sorted(path for path in old.rglob("*") if path.is_symlink() or not path.is_dir()):
        goal = place / path.relative_to(old)
        if os.path.lexists(goal):
            path.unlink()
        else:
            goal.parent.mkdir(parents=True, exist_ok=True)
            path.rename(goal)
    shutil.rmtree(old)  # of empty folders


def _keep(path: Path) -> None:
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.stem}.kept-{number}{path.suffix}")):
        number += 1
    with writing(kept):
        path.rename(kept)
    _log.warning("%s is not as perse wrote it, and is kept as %s", path, kept.name)


def _listed(folder: Path) -> dict[str, list[str]]:
    try:
        found = json.loads((folder / LIST).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): [str(one) for one in digests] for name, digests in found.items() if isinstance(digests, list)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _within(folder: Path, name: str) -> bool:
    path = Path(name)
    inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return inside and not any((folder / one).is_symlink() for one in (path, *path.parents[:-1]))


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
