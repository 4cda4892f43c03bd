"""Reads a model's answer: the JSON object of a summary, or why it has none.

The form is the authors' (`Extractive_Background_Summary` is a list of "<Paragraph_3>"). "Paragraph 3" and 3 are understood, too; tags that
name no paragraph are told apart from the others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from perse.kgds.benchmark import Pattern
from perse.writing.objects import last_object, object_form, share_of, text_form, text_of, whole_characters

EXTRACTIVE = "Extractive_Background_Summary"
ABSTRACTIVE = "Abstractive_Background_Summary"
OPINIONS = "Abstractive_Opinion_Summary"
REFLECTION = "Reflection"

_TAG_TOKENS = 8
"""About the size of one paragraph in its list."""


@dataclass(frozen=True)
class Content:
    """The content of a summary: `paragraphs` or `background`, and `opinions`; `answer` is the whole object as JSON, and `odd` are the tags
    in its list that name no paragraph."""

    paragraphs: tuple[int, ...] | None
    background: str | None
    opinions: str
    answer: str
    odd: tuple[str, ...] = ()


def schema(pattern: Pattern, *, reflects: bool, max_new_tokens: int) -> dict[str, Any]:
    """JSON Schema of an answer that fits into so many tokens."""
    parts = 2 + reflects
    share = share_of(max_new_tokens, parts)
    text = text_form(share)
    tags = {
        "type": "array",
        "items": {"type": "string", "pattern": "^<Paragraph_[1-9][0-9]{0,3}>$"},
        "minItems": 1,  # an empty choice is never right, and the first thing that a small model writes
        "maxItems": max(1, share // _TAG_TOKENS),
    }
    fields: dict[str, Any] = {REFLECTION: text} if reflects else {}
    fields |= {EXTRACTIVE: tags} if pattern == "ebs-aos" else {ABSTRACTIVE: text}
    fields[OPINIONS] = text
    return object_form(fields)


def read_content(answer: str, pattern: Pattern) -> Content:
    """The summary in a model's answer.

    Raises:
        ValueError: there is no summary; the message is a sentence that the model can be sent.
    """
    return content_of(last_object(answer, OPINIONS), pattern)


def content_of(found: dict[str, Any], pattern: Pattern) -> Content:
    """The summary in an answer's object.

    Raises:
        ValueError: as `read_content`.
    """
    answer = json.dumps(found, ensure_ascii=False)
    if pattern == "abs-aos":
        return Content(None, text_of(found, ABSTRACTIVE), text_of(found, OPINIONS), answer)
    paragraphs, odd = _paragraphs(found.get(EXTRACTIVE))
    return Content(paragraphs, None, text_of(found, OPINIONS), answer, odd)


def paragraph_number(tag: object) -> int | None:
    """The number in "<Paragraph_3>", "Paragraph 3" or 3; None for anything else."""
    if isinstance(tag, int) and not isinstance(tag, bool):
        return tag
    match = re.fullmatch(r"\s*<?\s*Paragraph[_ ]?(\d{1,4})\s*>?\s*", tag, flags=re.IGNORECASE) if isinstance(tag, str) else None
    return int(match[1]) if match else None


def _paragraphs(value: object) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The paragraphs in a list, and the tags that name none."""
    if not isinstance(value, list):
        raise ValueError(f'the key {EXTRACTIVE} must have a list such as ["<Paragraph_2>"]')
    numbers = [paragraph_number(tag) for tag in value]
    odd = [
        json.dumps(tag)[:60] if not isinstance(tag, str) else whole_characters(tag)
        for tag, n in zip(value, numbers, strict=True)
        if n is None
    ]
    return tuple(sorted({number for number in numbers if number is not None})), tuple(dict.fromkeys(odd))
