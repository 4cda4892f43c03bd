"""Which of two summaries of a product would this reader rather have? Made where it is asked, and read from no file (docs/rehearsal.md)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from perse.records.base import Record
from perse.records.pairwise import Pair
from perse.strict import Name


class PastReview(Record):
    """A past review as the judge is shown it, where nobody kept the text that it is of: a product has none."""

    review: str
    score: int = Field(ge=1, le=10)


class SummaryPairExample(Record):
    """Which summary would this reader rather have?

    The limit of words is for it: a judge that was trained for readers has seen no longer prompt (PerSE, section 4.1).
    """

    kind: ClassVar[str] = "summary_pair"
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = True

    id: Name
    reviewer_id: Name
    profile: tuple[PastReview, ...]
    """Of other products, oldest first."""
    query: Pair
