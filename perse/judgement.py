"""Judgement: one answer of a judge and its status. Failures are data, never exceptions (DESIGN.md, promise 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from perse.errors import BadInput
from perse.formats.html_table import html_table
from perse.formats.json_text import json_kind
from perse.records import explain
from perse.strict import Strict


class Status(StrEnum):
    """What became of one question put to a judge."""

    OK = "ok"
    UNPARSED = "unparsed"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    ENGINE_ERROR = "engine_error"


MOST_TOKENS = 10**9
"""Of one request: no model has a context of a thousandth of it, and sums of such numbers stay numbers."""

Probability = Annotated[float, Field(ge=0, le=1 + 1e-6)]
"""May be above 1 by the rounding of a sum."""


SUM_OFF = 1e-3
"""By which the probabilities of all labels may miss 1, and a log-probability 0: numbers that were rounded to four digits somewhere."""


def _at_most_certain(value: float) -> float:
    if value > SUM_OFF:
        raise ValueError(f"found {value:g}, expected a log-probability, which is at most 0")
    return value


LogProbability = Annotated[float, AfterValidator(_at_most_certain)]


class Tokens(Strict):
    """What one answer cost: prompt tokens, how many of them came from a cache, and tokens written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: int = Field(ge=0, le=MOST_TOKENS)
    cached: int = Field(ge=0, le=MOST_TOKENS)
    generated: int = Field(ge=0, le=MOST_TOKENS)


class Prices(Strict):
    """What a paid server takes for a million tokens, in whatever currency; cached prompt tokens cost `cached`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0, le=1e9)
    output: float = Field(ge=0, le=1e9)
    cached: float = Field(ge=0, le=1e9)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "INPUT,OUTPUT" (cached tokens cost as others) or "INPUT,OUTPUT,CACHED".

        Raises:
            BadInput: not two or three numbers from 0 up.
        """
        try:
            numbers = [float(part) for part in text.split(",")]
            given, output, cached = numbers if len(numbers) == 3 else (*numbers, numbers[0])
            return cls(input=given, output=output, cached=cached)
        except ValueError:
            raise BadInput(
                f"invalid prices '{text}'; write INPUT,OUTPUT or INPUT,OUTPUT,CACHED per million tokens, as in 0.15,0.60"
            ) from None

    def cost(self, judgements: Iterable[Judgement]) -> float:
        """What the answered requests of these judgements cost; requests that failed are not in it."""
        return sum(self.cost_of(j.tokens.prompt, j.tokens.cached, j.tokens.generated) for j in judgements)

    def cost_of(self, prompt: int, cached: int, generated: int) -> float:
        """What so many tokens cost, `cached` of the prompt's being so."""
        return ((prompt - cached) * self.input + cached * self.cached + generated * self.output) / 1e6

    def bill(self, judgements: Sequence[Judgement]) -> str:
        """Tokens and cost in one line."""
        prompt, cached, generated = (
            sum(getattr(j.tokens, part) for j in judgements) for part in ("prompt", "cached", "generated")
        )
        return (
            f"tokens: {prompt} prompt ({cached} cached), {generated} generated; cost {self.cost(judgements):.4f} "
            "(without requests that failed)"
        )


class Stacked(Strict):
    """What a judge's answer and the numbers that need no judge make likely together (`perse.stacking`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    expected: float = Field(ge=-1e6, le=1e6)
    """Sum of label times probability."""
    distribution: dict[str, Probability]
    """Probability of each label; sums to 1."""
    without: tuple[str, ...] = ()
    """Sources that were absent here, though it was fitted with them: what is told is that of a model that never had them."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if abs(sum(self.distribution.values()) - 1) > SUM_OFF:
            raise ValueError(f"the stacked distribution sums to {sum(self.distribution.values()):.4g}, expected 1")
        return self


class OnOwnScale(Strict):
    """The answer on the reader's own scale, where that is another than 1 to 10: what the labels stand for (`on_own_scale`), not rounded to its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: float
    high: float
    label: float | None = None
    expected: float | None = None
    stacked: float | None = None
    """The expected score of `Judgement.stacked`."""


class Judgement(Strict):
    """One answer of a judge. Floats are finite: a NaN or an infinity is refused here, so that the JSON is plain."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str
    """The example's id."""
    question: str
    status: Status
    label: str | None = None
    """The answer; None when the status is not ok."""
    expected: float | None = Field(default=None, ge=-1e6, le=1e6)
    """Sum of label times probability."""
    distribution: dict[str, Probability] | None = None
    """Probability of each label, renormalised over the labels (sums to 1); None where the engine cannot tell."""
    exact: bool | None = None
    """Whether `distribution` and `mass` are the model's own. False: read from the likeliest tokens that a server tells, which holds to 0.001 of the
    mass, and `mass` is a lower bound. None: there are none, or nobody said."""
    mass: Probability | None = None
    """Probability that the model gave to any label before renormalising."""
    text: str = ""
    """What the model wrote (the review)."""
    mean_logprob: LogProbability | None = None
    stacked: Stacked | None = None
    """Beside the raw values, where a stacking stands beside the judge; None: there is none for this question, the answer is not ok, or `not_stacked`
    says why."""
    not_stacked: str | None = None
    """Why a stacking that stands beside the judge is not applied to this reader; None: it is, or there is none."""
    own_scale: OnOwnScale | None = None
    """None: the reader's scale is 1 to 10, or nobody said which it is."""
    order_gap: Probability | None = None
    """Pairs: |P(A) asked as given - P(A) asked swapped|."""
    order_probabilities: tuple[Probability, Probability] | None = None
    """Pairs: P(A), A being the same text both times, asked as given and asked swapped; `distribution` has their mean."""
    k_effective: int = Field(ge=0, le=MOST_TOKENS)
    """Profile reviews that fitted the prompt."""
    finish_reason: str | None = None
    """"stop", "length" or None."""
    tokens: Tokens
    model: str
    adapter: str | None = None
    error: str | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.status is not Status.OK and self.label is not None:
            raise ValueError(f"status {self.status} has label {self.label!r}; only an ok answer has a label")
        if self.status is Status.OK and self.error is not None:
            raise ValueError("status ok has an error; an ok answer has none")
        if self.distribution and abs(sum(self.distribution.values()) - 1) > SUM_OFF:
            raise ValueError(f"the distribution sums to {sum(self.distribution.values()):.4g}, expected 1")
        return self

    @property
    def likeliest(self) -> str | None:
        """The label with the highest probability; None without a distribution. `label` may have been drawn."""
        return max(self.distribution, key=lambda label: (self.distribution or {})[label]) if self.distribution else None

    def row(self) -> dict[str, str | float | bool | None]:
        """All of it but the tokens in one flat row: `p_LABEL` is the probability of a label, `own_...` stands for the reader's own scale."""
        own = {f"own_{name}": value for name, value in (self.own_scale.model_dump() if self.own_scale else {}).items()}
        return {
            "id": self.id,
            "question": self.question,
            "status": str(self.status),
            "expected": self.expected,
            "likeliest": self.likeliest,
            "label": self.label,
            "stacked": self.stacked and self.stacked.expected,
            **({"not_stacked": self.not_stacked} if self.not_stacked else {}),
            **own,
            "mass": self.mass,
            "exact": self.exact,
            "k_effective": self.k_effective,
            "text": self.text,
            "error": self.error,
            **{f"p_{label}": p for label, p in (self.distribution or {}).items()},
        }

    def _repr_html_(self) -> str:
        """For a notebook: what there is, a line each."""
        found = {name: value for name, value in self.row().items() if value not in (None, "")}
        return html_table(("", "judgement"), list(found.items()))


def judgement_line(judgement: Judgement) -> str:
    """The judgement as one line of JSON, with its line end; keys in a fixed order."""
    return judgement.model_dump_json() + "\n"


def parse_judgement(fields: object, where: str) -> Judgement:
    """One JSON object as a judgement; `where` (file and line) begins the message if it is none.

    Raises:
        BadInput: a field is missing, unknown or of the wrong kind; the message names the first.
    """
    if not isinstance(fields, dict):
        raise BadInput(f"{where}: expected a JSON object, found {json_kind(fields)}")
    try:
        return Judgement.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{where}: judgement, {explain(error)}") from None
