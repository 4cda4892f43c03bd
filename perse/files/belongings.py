"""Decides which files belong to perse and may be replaced or removed.

A folder that perse writes says in its manifest which files are its own (`files`). Only these are ever replaced or removed; notes, raw
files, exports and runs that lie between them are strangers and stay. A run or report folder has a list of what perse wrote there, by digest
(`LIST`): what was edited since is no longer perse's, and gets another name before its place is taken (`table.kept-1.md`); a refusal would come
after hours of work. Links are not written through, and what a command reads is never what it writes. How a folder is replaced, whole or not at all, is
`perse.files.replacing`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from perse.errors import BadInput
from perse.files.exports import Fields, check_replaceable
from perse.files.locking import SUFFIX
from perse.formats.json_text import parsed
from perse.formats.plain_files import open_own, own_bytes

MANIFEST = "manifest.json"

CARD = "README.md"
"""The one own file that people are asked to write into: one that was changed is always kept under another name (`perse.files.replacing`)."""

LIST = ".perse-files.json"
"""Lists perse's files in folders whose manifest does not: name -> sha256 of the last version and perhaps the one before."""

WAITING = ("answers.sqlite", "key-facts.csv")
"""The files of a benchmark that is being built (`perse.kgds.building.build`), before its manifest: the second is filled in by people."""

GOES = frozenset(
    (
        *("reviews.parquet", "comparisons.parquet", "examples.parquet", "rewriting.jsonl", "skipped.jsonl"),
        *("evidence.parquet", "verbatim.jsonl", "examples.jsonl", "samples.jsonl", "README.md"),
    )
)
"""Names of files of data that are removed where a new folder has none of that name, as when a person has left. Nothing else is removed."""

EARLIER = "earlier"
"""Beside the figures of a report: those of one before, which it has no more. A list of what perse wrote may be a stranger's, so none is removed."""

STAGING = ".perse-new"
"""Where the new files of a folder that is there are written, before all is decided."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """A sort of folder that perse writes."""

    what: str
    """The word for one, as in "already holds a data set"."""
    kinds: Collection[str]
    """The kinds that its manifest may name; one may replace another."""
    names: Collection[str]
    """Patterns of all files that may be its own, by path in the folder: `reviews.parquet`, `figures/*.svg`."""

    def may_own(self, name: str) -> bool:
        """Whether a file of this name may be one of the folder's own."""
        return name == MANIFEST or any(_matches(name, pattern) for pattern in self.names)


def own_files(out: Path, belongings: Belongings, *, overwrite: bool) -> frozenset[str]:
    """The files of the folder `out` that may be replaced; none where nothing is there.

    Raises:
        BadInput: it is a file or holds files and may not be replaced: `overwrite` is not set, it is another kind of folder, or what has the
            name of an own file is not one.
    """
    target = target_of(out)
    if target.exists() and not target.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to or nothing; give another --out")
    if not target.is_dir() or all(entry.name in (STAGING, SUFFIX) for entry in target.iterdir()):
        return frozenset()
    manifest = manifest_of(target)
    if manifest is None or "schema" not in manifest or str(manifest.get("kind")) not in belongings.kinds:
        raise BadInput(f"{out}: holds files and is no {belongings.what}, so it is not overwritten; give another --out")
    if not overwrite:
        raise BadInput(f"{out}: already holds a {belongings.what}; give another --out, or --overwrite to replace it")
    listed = listed_files(manifest) or {MANIFEST}
    own = {name for name in entries(target) if belongings.may_own(name)}
    for name in sorted(own):
        place = target / name
        if place.is_symlink():
            raise BadInput(
                f"{out}/{name}: is a link to {place.readlink()}, and is not written through; put the file itself there, or give "
                "another --out"
            )
        if not place.is_file() or name not in listed:
            raise BadInput(
                f"{out}/{name}: is no file of the {belongings.what} and stands in its way; move it, or give another --out"
            )
    return frozenset(own)


def check_file(
    out: Path, *, alike: Iterable[Fields], overwrite: bool, inputs: Iterable[Path | None] = (), never: Collection[str] = ()
) -> None:
    """That a file may be written at `out`.

    Args:
        alike: what the records of such a file have: by these a file that is there is known as one.
        overwrite: such a file may be replaced, unless it belongs to a folder that perse wrote.
        inputs: what the command reads.
        never: names that in such a folder are its own, whether they are there or not.
    Raises:
        BadInput: it may not.
    """
    if out.is_symlink():
        raise BadInput(f"{out}: is a link to {out.readlink()}, and is not written through; name the file itself")
    if out.is_dir():
        raise BadInput(f"{out}: is a folder; give another --out, such as {out / 'valid.jsonl'}")
    if out.exists() and not out.is_file():
        raise BadInput(f"{out}: is no plain file; give another --out")
    above = next(one for one in out.absolute().parents if os.path.lexists(one))
    if not above.is_dir():
        raise BadInput(f"{out}: {above} is no folder; give another --out")
    refuse_inputs(out, inputs)
    target = target_of(out)
    for folder in target.parents:
        if _belongs(target, folder, never):
            raise BadInput(
                f"{out}: belongs to the folder {folder}, which perse wrote, and is not overwritten; give another --out"
            )
    if out.exists() and not overwrite:
        raise BadInput(f"{out}: already there; give another --out, or --overwrite to replace it")
    if out.exists():
        check_replaceable(out, alike)


def _belongs(target: Path, folder: Path, never: Collection[str]) -> bool:
    """Whether a place below `folder` is one of the folder's own, if perse wrote that."""
    name = target.relative_to(folder).as_posix()
    if (known := written_in(folder)) and name in (LIST, *known):
        return True
    manifest = manifest_of(folder)
    if manifest is None:  # a benchmark that waits for its annotators has none yet
        return name in WAITING and all((folder / one).is_file() for one in WAITING)
    if not ({"schema", "kind"} <= manifest.keys() or manifest.keys() & {"run", "perse"}):
        return False
    listed = listed_files(manifest)
    # A folder that does not list its files, such as a run, may own whatever lies in it.
    return name in {MANIFEST, CARD, *never} or (os.path.lexists(target) if listed is None else name in listed)


def refuse_inputs(out: Path, inputs: Iterable[Path | None]) -> None:
    """That nothing a command reads is what it writes, or lies in the folder that it writes; links are followed.

    Raises:
        BadInput: an input does.
    """
    target = resolved(out)
    for one in inputs:
        if one is None:
            continue
        place = resolved(one)
        if _same(place, target):
            raise BadInput(f"{one}: is an input and cannot be the output too; give another --out")
        if any(_same(above, target) for above in place.parents):
            raise BadInput(
                f"{one}: is an input and lies in {out}, which is to be written; move it elsewhere, or give another --out"
            )


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder, or None if it cannot be read."""
    try:
        manifest = parsed(own_bytes(folder / MANIFEST))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def kind_of(folder: Path) -> str | None:
    """The kind in the manifest of a folder of data; None without a manifest of ours."""
    manifest = manifest_of(folder)
    return str(manifest.get("kind")) if manifest is not None and "schema" in manifest else None


def listed_files(manifest: Mapping[str, Any]) -> frozenset[str] | None:
    """The files that a manifest names as the folder's own with their digests, itself included; None where it does not."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        return None
    return frozenset(name for name in files if isinstance(name, str)) | {MANIFEST}


def written_in(folder: Path) -> dict[str, list[str]]:
    """The contents of the folder's `LIST`."""
    try:
        found = parsed(own_bytes(folder / LIST))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): [str(one) for one in digests] for name, digests in found.items() if isinstance(digests, list)}


def list_text(files: Mapping[str, Iterable[str]]) -> str:
    """A `LIST` as it is written."""
    return json.dumps({name: list(digests) for name, digests in files.items()}, indent=1, sort_keys=True) + "\n"


def unchanged(path: Path, digests: Collection[str | None]) -> bool:
    """Whether a file is as perse wrote it: the file itself, and its sha256 one of these."""
    return path.is_file() and not path.is_symlink() and digest_of(path) in digests


def keep_changed(path: Path, digests: Collection[str | None]) -> None:
    """Renames the file at `path`, unless it is as perse wrote it."""
    if os.path.lexists(path) and not unchanged(path, digests):
        _log.warning("%s is not as perse wrote it, and is kept as %s", path, keep(path).name)


def keep(path: Path) -> Path:
    """Gives a file or a folder a name that nothing has, which is returned."""
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.stem}.kept-{number}{path.suffix}")):
        number += 1
    path.rename(kept)
    return kept


def digest_of(path: Path) -> str:
    """sha256 of a file."""
    with open_own(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_figure(name: str) -> bool:
    """Whether a path in a report's folder is one that a report gives a figure."""
    return name.startswith("figures/") and name.count("/") == 1 and name.endswith((".svg", ".png", ".csv"))


def leads_within(folder: Path, name: str) -> bool:
    """Whether a name is that of a place in `folder`, and neither it nor a folder above it there is a link."""
    pure = PurePosixPath(name)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts:
        return False
    return not any((folder / one).is_symlink() for one in (pure, *pure.parents[:-1]))


def entries(folder: Path) -> list[str]:
    """All that lies in a folder, by path in it: files, links, and folders; no link is followed."""
    found = []
    for place, folders, files in os.walk(folder):
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in (*folders, *files)]
    return sorted(found)


def resolved(path: Path) -> Path:
    """`path` with links resolved.

    Raises:
        BadInput: its links go in a circle.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise BadInput(f"{path}: its links cannot be followed; give another path") from None


_LONGEST = 200
"""Bytes of a name that is to be made. File systems take 255, of which what perse adds, as in `.NAME.perse-lock`, must have its part."""


def target_of(out: Path) -> Path:
    """Where `out` leads, for writing there.

    Raises:
        BadInput: its links go in a circle, it goes up from a folder that is not there, or its name is too long.
    """
    for at, part in enumerate(out.parts):
        if part == ".." and not Path(*out.parts[:at]).is_dir():
            raise BadInput(f"{out}: there is no folder {Path(*out.parts[:at])} to go up from; give the path without it")
    size = len(os.fsencode(out.name))
    if size > 255 or (size > _LONGEST and not out.exists()):
        raise BadInput(f"{out}: the name has {len(out.name)} characters; give one of at most {_LONGEST} bytes")
    return resolved(out)


def _matches(name: str, pattern: str) -> bool:
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are the same file or folder; also by hard links."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
