"""Rewrites perse's own files in a run folder, such as a table or a card, without losing a person's edits.

Which files are perse's is decided in `perse.files.belongings`; how several are replaced together, all or none, is `perse.files.replacing`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perse.errors import BadInput, RunMismatch
from perse.files.belongings import LIST as LIST
from perse.files.belongings import digest_of, is_figure, keep_changed, leads_within, list_text, resolved, unchanged, written_in
from perse.files.belongings import refuse_inputs as refuse_inputs
from perse.files.disk import no_folder, save_failed, write_bytes, write_failed, write_whole, writing
from perse.files.locking import locked
from perse.files.replacing import finish, update_files
from perse.secrets import without_keys


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
    """`write_own` for bytes; the list is in the folder `top`, by default in that of the file."""
    digest, top = hashlib.sha256(content).hexdigest(), top or path.parent
    known, name = written_in(top), path.relative_to(top).as_posix()
    listed = known.get(name, [])
    if path.is_dir():
        raise BadInput(f"{path} is a folder, where a file is to be written; move it away")
    with writing(path):
        keep_changed(path, [*(listed if ours == "" else [ours]), digest])
    # Before it is written, so that a kill between the two leaves no file of ours that is taken for somebody else's.
    if listed[-1:] != [digest]:
        _write_list(top, {**known, name: [*listed[-1:], digest]})
    write_bytes(path, content)


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files that belong together, such as a report's: if one cannot be written, all old ones stay.

    Figures that perse wrote there before and that have no successor are put aside, unless they were edited; other files stay as they are,
    whatever the list in the folder says, for a list may be a stranger's.

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
        raise BadInput(
            f"cannot make the report folder {folder}: {no_folder(folder, error)}; choose another with --out"
        ) from None
    if taken := next((name for name in contents if (folder / name).is_dir()), None):
        raise BadInput(f"{folder / taken} is a folder, where a file is to be written; move it away")
    with writing(folder), locked(resolved(folder)):
        finish(resolved(folder))
        known = written_in(folder)
        ours = {name: known.get(name, []) for name in contents}
        stale = [
            name
            for name in known.keys() - contents.keys()
            if is_figure(name) and leads_within(folder, name) and unchanged(folder / name, known[name])
        ]
        listed = list_text({name: [hashlib.sha256(content).hexdigest()] for name, content in contents.items()}).encode()
        update_files(folder, {**contents, LIST: listed}, ours=ours, remove=stale)


def replace_folder(fresh: Path, place: Path, *, listed_in: Path | None = None) -> None:
    """Move a new folder into place. Files of the old one that have a successor are replaced; others stay.

    A kill may leave nothing at its place for a moment, but then the old one whole beside it: `put_back` is for whoever goes on.

    Args:
        listed_in: a folder above, whose list says what perse wrote: files that are not so are kept under another name, and the new ones
            are listed. Without it the caller knows that whatever has a successor is perse's.
    Raises:
        SaveFailed: it cannot be put there.
    """
    with writing(place):
        if place.is_symlink() or place.is_file():
            keep_changed(place, ())
        put_back(place)
        if listed_in is not None:
            _keep_strangers(fresh, place, listed_in)
        if place.is_dir():
            place.rename(_aside(place))
        fresh.rename(place)
        put_back(place)


def _keep_strangers(fresh: Path, place: Path, top: Path) -> None:
    """Give another name to what stands in `place` where `fresh` has something, and is not as the list in `top` says."""
    known = written_in(top)
    new: dict[str, list[str]] = {}
    for path in sorted(fresh.rglob("*")):  # a folder before what is in it, so that nothing is reached through a link
        goal = place / path.relative_to(fresh)
        if path.is_dir():
            if goal.is_symlink() or not goal.is_dir():
                keep_changed(goal, ())
            continue
        name, digest = goal.relative_to(top).as_posix(), digest_of(path)
        listed = known.get(name, [])
        keep_changed(goal, [*listed, digest])
        new[name] = [*(one for one in listed[-1:] if one != digest), digest]
    _write_list(top, known | new)


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
    return place.with_name(f".{place.name}.perse-old")


def remove_own(folder: Path, names: Iterable[str]) -> None:
    """Remove these files of a folder, and the folder if nothing else is in it.

    Args:
        names: by path in the folder; one that leads out of it is left alone.
    """
    for name in names:
        path = folder / name
        if leads_within(folder, name) and path.is_file():
            path.unlink()
    for place in sorted((path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()), reverse=True):
        _remove_empty(place)
    _remove_empty(folder)


def _merge(old: Path, place: Path) -> None:
    """Move the files that `place` lacks, and remove the rest."""
    for path in sorted(path for path in old.rglob("*") if path.is_symlink() or not path.is_dir()):
        goal = place / path.relative_to(old)
        if os.path.lexists(goal):
            path.unlink()
        else:
            goal.parent.mkdir(parents=True, exist_ok=True)
            path.rename(goal)
    shutil.rmtree(old)  # of empty folders


def _write_list(folder: Path, files: Mapping[str, list[str]]) -> None:
    write_whole(folder / LIST, list_text(files))


def refuse_stage(stage: Path) -> None:
    """Check that a folder of perse's to write in can be made at `stage`: through a link, files elsewhere would be replaced.

    Raises:
        BadInput: it is a link, or no folder.
    """
    if stage.is_symlink() or (stage.exists() and not stage.is_dir()):
        what = "a link" if stage.is_symlink() else "no folder"
        raise BadInput(f"{stage} is {what}, where perse would write and remove files; remove it")


def fresh_folder(stage: Path) -> None:
    """Make an empty folder of perse's to write in, for a process that is the only one there; what a kill left in it goes.

    Raises:
        BadInput: it is a link, or no folder.
        SaveFailed: it cannot be made.
    """
    refuse_stage(stage)
    with writing(stage):
        if stage.is_dir():
            shutil.rmtree(stage)
        stage.mkdir(parents=True)


@contextmanager
def one_writer(stage: Path, target: Path) -> Iterator[None]:
    """A folder of perse's to write in on the way to `target`, that only this process has; what a kill left in it goes.

    Raises:
        BadInput: it is a link or no folder, or cannot be made.
        RunMismatch: another process has it.
        SaveFailed: the disk is full, or read-only.
    """
    try:
        refuse_stage(stage)
        stage.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if write_failed(error):
            raise save_failed(target, error) from None
        raise BadInput(f"cannot make the folder {target}: {error.strerror}; choose another") from None
    held = os.open(stage, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunMismatch(f"{target} is being written by another process; wait for it, or choose another place") from None
        for left in stage.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield
    finally:
        os.close(held)


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
