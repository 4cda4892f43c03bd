"""A person leaves: what is theirs is removed, and what may still hold them is looked for. The order counts.

Who they are, and which files have a second name, can only be told while the person is still in the files; what is left only after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.data.forgetting.forget import Forgotten, forget, known_as
from perse.data.forgetting.remaining import Remaining, other_names, remaining


@dataclass(frozen=True)
class Departure:
    """What went, and where the person may still be."""

    ids: tuple[str, ...]
    """The names and pseudonyms that were looked for."""
    forgotten: tuple[Forgotten, ...]
    """What went from each place, in their order."""
    linked: tuple[Path, ...]
    """Files with a second name (a hard link), which keeps what was in them."""
    left: Remaining
    """In and beside the places, and in the folders that were named to be looked into."""

    @property
    def found(self) -> bool:
        """Whether anything was removed."""
        return any(gone.records or gone.examples for gone in self.forgotten)


def leave(person: str, places: Sequence[Path], *, salt: str | None = None, look_in: Sequence[Path] = ()) -> Departure:
    """Remove a person from `places`, then look for them there, beside and in `look_in`, where nothing is changed.

    Raises:
        BadInput: a place that holds no records, or is refused; then none is changed.
    """
    ids = known_as(person, places, salt=salt)
    linked = other_names(places)
    forgotten = forget(person, places, salt=salt)
    beside = [folder for place in places for folder in (place, place.resolve().parent)]
    return Departure(tuple(sorted(ids)), tuple(forgotten), tuple(linked), remaining(ids, [*beside, *look_in]))
