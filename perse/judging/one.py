"""One text for one reader, from whatever the caller has of them, as an example that every pointwise question is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from perse.errors import BadInput
from perse.formats.json_text import json_kind
from perse.records import PointwiseExample, ProfileReview, explain

Past = ProfileReview | tuple[str, str, int] | Mapping[str, Any]
"""A past review: (text, review, score), or these by name."""

_PARTS = ("text", "review", "score")


def example_of(reviews: Iterable[Past], text: str, *, name: str = "ask") -> PointwiseExample:
    """The text to judge, for the reader of these reviews; `name` seeds what is drawn.

    Raises:
        BadInput: no text, an empty one, or what is no review; the message says which field.
    """
    if isinstance(reviews, str | bytes | Mapping) or not isinstance(reviews, Iterable):
        raise BadInput(f"the past reviews are {json_kind(reviews)}, expected a list of (text, review, score); give [] for none")
    profile = tuple(_review(number, past) for number, past in enumerate(reviews, start=1))
    if not isinstance(text, str):
        raise BadInput(f"the text to judge is {json_kind(text)}; give the text that the reader would review")
    if not text.strip():
        raise BadInput("the text to judge is empty; give the text that the reader would review")
    try:
        return PointwiseExample(id=name, reviewer_id="reader", item_id="text", profile=profile, query=text)
    except ValidationError as error:
        raise BadInput(f"the text to judge, {explain(error)}") from None


def _review(number: int, past: object) -> ProfileReview:
    """
    Raises:
        BadInput: it is none.
    """
    if isinstance(past, ProfileReview):
        return past
    if isinstance(past, Mapping):
        fields = dict(past)
    elif isinstance(past, Sequence) and not isinstance(past, str | bytes) and len(past) == len(_PARTS):
        fields = dict(zip(_PARTS, past, strict=True))
    else:
        found = f"{len(past)} values" if isinstance(past, list | tuple) else json_kind(past)
        raise BadInput(f"past review {number} is {found}, expected (text, review, score), or these by name")
    try:
        return ProfileReview.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"past review {number}, {explain(error)}") from None
