"""Which atomic facts does a paragraph state? The prompt for a writer, the parser of its answer, and the checks (KGDS, 4.4).

The answer is text, not a label: there is no scale, so this is no `Question` and not in the registry. What a program can see of "indivisible,
independent, declarative" is little (several sentences, a pronoun at the beginning, a question), and it sees some of it wrongly; so only
what is certainly no decomposition is refused, and for the rest a better answer is asked for once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from perse.identity import normalised
from perse.prompts import macros

SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 64}},
    "required": ["facts"],
    "additionalProperties": False,
}
"""Of an answer, for engines that obey one. The longest list of the published benchmark has 17 facts."""

TEMPLATE = "decompose.jinja"

EXAMPLE = "Lena Abt, 34, opened a bakery in Velm on Friday. Her bank had refused her a loan twice."
EXAMPLE_NAMES = ("Abt", "Velm")
EXAMPLE_FACTS = (
    "Lena Abt is 34 years old.",
    "Lena Abt opened a bakery.",
    "Lena Abt's bakery is in Velm.",
    "Lena Abt's bakery opened on Friday.",
    "Lena Abt's bank refused her a loan twice.",
)

_BEGIN = re.compile(r'\{\s*["}]|\[\s*["\]]')
"""How the JSON that is asked for begins; other brackets are words around it."""

_QUOTED = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
_END = re.compile(r"(?:\b(?:[a-z]{3,}|\w{5,}|\d{2,})|[)\]%])[.!?](?=\s+[\"\u201c(]?[A-Z])")
"""Where a sentence ends and another begins: after a word that is no abbreviation, as "Co.", "vs." or "p.m." may be."""

_LETTER = re.compile(r"[^\W\d_]")
_REFERRING = re.compile(r"(?:he|she|they|we|his|her|hers|their|theirs|our|its|him|them|these|those)\b", re.IGNORECASE)
""" "It" is not among them: "It is unclear who fired" refers to nothing."""


class Fault(StrEnum):
    """Problems of facts that can be read."""

    WHOLE = "whole"
    """A fact that is the whole paragraph, of several sentences."""
    ECHOED = "echoed"
    """A fact about somebody of the prompt's example: a small model retells it, and not always in its words."""
    SEVERAL = "several"
    """A fact of several sentences."""
    REFERRING = "referring"
    """A fact that begins with a pronoun."""
    QUESTION = "question"
    TWICE = "twice"
    """A repeated fact of a paragraph. The published benchmark has none."""


REFUSED = (Fault.WHOLE, Fault.ECHOED)
"""Faults that are certain, and leave nothing to use."""


@dataclass(frozen=True)
class Problem:
    """One fault of one fact; `reason` is a sentence that the model is sent."""

    kind: Fault
    reason: str


def ask(article: Sequence[str], number: int) -> str:
    """The prompt about paragraph `number`, from 1; the texts are neutralised already.

    The article comes first: it is shared by all its paragraphs, and has the names that a paragraph only refers to.
    """
    wording: Any = macros(TEMPLATE)
    example = {"paragraph": EXAMPLE, "answer": json.dumps({"facts": EXAMPLE_FACTS})}
    return str(wording.ask([" ".join(text.split()) for text in article], number, example))


def again(answer: str, reason: str) -> str:
    """The addition for another try."""
    wording: Any = macros(TEMPLATE)
    return str(wording.again(answer, reason))


def read_facts(answer: str) -> tuple[str, ...]:
    """The facts of an answer, with single spaces: of {"facts": [...]}, or of a plain list; words around it are passed over.

    What is not strict JSON is not repaired: half a list would be half a paragraph.

    Raises:
        ValueError: no such JSON, more than one, no fact, or one that is no text; the message is a sentence without its full stop.
    """
    begin = _BEGIN.search(answer)
    if begin is None:
        raise ValueError("there is no JSON object in the answer")
    try:
        found, end = json.JSONDecoder(object_pairs_hook=tuple).raw_decode(answer, begin.start())
    except json.JSONDecodeError as error:
        before = answer[max(0, error.pos - 30) : error.pos]
        raise ValueError(f"there is no valid JSON object in the answer ({error.msg} after {before!r})") from None
    except RecursionError:
        raise ValueError("the JSON object is nested; give one list of facts") from None
    if _BEGIN.search(answer, end):
        raise ValueError("there is more than one JSON object in the answer; give one")
    if isinstance(found, tuple):  # the pairs of an object, where a key may be there twice
        if [key for key, _ in found] != ["facts"]:
            raise ValueError('the JSON object must have the key "facts", once, and no other')
        found = found[0][1]
    if not isinstance(found, list) or not all(isinstance(fact, str) for fact in found):
        raise ValueError("the facts are no list of texts; give each fact as one text")
    facts = tuple(" ".join(fact.split()) for fact in found)
    if not facts or not all(_LETTER.search(fact) for fact in facts):
        raise ValueError("there is no fact in the list, or one without a word; give every fact of the paragraph")
    if any("\ud800" <= char <= "\udfff" for fact in facts for char in fact):
        raise ValueError("the JSON object has an invalid escaped character; write facts plainly")
    return facts


def problems(facts: Sequence[str], paragraph: str, *, article: Sequence[str] = ()) -> tuple[Problem, ...]:
    """The problems that a program can find in the facts of a paragraph of `article`, at most one per fact."""
    foreign = [name for name in EXAMPLE_NAMES if not any(name in text for text in (paragraph, *article))]
    keys = [normalised(fact) for fact in facts]
    found = (
        Problem(Fault.TWICE, f'"{fact}" is given twice; give each fact once.')
        if keys[at] in keys[:at]
        else _problem(fact, paragraph, foreign)
        for at, fact in enumerate(facts)
    )
    return tuple(problem for problem in found if problem)


def _problem(fact: str, paragraph: str, foreign: Sequence[str]) -> Problem | None:
    if echoed := next((name for name in foreign if name in fact), None):
        return Problem(Fault.ECHOED, f"{echoed} is of the example, not of the article; give facts of the paragraph only.")
    if _END.search(_QUOTED.sub("", fact)):
        if normalised(fact) == normalised(paragraph):
            return Problem(Fault.WHOLE, "A fact is the whole paragraph; give each thing that it states as a fact of its own.")
        return Problem(Fault.SEVERAL, f'"{fact}" has several sentences; make it several facts.')
    if referring := _REFERRING.match(fact):
        return Problem(Fault.REFERRING, f'"{fact}" begins with "{referring[0]}"; write whom or what it is about.')
    if fact.endswith("?"):
        return Problem(Fault.QUESTION, f'"{fact}" is a question; write what the paragraph states.')
    return None
