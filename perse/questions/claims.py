"""Does a claim follow from a text? Facts and opinions of a summary, one by one or in a list (KGDS, sections 4.4 and 4.5, figures 10 and 17).

Asked one by one, everything but the claim is shared by all claims about a text, and each has a probability that depends on no other. In a
list, as the paper asks about facts, an answer also depends on those before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.questions.written import read_written
from perse.records import ClaimExample, ClaimsExample
from perse.scale import ERRORS, YES_NO, Scale

_ANSWER = AnswerLayout(text_prefix=None, label_prefix="[Answer] ")
_FIRST_LINE = AnswerLayout(text_prefix=None, label_prefix="1: ")


@dataclass(frozen=True)
class Claim:
    """One label for one claim; `kind` is what is claimed, `template` has the wording."""

    name: str
    kind: Literal["statement", "opinion"]
    template: str = "verify.jinja"
    scale: Scale = YES_NO
    layout: AnswerLayout = _ANSWER
    example_type: type = ClaimExample
    delimiters: tuple[str, ...] = ("Text", "Statement", "Opinion", "Answer", "Type")
    usual: bool = False
    served: str | None = None
    writes_review: bool = False

    def asks(self, example: ClaimExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording = macros(self.template)
        return (Ask(wording.instruction(self.kind), (), wording.query(example.text), wording.ask(self.kind, example.claim)),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: ClaimExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: ClaimExample, clean: Any) -> ClaimExample:
        return example.model_copy(update={"text": clean(example.text, lines=True), "claim": clean(example.claim)})


@dataclass(frozen=True)
class Claims:
    """Yes or no for each of several claims, line by line."""

    name: str
    kind: Literal["statement", "opinion"]
    scale: Scale = YES_NO
    layout: AnswerLayout = _FIRST_LINE
    example_type: type = ClaimsExample
    delimiters: tuple[str, ...] = ("Text", "Statements", "Opinions")
    usual: bool = False
    served: str | None = None
    writes_review: bool = False

    def stem(self, number: int) -> str:
        return f"{number}: "

    def text_stem(self, number: int) -> None:
        return None

    def read(self, number: int, of: int, answer: str) -> tuple[str | None, str]:
        lines = _lines_of(number, answer)
        told = lines or ([answer.replace("[Answer]", "")] if of == 1 else [])
        labels = {read_written(line, self.scale, label_prefix=self.stem(number), text_prefix=None)[0] for line in told}
        return (labels.pop() if len(labels) == 1 else None), " / ".join(lines)

    def asks(self, example: ClaimsExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording = macros("verify.jinja")
        ask = wording.ask_each(self.kind, example.claims)
        return (Ask(wording.instruction(self.kind, several=True), (), wording.query(example.text), ask),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: ClaimsExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: ClaimsExample, clean: Any) -> ClaimsExample:
        claims = tuple(clean(claim) for claim in example.claims)
        return example.model_copy(update={"text": clean(example.text, lines=True), "claims": claims})


VERIFY_FACT = Claim("verify_fact", "statement", served="whether the text states it")
VERIFY_OPINION = Claim("verify_opinion", "opinion", served="whether the text holds the opinion")
MASK_CONFLICT = replace(VERIFY_FACT, name="mask_conflict", served=None)
"""Is a nonsupporting paragraph's fact also said by the supporting ones? The paper asks as it verifies facts (KGDS, section 4.4)."""

OPINION_ERROR = Claim(
    "opinion_error", "opinion", "opinion_error.jinja", ERRORS, AnswerLayout(text_prefix=None, label_prefix="[Type] ")
)
"""Which of five types of error keeps an opinion from being covered? The text is the opinion summary."""

VERIFY_FACTS = Claims(
    "verify_facts", "statement", served="which of several the text states, each read behind the answers before it"
)


def _lines_of(number: int, answer: str) -> list[str]:
    """The lines of an answer that begin with this number, or with one word and it ("Statement 2: no"), from the number on."""
    return re.findall(rf"(?m)^\W*(?:[A-Za-z]+ )?({number}\b(?![.,]\d)\W.*)$", answer)


_NOT_LEARNED = "question '{}' has no examples to be trained on; choose another question"
