"""Servers that speak the OpenAI API: vLLM's are asked for exact distributions, any other answers in words.

A vLLM server is asked as vLLM in this process is (see `vllm` and `labels`), and gives the same. What it could silently do
differently is set in every request (its own sampling defaults) or checked in `connect` (another tokenizer, processed
log-probabilities). Patience is that of `http`, with seven tries in all.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, BadRequestError, UnprocessableEntityError

from perse.engines.base import (
    Capabilities,
    Failure,
    Generation,
    LabelDistribution,
    Reply,
    RequestFailure,
    Sampling,
    Turns,
    none_answered,
)
from perse.engines.completions import Completion, distribution_of, generation_of, possible
from perse.engines.http import (
    SILENT_TRIES,
    Answer,
    SharedClient,
    cause,
    key_refused,
    listed,
    safe,
    said,
    served_models,
    tls_context,
    tries,
)
from perse.engines.labels import Read, reads
from perse.engines.length import NAMES, refused
from perse.engines.replies import Strange, end_reason, first_choice, number, reply_of, tokens_of
from perse.errors import BadInput
from perse.judgement import Tokens
from perse.models.incoming import Unfit
from perse.models.silence import TOLD_AFTER, Watch, patience
from perse.rendering.prompt import Ids, LabelTokens

CONCURRENCY = 32
RETRIES = 6
_TOKEN = re.compile("token_id:(?:0|[1-9][0-9]{0,9})")
Request = dict[str, Any]
Work = Callable[[AsyncOpenAI, Request], Awaitable[Answer]]
"""Sends a request and reads the answer."""


class Server:
    """One model at one address, asked at most `concurrency` things at once, by however many threads."""

    def __init__(self, url: str, model: str, concurrency: int) -> None:
        self.url = url
        self.model = model
        self.concurrency = concurrency
        self._shared = SharedClient(url, RETRIES, tls_context(), concurrency)
        self._silence = Watch(url, patience(), tries=SILENT_TRIES)

    def ask(self, requests: Sequence[Request], work: Work[Answer], *, prompts: int) -> list[Answer | Failure]:
        """The answers in the order of the requests, which so many prompts take, or why there is none.

        Raises:
            BadInput: the server does not know the key, or the model; or it refused more than a few prompts, all alike.
            EngineLost: all failed alike, more than a few, and not for what was asked.
        """
        done = self._shared.run(self._all(requests, work))
        failures = [one for one in done if isinstance(one, Failure)]
        if len(failures) == len(done):
            none_answered(failures, prompts)
        return done

    async def _all(self, requests: Sequence[Request], work: Work[Answer]) -> list[Answer | Failure]:
        tasks = [asyncio.create_task(self._one(request, work)) for request in requests]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _watched(self, answer: Awaitable[Answer]) -> Answer:
        asked = time.monotonic()
        telling = asyncio.get_running_loop().call_later(TOLD_AFTER, self._silence.tell, asked)
        try:
            return await answer
        finally:
            telling.cancel()
            self._silence.heard(asked)

    async def _one(self, request: Request, work: Work[Answer]) -> Answer | Failure:
        client = self._shared.client
        try:
            async with self._shared.gate:
                return await self._watched(work(client, request))
        except APIConnectionError as error:
            return RequestFailure(f"no answer from {self.url} after {tries(error)} ({cause(error)})", 0)
        except APIStatusError as error:
            if error.status_code in (401, 403):
                raise key_refused(self.url, error) from None
            if error.status_code == 404:
                try:
                    names = listed(await served_models(client), self.model)
                except (APIError, ValueError):
                    names = "it does not say which it has; does the address end in /v1?"
                raise BadInput(f"{self.url} knows no model '{self.model}' (404: {said(error)}); {names}") from None
            reason = f"{self.url} answered {error.status_code} after {tries(error)}: {said(error)}"
            return RequestFailure(reason, error.status_code)
        except (Strange, Unfit, APIError) as error:
            return Failure(f"{self.url} did not answer what was asked for ({safe(str(error))})")
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):  # its fields are not the API's
            return Failure(f"{self.url} did not answer what was asked for (the answer is none of the OpenAI API)")


class CompletionsEngine:
    """Exact judging with a model that a vLLM server runs; `server` is the program, as `settings` names it."""

    capabilities = Capabilities(
        accepts_token_ids=True, exact_distribution=True, json_schema=True, batch=256, at_once=CONCURRENCY
    )

    def __init__(self, url: str, model: str, *, server: str = "", concurrency: int = CONCURRENCY) -> None:
        self.capabilities = replace(self.capabilities, at_once=concurrency)
        self._server = Server(url, model, concurrency)
        self.settings = {"engine": "openai", "url": url, "model": model, "api": "completions", "server": server}

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        plan = reads(support)
        asked = [_reading(prefix + support.stem + read.node, read) for prefix in prefixes for read in plan]
        answers = iter(self._ask(asked, prompts=len(prefixes)))
        return [distribution_of(support, plan, [next(answers) for _ in plan]) for _ in prefixes]

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        asked = [_writing(ids, sampling, seed) for ids, seed in zip(prompts, seeds, strict=True)]
        return [generation_of(answer, sampling) for answer in self._ask(asked, prompts=len(prompts))]

    def check_raw(self, ids: Ids) -> None:
        """Ask whether log-probabilities are the model's own: with every token but one forbidden, which a mask would show,
        and of the likeliest token, whose logit is practically always above 0.

        Raises:
            BadInput: they are not, or the server does not tell them.
        """
        allowed, forbidden = sorted(set(ids))[:2]
        asked = [_reading(ids, Read((), (allowed, forbidden), force)) for force in (allowed, None)]
        forced, greedy = self._ask(asked, prompts=1)
        reason = next((told.reason for told in (forced, greedy) if isinstance(told, Failure)), None)
        if not isinstance(forced, Failure) and forced.ids[:1] != (allowed,):
            reason = f"{self._server.url} writes other tokens than the only one that is allowed (allowed_token_ids)"
            raise BadInput(f"{reason}; exact distributions need vLLM 0.32 or later")
        if isinstance(forced, Failure) or isinstance(greedy, Failure) or forbidden not in forced.steps[0]:
            reason = reason or f"{self._server.url} tells other log-probabilities than asked"
            raise BadInput(f"{reason}; exact distributions need vLLM 0.32 or later")
        values = (*forced.steps[0].values(), *greedy.logprobs)
        if not possible(values):
            raise BadInput(
                f"{self._server.url} does not tell the model's own log-probabilities; start vLLM with --logprobs-mode "
                "raw_logprobs, its default"
            )

    def _ask(self, requests: Sequence[Request], *, prompts: int) -> list[Completion | Failure]:
        async def work(client: AsyncOpenAI, request: Request) -> Completion:
            return _completion(await client.completions.create(model=self._server.model, **request))

        return self._server.ask(requests, work, prompts=prompts)


class ChatCompletionsEngine:
    """Answers in words from any server that speaks the OpenAI API; `likeliest`: how many of the likeliest tokens it tells for each."""

    capabilities = Capabilities(
        accepts_token_ids=False, exact_distribution=False, json_schema=True, batch=64, at_once=CONCURRENCY
    )

    def __init__(self, url: str, model: str, *, concurrency: int = CONCURRENCY, likeliest: int = 0) -> None:
        self.capabilities = replace(self.capabilities, at_once=concurrency)
        self._server = Server(url, model, concurrency)
        self._limit = NAMES[0]
        self._likeliest = likeliest
        self.settings = {"engine": "openai", "url": url, "model": model, "api": "chat", "server": ""}
        if likeliest:
            self.settings["likeliest"] = str(likeliest)

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        async def create(client: AsyncOpenAI, request: Request, limit: str) -> Reply:
            limited = request | {limit: sampling.max_new_tokens}
            if self._likeliest and sampling.likeliest:
                limited |= {"logprobs": True, "top_logprobs": self._likeliest}
            try:
                answer = await client.chat.completions.create(model=self._server.model, **limited)
                return reply_of(answer, sampling.max_new_tokens)
            except BadRequestError as error:
                if error.code != "content_filter":  # Azure's, before the model
                    raise
                return Reply("", error.code, Tokens(prompt=0, cached=0, generated=0), refused=True)

        async def work(client: AsyncOpenAI, request: Request) -> Reply:
            limit = self._limit
            try:
                return await create(client, request, limit)
            except (BadRequestError, UnprocessableEntityError) as error:
                if not refused(limit, str(error)):
                    raise
            other = next(name for name in NAMES if name != limit)
            reply = await create(client, request, other)
            self._limit = other
            return reply

        asked = [_message(message, sampling, seed) for message, seed in zip(messages, seeds, strict=True)]
        return self._server.ask(asked, work, prompts=len(messages))


def _reading(ids: Ids, read: Read) -> Request:
    ours: Request = {"logprob_token_ids": list(read.tokens)}
    if read.force is not None:
        ours |= {"allowed_token_ids": [read.force], "ignore_eos": True}
    return {"max_tokens": len(read.nodes), "temperature": 0, **_vllm(ids, ours)}


def _writing(ids: Ids, sampling: Sampling, seed: int) -> Request:
    # The log-probability of the token that was written comes with any that is asked for.
    ours: Request = {"logprob_token_ids": [0], "stop_token_ids": sorted(sampling.stop_ids)}
    if sampling.schema:
        ours["structured_outputs"] = {"json": dict(sampling.schema)}
    return {"max_tokens": sampling.max_new_tokens, "temperature": sampling.temperature, "seed": seed, **_vllm(ids, ours)}


def _vllm(ids: Ids, ours: Request) -> Request:
    """The fields of every request to a vLLM server, including those that a model's generation_config could set."""
    body = {
        "top_k": 0,
        "min_p": 0,
        "repetition_penalty": 1,
        "add_special_tokens": False,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        **ours,
    }
    plain = {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": 1}
    return {"prompt": [list(ids)], **plain, "extra_body": body}


def _completion(answer: Any) -> Completion:
    choice = first_choice(answer)
    ids, told = tuple(map(_id, choice.token_ids)), choice.logprobs
    steps = tuple({_named(name): number(p) for name, p in step.items()} for step in told.top_logprobs)
    own = tuple(map(number, told.token_logprobs))
    if not len(ids) == len(steps) == len(own):
        raise Strange(f"{len(ids)} tokens, log-probabilities of {len(steps)}")
    return Completion(ids, own, steps, end_reason(choice), tokens_of(answer).cached)


def _id(told: Any) -> int:
    if type(told) is not int:
        raise Strange(f"a token id is no integer but {type(told).__name__}")
    return told


def _named(name: str) -> int:
    """The token that vLLM calls so; only one spelling is taken, so that no token is told twice."""
    if not _TOKEN.fullmatch(name):
        raise Strange(f"a token is called '{name[:40]}', expected token_id:N")
    return int(name.removeprefix("token_id:"))


def _message(message: str | Turns, sampling: Sampling, seed: int) -> Request:
    turns = (message,) if isinstance(message, str) else message
    said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns)]
    asked: Request = {"messages": said, "temperature": sampling.temperature}
    asked["seed"] = seed % 2**31  # some servers take 32 bits
    if sampling.schema:
        schema = {"name": "answer", "schema": dict(sampling.schema), "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return asked
