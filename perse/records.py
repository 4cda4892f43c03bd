"""What the data is: reviews and comparisons as built, examples as judged and exported.

`Review` and `Comparison` are rows of a data set folder. `PointwiseExample` and `PairwiseExample` are self-contained: one
line of `perse data export`, read directly by every judging command (DESIGN.md, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perse.errors import BadInput

Choice = Literal["A", "B"]
Split = Literal["train", "valid"]

ASPECTS = ("Interestingness", "Adaptability", "Surprise", "Character Development", "Ending")
"""The subjective aspects of Per-DOC (PerSE, section 4.1). Other aspects are allowed and shown as they are named."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Review(_Record):
    """One reviewer's review of one text: `x_u, a_u, y_u` in PerSE, section 3."""

    review_id: str
    reviewer_id: str
    item_id: str
    text: str
    review: str
    score: int = Field(ge=1, le=10)
    original_score: float
    time: str | None = None


class Comparison(_Record):
    """One reviewer's preferences, aspect by aspect, between two texts. `pair_id` is the same for the same two texts."""

    comparison_id: str
    reviewer_id: str
    pair_id: str
    text_a: str
    text_b: str
    premise: str | None = None
    preference: dict[str, Choice]
    time: str | None = None


class ProfileReview(_Record):
    """A past review as the judge is shown it."""

    text: str
    review: str
    score: int = Field(ge=1, le=10)
    item_id: str | None = None
    time: str | None = None


class ReviewReference(_Record):
    """The reviewer's true answer to a pointwise query."""

    review: str
    score: int = Field(ge=1, le=10)


class PointwiseExample(_Record):
    """Would this reviewer like `query`, and what would they say?"""

    id: str
    reviewer_id: str
    item_id: str
    profile: tuple[ProfileReview, ...]
    query: str
    reference: ReviewReference | None = None


class ProfileComparison(_Record):
    """A past comparison as the judge is shown it."""

    text_a: str
    text_b: str
    premise: str | None = None
    preference: dict[str, Choice]


class Pair(_Record):
    """Two texts to choose between."""

    text_a: str
    text_b: str
    premise: str | None = None


class ChoiceReference(_Record):
    """The reviewer's true answer to a pairwise query."""

    preference: Choice


class PairwiseExample(_Record):
    """Which of two texts would this reviewer prefer, on one aspect?"""

    id: str
    reviewer_id: str
    aspect: str
    profile: tuple[ProfileComparison, ...]
    query: Pair
    reference: ChoiceReference | None = None


Example = PointwiseExample | PairwiseExample


def explain(error: ValidationError) -> str:
    """The first problem of a validation error as "field 'a.b': what was wrong"."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "value"
    return f"field '{where}': {first['msg'][0].lower()}{first['msg'][1:]}"


def parse_example(fields: object) -> Example:
    """One JSON object of section 3 of DESIGN.md as an example; its shape says which kind it is.

    Raises:
        BadInput: neither kind; the message names the first field that does not fit.
    """
    if not isinstance(fields, dict):
        raise BadInput(f"expected a JSON object, found {type(fields).__name__}")
    if "prompt" in fields:
        raise BadInput("verbatim examples ('prompt') are not judged yet; give 'profile' and 'query'")
    model = PairwiseExample if "aspect" in fields or isinstance(fields.get("query"), dict) else PointwiseExample
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{model.__name__.removesuffix('Example').lower()} example, {explain(error)}") from None


def shown_query(example: Example) -> bool:
    """Whether the profile gives the query away (DESIGN.md, promise 5): it holds the same text, or the same pair."""
    from perse.data.identity import normalised, pair_key

    if isinstance(example, PointwiseExample):
        query = normalised(example.query)
        return any(past.item_id == example.item_id or normalised(past.text) == query for past in example.profile)
    asked = pair_key(example.query.text_a, example.query.text_b)
    return any(pair_key(past.text_a, past.text_b) == asked for past in example.profile)


def read_examples(path: Path) -> list[Example]:
    """Examples from JSON lines. All of one kind, ids unique.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    from perse.data.sources.table import read_json_lines

    examples: list[Example] = []
    lines_of: dict[str, int] = {}
    for line, fields in read_json_lines(path):
        try:
            example = parse_example(fields)
        except BadInput as error:
            raise BadInput(f"{path}, line {line}: {error}") from None
        if shown_query(example):
            raise BadInput(
                f"{path}, line {line}: the query stands in its own profile; the judge would only have to copy the answer"
            )
        if example.id in lines_of:
            raise BadInput(
                f"{path}, line {line}: id '{example.id}' was already used on line {lines_of[example.id]}; ids must be unique"
            )
        if examples and type(example) is not type(examples[0]):
            raise BadInput(f"{path}, line {line}: pointwise and pairwise examples in one file; put them in two")
        lines_of[example.id] = line
        examples.append(example)
    return examples


def example_lines(examples: Iterable[Example]) -> Iterator[str]:
    """Each example as one line of JSON, absent optional fields left out, keys in a fixed order."""
    for example in examples:
        yield example.model_dump_json(exclude_none=True) + "\n"
