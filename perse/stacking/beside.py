"""Finds the stacking of a judge that is being loaded, and refuses that of another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from perse.errors import BadInput
from perse.stacking.file import STACKING, StackedJudge, Stacking, home, read_stacking


class Named(Protocol):
    """Who judges, as an `engines.kind.Identity` without paths."""

    @property
    def model(self) -> str: ...
    @property
    def adapter(self) -> str | None: ...
    @property
    def digest(self) -> str: ...


def stacking_of(who: Named, folders: Sequence[Path], given: Path | bool) -> Stacking | None:
    """The stacking of a judge.

    Args:
        folders: of its model and, if it has one, its adapter.
        given: the file; True: the one beside the last of the folders, where there is one; False: none.
    Raises:
        BadInput: it is of another judge or scale, or none at all.
    """
    if given is False:
        return None
    place = given if isinstance(given, Path) else _beside(folders)
    if place is None:
        return None
    stacking = read_stacking(place)
    stacking.refuse_others(place, judge=StackedJudge(model=who.model, adapter=who.adapter, sha256=who.digest))
    return stacking


def stacking_served(digest: str, model: Path, adapter: Path | None, given: Path | None = None) -> Stacking | None:
    """The stacking of a model or adapter that a server serves under whatever name: the one given, or the one beside it.

    Raises:
        BadInput: as `stacking_of`.
    """
    place = given or _beside([folder for folder in (model, adapter) if folder is not None])
    if place is None:
        return None
    stacking = read_stacking(place)
    stacking.refuse_others(
        place, judge=StackedJudge(model=model.name, adapter=None if adapter is None else adapter.name, sha256=digest)
    )
    return stacking


def stacking_beside(folders: Sequence[Path]) -> Stacking | None:
    """The stacking that lies beside the last of a judge's folders, whosever it is; None where there is none that can be read."""
    try:
        return read_stacking(place) if (place := _beside(folders)) else None
    except BadInput:
        return None


def _beside(folders: Sequence[Path]) -> Path | None:
    if not folders:
        return None
    place = home(folders[-1]) / STACKING
    return place if place.is_file() else None
