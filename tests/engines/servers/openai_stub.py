"""A stub that passes for a server of the OpenAI API, or for vLLM's completions, and remembers what it was asked."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from perse.engines.base import Failure, Reply, Sampling
from perse.engines.openai import ChatCompletionsEngine

KEY = "sk-secret-0123456789"
SOON = {"retry-after-ms": "1"}
Json = dict[str, Any]
Answer = tuple[int, dict[str, str], Any]


class Stub:
    """What a server says: `routes` by method and path, each a function of the request's body. It remembers every request."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[Json], Answer | Json]] = {}
        self.asked: list[tuple[str, Json, float]] = []
        self.keys: set[str | None] = set()
        self.in_flight = self.most_in_flight = 0
        self.url = ""
        self._lock = threading.Lock()

    def bodies(self, path: str) -> list[Json]:
        return [body for route, body, _ in self.asked if route.endswith(path)]

    def times(self, path: str) -> list[float]:
        return [at for route, _, at in self.asked if route.endswith(path)]

    def answer(self, route: str, key: str | None, body: Json) -> Answer:
        with self._lock:
            self.asked.append((route, body, time.monotonic()))
            self.keys.add(key)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            said = self.routes[route](body) if route in self.routes else (404, {}, {"detail": "Not Found"})
            return said if isinstance(said, tuple) else (200, {}, said)
        finally:
            with self._lock:
                self.in_flight -= 1


def said(text: str | None, *, finish_reason: str = "stop", **message: Any) -> Json:
    return {
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}],
        "usage": {
            "prompt_tokens": 40,
            "completion_tokens": 5,
            "total_tokens": 45,
            "prompt_tokens_details": {"cached_tokens": 32},
        },
    }


def words_of(body: Json) -> str:
    return str(body["messages"][0]["content"])


def echoing(server: Stub, *before: Answer, on: str = "") -> None:
    """Chat answers repeat the message; the first that hold `on` get the answers of `before` instead."""
    waiting = list(before)

    def answer(body: Json) -> Answer | Json:
        return waiting.pop(0) if waiting and on in words_of(body) else said(words_of(body))

    server.routes["POST /v1/chat/completions"] = answer


def chat(server: Stub, *messages: str, **sampling: Any) -> list[Reply | Failure]:
    engine = ChatCompletionsEngine(server.url, "m", concurrency=6)
    return engine.chat(messages, Sampling(**sampling), seeds=range(len(messages)))


def texts(replies: list[Reply | Failure]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else "failed" for reply in replies]


def reasons(replies: list[Reply | Failure]) -> list[str]:
    return [reply.reason for reply in replies if isinstance(reply, Failure)]


def fault(status: int, message: str = "no", **headers: str) -> Answer:
    return status, headers, {"error": {"message": message, "type": "x", "code": status}}


def listing(server: Stub, *entries: Json) -> None:
    server.routes["GET /v1/models"] = lambda _: {"object": "list", "data": list(entries)}


class Completions:
    """vLLM's /v1/completions: `next` gives next-token probabilities, `text` what is written when nothing is forced."""

    def __init__(self, server: Stub) -> None:
        self.next: Callable[[tuple[int, ...]], dict[int, float]] = lambda ids: {}
        self.text: tuple[int, ...] = ()
        self.processed = False
        server.routes["POST /v1/completions"] = self.answer

    def answer(self, body: Json) -> Json:
        [prompt] = body["prompt"]
        ids, steps, own = tuple(prompt), [], []
        allowed = body.get("allowed_token_ids")
        written = allowed * body["max_tokens"] if allowed else list(self.text) or [body["logprob_token_ids"][0]]
        for token in written:
            known = self.next(ids)
            told = {n: math.log(known.get(n, 1e-6)) for n in {*body["logprob_token_ids"], token}}
            if self.processed and allowed:
                told = {n: 0.0 if n in allowed else -9999.0 for n in told}
            steps.append({f"token_id:{n}": p for n, p in told.items()})
            own.append(told[token])
            ids = (*ids, token)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(written), "total_tokens": 0}
        usage["prompt_tokens_details"] = {"cached_tokens": len(prompt) // 2}  # type: ignore[assignment]
        choice = {"index": 0, "text": "", "finish_reason": "length", "stop_reason": None, "token_ids": written}
        choice["logprobs"] = {"top_logprobs": steps, "token_logprobs": own, "tokens": [], "text_offset": []}
        return {"choices": [choice], "usage": usage}
