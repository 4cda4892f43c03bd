"""How much of a profile fits: every entry is counted once, and to drop the oldest is then a subtraction.

Fewer entries are renumbered ("[Plot 112]" becomes "[Plot 9]"), and a line about all of them says something else, so a sum can be
off by a few tokens. What a sum proposes is therefore rendered and counted, and so is the same with one entry more. This gives what
re-rendering after each dropped entry gives, which takes minutes for thousands of reviews (DESIGN.md, promises 2 and 10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


class Shown(Protocol):
    """Prompts with so many of a profile's entries."""

    @property
    def to_drop(self) -> int:
        """How many more of the oldest entries have to go, as far as can be told from here: 0 where all fits."""


Prompts = TypeVar("Prompts", bound=Shown)


@dataclass(frozen=True)
class Size:
    """A prompt's use of something limited: `fixed` without the profile, and each entry, oldest first."""

    fixed: int
    entries: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.fixed + sum(self.entries)

    def to_drop(self, limit: int, number: Callable[[int], int] = lambda n: 0) -> int:
        """How many of the oldest entries have to go until `limit` is kept; 1 if dropping does not help.

        Args:
            number: how much of an entry's size is its number, of entry n from 1.
        """
        if self.total <= limit:
            return 0
        total, k = self.fixed, len(self.entries)
        for kept, entry in enumerate(reversed(self.entries)):
            total += entry - number(k - kept) + number(kept + 1)
            if total > limit:
                return k - kept
        return 1


def longest_fitting(count: int, render: Callable[[int], Prompts]) -> Prompts:
    """The prompts with as many of `count` entries as fit, the newest; without entries if none fits.

    Args:
        render: the prompts without so many of the oldest entries.
    """
    known: dict[int, Prompts] = {}

    def without(dropped: int) -> Prompts:
        if dropped not in known:
            known[dropped] = render(dropped)
        return known[dropped]

    dropped = 0
    while dropped < count and (more := without(dropped).to_drop):
        dropped = min(count, dropped + more)
    while dropped and not without(dropped - 1).to_drop:
        dropped -= 1
    return without(dropped)


def words(parts: Sequence[str], entries: Sequence[str]) -> Size:
    """The words of a prompt: of all but its profile, and of each entry."""
    return Size(sum(len(part.split()) for part in parts), tuple(len(entry.split()) for entry in entries))
