"""One text for one reader, from whatever the caller has of them, as an example that every pointwise question is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from perse.errors import BadInput
from perse.records import PointwiseExample, ProfileReview, explain

Past = ProfileReview | tuple[str, str, int] | Mapping[str, Any]
"""A past review: (text, review, score), or these by name."""


def example_of(reviews: Sequence[Past], text: str, *, name: str = "ask") -> PointwiseExample:
    """The text to judge, for the reader of these reviews; `name` seeds what is drawn.

    Raises:
        BadInput: an empty text, or an invalid review; the message says which field.
    """
    try:
        profile = tuple(map(_review, reviews))
    except ValidationError as error:
        raise BadInput(f"a past review, {explain(error)}") from None
    if not text.strip():
        raise BadInput("the text to judge is empty; give the text that the reader would review")
    try:
        return PointwiseExample(id=name, reviewer_id="reader", item_id="text", profile=profile, query=text)
    except ValidationError as error:
        raise BadInput(f"the text to judge, {explain(error)}") from None


def _review(past: Past) -> ProfileReview:
    if isinstance(past, ProfileReview):
        return past
    if isinstance(past, Mapping):
        return ProfileReview.model_validate(dict(past))
    return ProfileReview(text=past[0], review=past[1], score=past[2])
