"""Files in a run folder that perse writes anew, such as a table or a card: nothing of a person's is lost under their names.

A list in the folder (`LIST`) says what perse wrote there, by digest. What is as perse wrote it is replaced; whatever else lies under the
name, a person's own file or one that was edited, gets another name first (`table.kept-1.md`). A refusal would come after hours of work.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perse.belongings import refuse_inputs as refuse_inputs
from perse.disk import save_failed, write_bytes, write_failed, write_whole, writing
from perse.errors import BadInput, RunMismatch
from perse.secrets import without_keys

LIST = ".perse-files.json"
STAGE = ".perse-new"
"""Where files that belong together are written, before the first takes its place."""

_log = logging.getLogger(__name__)


def write_own(path: Path, text: str, *, ours: str | None = "") -> None:
    """`write_whole`, after what is not perse's was given another name.

    Args:
        ours: sha256 of the one file that may be replaced, None for no file; by default what the folder's list says.
    Raises:
        BadInput: a folder is in the way.
        SaveFailed: it cannot be written; what was there before is there.
    """
    write_own_bytes(path, without_keys(text).encode(), ours=ours)


def write_own_bytes(path: Path, content: bytes, *, top: Path | None = None, ours: str | None = "") -> None:
    """`write_own` for what is not text; the list is in the folder `top`, by default in that of the file."""
    digest, top = hashlib.sha256(content).hexdigest(), top or path.parent
    known, name = _listed(top), path.relative_to(top).as_posix()
    listed = known.get(name, [])
    if path.is_dir():
        raise BadInput(f"{path} is a folder, where a file is to be written; move it away")
    if os.path.lexists(path) and (path.is_symlink() or _digest(path) not in (*(listed if ours == "" else [ours]), digest)):
        _keep(path)
    # Before it is written, so that a kill between the two leaves no file of ours that is taken for somebody else's.
    if listed[-1:] != [digest]:
        _write_list(top, {**known, name: [*listed[-1:], digest]})
    write_bytes(path, content)


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files that belong together, such as a report's: what cannot all be written leaves the old ones as they are.

    Files that perse wrote there before and that have no successor go, unless they were edited.

    Args:
        contents: by path in the folder, which is made if absent.
    Raises:
        BadInput: the folder cannot be made, or one is in the way of a file.
        RunMismatch: another process writes there.
        SaveFailed: they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if write_failed(error):
            raise save_failed(folder, error) from None
        raise BadInput(f"cannot make the report folder {folder}: {error.strerror}; choose another with --out") from None
    if taken := next((name for name in contents if (folder / name).is_dir()), None):
        raise BadInput(f"{folder / taken} is a folder, where a file is to be written; move it away")
    stage = folder / STAGE
    with writing(folder), one_writer(stage, folder):
        try:
            for name, content in contents.items():
                (stage / name).parent.mkdir(parents=True, exist_ok=True)
                write_bytes(stage / name, content)
            known, digests = _listed(folder), {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
            stale = {name: ours for name, ours in known.items() if name not in contents}
            both = {name: list(dict.fromkeys([*known.get(name, [])[-1:], digest])) for name, digest in digests.items()}
            _write_list(folder, {**stale, **both})
            for name, ours in both.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                if os.path.lexists(folder / name) and ((folder / name).is_symlink() or _digest(folder / name) not in ours):
                    _keep(folder / name)
                (stage / name).replace(folder / name)
            for name, ours in stale.items():
                if _within(folder, name) and (folder / name).is_file() and _digest(folder / name) in ours:
                    (folder / name).unlink()
            _write_list(folder, {name: [digest] for name, digest in digests.items()})
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def replace_folder(fresh: Path, place: Path) -> None:
    """Put a folder that was just made in its place. Of the one there goes what has a successor; whatever else is in it stays.

    A kill may leave nothing at its place for a moment, but then the old one whole beside it: `put_back` is for whoever goes on.

    Raises:
        SaveFailed: it cannot be put there.
    """
    with writing(place):
        if place.is_symlink() or place.is_file():
            _keep(place)
        put_back(place)
        if place.is_dir():
            place.rename(_aside(place))
        fresh.rename(place)
        put_back(place)


def put_back(place: Path) -> None:
    """Undo or finish what a kill interrupted in `replace_folder`. The caller is the only one who writes there."""
    old = _aside(place)
    if old.is_symlink() or not old.is_dir():
        return
    if place.is_dir():
        _merge(old, place)
    elif not os.path.lexists(place):
        old.rename(place)


def _aside(place: Path) -> Path:
    return place.with_name(f".{place.name}.old")


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


def _write_list(folder: Path, files: Mapping[str, list[str]]) -> None:
    write_whole(folder / LIST, json.dumps(files, indent=1, sort_keys=True) + "\n")


@contextmanager
def one_writer(stage: Path, target: Path) -> Iterator[None]:
    """A folder of perse's to write in on the way to `target`, that only this process has; what a kill left in it goes.

    Raises:
        BadInput: it is a link.
        RunMismatch: another process has it.
    """
    if stage.is_symlink():
        raise BadInput(f"{stage} is a link, where perse would write and remove files; remove it")
    stage.mkdir(parents=True, exist_ok=True)
    held = os.open(stage, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunMismatch(f"{target} is being written by another process; wait for it, or choose another folder") from None
        for left in stage.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield
    finally:
        os.close(held)


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
