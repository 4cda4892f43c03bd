"""The interface of engines, and their declared capabilities.

Two kinds: an `Engine` sees token ids only and tells exact label probabilities; a `ChatEngine` sees a user's message and
answers in words. Prompts, labels and their meaning stay with the judge. A failed prompt gives a
`Failure` in its place and does not affect the others. Prompts that begin alike are found by their ids, so callers
gain by sending prompts of one reviewer next to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from perse.errors import BadInput, EngineLost
from perse.judgement import Tokens
from perse.rendering.prompt import Ids, LabelTokens

FEW = 4
"""Up to so many prompts may fail alike by chance."""

PASSING = (408, 409, 429)
"""The 4xx of HTTP that may succeed on another try; the others are faults of the request."""


@dataclass(frozen=True)
class Sampling:
    """How to write free text. Defaults are the paper's (PerSE, section 4.2); temperature 0 is greedy."""

    temperature: float = 0.8
    max_new_tokens: int = 600
    stop_ids: frozenset[int] = frozenset()
    """Generation ends with the first of these, which is part of the result."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema that the text must follow; only where `Capabilities.json_schema`, and together with `stop_ids`. Properties come
    in its order, without white space between them. Never read probabilities under one."""
    likeliest: bool = False
    """Tell the likeliest tokens in the place of each that is written, where a chat engine can (`Reply.told`)."""


@dataclass(frozen=True)
class Generation:
    """A written text: ids (stop token included), why it ended, and the mean natural log-probability of its tokens
    under the model itself, at temperature 1 and without a schema; None where the engine does not know it."""

    ids: Ids
    finish_reason: str  # "stop" | "length"
    mean_logprob: float | None
    cached: int


@dataclass(frozen=True)
class LabelDistribution:
    """`probabilities` over the labels, renormalised; `mass` is what the model gave to any label before that."""

    probabilities: tuple[float, ...]
    mass: float
    cached: int


@dataclass(frozen=True)
class Told:
    """A token that was written, and the likeliest in its place, itself among them: their texts, with natural log-probabilities."""

    token: str
    likeliest: tuple[tuple[str, float], ...]
    bound: float | None = None
    """What a token that is not among them has at most; None: what the last of them has. It is more where the token that was written is not
    one of the likeliest."""

    @property
    def most_unlisted(self) -> float:
        """The natural log-probability that no token beside `likeliest` exceeds."""
        return min(logprob for _, logprob in self.likeliest) if self.bound is None else self.bound


ENDS = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "end", "complete", "completed", "finished", "content_filter"}
)
"""What servers call it that an answer has ended by itself, in lower case."""


def was_cut(finish_reason: str) -> bool:
    """Whether an answer may be cut off: a server says so in many words ("length", "max_tokens", "model_length", ...), or says nothing."""
    return finish_reason.casefold() not in ENDS


@dataclass(frozen=True)
class Reply:
    """A chat model's answer. `refused`: it, or a filter before it, declined to answer. `told`: its tokens, where the server tells them."""

    text: str
    finish_reason: str
    tokens: Tokens
    refused: bool = False
    told: tuple[Told, ...] = ()


Turns = tuple[str, ...]
"""A conversation that ends with the user's words: user, assistant, user, ..."""


@dataclass(frozen=True)
class Failure:
    """Why one prompt has no answer."""

    reason: str


@dataclass(frozen=True)
class RequestFailure(Failure):
    """The HTTP status of the server's answer, or 0 for no answer."""

    status: int


def none_answered(failures: Sequence[Failure], prompts: int) -> None:
    """Raise if all of many prompts failed alike.

    Raises:
        BadInput: a server refused more than a few, all alike: it is what was asked for.
        EngineLost: it failed at more than a few, all alike, and not for what was asked: it is gone.
    """
    told = [failure for failure in failures if isinstance(failure, RequestFailure)]
    if prompts <= FEW or len(told) < len(failures) or len({failure.status for failure in told}) > 1:
        return
    reason, status = told[0].reason, told[0].status
    if 400 <= status < 500 and status not in PASSING:
        raise BadInput(f"{reason}; so it did to all {len(told)} requests: change what it names, or ask another model")
    raise EngineLost(f"{reason}; look after the server; the same command continues")


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an engine. `accepts_token_ids`: prompts are ids (`Engine`), else messages (`ChatEngine`).
    `exact_distribution`: label probabilities are the model's own, not a guess. `json_schema`: `Sampling.schema` is obeyed.
    `batch`: how many prompts it likes to be given at once. `at_once`: how many calls it answers side by side, each when it is ready;
    0 where calls wait for each other, and only what is written is computed together, so many prompts at a time."""

    accepts_token_ids: bool
    exact_distribution: bool
    json_schema: bool = False
    batch: int = 32
    at_once: int = 0


class Engine(Protocol):
    """Computes for one model. Prompts are whole (template, profile, query, ask, begun answer)."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def settings(self) -> dict[str, str]:
        """The settings besides the weights that affect the numbers: engine, dtype, device."""

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        """Free text after each prompt. The same prompt and seed give the same text whatever else is in the list, up to the
        rounding of the dtype: in bfloat16 a near tie can fall the other way."""

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        """Exact probability of each label after each prefix, `support.stem` put between them."""


class ChatEngine(Protocol):
    """Answers messages in words: no ids, no probabilities."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def settings(self) -> dict[str, str]: ...

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        """The model's answer to each message; a string is the only turn of its conversation."""
