"""Finds the stacking of a judge that is being loaded.

One that somebody names must be the judge's own, and is refused otherwise. One that is found beside it may be another's, since a run's merged
model and its adapter lie in one folder and are two judges: it is then as good as absent, and a note says so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from perse.errors import BadInput
from perse.stacking.file import STACKING, StackedJudge, Stacking, home, read_stacking

log = logging.getLogger(__name__)


class Named(Protocol):
    """Who judges, as an `engines.kind.Identity` without paths (`portable`)."""

    @property
    def model(self) -> str: ...
    @property
    def adapter(self) -> str | None: ...
    @property
    def digest(self) -> str: ...


def stacking_of(who: Named, folders: Sequence[Path], given: Path | bool) -> Stacking | None:
    """The stacking of a judge, loaded here or served.

    Args:
        folders: of its model and, if it has one, its adapter.
        given: the file; True: the one beside the last of the folders, if there is one and it is this judge's; False: none.
    Raises:
        BadInput: it is of another scale, damaged, or none at all; or the file that was given is another judge's.
    """
    place = _place(folders, given)
    if place is None:
        return None
    stacking, judge = read_stacking(place), StackedJudge(model=who.model, adapter=who.adapter, sha256=who.digest)
    if given is True and stacking.judge.differs(judge):
        log.warning(
            "%s is left out: it was fitted on the answers of another judge, %s, and this one is %s",
            place,
            stacking.judge,
            judge,
        )
        return None
    stacking.refuse_others(place, judge=judge)
    return stacking


def refuse_damaged(folders: Sequence[Path], given: Path | bool) -> None:
    """What `stacking_of` will read can be read: asked before a model is loaded, which may take minutes.

    Raises:
        BadInput: it is damaged, or none at all.
    """
    if place := _place(folders, given):
        read_stacking(place)


def stacking_beside(folders: Sequence[Path]) -> Stacking | None:
    """The stacking that lies beside the last of a judge's folders, whosever it is; None where there is none that can be read."""
    try:
        return read_stacking(place) if (place := _beside(folders)) else None
    except BadInput:
        return None


def _place(folders: Sequence[Path], given: Path | bool) -> Path | None:
    if given is False:
        return None
    return given if isinstance(given, Path) else _beside(folders)


def _beside(folders: Sequence[Path]) -> Path | None:
    if not folders:
        return None
    place = home(folders[-1]) / STACKING
    return place if place.is_file() else None
