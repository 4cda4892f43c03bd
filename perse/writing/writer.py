"""A writer: text in, text out, over any engine that a judge can be loaded with.

Rewriting needs no labels and no probabilities, so the differences of engines (token ids or messages, a chat template or none,
batches or requests) ends here. A message that does not fit is never cut, because half a plot would be rewritten as if it
were the whole. Answers of a server come one by one, not batch by batch, at the price of a connection for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from perse.engines.base import ChatEngine, Engine, Failure, Generation, Reply, Sampling, Turns
from perse.engines.calls import as_they_come
from perse.engines.kind import Hardware
from perse.errors import BadInput
from perse.judgement import Tokens
from perse.judging.judge import Judge
from perse.rendering.prompt import Ids, Renderer

_BLAMES_THE_REQUEST = frozenset(range(400, 500)) - {408, 409, 429}
"""HTTP statuses that stay on another try."""

_CAUSE = re.compile(r"after \d+ (?:try|tries) \((\w+)")
"""Where a request that got no answer at all says what was raised."""

_SLOW = frozenset({"ReadTimeout", "WriteTimeout", "PoolTimeout"})
"""Causes that may be due to the message: an answer that takes too long."""

_REFUSED = frozenset({"ConnectError", "ConnectTimeout"})
"""Causes that are not due to a message."""


@dataclass(frozen=True)
class Written:
    """What a model wrote, why it ended ("stop", "length", "content_filter", ...), whether it, or a filter, declined, and what it took,
    where that is known."""

    text: str
    finish_reason: str
    refused: bool = False
    tokens: Tokens | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Unwritable(Failure):
    """A message that this model will never answer: too long for it (`too_long`), or refused by its server as a request."""

    too_long: bool = False


@dataclass(frozen=True)
class Unreachable(Failure):
    """The server gave no answer of any kind: it could not be connected to, or (`connected`) the connection was lost."""

    connected: bool = False


Prompt = str | Turns | Ids
"""The input of an engine: a message for a chat engine, token ids for the others."""

Keep = Callable[[Mapping[int, Written]], Mapping[int, Written]]
"""Of answers by the places of their messages; gives those that stand for them."""


class Writer:
    """Any judge's model as one that writes.

    Args:
        judge: of which the engine, the renderer and the identity are used; its questions are not.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        dtype: str = "bfloat16",
        context: int | None = None,
        tokenizer: str | None = None,
        concurrency: int | None = None,
    ) -> Writer:
        """The writer named as a judge is: `PATH`, `vllm:PATH` or `openai:URL#MODEL` (see `Judge.load`, and what it raises)."""
        return cls(
            Judge.load(name, dtype=dtype, context=context, tokenizer=tokenizer, hardware=Hardware(concurrency=concurrency))
        )

    @property
    def identity(self) -> dict[str, str | None]:
        """The settings that answers depend on besides message, sampling and seed, for cache keys and manifests.

        Where the weights have a digest, the address of their server is left out: another port is not another model. A
        server without one (most chat servers) is known by its URL and the model's name alone, and what it serves under
        that name can change without anyone here seeing it: answers kept from it are as old as their cache.
        """
        judge = self._judge.identity.portable
        settings = {key: value for key, value in self._judge.engine.settings.items() if not (judge.digest and key == "url")}
        return {**settings, "name": judge.model, "adapter": judge.adapter, "weights": judge.digest}

    @property
    def context(self) -> int | None:
        """Tokens that prompt and answer may take together; None: not known."""
        return self._judge.renderer.context

    def neutralise(self, text: str) -> str:
        """Untrusted text as it may stand in a message, line breaks kept: the judge's renderer does it (DESIGN.md, promise 9)."""
        return self._judge.renderer.neutralise(text, lines=True)

    def prompt(self, message: str | Turns) -> Prompt:
        """The engine's input for a message: token ids in the chat template's frame, or the message itself."""
        if not isinstance(self._judge.renderer, Renderer):
            return message
        return self._judge.renderer.conversation((message,) if isinstance(message, str) else message)

    def sampling(self, wanted: Sampling) -> Sampling:
        """`wanted` as this engine is asked: with the template's end of turn, and with a schema only where it is obeyed.

        A chat server's strict schemas allow no object with free keys, so only engines of token ids are given one.
        """
        able = self._judge.engine.capabilities
        schema = wanted.schema if able.json_schema and able.accepts_token_ids else None
        renderer = self._judge.renderer
        ends = renderer.end_ids if isinstance(renderer, Renderer) else frozenset[int]()
        return replace(wanted, stop_ids=ends, schema=schema)

    def excess(self, message: str | Turns, wanted: Sampling) -> Unwritable | None:
        """Why the message does not fit, or None; a chat server's context is not known, so there everything is sent.

        Raises:
            BadInput: the room kept for the answer fills the context.
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

    def write(
        self, messages: Sequence[str | Turns], wanted: Sampling, *, seeds: Sequence[int], keep: Keep = lambda answers: answers
    ) -> Iterator[tuple[int, Written | Failure]]:
        """The answer to each message, a string being a conversation's only turn, or why there is none, with the message's place.

        They come as they arrive. A server, or vLLM, is sent one message at a time by each of as many threads as it answers calls
        at once; the embedded engine gets batch after batch. A caller that stops listening does not wait: calls that have not begun never
        do, and running ones are left alone.

        Args:
            wanted: temperature, most new tokens and perhaps a schema; the rest is `sampling`'s.
            seeds: one for each message; the same message and seed give the same answer, as far as the engine promises it.
            keep: called with answers the moment they arrive, in the thread that got them, before anything else is done with
                them; what it gives back is what stands.
        Raises:
            BadInput: a server knows not the key or the model, or the answer's room is all of the context.
            EngineLost: the engine says that it is gone for good.
        """
        sampling = self.sampling(wanted)
        excesses: dict[int, Unwritable] = {}

        def batches(size: int) -> Iterator[dict[int, Prompt]]:
            some: dict[int, Prompt] = {}
            for n, message in enumerate(messages):
                if excess := self.excess(message, wanted):
                    excesses[n] = excess
                    continue
                some[n] = self.prompt(message)
                if len(some) == size:
                    yield some
                    some = {}
            if some:
                yield some

        def ask(some: dict[int, Prompt]) -> dict[int, Written | Failure]:
            said = self._ask(list(some.values()), sampling, [seeds[n] for n in some])
            answers = dict(zip(some, said, strict=True))
            return {**answers, **keep({n: one for n, one in answers.items() if isinstance(one, Written)})}

        threads = self._threads()
        batch = self._judge.engine.capabilities.batch
        for answers in as_they_come(lambda one: [ask(one)], batches(1), threads) if threads else map(ask, batches(batch)):
            yield from answers.items()
        yield from excesses.items()

    def _threads(self) -> int:
        """How many messages are asked side by side, each in a call of its own; 0 where one call takes a batch."""
        engine = self._judge.engine
        able = engine.capabilities
        if able.at_once or "url" not in engine.settings:
            return able.at_once or (0 if able.accepts_token_ids else able.batch)
        from perse.engines.openai import CONCURRENCY

        return CONCURRENCY  # a server, whatever it reports

    def _ask(self, prompts: list[Prompt], sampling: Sampling, seeds: list[int]) -> list[Written | Failure]:
        if not self._judge.engine.capabilities.accepts_token_ids:
            chat = cast(ChatEngine, self._judge.engine)
            return [self._read(said) for said in chat.chat(cast(list[str | Turns], prompts), sampling, seeds=seeds)]
        engine = cast(Engine, self._judge.engine)
        try:
            made = engine.generate(cast(list[Ids], prompts), sampling, seeds=seeds)
            return [self._read(said, prompt=len(prompt)) for said, prompt in zip(made, prompts, strict=True)]
        except RuntimeError as error:  # what torch raises, out of memory included: each is then asked alone
            if len(prompts) == 1:
                return [Failure(f"{type(error).__name__}: {error}")]
            return [self._ask([prompt], sampling, [seed])[0] for prompt, seed in zip(prompts, seeds, strict=True)]

    def _read(self, said: Reply | Generation | Failure, *, prompt: int = 0) -> Written | Failure:
        if isinstance(said, Failure):
            # Only what was sent to a server has an HTTP status, 0 for no answer; engines in this process fail without one.
            status, cause = getattr(said, "status", None), _CAUSE.search(said.reason)
            if status in _BLAMES_THE_REQUEST:
                return Unwritable(said.reason)
            if status == 0 and cause and cause[1] not in _SLOW:
                return Unreachable(said.reason, connected=cause[1] not in _REFUSED)
            return said
        if isinstance(said, Reply):
            return Written(_storable(said.text), said.finish_reason, said.refused, said.tokens)
        renderer = cast(Renderer, self._judge.renderer)
        took = Tokens(prompt=prompt, cached=min(said.cached, prompt), generated=len(said.ids))
        return Written(_storable(renderer.decode(said.ids)), said.finish_reason, tokens=took)


def _storable(text: str) -> str:
    """Without lone surrogates, which no file and no database takes, and without white space around."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()
