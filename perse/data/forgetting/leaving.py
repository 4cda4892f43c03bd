"""A person leaves: their records are removed, then places that may still hold them are searched. The order matters.

Their names and files with hard links can only be found while the person is still in the files, remains only after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.data.forgetting.forget import Forgotten, forget, known_as
from perse.data.forgetting.remaining import Remaining, other_names, remaining


@dataclass(frozen=True)
class Departure:
    """What was removed, and where the person may remain."""

    ids: tuple[str, ...]
    """The names and pseudonyms that were searched."""
    forgotten: tuple[Forgotten, ...]
    """What was removed from each place, in order."""
    linked: tuple[Path, ...]
    """Files with a second name (a hard link), which keeps what was in them."""
    left: Remaining
    """What remains in and next to the places, and in `look_in`."""

    @property
    def found(self) -> bool:
        """Whether anything was removed."""
        return any(gone.records or gone.examples for gone in self.forgotten)


def leave(person: str, places: Sequence[Path], *, salt: str | None = None, look_in: Sequence[Path] = ()) -> Departure:
    """Remove a person from `places`, then search there, next to them and in `look_in`, which is not changed.

    Raises:
        BadInput: a place that holds no records, or is refused; then none is changed.
    """
    ids = known_as(person, places, salt=salt)
    linked = other_names(places)
    forgotten = forget(person, places, salt=salt)
    beside = [folder for place in places for folder in (place, place.resolve().parent)]
    return Departure(tuple(sorted(ids)), tuple(forgotten), tuple(linked), remaining(ids, [*beside, *look_in]))
