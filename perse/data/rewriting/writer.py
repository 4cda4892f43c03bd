"""A writer: text in, text out, over any engine that a judge can be loaded with.

Rewriting needs no labels and no probabilities, so what engines differ in (token ids or messages, a chat template or none)
ends here. A message that does not fit is never cut, because half a plot would be rewritten as if it were the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from perse.engines.base import ChatEngine, Engine, Failure, Generation, Reply, Sampling
from perse.errors import BadInput
from perse.judge import Judge
from perse.rendering import Ids, Renderer

_BLAMES_THE_REQUEST = frozenset(range(400, 500)) - {408, 409, 429}
"""HTTP statuses that another try does not heal."""


@dataclass(frozen=True)
class Written:
    """What a model wrote, why it ended ("stop", "length", "content_filter", ...), and whether it, or a filter, declined."""

    text: str
    finish_reason: str
    refused: bool = False


@dataclass(frozen=True)
class Unwritable(Failure):
    """A message that this model will never answer: too long for it (`too_long`), or refused by its server as a request."""

    too_long: bool = False


class Writer:
    """Any judge's model as one that writes.

    Args:
        judge: of which the engine, the renderer and the identity are used; its questions are not.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @classmethod
    def load(
        cls, name: str | Path, *, dtype: str = "bfloat16", context: int | None = None, tokenizer: str | None = None
    ) -> Writer:
        """The writer named as a judge is: `PATH`, `vllm:PATH` or `openai:URL#MODEL` (see `Judge.load`, and what it raises)."""
        return cls(Judge.load(name, dtype=dtype, context=context, tokenizer=tokenizer))

    @property
    def batch(self) -> int:
        """How many messages the engine likes to be given at once."""
        return self._judge.engine.capabilities.batch

    @property
    def identity(self) -> dict[str, str | None]:
        """What the answers depend on besides message, sampling and seed: for cache keys and manifests.

        Where the weights have a digest, the address of their server is left out: another port is not another model. A
        server without one (most chat servers) is known by its URL and the model's name alone, and what it serves under
        that name can change without anyone here seeing it: answers kept from it are as old as their cache.
        """
        judge = self._judge.identity
        settings = {key: value for key, value in self._judge.engine.settings.items() if not (judge.digest and key == "url")}
        return {**settings, "name": judge.model, "adapter": judge.adapter, "weights": judge.digest}

    def neutralise(self, text: str) -> str:
        """Untrusted text as it may stand in a message, line breaks kept: the judge's renderer does it (DESIGN.md, promise 9)."""
        return self._judge.renderer.neutralise(text, lines=True)

    def prompt(self, message: str) -> str | Ids:
        """What the engine is given for a message: token ids in the chat template's frame, or the message itself."""
        if not isinstance(self._judge.renderer, Renderer):
            return message
        frame, tokenizer = self._judge.renderer.frame, self._judge.renderer.tokenizer
        # Without the frame's lead: the space before the first word is the model's to write, as part of that word.
        return tuple(tokenizer.encode(frame.head + message + frame.middle, add_special_tokens=False))

    def sampling(self, wanted: Sampling) -> Sampling:
        """`wanted` as this engine is asked: with the template's end of turn, and with a schema only where it is obeyed.

        A chat server's strict schemas allow no object with free keys, so only engines of token ids are given one.
        """
        able = self._judge.engine.capabilities
        schema = wanted.schema if able.json_schema and able.accepts_token_ids else None
        renderer = self._judge.renderer
        ends = renderer.end_ids if isinstance(renderer, Renderer) else frozenset[int]()
        return replace(wanted, stop_ids=ends, schema=schema)

    def excess(self, message: str, wanted: Sampling) -> Unwritable | None:
        """Why the message does not fit, or None; a chat server's context is not known, so there everything is sent.

        Raises:
            BadInput: the room kept for the answer is all there is.
        """
        context = self._judge.renderer.context
        if context is None:
            return None
        tokens, allowed = len(self.prompt(message)), context - wanted.max_new_tokens
        if allowed <= 0:
            raise BadInput(
                f"{wanted.max_new_tokens} tokens are kept for the answer, all of a context of {context}; allow fewer new tokens"
            )
        return Unwritable(f"too_long: {tokens} tokens, {allowed} allowed", too_long=True) if tokens > allowed else None

    def write(self, messages: Sequence[str], wanted: Sampling, *, seeds: Sequence[int]) -> list[Written | Failure]:
        """The answer to each message, as the only turn of a conversation, or why there is none.

        Args:
            wanted: temperature, most new tokens and perhaps a schema; the rest is `sampling`'s.
            seeds: one for each message; the same message and seed give the same answer, as far as the engine promises it.
        Raises:
            BadInput: a server cannot be asked at all, or the answer's room is all of the context.
            EngineLost: the engine is gone for good.
        """
        excesses = [self.excess(message, wanted) for message in messages]
        fitting = [n for n, excess in enumerate(excesses) if excess is None]
        answers = iter(
            self._ask([self.prompt(messages[n]) for n in fitting], self.sampling(wanted), [seeds[n] for n in fitting])
        )
        return [excess or next(answers) for excess in excesses]

    def _ask(self, prompts: list[str | Ids], sampling: Sampling, seeds: list[int]) -> list[Written | Failure]:
        if not prompts:
            return []
        if not self._judge.engine.capabilities.accepts_token_ids:
            chat = cast(ChatEngine, self._judge.engine)
            return [self._read(said) for said in chat.chat(cast(list[str], prompts), sampling, seeds=seeds)]
        engine = cast(Engine, self._judge.engine)
        try:
            return [self._read(said) for said in engine.generate(cast(list[Ids], prompts), sampling, seeds=seeds)]
        except RuntimeError as error:  # what torch raises, out of memory included: each is then asked alone
            if len(prompts) == 1:
                return [Failure(f"{type(error).__name__}: {error}")]
            return [self._ask([prompt], sampling, [seed])[0] for prompt, seed in zip(prompts, seeds, strict=True)]

    def _read(self, said: Reply | Generation | Failure) -> Written | Failure:
        if isinstance(said, Failure):
            # Only what a server answered has an HTTP status; engines in this process fail without one.
            unwritable = getattr(said, "status", 0) in _BLAMES_THE_REQUEST
            return Unwritable(said.reason) if unwritable else said
        if isinstance(said, Reply):
            return Written(_storable(said.text), said.finish_reason, said.refused)
        renderer = cast(Renderer, self._judge.renderer)
        return Written(_storable(renderer.decode(said.ids)), said.finish_reason)


def _storable(text: str) -> str:
    """Without lone surrogates, which no file and no database takes, and without white space around."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()
