"""Reviews and comparisons as built: rows of a data set folder.

Slotted dataclasses, since a build holds millions of them; whoever makes one from outside data checks it (`data.sources`,
`data.dataset.folder`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from perse.records.base import Choice

Split = Literal["train", "valid"]
Kind = Literal["pointwise", "pairwise"]
"""Of a data set: reviews of one text each, or comparisons of two."""

ASPECTS = ("Interestingness", "Adaptability", "Surprise", "Character Development", "Ending")
"""The subjective aspects of Per-DOC (PerSE, section 4.1). Other aspects are allowed and shown as they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One reviewer's review of one text: `x_u, a_u, y_u` in PerSE, section 3. Making one checks nothing."""

    review_id: str
    reviewer_id: str
    item_id: str
    text: str
    review: str
    score: Annotated[int, Field(ge=1, le=10)]
    original_score: float
    time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One reviewer's preferences, aspect by aspect, between two texts. `pair_id` is the same for the same two texts.

    Making one checks nothing.
    """

    comparison_id: str
    reviewer_id: str
    pair_id: str
    text_a: str
    text_b: str
    premise: str | None = None
    preference: dict[str, Choice]
    time: str | None = None
