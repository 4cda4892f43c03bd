"""What both ways of answering share: settings, the judge's identity, seeded draws, and failures as judgements."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol, TypeVar

from perse.engines.base import Failure
from perse.engines.kind import Identity
from perse.errors import BadInput, TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions import Question
from perse.records import Asked

Prompts = TypeVar("Prompts")

log = logging.getLogger(__name__)

TELL_EVERY = 30.0
"""Seconds after which a failure that was told is told again."""
_told: dict[str, tuple[float, int]] = {}
"""reason -> when it was told last, and how often it was met since."""


@dataclass(frozen=True)
class JudgeSettings:
    """How to answer. Defaults are the paper's (PerSE, section 4.2); temperature 0 is greedy.

    The label is drawn from the exact distribution at `temperature`, as if the model had written it; `expected` and
    `distribution` do not depend on the draw.

    Raises:
        BadInput: a temperature below 0 or of no number, no tokens to write, or a seed that is none.
    """

    temperature: float = 0.8
    max_new_tokens: int = 600
    seed: int = 0

    def __post_init__(self) -> None:
        if not (_is(self.temperature, Real) and 0 <= self.temperature < math.inf):
            raise BadInput(f"temperature is {self.temperature!r:.50}, expected a number of 0 or more")
        if not (_is(self.max_new_tokens, Integral) and self.max_new_tokens > 0):
            raise BadInput(f"max_new_tokens is {self.max_new_tokens!r:.50}, expected a whole number above 0")
        if not _is(self.seed, Integral):
            raise BadInput(f"seed is {self.seed!r:.50}, expected a whole number")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


class Answering(Protocol):
    """Asks one engine."""

    def answer(
        self,
        question: Question,
        examples: Sequence[Asked],
        settings: JudgeSettings,
        *,
        note: Callable[[Failure], None] = lambda failure: None,
    ) -> list[Judgement]:
        """A judgement for each example, whatever fails; `note` is called with the failures of the engine."""

    def render(self, question: Question, example: Asked, settings: JudgeSettings) -> Sequence[object]:
        """The prompts of an example.

        Raises:
            TooLong: it does not fit.
        """

    def prompt_digest(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings) -> str:
        """A digest of everything that the prompts of these examples depend on: wording, template, tokenizer, budget."""


def prompts_of(
    identity: Identity, question: Question, examples: Sequence[Asked], render: Callable[[Asked], Prompts]
) -> tuple[list[tuple[Asked, Prompts]], dict[str, Judgement]]:
    """Each example that fits with its prompts, and the judgements of those that do not, by id."""
    fitting: list[tuple[Asked, Prompts]] = []
    too_long: dict[str, Judgement] = {}
    for example in examples:
        try:
            fitting.append((example, render(example)))
        except TooLong as error:
            too_long[example.id] = failed(identity, question, example, Status.TOO_LONG, str(error))
    return fitting, too_long


def tell_failure(example_id: str, reason: str) -> None:
    """Log what the engine failed at; the same reason, which a server that is down gives for every example, once in a while."""
    now = time.monotonic()
    last, since = _told.get(reason, (-TELL_EVERY, 0))
    if now - last < TELL_EVERY:
        _told[reason] = last, since + 1
        return
    if len(_told) > 1000:  # reasons that differ each time
        _told.clear()
    _told[reason] = now, 0
    more = f" ({since} more since this was last said)" if since else ""
    log.warning("example %s: the engine failed: %s%s", example_id, reason, more)


def failed(identity: Identity, question: Question, example: Asked, status: Status, error: str) -> Judgement:
    """The judgement of an example without an answer."""
    return Judgement(
        id=example.id,
        question=question.name,
        status=status,
        k_effective=0,
        tokens=Tokens(prompt=0, cached=0, generated=0),
        model=identity.model,
        adapter=identity.adapter,
        error=error,
    )


def text_seed(settings: JudgeSettings, example: Asked) -> int:
    """The seed of what is written for this example, whatever else is asked."""
    return random.Random(f"{settings.seed}:{example.id}:text").getrandbits(63)


def draw(labels: Sequence[str], probabilities: Sequence[float], settings: JudgeSettings, example: Asked) -> str:
    """The likeliest label at temperature 0, else one drawn from the distribution at that temperature."""
    if settings.temperature == 0:
        return labels[max(range(len(labels)), key=lambda i: probabilities[i])]
    largest = max(probabilities)
    weights = [(p / largest) ** (1 / settings.temperature) for p in probabilities]
    return random.Random(f"{settings.seed}:{example.id}:label").choices(labels, weights)[0]
