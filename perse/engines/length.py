"""How a chat server is told the length of its answers, and whether it kept to it.

OpenAI's API has two names for it, and refuses requests with both. `max_tokens` is the older one: nearly every server knows it, and those that do not
(OpenAI's reasoning models) say so. `max_completion_tokens` is passed over in silence by servers that do not know it, such as
llama-cpp-python's and `transformers serve`, which then write until the context is full. So the older name comes first.
"""

from __future__ import annotations

import re

NAMES = ("max_tokens", "max_completion_tokens")
"""In the order in which they are tried."""

_UNKNOWN = re.compile(
    r"un(?:supported|recogni[sz]ed|known|expected)|not (?:supported|permitted|allowed|recogni[sz]ed)|extra|instead",
    re.IGNORECASE,
)

LONGEST_TOKEN = 200
"""Characters; tokenizers have some of 128 spaces."""

SLACK = 2
"""Tokens by which a server may count more than were asked for: some count the end of the turn, or its beginning."""


def refused(name: str, message: str) -> bool:
    """Whether a refusal is of this name of the limit, and not of its value."""
    return re.search(rf"\b{name}\b", message) is not None and _UNKNOWN.search(message) is not None


def too_long(text: str, most: int, *, counted: int = 0) -> str:
    """What is wrong with an answer that has more than `most` tokens; empty for one that may have no more.

    Args:
        counted: its tokens by the server's count, 0 if that is not known: then words are counted, each of which is a token at least.
    """
    # A count that the text cannot have is of something else, such as thoughts that are not shown.
    tokens = counted if 0 < counted <= max(len(text), most) else len(text.split())
    if tokens > most + SLACK:
        return (
            f"it wrote {tokens:,} tokens where {most:,} were allowed, so it keeps to no limit; set the longest answer at the server, "
            "or allow as much (--max-new-tokens)"
        )
    if len(text) > LONGEST_TOKEN * most:
        return f"an answer of {len(text):,} characters, far more than the tokens that were asked for can have"
    return ""
