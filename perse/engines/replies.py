"""What a server of the OpenAI API answered: its fields, looked at one by one, since any program can stand behind an address."""

from __future__ import annotations

import math
from typing import Any

from perse.engines.base import Reply, Told
from perse.engines.completions import NEVER, ROUNDING, possible
from perse.engines.http import safe
from perse.engines.length import too_long
from perse.judgement import MOST_TOKENS, Tokens
from perse.secrets import without_keys


class Strange(ValueError):
    """An answer that the OpenAI API does not have; the message says what is wrong with it."""


def first_choice(answer: Any) -> Any:
    """The first of an answer, and the only one that was asked for."""
    if isinstance(answer, list | str):
        raise Strange(f"a JSON {'list' if isinstance(answer, list) else 'string'}, expected an object with 'choices'")
    choices = getattr(answer, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise Strange("an answer without choices")
    return choices[0]


def number(told: Any) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise Strange(f"a log-probability is no number but {type(told).__name__}")
    return float(told)


def end_reason(choice: Any) -> str:
    """Why the answer ended: a word, which judgements keep."""
    return safe(str(choice.finish_reason))[:40]


def reply_of(answer: Any, most: int) -> Reply:
    """The answer, which may have `most` tokens."""
    chosen = first_choice(answer)
    message, ended = chosen.message, end_reason(chosen)
    if message is None:
        raise Strange("a choice without a message")
    refusal = getattr(message, "refusal", None)
    text = message.content or refusal or ""
    if not isinstance(text, str):
        raise Strange(f"the message's content is no text but {type(text).__name__}")
    if wrong := too_long(text, most, counted=_written(answer, message)):
        raise Strange(wrong)
    return Reply(
        without_keys(text.encode("utf-8", "replace").decode()),
        ended,
        tokens_of(answer),
        refused=bool(refusal) or ended == "content_filter",
        told=told_of(chosen),
    )


def told_of(choice: Any) -> tuple[Told, ...]:
    """The likeliest tokens in the place of each that was written; none where the server does not tell them.

    Raises:
        Strange: log-probabilities that cannot be.
    """
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    return tuple(_told(one) for one in content) if isinstance(content, list) else ()


def _told(step: Any) -> Told:
    listed = [(_text(one.token), number(one.logprob)) for one in step.top_logprobs or ()]
    own = _text(step.token), number(step.logprob)
    listed = [(token, p) for token, p in listed if not p <= NEVER]  # so some write what they do not tell
    bound = min((p for _, p in listed), default=None)
    known = tuple(listed) if any(token == own[0] for token, _ in listed) or own[1] <= NEVER else (*listed, own)
    if not known:
        raise Strange("a token without a log-probability")
    if not possible(p for _, p in known):
        raise Strange(f"invalid log-probabilities: {[p for _, p in known[:20]]}")
    if (together := math.fsum(math.exp(p) for _, p in known)) > 1 + ROUNDING:
        raise Strange(f"the tokens of a step were told to have {together:.4g} of the probability, more than all of it")
    return Told(own[0], known, bound)


def _text(token: Any) -> str:
    if not isinstance(token, str):
        raise Strange(f"a token's text is {type(token).__name__}")
    return token


def tokens_of(answer: Any) -> Tokens:
    usage = getattr(answer, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Tokens(
        prompt=_count(getattr(usage, "prompt_tokens", None)),
        cached=_count(getattr(details, "cached_tokens", None)),
        generated=_count(getattr(usage, "completion_tokens", None)),
    )


def _written(answer: Any, message: Any) -> int:
    """The tokens of the text alone, as the server counts them; 0 where it does not tell, or counts what it thought, too."""
    usage = getattr(answer, "usage", None)
    thought = _count(getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None))
    if not thought and (getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)):
        return 0
    return max(0, _count(getattr(usage, "completion_tokens", None)) - thought)


def _count(told: object) -> int:
    """A server's token count; 0 if missing or impossible."""
    return told if type(told) is int and 0 <= told <= MOST_TOKENS else 0
