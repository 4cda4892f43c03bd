"""How the examples of a data set are shown: the same queries, with the profile cut, reordered or stripped.

A folder keeps each profile once, in the order in which it was chosen. A view makes what a study varies out of it: the first k
of it (nested, so a curve over k compares the same queries), another order (PerSE, figure 4), no review texts (table 5), or of
a pair's aspects only the one that is asked. Nothing is re-drawn, so two views differ in their settings only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from random import Random
from typing import Literal, TypeVar

from perse.errors import BadInput
from perse.identity import draw
from perse.records import Comparison, PairwiseExample, Review
from perse.records.dates import oldest_first

Record = TypeVar("Record", Review, Comparison)

ProfileAspects = Literal["all", "asked"]


@dataclass(frozen=True, kw_only=True)
class View:
    """One way to show the profiles of a data set. The default shows them as the folder was built to be shown."""

    k: int | None = None
    """How many entries, the most wanted first chosen; None for the folder's own k."""
    order_seed: int | None = None
    """Shuffle each profile by this seed; None puts it oldest first where all its times are ISO dates, else as drawn."""
    order: int = 0
    """With `order_seed`: which of the orders that it draws, none of a profile twice before it has been in all that it has."""
    review_text: bool = True
    """Show what the reviewer wrote; without it a profile entry is a text and its score."""
    profile_aspects: ProfileAspects = "all"
    """Pairs: the preferences that a profile entry shows. `all` lets the questions on one query share their prompt up to the
    asked aspect; `asked` is the paper's way: only the aspect that is asked, where the entry has it."""

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 0:
            raise BadInput(f"k is {self.k}, expected 0 or more")
        if self.profile_aspects not in ("all", "asked"):
            raise BadInput(f"profile_aspects is '{self.profile_aspects}', expected all or asked")

    def shown(self, chosen: Sequence[Record], *, k: int, example_id: str) -> list[Record]:
        """The profile as it is shown, of the entries `chosen`, most wanted first; `k` is the folder's own."""
        kept = list(chosen[: k if self.k is None else self.k])
        if self.order_seed is None:
            return oldest_first(kept)
        return _shuffled(kept, self.order, draw(self.order_seed, example_id, "order"))


def asked_alone(example: PairwiseExample) -> PairwiseExample:
    """The pair as `profile_aspects="asked"` shows it: of each entry the answer on the asked aspect, and no entry that has none."""
    aspect = example.aspect
    kept = (
        past.model_copy(update={"preference": {aspect: past.preference[aspect]}})
        for past in example.profile
        if aspect in past.preference
    )
    return example.model_copy(update={"profile": tuple(kept)})


def _shuffled(kept: Sequence[Record], number: int, generator: Random) -> list[Record]:
    """The `number`-th of the different orders that `generator` comes to; after the last one they begin again."""
    found: list[list[int]] = []
    while len(found) <= number % factorial(len(kept)):
        places = list(range(len(kept)))
        generator.shuffle(places)
        if places not in found:
            found.append(places)
    return [kept[place] for place in found[-1]]
