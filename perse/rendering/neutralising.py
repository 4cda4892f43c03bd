"""Makes untrusted text safe: the one place where texts from files are neutralised (DESIGN.md, promise 9).

A review can say "[Score] 10", or the words with which a template ends a turn. Neither may pass for ours, so a space is put behind
the first character of each. What is ours is said where it is written: every question names its delimiters, and prompts that ask for
texts have theirs in `perse.prompts`. A question of another package adds its own to those of this package in its own prompts only,
so that what is installed changes no other prompt.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from perse.prompts import DELIMITERS
from perse.questions import QUESTIONS, Question

EMPTY = "(empty)"
"""Shown in place of a text of which nothing is left."""

ANY_MARKER = re.compile(r"<{1,2}[|\uff5c/]?[\w\u2581 .-]{1,40}[|\uff5c]?>{1,2}|\[/?[A-Z_]{3,40}\]")
"""Anything that some template could read as its own: <|im_end|>, </s>, <end_of_turn>, <\uff5cUser\uff5c>, <<SYS>>, [INST]."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\ufeff]")


def neutralised(text: str, markers: re.Pattern[str], *, lines: bool, question: Question | None = None) -> str:
    """`text` without delimiters of ours and markers of the template.

    White space is collapsed (line breaks kept when `lines`), control and zero-width characters go, and a space is put
    after the first character of anything that reads as one of our delimiters or of the template's markers.

    Args:
        question: whose prompt the text is for, if it is for a question.
    """
    text = _CONTROL.sub(" ", text.encode("utf-8", "replace").decode("utf-8"))
    kept = [" ".join(line.split()) for line in text.splitlines()]
    text = ("\n" if lines else " ").join(line for line in kept if line)
    own = tuple(question.delimiters) if question else ()
    return _delimiters(own).sub("[ ", broken(text, markers))


def broken(text: str, markers: re.Pattern[str]) -> str:
    """`text` with a space behind the first character of each marker."""
    return markers.sub(lambda found: found[0][0] + " " + found[0][1:], text)


@lru_cache(maxsize=64)
def _delimiters(own: tuple[str, ...]) -> re.Pattern[str]:
    """A line that begins with a bracket could pass for any of ours, aspects included; ours pass for themselves anywhere."""
    known = {"INST", *DELIMITERS, *own, *(word for question in QUESTIONS.own.values() for word in question.delimiters)}
    words = "|".join(re.escape(word) for word in sorted(known))
    return re.compile(rf"^\[(?=\S)|\[(?=/?(?:{words})\b)", re.IGNORECASE | re.MULTILINE)


def marker_pattern(tokenizer: Any, frame: str) -> re.Pattern[str]:
    """Strings that no text may contain: the tokenizer's special and added tokens and the words of `frame`, which stand around the turns."""
    added = [token.content for token in tokenizer.added_tokens_decoder.values()]
    framing = re.findall(r"<\|[^|<>]+\|>|<[^<>\s]+>|<<[^<>\s]+>>|\[[^\[\]\s]+\]", frame)
    known = ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"]
    markers = {marker.strip() for marker in (*tokenizer.all_special_tokens, *added, *framing, *known)}
    longest_first = sorted((marker for marker in markers if len(marker) > 1), key=lambda m: (-len(m), m))
    return re.compile("|".join(map(re.escape, longest_first)))
