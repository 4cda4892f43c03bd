"""Folders that are there whole or not at all: written beside their place under another name, then renamed.

The one place that decides what may be overwritten: nothing but a folder of the same kind, and only when asked to.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from perse.errors import BadInput


def kind_of(folder: Path) -> str | None:
    """What the manifest of a folder says it is; None where there is no manifest of ours."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return str(manifest.get("kind")) if isinstance(manifest, dict) and "schema" in manifest else None


def check_place(out: Path, *, overwrite: bool, kinds: Collection[str], what: str) -> Path:
    """`out` with links resolved, if a folder may be written there.

    Args:
        kinds: of the folders that may be replaced; `what` is the word for them, as in "a data set".
    Raises:
        BadInput: it is a file, or holds files and may not be replaced: `overwrite` is not set or it is of another kind.
    """
    target = out.resolve()
    if target.exists() and not target.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to or nothing; give another --out")
    if target.is_dir() and any(target.iterdir()):
        if kind_of(target) not in kinds:
            raise BadInput(f"{out}: holds files and is no {what}, so it is not overwritten; give another --out")
        if not overwrite:
            raise BadInput(f"{out}: already holds a {what}; give another --out, or --overwrite to replace it")
    return target


def swap_in(target: Path, write: Callable[[Path], None]) -> None:
    """Has `write` fill a fresh folder, which then takes the place of `target`.

    Raises:
        BadInput: it cannot be written.
    """
    mark = secrets.token_hex(4)
    fresh, old = (target.with_name(f".{target.name}.{age}-{mark}") for age in ("new", "old"))
    try:
        fresh.mkdir(parents=True)
        write(fresh)
        # rename refuses a target with files in it, so the old folder steps aside and goes when the new one is in place.
        if target.is_dir():
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if old.is_dir():
                old.rename(target)
            raise
    except OSError as error:
        raise BadInput(f"{target}: cannot be written ({error.strerror or error}); give another --out") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if target.is_dir():
            shutil.rmtree(old, ignore_errors=True)
