"""Reads a model's answer: the JSON object of a summary, or why it has none.

The form is the authors' (`Extractive_Background_Summary` is a list of "<Paragraph_3>"). Words and code fences around the object are passed
over, and "Paragraph 3" or 3 are understood; nothing else is repaired, since a guess would be scored as the model's. Tags that name no
paragraph are told apart from the others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from perse.kgds.benchmark import Pattern

EXTRACTIVE = "Extractive_Background_Summary"
ABSTRACTIVE = "Abstractive_Background_Summary"
OPINIONS = "Abstractive_Opinion_Summary"
REFLECTION = "Reflection"

_CHARACTERS = 3
"""Characters of a string per allowed token: an English token has four or five, so a runaway string ends before the tokens do."""

_TAG_TOKENS = 8
"""About the size of one paragraph in its list."""

_KEY_TOKENS = 20
"""The most for a key with the JSON around it and its value."""


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
    share = max_new_tokens // parts - _KEY_TOKENS
    text = {"type": "string", "minLength": 1, "maxLength": max(40, _CHARACTERS * share)}
    tags = {
        "type": "array",
        "items": {"type": "string", "pattern": "^<Paragraph_[1-9][0-9]{0,3}>$"},
        "minItems": 1,  # an empty choice is never right, and the first thing that a small model writes
        "maxItems": max(1, share // _TAG_TOKENS),
    }
    fields: dict[str, Any] = {REFLECTION: text} if reflects else {}
    fields |= {EXTRACTIVE: tags} if pattern == "ebs-aos" else {ABSTRACTIVE: text}
    fields[OPINIONS] = text
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def read_content(answer: str, pattern: Pattern) -> Content:
    """The summary in a model's answer.

    Raises:
        ValueError: there is no summary; the message is a sentence that the model can be sent.
    """
    return content_of(_object(answer), pattern)


def content_of(found: dict[str, Any], pattern: Pattern) -> Content:
    """The summary in an answer's object.

    Raises:
        ValueError: as `read_content`.
    """
    answer = json.dumps(found, ensure_ascii=False)
    if pattern == "abs-aos":
        return Content(None, _text(found, ABSTRACTIVE), _text(found, OPINIONS), answer)
    paragraphs, odd = _paragraphs(found.get(EXTRACTIVE))
    return Content(paragraphs, None, _text(found, OPINIONS), answer, odd)


def paragraph_number(tag: object) -> int | None:
    """The number in "<Paragraph_3>", "Paragraph 3" or 3; None for anything else."""
    if isinstance(tag, int) and not isinstance(tag, bool):
        return tag
    match = re.fullmatch(r"\s*<?\s*Paragraph[_ ]?(\d{1,4})\s*>?\s*", tag, flags=re.IGNORECASE) if isinstance(tag, str) else None
    return int(match[1]) if match else None


def _object(answer: str) -> dict[str, Any]:
    """The one JSON object of an answer; of several, the last one with a key of ours. Earlier objects are scratch work."""
    decoder = json.JSONDecoder(strict=False)
    found: list[dict[str, Any]] = []
    fault = "there is no JSON object in the answer"
    at = answer.find("{")
    while at >= 0:
        try:
            one, end = decoder.raw_decode(answer, at)
        except json.JSONDecodeError as error:
            fault, end = f"the JSON object is not valid ({error.msg} at character {error.pos + 1})", at + 1
        except RecursionError:
            raise ValueError("the JSON object is nested; give its keys directly") from None
        else:
            found += [one] if isinstance(one, dict) and OPINIONS in one else []
        at = answer.find("{", end)
    if not found:
        raise ValueError(fault if "not valid" in fault else f"{fault} with the key {OPINIONS}")
    return found[-1]


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"the key {key} must have a text")
    return _whole(value).strip()


def _paragraphs(value: object) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The paragraphs in a list, and the tags that name none."""
    if not isinstance(value, list):
        raise ValueError(f'the key {EXTRACTIVE} must have a list such as ["<Paragraph_2>"]')
    numbers = [paragraph_number(tag) for tag in value]
    odd = [
        json.dumps(tag)[:60] if not isinstance(tag, str) else _whole(tag)
        for tag, n in zip(value, numbers, strict=True)
        if n is None
    ]
    return tuple(sorted({number for number in numbers if number is not None})), tuple(dict.fromkeys(odd))


def _whole(text: str) -> str:
    """A text without half characters, which no file takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
