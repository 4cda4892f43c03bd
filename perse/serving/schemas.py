"""The wire format: requests, results and the one shape of every error."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, FailFast, Field, model_validator

from perse.judgement import Judgement
from perse.records import (
    ChoiceReference,
    ClaimsExample,
    Evidence,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
    Served,
    from_own_scale,
)
from perse.scale import OwnScale, check_own
from perse.strict import Name, Strict

MOST_ENTRIES = 10_000
"""Of a profile in a request: more fit no context."""

MOST_CLAIMS = 200
"""In one item: they are answered one after the other."""

Pick = Literal["recent", "random", "bm25", "diverse"]
"""Ways to choose of a kept reader's entries (`perse.data.profiles.selection`)."""


class _Message(Strict):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Item(_Message):
    """What a request asks about; a line of `perse data export` is one as it stands."""

    example_type: ClassVar[type[Served]]

    def example(self) -> Served:
        """The item with an id, by default one made of what it says, so that items without one do not all share their draws."""
        own: str | None = getattr(self, "id", None)
        made = own or hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]
        return self.example_type.model_validate({**self.model_dump(), "id": made})


class ReadersItem(Item):
    """An item about a reader who is told by a profile, or kept on the server under a name."""

    reader: Name | None = Field(None, min_length=1, description="In the place of a profile: a reader whom /v1/readers keeps.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        told = "profile" in self.model_fields_set
        if told == (self.reader is not None):
            raise ValueError(f"found {'both profile and' if told else 'neither profile nor'} reader; give one of them")
        return self

    def example(self) -> Served:
        """With the profile as it was sent; of a kept reader without one, which `perse.serving.readers.shown` fills in."""
        own = self.model_dump(exclude={"reader", "scale"})
        if self.reader is not None:
            named = {} if "reviewer_id" in self.model_fields_set else {"reviewer_id": self.reader}
            own |= named
        unsaid = {name for name in ("reader", "scale", "own_scale") if getattr(self, name, None) is None}
        said = self.model_dump_json(exclude=unsaid)  # what is not said names no item
        made = own.pop("id") or hashlib.sha256(said.encode()).hexdigest()[:12]
        return self.example_type.model_validate({**own, "id": made})


class PointwiseItem(ReadersItem):
    """One text for one reader; a line of `perse data export` is one as it stands."""

    example_type = PointwiseExample

    id: Name | None = Field(
        None, description="Comes back in the judgement, and seeds its draws; by default a digest of the item."
    )
    reviewer_id: Name = Field("reader", description="Items of one reader are judged together, which is faster.")
    item_id: Name = "text"
    profile: Annotated[tuple[ProfileReview, ...], FailFast()] = Field(
        (), max_length=MOST_ENTRIES, description="Past reviews of this reader, oldest first."
    )
    query: str = Field(min_length=1, description="The text to judge.")
    evidence: Evidence | None = Field(
        None, description="What a training side says of the text, for the questions that show it."
    )
    scale: tuple[float, float] | None = Field(
        None,
        description="Lowest and highest score of the scores as they are sent here, such as [1, 5]; by default 1 to 10. Answers are told on it, too.",
    )
    own_scale: tuple[float, float] | None = Field(
        None, description="As `scale`, of scores that were rescaled to 1 to 10 before, as in a line of `perse data export`."
    )
    reference: ReviewReference | None = Field(None, description="Not shown to the judge.")

    @model_validator(mode="before")
    @classmethod
    def _rescaled(cls, fields: Any) -> Any:
        """With scores on 1 to 10."""
        if not isinstance(fields, dict) or fields.get("scale") is None:
            return fields
        scale = _scale(fields["scale"])
        if fields.get("own_scale") is not None:
            raise ValueError("found both scale and own_scale; give scale alone where the scores are on it")
        found = dict(fields)
        if isinstance(profile := found.get("profile"), list):
            found["profile"] = [from_own_scale(one, scale) if isinstance(one, dict) else one for one in profile]
        if isinstance(reference := found.get("reference"), dict):
            found["reference"] = from_own_scale(reference, scale)
        return found

    def example(self) -> Served:
        own = {"own_scale": self.scale} if self.scale is not None else {}
        return super().example().model_copy(update=own)


def _scale(given: Any) -> OwnScale:
    """
    Raises:
        ValueError: it is no scale.
    """
    if not isinstance(given, list | tuple) or len(given) != 2 or not all(type(one) in (int, float) for one in given):
        raise ValueError("found no scale in 'scale', expected the lowest and the highest score, such as [1, 5]")
    return check_own((given[0], given[1]))


class PairwiseItem(ReadersItem):
    """Two texts for one reader, to be compared on one aspect; a line of `perse data export` is one as it stands."""

    example_type = PairwiseExample

    id: Name | None = Field(
        None, description="Comes back in the judgement, and seeds its draws; by default a digest of the item."
    )
    reviewer_id: Name = Field("reader", description="Items of one reader are judged together, which is faster.")
    aspect: Name = Field(min_length=1, description="Such as Interestingness, Surprise or Ending.")
    profile: Annotated[tuple[ProfileComparison, ...], FailFast()] = Field(
        (), max_length=MOST_ENTRIES, description="Past comparisons of this reader, oldest first."
    )
    query: Pair
    reference: ChoiceReference | None = Field(None, description="Not shown to the judge.")


class ClaimsItem(Item):
    """Several claims about one text, asked in one prompt."""

    example_type = ClaimsExample

    id: Name | None = Field(None, description="Of claim n, from 1, the judgement's is `ID/n`; by default a digest of the item.")
    reviewer_id: Name = "reader"
    text: str
    claims: tuple[str, ...] = Field(min_length=1, max_length=MOST_CLAIMS)


class Asking(_Message):
    """The fields of every request besides its items; `perse.serving.requests` makes the requests of each route."""

    item: ClassVar[type[Item]]

    model: str | None = Field(None, description="A served model's or adapter's name; by default the model.")
    temperature: float | None = Field(None, ge=0, le=2, description="0 is greedy; by default the server's.")
    max_new_tokens: int | None = Field(None, ge=1, description="Longest review; by default the server's.")
    seed: int | None = Field(None, description="Of every draw; by default the server's.")
    k: int | None = Field(None, ge=0, description="Kept readers: entries of the profile at most; by default all that fit.")
    pick: Pick = Field("recent", description="Kept readers: which k of the entries.")
    input: Any
    question: str


class Problem(_Message):
    """What went wrong, in the fields that OpenAI's and vLLM's errors have, and numbers where there are some."""

    message: str
    type: str
    param: str | None = None
    code: int
    details: dict[str, int] = Field(default_factory=dict)


class ErrorBody(_Message):
    """The one shape of every error, and what stands in a list's results in place of a bad item's judgement."""

    error: Problem


class EachClaim(_Message):
    """A judgement for each claim of one item, in their order."""

    results: list[Judgement]


class Results(_Message):
    """Judgements in the order of the items."""

    results: list[Judgement | EachClaim | ErrorBody]


class Ready(_Message):
    status: Literal["ready"] = "ready"


class ServedStacking(_Message):
    """What combines a judge's answers with numbers (`stacking.json`), by its digest; the question whose answers it combines; and the data set,
    and fold, whose training side the numbers are of."""

    sha256: str
    question: str
    data_sha256: str
    fold: int | None = None


class ServedModel(_Message):
    """A name that requests can ask for; `sha256` is over all its weights, tokenizer and template."""

    sha256: str
    adapter: bool
    stacking: ServedStacking | None = None


class Version(_Message):
    version: str
    """vLLM's, or perse's own on the embedded engine."""
    perse: str
    engine: dict[str, str]
    models: dict[str, ServedModel]


class QuestionCard(_Message):
    """One question: where it is asked, and the JSON Schemas of what goes in and comes out."""

    name: str
    route: str
    labels: list[str]
    values: list[float] | None
    writes_text: bool
    request_schema: dict[str, Any]
    judgement_schema: dict[str, Any]


class Questions(_Message):
    questions: list[QuestionCard]
