"""Which of two texts would this reviewer prefer, on one aspect? Known by pairs that they compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from perse.identity import pair_key
from perse.records.base import Choice, Parts, Record
from perse.scale import CHOICES, Scale
from perse.strict import Name


class Pair(Record):
    """Two texts to choose between."""

    text_a: str
    text_b: str
    premise: str | None = None


class ProfileComparison(Record):
    """A past comparison as the judge is shown it."""

    text_a: str
    text_b: str
    premise: str | None = None
    preference: dict[Name, Choice]


class ChoiceReference(Record):
    """The reviewer's true answer to a pairwise query."""

    preference: Choice


class PairwiseExample(Record):
    """Which of two texts would this reviewer prefer, on one aspect?"""

    kind: ClassVar[str] = "pairwise"
    plural: ClassVar[str] = "pairs"
    scale: ClassVar[Scale | None] = CHOICES
    verdict: ClassVar[tuple[str, ...]] = ("preference",)
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = True
    written: ClassVar[None] = None

    id: Name
    reviewer_id: Name
    aspect: Name
    profile: tuple[ProfileComparison, ...]
    query: Pair
    reference: ChoiceReference | None = None

    @classmethod
    def recognises(cls, fields: Mapping[str, Any]) -> bool:
        return "aspect" in fields or isinstance(fields.get("query"), dict)

    @property
    def in_one_file(self) -> str:
        return self.kind

    @property
    def truth(self) -> Choice | None:
        return None if self.reference is None else self.reference.preference

    @property
    def work(self) -> str:
        return pair_key(self.query.text_a, self.query.text_b)

    @property
    def shown_query(self) -> Parts:
        return _shown(self.query)

    @property
    def shown_profile(self) -> tuple[tuple[str, Parts], ...]:
        return tuple(
            (", ".join(f"{aspect}: {answer}" for aspect, answer in past.preference.items()), _shown(past))
            for past in self.profile
        )

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        return any(
            near(shown, asked)
            for past in self.profile
            for shown in (past.text_a, past.text_b)
            for asked in (self.query.text_a, self.query.text_b)
        )

    def as_entry(self) -> ProfileComparison:
        """The example, whose answer is known, as an entry of a profile."""
        assert self.reference is not None, self.id
        return ProfileComparison(**dict(self.query), preference={self.aspect: self.reference.preference})


def _shown(pair: Pair | ProfileComparison) -> Parts:
    return ("Premise", pair.premise), ("Text A", pair.text_a), ("Text B", pair.text_b)
