"""Folders that are there whole or not at all, and after a kill are the old ones or the new ones, with every stranger in its place.

    nothing there    written beside its place as `.NAME.perse-new-XXXXXXXX`, then renamed
    a folder there   written inside it as `.perse-new`. Renaming that to `.perse-commit` decides: from then on the folder is the new one.
                     File by file takes its place, the manifest last; what a kill leaves undone, the next who opens the folder does
                     (`settle`)

Who writes holds the folder's lock (`perse.files.locking`). So whatever else lies there under these names was left by a kill, perhaps with
people's reviews in it, and is removed. Which files are replaced is decided in `perse.files.belongings`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from perse.errors import BadInput, PerseError
from perse.files.belongings import (
    CARD,
    EARLIER,
    GOES,
    MANIFEST,
    STAGING,
    Belongings,
    digest_of,
    entries,
    is_figure,
    keep_changed,
    leads_within,
    manifest_of,
    own_files,
    refuse_inputs,
    resolved,
    target_of,
    unchanged,
)
from perse.files.disk import save_failed, share_like, sweep_temporaries, write_failed
from perse.files.locking import locked
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes
from perse.secrets import without_keys

COMMIT = ".perse-commit"
PLAN = ".plan.json"
NAMES = ".names.json"
"""Written first into `.perse-new`: what else is to be written there that has no name of the folder's own."""

ITSELF = "manifest_sha256"
"""In a manifest, that of the manifest without it."""

NOTHING = Belongings(what="", kinds=(), names=())


@dataclass(frozen=True)
class Claim:
    """A folder that this process alone may write, until its `claimed` block ends."""

    out: Path
    """As the user wrote it."""
    target: Path
    """With links resolved."""
    belongings: Belongings
    overwrite: bool

    def fill(
        self,
        write: Callable[[Path], None],
        manifest: Mapping[str, Any],
        *,
        also: Mapping[str, bytes] = MappingProxyType({}),
        keep_edited: bool = True,
    ) -> None:
        """Has `write` fill a fresh folder, adds the manifest, and puts all in the place of what was there.

        Args:
            write: puts every file but the manifest into the folder that it is given.
            manifest: to which `files` is added, name -> sha256, by which the files are known as the folder's own.
            also: files of a folder that is there which are not its own, to be replaced with it.
            keep_edited: own files that are not as perse wrote them get another name; else only the card does, as when a person
                is forgotten, who would stay in the others.
        Raises:
            BadInput: it cannot be written, or somebody put another file under one of its names; what was there before is whole.
            SaveFailed: so where the disk is full.
        """
        stage = self.target / STAGING if self.target.is_dir() else _beside(self.target)
        try:
            _begin(stage, also)
            write(stage)
            files = {name: digest_of(stage / name) for name in _files(stage)}
            assert all(map(self.belongings.may_own, files)), files
            (stage / MANIFEST).write_text(manifest_text({**manifest, "files": files}), "utf-8")
            if self.target.is_dir():
                _put(stage, also)
                own = own_files(self.out, self.belongings, overwrite=self.overwrite) | also.keys()
                _commit(stage, self.target, own, ours=_as_listed(self.target, None if keep_edited else {CARD}))
            else:
                _to_disk(stage)
                stage.rename(self.target)
        except OSError as error:
            raise _unwritten(self.out, error) from None
        finally:
            _discard(stage, self.belongings)


@contextmanager
def claimed(out: Path, belongings: Belongings, *, overwrite: bool, inputs: Iterable[Path | None] = ()) -> Iterator[Claim]:
    """Holds `out` to be written, from before the first input is read; what a kill left there is finished or removed.

    Args:
        overwrite: it may be such a folder already, whose own files are then replaced.
        inputs: what the command reads.
    Raises:
        BadInput: it is a file, holds files and may not be replaced, or an input lies in it. Nothing was done then.
        RunMismatch: another process writes it.
    """
    target = target_of(out)
    if not (target / COMMIT).is_dir():
        own_files(out, belongings, overwrite=overwrite)  # before a lock file or a folder above it is made
    refuse_inputs(out, inputs)
    with locked(target):
        finish(target)
        own_files(out, belongings, overwrite=overwrite)
        sweep(target, belongings)
        yield Claim(out, target, belongings, overwrite)


def sweep(target: Path, belongings: Belongings) -> list[Path]:
    """Removes what killed builds of a folder left; the caller holds its lock. Gives what is left of it: folders in which lie files of
    somebody else's."""
    sweep_temporaries(target)
    for left in _leftovers(target):
        _discard(left, belongings)
    return _leftovers(target)


def settle(folder: Path) -> None:
    """Finish what a kill interrupted after it was decided, so that the folder is read whole. To be called before reading.

    Raises:
        BadInput: it cannot be finished.
        RunMismatch: another process is at it.
    """
    target = resolved(folder)
    if (target / COMMIT).is_dir():
        with locked(target):
            finish(target)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """`folder` is read in this block: settled before, and not replaced meanwhile.

    Raises:
        BadInput: as `settle`, or it was replaced while it was read.
    """
    settle(folder)
    before = _state(folder)
    yield
    if (folder / COMMIT).is_dir() or _state(folder) != before:
        raise BadInput(f"{folder}: was replaced by another process while it was read; give the command again")


def update_files(
    folder: Path,
    contents: Mapping[str, bytes],
    *,
    ours: Mapping[str, Sequence[str]] | None = None,
    remove: Collection[str] = (),
) -> None:
    """Replaces some files of a folder, all of them or none, also if killed. The caller holds its lock (`locked`).

    Args:
        ours: sha256 of what perse wrote under these names; what is another file gets another name. By default whatever is there is
            replaced, but for the card.
        remove: tables that go, and figures that are put aside.
    Raises:
        BadInput: one is a link, or they cannot be written; what was there before is whole.
        SaveFailed: so where the disk is full.
    """
    target = resolved(folder)
    finish(target)
    for name in contents:
        if (ours is None or name == MANIFEST) and (target / name).is_symlink():
            raise BadInput(f"{folder}/{name}: is a link, and is not written through; name the folder where the file itself is")
    stage = target / STAGING
    _discard(stage, NOTHING)
    try:
        _begin(stage, contents)
        _put(stage, contents)
        _commit(stage, target, frozenset(contents), remove=remove, ours=_as_listed(target, {CARD}) if ours is None else ours)
    except OSError as error:
        raise _unwritten(folder, error) from None
    finally:
        _discard(stage, NOTHING)


def written_there(folder: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """sha256 of what perse wrote under these names by the folder's manifest, of its card and of the manifest itself, for `update_files`: what is
    not so is kept under another name, also where the manifest does not know of it."""
    return {name: [] for name in names} | _as_listed(resolved(folder), None)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """A manifest as it is written, without keys, and with the digest of itself by which one that a person edited is known."""
    text = without_keys(_plain({name: value for name, value in manifest.items() if name != ITSELF}))
    return _plain({**json.loads(text), ITSELF: sha256(text.encode()).hexdigest()})


def _plain(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _edited(target: Path) -> bool:
    """Whether a folder's manifest is not as perse wrote it; older ones do not tell."""
    manifest = manifest_of(target) or {}
    return ITSELF in manifest and own_bytes(target / MANIFEST) != manifest_text(manifest).encode()


def _begin(stage: Path, names: Iterable[str]) -> None:
    stage.mkdir()
    if chosen := sorted(names):
        (stage / NAMES).write_text(json.dumps(chosen), "utf-8")


def _put(stage: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_bytes(content)


def _commit(
    stage: Path,
    target: Path,
    own: frozenset[str],
    *,
    remove: Collection[str] | None = None,
    ours: Mapping[str, Sequence[str]],
) -> None:
    """Puts the files of `stage` in the place of those in `own`. Those that have no successor go, or those in `remove`; what is in
    `ours` and has none of the digests there is kept."""
    new = _files(stage)
    for name in new:
        if (name not in own and os.path.lexists(target / name)) or not _may_take(target, name, ours):
            raise BadInput(f"{target}/{name}: stands in the way and is none of the files to replace; move it")
    gone = sorted(own - set(new) if remove is None else remove)
    there = {name: [digest_of(target / name)] for name in (*new, *gone) if name not in ours and (target / name).is_file()}
    plan = {"remove": gone, "ours": {**{name: list(ours[name]) for name in ours}, **there}}
    (stage / PLAN).write_text(json.dumps(plan), "utf-8")
    _to_disk(stage)
    stage.rename(target / COMMIT)
    finish(target)


def _as_listed(target: Path, names: Collection[str] | None) -> dict[str, list[str]]:
    """What a folder's manifest says of its files, or of those in `names`; of a card always something, also in older ones."""
    was = (manifest_of(target) or {}).get("files")
    listed = {str(name): [str(digest)] for name, digest in was.items()} if isinstance(was, dict) else {}
    edited: dict[str, list[str]] = {MANIFEST: []} if names is None and _edited(target) else {}
    return {CARD: [], **{name: digests for name, digests in listed.items() if names is None or name in names}, **edited}


def _may_take(target: Path, name: str, ours: Mapping[str, Any]) -> bool:
    """Whether a file may take the place of that name: in the folder, and in that of no link but one that is kept."""
    above = PurePosixPath(name).parent
    return leads_within(target, name) or (name in ours and (above == PurePosixPath() or leads_within(target, str(above))))


def finish(target: Path) -> None:
    """Carries out the decided replacement from where it stopped. The manifest comes last and completes the new folder.

    What lies in the place of a file and is not the one that the plan replaces, by its digest, is kept: the plan may have come with
    a folder of a stranger's.
    """
    commit = target / COMMIT
    if commit.is_symlink() or not commit.is_dir():
        return
    try:
        new = _files(commit)
        plan = parsed(own_bytes(commit / PLAN)) if new or (commit / PLAN).exists() else {"remove": [], "ours": {}}
        ours = plan["ours"]
        odd = [name for name in plan["remove"] if not leads_within(target, str(name))]
        odd += [name for name in new if not _may_take(target, name, ours)]
        if odd:
            raise ValueError(f"{odd[0]} leads elsewhere")
        for name in plan["remove"]:
            keep_changed(target / name, ours.get(name, ()))
            if (target / name).is_file():
                _take_away(target, name)
        for name in sorted(new, key=lambda one: (one == MANIFEST, one)):
            keep_changed(target / name, [*ours.get(name, ()), digest_of(commit / name)])
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            share_like(target / name, commit / name)
            (commit / name).replace(target / name)
        _sync(target)
        for name in (PLAN, NAMES):
            (commit / name).unlink(missing_ok=True)
        _remove_tree(commit)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if _disk_failed(error):
            raise save_failed(target, error) from None
        raise BadInput(
            f"{target}: its replacement was interrupted and cannot be finished ({getattr(error, 'strerror', None) or error}); the new "
            f"files are in {target / COMMIT}: put right what is in the way, and give the command again"
        ) from None


def _take_away(target: Path, name: str) -> None:
    """What has no successor: a table of data goes, a figure is put aside, and whatever else a stranger's plan names stays."""
    path = target / name
    if name in GOES:
        path.unlink()
        return
    if not is_figure(name) or not leads_within(target, str(PurePosixPath(name).with_name(EARLIER))):
        return
    goal, digest, number = path.parent / EARLIER / path.name, digest_of(path), 1
    while os.path.lexists(goal) and not unchanged(goal, [digest]):
        number += 1
        goal = goal.with_name(f"{path.stem}-{number}{path.suffix}")
    goal.parent.mkdir(exist_ok=True)
    path.rename(goal)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}{STAGING}-{secrets.token_hex(4)}")


def _leftovers(target: Path) -> list[Path]:
    """Leftovers of killed builds."""
    name = re.compile(rf"\.{re.escape(target.name + STAGING)}-[0-9a-f]{{8}}")
    beside = [one for one in target.parent.iterdir() if name.fullmatch(one.name)] if os.access(target.parent, os.R_OK) else []
    return [one for one in (*sorted(beside), target / STAGING) if one.is_dir() and not one.is_symlink()]


def _discard(stage: Path, belongings: Belongings) -> None:
    """Removes our files from a folder of ours, and the folder if nothing else is in it."""
    if stage.is_symlink() or not stage.is_dir():
        return
    try:
        named = {str(name) for name in parsed(own_bytes(stage / NAMES))}
    except (OSError, ValueError, TypeError):
        named = set()
    ours = [name for name in entries(stage) if name in (PLAN, NAMES) or name in named or belongings.may_own(name)]
    for name in sorted(ours, key=lambda one: one == NAMES):  # which tells the others
        if not (stage / name).is_dir() or (stage / name).is_symlink():
            (stage / name).unlink(missing_ok=True)
    with suppress(OSError):
        _remove_tree(stage)


def _remove_tree(folder: Path) -> None:
    """Removes a folder that holds nothing but empty folders."""
    for name in reversed(entries(folder)):  # the contents of a folder before the folder
        (folder / name).rmdir()
    folder.rmdir()


def _files(folder: Path) -> list[str]:
    """The plain files of a folder of ours by path, without the plan and the names."""
    return [name for name in entries(folder) if name not in (PLAN, NAMES) and not (folder / name).is_dir()]


def _state(folder: Path) -> tuple[int, int, int] | None:
    """Changes whenever the folder is replaced, since its manifest then is another file."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _unwritten(out: Path, error: OSError) -> PerseError:
    if _disk_failed(error):
        return save_failed(out, error)
    where = f": {os.fsdecode(error.filename)}" if error.filename else ""
    return BadInput(
        f"{out}: cannot be written ({error.strerror or error}{where}), and what was there before is as it was; move away what is in the "
        "way, or give another --out"
    )


def _disk_failed(error: Exception) -> bool:
    """Of an error that came while files were being put in their places."""
    return write_failed(error) or (isinstance(error, OSError) and error.errno == errno.EIO)


def _to_disk(stage: Path) -> None:
    for name in _files(stage):
        _sync(stage / name)
    _sync(stage)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir() or _disk_failed(error):  # some file systems cannot do it for folders
            raise
    finally:
        os.close(descriptor)
