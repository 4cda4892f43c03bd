"""What a model answers when it is asked who would read a text: types and descriptions.

One form is asked for, a JSON object with a list, to which engines that obey a schema are held. Read, too, is what is as clear: lines of "Type: description",
numbered or bulleted or not, in answers that have no such object. Nothing is guessed: what is neither is counted, and asked for again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from perse.identity import normalised
from perse.writing.loop import Bad, Fair, Good
from perse.writing.objects import last_object, object_form, share_of

READERS, TYPE, DESCRIPTION = "Readers", "Who", "About"

LONGEST_TYPE = 60
"""Characters of a type; what is longer is a sentence."""

_TYPE_TOKENS = 12
"""Of a description two thirds of the tokens that are left are words: an English word has one or two."""

NO_TYPES = frozenset(
    {
        "who",
        "about",
        "type",
        "description",
        "reader",
        "readers",
        "user",
        "users",
        "answer",
        "note",
        "they",
        "these",
        "he",
        "she",
        "it",
    }
)
"""Words of the form itself, and of its sentences, which some models write where a type should stand."""

_MARK = re.compile(r"\s*(?:[-\u2022\u2013*+]\s+|\(?\d{1,3}[.):]\s*|\(?[a-z][.)]\s+)")
_LINE = re.compile(r"\s*(?P<type>[^:]*?)\s*(?::|\s[-\u2013\u2014]\s)\s*(?P<description>.*)")
_EMPHASIS = re.compile(r"\*\*|__|`")


class Fault(StrEnum):
    """Problems of an answer."""

    NO_ROLES = "no_roles"
    FEW_ROLES = "few_roles"


@dataclass(frozen=True)
class Listed:
    """The types and descriptions of an answer, each type once; `dropped` counts entries that are none, by reason."""

    pairs: tuple[tuple[str, str], ...]
    dropped: dict[str, int] = field(default_factory=dict)


def readers_form(number: int, max_new_tokens: int) -> dict[str, Any]:
    """JSON Schema of so many readers, in so many tokens together. A description is one sentence about them, without digits: small models like to number, and to
    go on with the form."""
    most = max(12, (share_of(max_new_tokens, number) - _TYPE_TOKENS) * 2 // 3)
    kind = {"type": "string", "pattern": r"^[A-Z][A-Za-z'-]{2,20}( [A-Za-z'-]{1,20}){0,3}$"}
    description = {"type": "string", "pattern": rf"^They( [^0-9{{}}\[\]\"\\\s.:]{{1,20}}){{4,{most}}}[.]$"}
    one = object_form({TYPE: kind, DESCRIPTION: description})
    return object_form({READERS: {"type": "array", "items": one, "minItems": number, "maxItems": number}})


def read_listed(answer: str, *, number: int) -> Good[Listed] | Fair[Listed] | Bad:
    """The first `number` readers of an answer. Fewer are asked for once more, and kept if there are not to be more."""
    try:
        entries = list(_objects(answer))
    except ValueError as error:
        entries, fault = list(_lines(answer)), f"{error}."
    else:
        fault = f"the list {READERS} has no object with the keys {TYPE} and {DESCRIPTION}."
    pairs: dict[str, tuple[str, str]] = {}
    dropped: Counter[str] = Counter()
    for kind, description in entries:
        if why := _unusable(kind, description):
            dropped[why] += 1
        elif (key := normalised(kind)) in pairs:
            dropped["duplicate"] += 1
        elif len(pairs) == number:
            dropped["extra"] += 1
        else:
            pairs[key] = (kind, description)
    if not pairs:
        return Bad(Fault.NO_ROLES, fault)
    found = Listed(tuple(pairs.values()), dict(sorted(dropped.items())))
    if len(pairs) == number:
        return Good(found)
    why = "".join(f", {count} {word}" for word, count in found.dropped.items())
    reason = f"{number} different types of readers were asked for, each with a description; there are {len(pairs)}{why}."
    return Fair(found, Fault.FEW_ROLES, reason, rank=number - len(pairs))


def _unusable(kind: str, description: str) -> str:
    """Why an entry is no role, or nothing."""
    if not normalised(kind) and not normalised(description):
        return "empty"
    if not any(map(str.isalpha, kind)) or len(kind) > LONGEST_TYPE or normalised(kind) in NO_TYPES:
        return "malformed"
    return "" if any(map(str.isalpha, description)) else "without description"


def _objects(answer: str) -> Iterator[tuple[str, str]]:
    """Raises:
    ValueError: there is no object with the list.
    """
    listed = last_object(answer, READERS)[READERS]
    if not isinstance(listed, list):
        raise ValueError(f"the key {READERS} must have a list")
    for one in listed:
        fields = one if isinstance(one, dict) else {}
        kind, description = (fields.get(key) for key in (TYPE, DESCRIPTION))
        yield _plain(kind), _plain(description)


def _lines(answer: str) -> Iterator[tuple[str, str]]:
    """Where two lines or more are numbered or bulleted, these alone are entries; else every line with a colon is one, but for one that announces a list."""
    lines = [_EMPHASIS.sub("", line) for line in answer.splitlines() if line.strip()]
    marked = [line for line in lines if _MARK.match(line)]
    for line in marked if len(marked) > 1 else lines:
        found = _LINE.fullmatch(_MARK.sub("", line, count=1))
        if found and (found["description"] or len(marked) > 1):
            yield _plain(found["type"]), _plain(found["description"])
        elif len(marked) > 1:
            yield _plain(line), ""


def _plain(text: Any) -> str:
    """One line of whole, printable characters; nothing where it is no text."""
    if not isinstance(text, str):
        return ""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(one if one.isprintable() else " " for one in whole).split()).strip("\"'").strip()
