"""One text for one reader, from whatever the caller has of them, as an example that every pointwise question is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from pydantic import ValidationError

from perse.errors import BadInput
from perse.formats.json_text import json_kind
from perse.records import PointwiseExample, ProfileReview, explain, from_own_scale
from perse.scale import OwnScale, check_own

Past = ProfileReview | tuple[str, str, int] | Mapping[str, Any]
"""A past review: (text, review, score), or these by name."""

_PARTS = ("text", "review", "score")


def example_of(reviews: Iterable[Past], text: str, *, name: str = "ask", scale: OwnScale | None = None) -> PointwiseExample:
    """The text to judge, for the reader of these reviews; `name` seeds what is drawn, and `scale` is what their scores are on if not 1 to 10.

    Raises:
        BadInput: no text, an empty one, what is no review, or no scale; the message says which field.
    """
    scale = None if scale is None else scale_of(scale)
    if isinstance(reviews, str | bytes | Mapping) or not isinstance(reviews, Iterable):
        raise BadInput(f"the past reviews are {json_kind(reviews)}, expected a list of (text, review, score); give [] for none")
    profile = tuple(_review(number, past, scale) for number, past in enumerate(reviews, start=1))
    if not isinstance(text, str):
        raise BadInput(f"the text to judge is {json_kind(text)}; give the text that the reader would review")
    if not text.strip():
        raise BadInput("the text to judge is blank; give the text that the reader would review")
    try:
        return PointwiseExample(id=name, reviewer_id="reader", item_id="text", profile=profile, query=text, own_scale=scale)
    except ValidationError as error:
        raise BadInput(f"the text to judge, {explain(error)}") from None


def scale_of(scale: object) -> OwnScale:
    """Its ends, also those of an array.

    Raises:
        BadInput: it is none.
    """
    ends = [] if isinstance(scale, str | bytes | Mapping) or not isinstance(scale, Iterable) else list(scale)
    if len(ends) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool) for end in ends):
        raise BadInput("the reader's scale is its lowest and highest score, two numbers such as (0, 100); found none such")
    try:
        return check_own((ends[0], ends[1]))
    except ValueError as error:
        raise BadInput(f"the reader's scale: {error}; give its lowest and highest score, such as (0, 100)") from None


def _review(number: int, past: object, scale: OwnScale | None) -> ProfileReview:
    """
    Raises:
        BadInput: it is none.
    """
    if isinstance(past, ProfileReview):  # is on 1 to 10
        return past
    if isinstance(past, Mapping):
        fields = dict(past)
    elif isinstance(past, Sequence) and not isinstance(past, str | bytes) and len(past) == len(_PARTS):
        fields = dict(zip(_PARTS, past, strict=True))
    else:
        found = f"{len(past)} values" if isinstance(past, list | tuple) else json_kind(past)
        raise BadInput(f"past review {number} is {found}, expected (text, review, score), or these by name")
    try:
        return ProfileReview.model_validate(from_own_scale(fields, scale))
    except ValidationError as error:
        raise BadInput(f"past review {number}, {explain(error)}") from None
    except BadInput as error:
        raise BadInput(f"past review {number}: {error}; give its score on the scale, or another scale") from None
