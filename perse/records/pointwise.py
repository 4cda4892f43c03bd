"""Would this reviewer like a text, and what would they say? Known by texts that they reviewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from perse.records.base import Parts, Record
from perse.scale import SCORES, OwnScale, Scale, check_own, float_of, rescale
from perse.strict import Name

LARGEST = 1e6
"""Of an estimate, either way: far beside the scale, where no model of words gets, and sums of such stay numbers."""
Estimate = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("found a blank text; give the text that was reviewed, or take this review out")
    return value


def _review(value: str) -> str:
    if not value.strip():
        raise ValueError(
            "found a blank text; give what the reader wrote, or leave the field out where the score alone is known"
        )
    return value


class ProfileReview(Record):
    """A past review as the judge is shown it; without `review`, a text and its score alone (PerSE, table 5). What is blank would be shown as something
    that was written."""

    text: Annotated[str, AfterValidator(_text)]
    review: Annotated[str, AfterValidator(_review)] | None = None
    score: int = Field(ge=1, le=10)
    item_id: Name | None = None
    time: str | None = None
    estimate: Estimate | None = None
    """What the content model of the training side expects a usual reader to give the text; see `Evidence`."""


def from_own_scale(fields: Mapping[str, Any], scale: OwnScale | None) -> dict[str, Any]:
    """The fields of a past review, or of a reference, with the score rescaled from the reader's own scale to 1 to 10.

    Raises:
        BadInput: the score is off that scale.
    """
    score = fields.get("score")
    if scale is None or isinstance(score, bool) or not isinstance(score, Real | Decimal):  # what numpy counts with is Real, too
        return dict(fields)
    return {**fields, "score": rescale(float_of(score), *scale)}


class Evidence(Record):
    """What the training side says of the text asked about. No score of the reader who is asked about is part of it."""

    others: int = Field(ge=0)
    """Other readers who scored the text."""
    mean: float | None = Field(default=None, ge=1, le=10)
    """Of their scores; None without any."""
    spread: float | None = Field(default=None, ge=0, le=LARGEST)
    """Standard deviation of their scores; None of fewer than two."""
    estimate: Estimate
    """What a model that reads the text's words expects a usual reader to give it; may lie beside the scale."""
    shrinkage: float = Field(gt=0)
    """How many scores of a reader's it takes until half of how they differ from such estimates counts as theirs."""

    def for_reader(self, profile: Sequence[ProfileReview]) -> float:
        """The estimate for the reader of these reviews, on the scale: their residuals, shrunk, are the reader's leniency."""
        residuals = [past.score - past.estimate for past in profile if past.estimate is not None]
        lowest, *_, highest = SCORES.values or ()
        return min(max(self.estimate + sum(residuals) / (self.shrinkage + len(residuals)), lowest), highest)


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
    evidence: Evidence | None = None
    own_scale: Annotated[OwnScale, AfterValidator(check_own)] | None = None
    """The reader's own, where it is another than 1 to 10: the scores here are rescaled from it, and answers are told on it, too. The judge
    is not shown it."""
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
        estimate = self.evidence.estimate if self.evidence else None
        return ProfileReview(
            text=self.query,
            review=self.reference.review if self.reference.review.strip() else None,
            score=self.reference.score,
            item_id=self.item_id,
            estimate=estimate,
        )
