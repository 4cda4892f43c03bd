"""What changed from one text to the next, by words: what stayed, what went and what came, in the order of reading.

A text of which little stayed is told as a new one: a word here and there that both have would only be in the way of reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["=", "-", "+"]
"""Stayed, went, came."""

LEAST_STAYED = 0.3
"""Of the words of both texts; below it, the second is a new text."""

_WORDS = re.compile(r"(\w+(?:['’]\w+)*|[^\w\s]|^)(\s*)")  # noqa: RUF001 (both apostrophes are written)


@dataclass(frozen=True)
class Change:
    """A piece of text, and what became of it."""

    kind: Kind
    text: str


def changes(before: str, after: str) -> tuple[Change, ...]:
    """Pieces of both texts: those that stayed and those that went make up `before`, those that stayed and those that came `after`.

    Where both went and came, what went stands first. No piece is empty, and no two of one kind follow each other.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, [word for word, _ in old], [word for word, _ in new], autojunk=False)
    if before != after and matcher.ratio() < LEAST_STAYED:
        return tuple(Change(kind, text) for kind, text in _of(before, after))
    found: list[Change] = []
    went = came = ""
    for stayed, old_text, new_text in _runs(matcher, old, new):
        if not stayed:
            went, came = went + old_text, came + new_text
            continue
        for kind, text in (*_of(went, came), ("=", old_text)):
            if found and found[-1].kind == kind:
                text = found.pop().text + text
            if text:
                found.append(Change(kind, text))
        went = came = ""
    return (*found, *(Change(kind, text) for kind, text in _of(went, came)))


def is_new(found: Sequence[Change]) -> bool:
    """Whether nothing of the text before stayed."""
    return [one.kind for one in found] == ["-", "+"]


_Word = tuple[str, str]
"""A word, or a sign, and the space behind it."""


def _runs(matcher: SequenceMatcher[str], old: Sequence[_Word], new: Sequence[_Word]) -> Iterator[tuple[bool, str, str]]:
    """(whether it stayed, text before, text after), in order. The space behind a word that stayed may have changed."""
    for operation, a, b, c, d in matcher.get_opcodes():
        went, came = _text(old[a:b]), _text(new[c:d])
        if operation != "equal":
            space = _common_space(went, came)
            yield False, went.removesuffix(space), came.removesuffix(space)
            if space:
                yield True, space, space
        elif went == came:
            yield True, went, came
        else:
            for (word, old_space), (_, new_space) in zip(old[a:b], new[c:d], strict=True):
                yield True, word, word
                yield old_space == new_space, old_space, new_space


def _text(words: Sequence[_Word]) -> str:
    return "".join([word + space for word, space in words])


def _common_space(one: str, other: str) -> str:
    """The space that both end with, if something stands before it in both."""
    space = one[len(one.rstrip()) :]
    return space if one.strip() and other.strip() and space == other[len(other.rstrip()) :] else ""


def _of(went: str, came: str) -> list[tuple[Kind, str]]:
    both: tuple[tuple[Kind, str], ...] = (("-", went), ("+", came))
    return [(kind, text) for kind, text in both if text]


def lengths(found: Sequence[Change]) -> str:
    """The changes without their texts, as the page's script has them: "=12-5+7", in UTF-16 units, which are what it counts in."""
    return "".join(f"{one.kind}{len(one.text.encode('utf-16-le', 'surrogatepass')) // 2}" for one in found)
