"""A person leaves: their records are removed, then places that may still hold them are searched. The order matters.

Their names and files with hard links can only be found while the person is still in the files, remains only after. The search comes after
all removals, those from stores of readers too: strangers' files lie there, and nothing that they hold may keep a removal from being done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perse.data.forgetting.forget import Forgotten, forget, known_as
from perse.data.forgetting.remaining import Remaining, other_names, remaining
from perse.errors import BadInput
from perse.files.belongings import MANIFEST, manifest_of, resolved
from perse.files.replacing import COMMIT


@dataclass(frozen=True)
class Departure:
    """What was removed, and where the person may remain."""

    ids: tuple[str, ...]
    """The names and pseudonyms that were searched."""
    forgotten: tuple[Forgotten, ...]
    """What was removed from each place, in order."""
    linked: tuple[Path, ...]
    """Files with a second name (a hard link), which keeps what was in them."""
    left: Remaining = field(default_factory=lambda: Remaining((), 0, all=True))
    """What `looked_around` found: what remains in and next to the places, and in `look_in`."""

    finished: tuple[Path, ...] = ()
    """Places in which a removal had been decided when it was killed, and was finished now. Whose it was is not known: it is in no file of
    the new folder."""

    @property
    def found(self) -> bool:
        """Whether anything was removed."""
        return bool(self.finished) or any(gone.records or gone.examples for gone in self.forgotten)


def nobody(person: str, *, salt: str | None = None) -> Departure:
    """Where no place of records was named: by name, and by the pseudonym that a given salt makes.

    Raises:
        BadInput: no name.
    """
    if not person.strip():
        raise BadInput("no person is named; give a pseudonym, or the name as the raw files have it")
    ids = {person} if salt is None else known_as(person, (), salt=salt)
    return Departure(tuple(sorted(ids)), (), ())


def leave(person: str, places: Sequence[Path], *, salt: str | None = None) -> Departure:
    """Remove a person from `places`; what remains is for `looked_around` to find.

    Raises:
        BadInput: a place that holds no records, or is refused; then none is changed.
    """
    finished = [place for place in places if _interrupted(place)]  # by whatever reads the place first
    ids = known_as(person, places, salt=salt)
    linked = other_names(places)
    forgotten = forget(person, places, salt=salt)
    return Departure(tuple(sorted(ids)), tuple(forgotten), tuple(linked), finished=tuple(finished))


def looked_around(gone: Departure, look_in: Sequence[Path] = ()) -> Departure:
    """The departure with what remains in its places, next to them and in `look_in`; nothing is changed there."""
    beside = [folder for one in gone.forgotten for folder in (one.path, one.path.resolve().parent)]
    return replace(gone, left=remaining(gone.ids, [*beside, *look_in]))


def _interrupted(place: Path) -> bool:
    """Whether a removal from this folder was decided and then killed; a build that replaced it counts nobody as forgotten."""
    commit = resolved(place) / COMMIT
    if commit.is_symlink() or not commit.is_dir():
        return False
    if not (commit / MANIFEST).exists():  # the last file to be put into its place, or one that did not change
        return _forgotten(place) > 0
    return _forgotten(commit) > _forgotten(place)


def _forgotten(folder: Path) -> int:
    number = (manifest_of(folder) or {}).get("forgotten", 0)
    return number if isinstance(number, int) else 0
