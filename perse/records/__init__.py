"""What the data is: reviews and comparisons as built, examples as judged and exported.

`Review` and `Comparison` are rows of a data set folder: slotted dataclasses, since a build holds millions of them, so that
whoever makes one from outside data checks it (`data.sources`, `data.folder`). `PointwiseExample` and `PairwiseExample` are
self-contained: one line of `perse data export`, read directly by every judging command (DESIGN.md, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationError

from perse.errors import BadInput
from perse.strict import Name, Strict

Choice = Literal["A", "B"]
Split = Literal["train", "valid"]
Kind = Literal["pointwise", "pairwise"]
"""Of a data set: reviews of one text each, or comparisons of two."""

ASPECTS = ("Interestingness", "Adaptability", "Surprise", "Character Development", "Ending")
"""The subjective aspects of Per-DOC (PerSE, section 4.1). Other aspects are allowed and shown as they are named."""


class _Record(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid")


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


class ProfileReview(_Record):
    """A past review as the judge is shown it; without `review`, a text and its score alone (PerSE, table 5)."""

    text: str
    review: str | None = None
    score: int = Field(ge=1, le=10)
    item_id: Name | None = None
    time: str | None = None


class ReviewReference(_Record):
    """The reviewer's true answer to a pointwise query."""

    review: str
    score: int = Field(ge=1, le=10)


class PointwiseExample(_Record):
    """Would this reviewer like `query`, and what would they say?"""

    id: Name
    reviewer_id: Name
    item_id: Name
    profile: tuple[ProfileReview, ...]
    query: str
    reference: ReviewReference | None = None


class ProfileComparison(_Record):
    """A past comparison as the judge is shown it."""

    text_a: str
    text_b: str
    premise: str | None = None
    preference: dict[Name, Choice]


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

    id: Name
    reviewer_id: Name
    aspect: Name
    profile: tuple[ProfileComparison, ...]
    query: Pair
    reference: ChoiceReference | None = None


class SummaryReference(_Record):
    """What people said of the text, on the scale of the question that is asked; an average may lie between its labels."""

    score: float


class SummaryExample(_Record):
    """How does `summary` stand to `reviews`? Asked of summaries, and of one review beside the others (Rehearsal, section 4)."""

    id: Name
    reviewer_id: Name
    """Whose reviews these are: a reviewer, or a product."""
    reviews: tuple[str, ...]
    """Oldest first: the first ones leave a prompt that is too long."""
    summary: str
    reference: SummaryReference | None = None

    @property
    def profile(self) -> tuple[str, ...]:
        """The reviews, as what the renderer may shorten."""
        return self.reviews

    @property
    def query(self) -> str:
        """The text that is judged."""
        return self.summary


class ClaimExample(_Record):
    """Does `claim` follow from `text`? Asked of summaries and paragraphs (KGDS, sections 4.4 and 4.5)."""

    id: Name
    reviewer_id: Name
    """Whose text this is: claims about one text are asked one after the other, so that they share the work on it."""
    text: str
    claim: str

    @property
    def profile(self) -> tuple[()]:
        """Nothing: a text is not shortened."""
        return ()


class ClaimsExample(_Record):
    """Which of `claims` follow from `text`? Asked in one prompt; the judgement of claim n, from 1, is `ID/n`."""

    id: Name
    reviewer_id: Name
    text: str
    claims: tuple[str, ...] = Field(min_length=1)

    @property
    def profile(self) -> tuple[()]:
        """Nothing: a text is not shortened."""
        return ()


def _kind_of_reference(given: object) -> str:
    return "choice" if isinstance(given, ChoiceReference) or (isinstance(given, dict) and "preference" in given) else "review"


class VerbatimExample(_Record):
    """A prompt that is used as it is, with whatever profile and query stand in it (released data)."""

    id: Name
    reviewer_id: Name | None = None
    prompt: str = Field(min_length=1)
    reference: (
        Annotated[
            Annotated[ReviewReference, Tag("review")] | Annotated[ChoiceReference, Tag("choice")],
            Discriminator(_kind_of_reference),
        ]
        | None
    ) = None

    @property
    def profile(self) -> tuple[()]:
        """Nothing: a profile inside a prompt is not shortened."""
        return ()


Example = PointwiseExample | PairwiseExample | SummaryExample | VerbatimExample
"""What is read from files, with the true answer where it is known."""

Asked = Example | ClaimExample | ClaimsExample
"""What a judge can be asked about; claims are made where they are asked."""


def explain(error: ValidationError) -> str:
    """The first problem of a validation error as "field 'a.b': what was wrong"."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "value"
    message = first["msg"]
    ours = message.removeprefix("Value error, ")
    return f"field '{where}': {ours if ours != message else message[0].lower() + message[1:]}"


def parse_example(fields: object) -> Example:
    """One JSON object of section 3 of DESIGN.md as an example; its shape says which kind it is.

    Raises:
        BadInput: no kind of example; the message names the first field that does not fit.
    """
    if not isinstance(fields, dict):
        raise BadInput(f"expected a JSON object, found {type(fields).__name__}")
    pairwise = "aspect" in fields or isinstance(fields.get("query"), dict)
    judged = SummaryExample if "summary" in fields else PairwiseExample if pairwise else PointwiseExample
    model = VerbatimExample if "prompt" in fields else judged
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{model.__name__.removesuffix('Example').lower()} example, {explain(error)}") from None


def example_lines(examples: Iterable[Example]) -> Iterator[str]:
    """Each example as one line of JSON, absent optional fields left out, keys in a fixed order."""
    for example in examples:
        yield example.model_dump_json(exclude_none=True) + "\n"
