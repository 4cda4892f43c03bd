"""Would this reviewer like a text, and what would they say? Known by texts that they reviewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from perse.records.base import Parts, Record
from perse.scale import SCORES, Scale
from perse.strict import Name


class ProfileReview(Record):
    """A past review as the judge is shown it; without `review`, a text and its score alone (PerSE, table 5)."""

    text: str
    review: str | None = None
    score: int = Field(ge=1, le=10)
    item_id: Name | None = None
    time: str | None = None


class ReviewReference(Record):
    """The reviewer's true answer to a pointwise query."""

    review: str
    score: int = Field(ge=1, le=10)


class PointwiseExample(Record):
    """Would this reviewer like `query`, and what would they say?"""

    kind: ClassVar[str] = "pointwise"
    plural: ClassVar[str] = "single texts"
    scale: ClassVar[Scale | None] = SCORES
    verdict: ClassVar[tuple[str, ...]] = ("review", "score")
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = True
    aspect: ClassVar[None] = None

    id: Name
    reviewer_id: Name
    item_id: Name
    profile: tuple[ProfileReview, ...]
    query: str
    reference: ReviewReference | None = None

    @classmethod
    def recognises(cls, fields: Mapping[str, Any]) -> bool:
        return "item_id" in fields and isinstance(fields.get("query"), str)

    @property
    def in_one_file(self) -> str:
        return self.kind

    @property
    def truth(self) -> float | None:
        return None if self.reference is None else self.reference.score

    @property
    def written(self) -> str | None:
        return None if self.reference is None else self.reference.review

    @property
    def work(self) -> str:
        return self.item_id

    @property
    def shown_query(self) -> Parts:
        return (("New text", self.query),)

    @property
    def shown_profile(self) -> tuple[tuple[str, Parts], ...]:
        return tuple(
            (f"scored {past.score}" + (f", {past.time}" if past.time else ""), (("Text", past.text), ("Review", past.review)))
            for past in self.profile
        )

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        return any(past.item_id == self.item_id or near(past.text, self.query) for past in self.profile)

    def as_entry(self) -> ProfileReview:
        """The example, whose answer is known, as an entry of a profile."""
        assert self.reference is not None, self.id
        return ProfileReview(text=self.query, review=self.reference.review, score=self.reference.score, item_id=self.item_id)
