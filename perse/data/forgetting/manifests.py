"""The manifest of a folder in which a person is to be forgotten, which may be made by hand or damaged: what is used of it, checked.

It is looked at before the first place is changed. What a maker left out is no mistake: a person must be able to leave such a folder, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perse.data.dataset.folder import DATA_SET
from perse.data.release import KIND
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, read_manifest
from perse.formats.json_text import shortened
from perse.strict import is_half

_CORRECT = "correct it there, or build the folder again"


def check_manifest(folder: Path) -> None:
    """Look at a folder's manifest, if it has one.

    Raises:
        BadInput: it cannot be read, or something in it that forgetting uses is of another kind; names file and field.
    """
    if not (folder / MANIFEST).is_file():
        return
    manifest = read_manifest(folder)
    where = f"{folder / MANIFEST}: field"
    for field in _halves(manifest):
        raise BadInput(f"{where} '{field}' has half a surrogate pair, which is no text; {_CORRECT}")
    forgotten = manifest.get("forgotten", 0)
    if type(forgotten) is not int or not 0 <= forgotten < 2**53:
        raise BadInput(f"{where} 'forgotten' is {shortened(forgotten)}, expected how many people were forgotten; {_CORRECT}")
    if not isinstance(manifest.get("options") or {}, dict):
        raise BadInput(f"{where} 'options' is {shortened(manifest['options'])}, expected a JSON object; {_CORRECT}")
    dropped = manifest.get("dropped")
    shape = _DROPPED.get(str(manifest.get("kind")))
    if shape is not None and dropped is not None and not shape(dropped):
        raise BadInput(f"{where} 'dropped' is {shortened(dropped)}, expected counts by reason; {_CORRECT}")
    data_folder_of(manifest, folder)


def data_folder_of(manifest: Mapping[str, Any], folder: Path) -> Path | None:
    """The data set that a run in `folder` is of, if its manifest tells.

    Raises:
        BadInput: what it tells is no path; names file and field.
    """
    place = manifest.get("context", {}).get("data_folder")
    if place is not None and not isinstance(place, str):
        raise BadInput(
            f"{folder / MANIFEST}: field 'context.data_folder' is {shortened(place)}, expected the path of a folder; {_CORRECT}"
        )
    return Path(place) if place else None


def _are_counts(found: object) -> bool:
    return isinstance(found, dict) and all(type(one) is int for one in found.values())


def _are_counts_by_unit(found: object) -> bool:
    return isinstance(found, dict) and all(_are_counts(one) for one in found.values())


_DROPPED = {KIND: _are_counts, **dict.fromkeys(DATA_SET.kinds, _are_counts_by_unit)}


def _halves(value: object, name: str = "") -> Iterator[str]:
    """Where half a surrogate pair stands in a JSON value, which has no bytes in any file."""
    if isinstance(value, str) and is_half(value):
        yield name.encode("utf-8", "backslashreplace").decode()
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        whole = f"{name}.{key}".removeprefix(".")
        yield from _halves(key, whole) if isinstance(key, str) else ()
        yield from _halves(one, whole)
