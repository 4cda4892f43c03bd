"""JSON objects in what models write: the form that they are held to, and how an answer is read.

Words and code fences around an object are passed over. Nothing is repaired, since a guess would count as the model's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_CHARACTERS = 3
"""Characters of a string per allowed token: an English token has four or five, so a runaway string ends before the tokens do."""

_KEY_TOKENS = 20
"""The most for a key with the JSON around it and its value."""


def share_of(max_new_tokens: int, parts: int) -> int:
    """Tokens that each of so many values of one object may take."""
    return max_new_tokens // parts - _KEY_TOKENS


def text_form(tokens: int) -> dict[str, Any]:
    """JSON Schema of a text that fits into so many tokens."""
    return {"type": "string", "minLength": 1, "maxLength": max(40, _CHARACTERS * tokens)}


def object_form(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object that has these fields, in this order, and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def texts_form(keys: Sequence[str], *, max_new_tokens: int) -> dict[str, Any]:
    """JSON Schema of an object that has a text under each key, in so many tokens together."""
    return object_form({key: text_form(share_of(max_new_tokens, len(keys))) for key in keys})


def last_object(answer: str, key: str) -> dict[str, Any]:
    """The last JSON object of an answer that has the key; earlier ones are scratch work.

    Raises:
        ValueError: there is none; the message is a sentence that the model can be sent.
    """
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
            found += [one] if isinstance(one, dict) and key in one else []
        at = answer.find("{", end)
    if not found:
        raise ValueError(fault if "not valid" in fault else f"{fault} with the key {key}")
    return found[-1]


def text_of(found: dict[str, Any], key: str) -> str:
    """The text under a key, without half characters, which no file takes.

    Raises:
        ValueError: there is none.
    """
    value = found.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"the key {key} must have a text")
    return whole_characters(value).strip()


def whole_characters(text: str) -> str:
    """`text` without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")
