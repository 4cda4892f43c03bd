"""How does a text stand to reviews? Asked of summaries, and of one review beside the others (Rehearsal, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from perse.identity import text_key
from perse.records.base import Parts, Record
from perse.scale import Scale
from perse.strict import Name


class SummaryReference(Record):
    """What people said of the text, on the scale of the question that is asked; an average may lie between its labels."""

    score: float


class SummaryExample(Record):
    """How does `summary` stand to `reviews`?

    PerSE's limit of words is not for it: Rehearsal shows up to 27,000 characters of a history, and what goes unseen decides.
    """

    kind: ClassVar[str] = "summary"
    plural: ClassVar[str] = "summaries of reviews"
    scale: ClassVar[Scale | None] = None
    verdict: ClassVar[tuple[str, ...]] = ()
    limited: ClassVar[bool] = False
    shortened: ClassVar[bool] = True
    aspect: ClassVar[None] = None
    written: ClassVar[None] = None

    id: Name
    reviewer_id: Name
    """Whose reviews these are: a reviewer, or a product."""
    reviews: tuple[str, ...]
    """Oldest first: the first ones leave a prompt that is too long."""
    summary: str
    reference: SummaryReference | None = None

    @classmethod
    def recognises(cls, fields: Mapping[str, Any]) -> bool:
        return "summary" in fields

    @property
    def profile(self) -> tuple[str, ...]:
        """The reviews, as what the renderer may shorten."""
        return self.reviews

    @property
    def query(self) -> str:
        """The text that is judged."""
        return self.summary

    @property
    def in_one_file(self) -> str:
        return self.kind

    @property
    def truth(self) -> float | None:
        return None if self.reference is None else self.reference.score

    @property
    def work(self) -> str:
        return text_key(self.summary)

    @property
    def shown_query(self) -> Parts:
        return (("Summary", self.summary),)

    @property
    def shown_profile(self) -> tuple[tuple[str, Parts], ...]:
        return tuple(("", (("Review", review),)) for review in self.reviews)

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """A summary may quote a review, and nothing in the reviews says how well it does."""
        return False
