"""JSON schemas as masks over the next token, for an engine that chooses its tokens itself.

A schema is compiled once, by llguidance, and every text has a matcher of its own that says which tokens may come next. So a
text that follows the schema by itself is written as if there were none. Where the schema leaves no choice, the tokens are
those that the tokenizer makes of it, and yet each costs a forward pass: simple, and small beside the strings. No white
space is allowed between JSON tokens, because a small model may write line breaks without end. Shapes: N
texts, V vocabulary.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from llguidance import LLMatcher, LLParserLimits
from llguidance.hf import from_tokenizer
from torch import Tensor

from perse.bounded import Exceeded, Failed, Stalled, bounded
from perse.errors import BadInput

MOST_ITEMS = 10_000
"""Largest number of items or properties that a schema may name: llguidance lays them out one by one, gigabytes for a thousand million."""

_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties")

SECONDS, MEGABYTES = 2, 512
"""What compiling a schema may take: names of a text take milliseconds."""

FIRST_TOKENS = 3
"""Tokens of a text that are tried before a schema is taken."""

KEPT = 64
"""Compiled schemas kept for the next call; compiling takes about a millisecond, for a long schema 50."""

log = logging.getLogger(__name__)


class Grammars:
    """JSON schemas over one tokenizer's vocabulary.

    Args:
        tokenizer: a fast Hugging Face tokenizer; preparing it takes about half a second.
    Raises:
        BadInput: the tokenizer cannot be used.
    """

    def __init__(self, tokenizer: Any) -> None:
        try:
            self._vocabulary = from_tokenizer(tokenizer)
        except ValueError as error:
            raise BadInput(
                f"the embedded engine cannot follow a JSON schema with a {type(tokenizer).__name__} ({_line(str(error))}); "
                "use a model with a fast tokenizer (tokenizer.json), or serve this one with vLLM"
            ) from None
        self._compiled = lru_cache(KEPT)(self._compile)

    def guides(self, schema: Mapping[str, Any], stop_ids: frozenset[int], *, count: int) -> list[Guide]:
        """A guide for each of `count` texts. Properties come in the schema's order.

        Raises:
            BadInput: the schema is wrong, or has a part that llguidance does not know; or there is nothing to stop with.
        """
        if not stop_ids:
            raise BadInput("a JSON schema needs Sampling.stop_ids: nothing else may follow a whole JSON text; give the end ids")
        matcher = self._compiled(json.dumps(dict(schema)))
        return [Guide(matcher.deep_copy(), stop_ids=sorted(stop_ids), ends=self._vocabulary.eos_tokens) for _ in range(count)]

    def _compile(self, schema: str) -> LLMatcher:
        _refuse_long_lists(json.loads(schema))
        try:  # its compiler has no bounds of its own for some schemas, such as thirty patterns that must all hold
            problem = bounded(lambda: self._begun(schema)[1], seconds=SECONDS, megabytes=MEGABYTES)
        except Exceeded as error:
            raise BadInput(f"the embedded engine cannot follow this JSON schema: {error}; ask for less of the text") from None
        except Stalled as error:
            raise BadInput(f"the embedded engine could not look at this JSON schema: {error}") from None
        except Failed as error:
            problem = str(error)
        if problem:
            raise BadInput(f"the embedded engine cannot follow this JSON schema: {problem}; correct that part or leave it out")
        matcher, _ = self._begun(schema)
        for warning in matcher.get_grammar_warnings():
            log.warning("JSON schema: %s", _line(warning))
        return matcher

    def _begun(self, schema: str) -> tuple[LLMatcher, str]:
        """The matcher, and what keeps any text from following it; some faults show at the first tokens alone."""
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False})
        matcher = LLMatcher(self._vocabulary, grammar, log_level=0, limits=LLParserLimits(verbose_errors=False))
        begun = matcher.deep_copy()
        for _ in range(FIRST_TOKENS):
            if begun.is_error():
                break
            bits = np.frombuffer(begun.compute_bitmask(), dtype=np.uint8)
            possible = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
            if begun.is_error() or not len(possible) or begun.is_stopped():
                break
            begun.consume_token(int(possible[-1]))
        problem = _line(begun.get_error()) if begun.is_error() else ""
        return matcher, "a part of it refers to itself and to nothing else" if problem == "NoExtensionBias" else problem


class Guide:
    """The allowed next tokens of one text that follows a schema."""

    def __init__(self, matcher: LLMatcher, *, stop_ids: list[int], ends: list[int]) -> None:
        self._matcher = matcher
        self._stop_ids = stop_ids
        self._ends = ends  # what llguidance takes for the end of a text: whether that is so is for the stop ids to say

    @property
    def problem(self) -> str | None:
        """Why this text cannot go on, or None: no token of the vocabulary fits, or the schema has become too complex."""
        return _line(self._matcher.get_error()) or "no token fits" if self._matcher.is_error() else None

    def allowed(self, width: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of `width` ids may come next (V,): stop ids where the text is whole, and nothing else once it can only end.
        Ids that no token has, which models have for padding, never."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        found = np.zeros(max(width, 8 * len(bits)), dtype=np.bool_)
        found[: 8 * len(bits)] = np.unpackbits(bits, bitorder="little")
        found[self._ends] = False
        # A stop id may also be an ordinary token that fits inside; there it would end a text that is not whole.
        found[self._stop_ids] = self._matcher.is_accepting()
        return found[:width]

    def advance(self, token: int) -> None:
        """Append `token`; call it for each one, including the stop id at the end."""
        if token not in self._stop_ids:
            self._matcher.consume_token(token)


def allowed(guides: Sequence[Guide], like: Tensor) -> Tensor:
    """Which tokens may come next in each text: a mask of the shape (N, V) and on the device of `like`."""
    return torch.from_numpy(np.stack([guide.allowed(like.shape[-1]) for guide in guides])).to(like.device)


def _refuse_long_lists(schema: Any) -> None:
    """Raises:
    BadInput: a part of the schema asks for more than `MOST_ITEMS`.
    """
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _refuse_long_lists(part)
    for name in _COUNTS if isinstance(schema, dict) else ():
        if isinstance(wanted := schema.get(name), int | float) and wanted > MOST_ITEMS:
            raise BadInput(f"the JSON schema has {name} {wanted:g}; the embedded engine takes at most {MOST_ITEMS:,}")


def _line(text: str) -> str:
    """llguidance's message in one line, without its parser's state, which follows in angle brackets."""
    return " ".join(text.partition("\n<")[0].split())
