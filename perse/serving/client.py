"""A client of the judge server: `JudgeClient`, and `AsyncJudgeClient` with the same methods awaited.

    with JudgeClient("http://127.0.0.1:8000") as judge:
        judgement = judge.pointwise({"profile": [{"text": ..., "review": ..., "score": 8}], "query": "a new plot"})
        judgements = judge.pointwise_many(items)   # in order; a bad item is a Problem in its place

Items are dictionaries or the examples of `perse.records`. The key is taken from PERSE_API_KEY. Answers that may come right
on another try (429, 503, a connection refused) are tried again, after Retry-After where the server gives it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2
from pydantic import BaseModel

from perse.addresses import plain_address
from perse.errors import BadInput, PerseError
from perse.judgement import Judgement
from perse.records import Example
from perse.secrets import redact

Item = Mapping[str, Any] | Example

AT_ONCE = 32
"""Items sent in one request of a long list: what a small server answers within the time limit."""

LONGEST_WAIT = 120.0
"""Seconds that a server may ask to wait; one that asks for more has refused."""

_JSON = {"Content-Type": "application/json"}

_AGAIN = frozenset({429, 503})


@dataclass(frozen=True)
class Problem:
    """Why an item of a list has no judgement."""

    message: str
    code: int
    details: Mapping[str, int]


class ServerError(PerseError):
    """The server refused a request, or cannot be reached; `code` is the HTTP status, 0 where there was no answer."""

    def __init__(self, message: str, code: int, details: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})

    def problems(self, count: int) -> list[Problem]:
        """The same for `count` items that were not asked because of it."""
        return [Problem(str(self), self.code, self.details)] * count


class JudgeClient:
    """Asks a judge server.

    Args:
        url: where the server is, such as http://127.0.0.1:8000, without a key in it (`BadInput`).
        model: a served model's or adapter's name; by default the server's model.
        key: by default that in PERSE_API_KEY.
        timeout: seconds to wait for an answer.
        tries: how often a request is sent that may come right on another try.
    """

    def __init__(
        self, url: str, *, model: str | None = None, key: str | None = None, timeout: float = 600, tries: int = 5
    ) -> None:
        self._calls = _Calls(model, tries)
        self._http = httpx2.Client(base_url=_plain(url), headers=_headers(key), timeout=timeout)

    def pointwise(self, item: Item, **settings: Any) -> Judgement:
        """Would this reader like this text, and what would they say? `settings`: question, temperature, max_new_tokens, seed.

        Raises:
            ServerError: the server refused (the item is wrong or too long, the model is unknown) or cannot be reached.
            BadInput: a list, which `pointwise_many` takes.
        """
        return _judgement(self._post("pointwise", _one(item), settings))

    def pairwise(self, item: Item, **settings: Any) -> Judgement:
        """Which of two texts would this reader prefer, on one aspect? As `pointwise` otherwise."""
        return _judgement(self._post("pairwise", _one(item), settings))

    def pointwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """A judgement for every item, in order; a bad item is a `Problem` in its place.

        Raises:
            ServerError: the very first items failed. What fails later is a `Problem` too, so that nothing answered is lost.
        """
        return self._many("pointwise", items, settings)

    def pairwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """A judgement for every item, in order; as `pointwise_many`."""
        return self._many("pairwise", items, settings)

    def questions(self) -> list[dict[str, Any]]:
        """What can be asked, with JSON Schemas."""
        return list(self._send(self._calls.get("/v1/judge/questions"))["questions"])

    def version(self) -> dict[str, Any]:
        """What is served, by which programs."""
        return self._send(self._calls.get("/version"))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _many(self, route: str, items: Sequence[Item], settings: Mapping[str, Any]) -> list[Judgement | Problem]:
        found: list[Judgement | Problem] = []
        while len(found) < len(items):
            try:
                found += _results(self._post(route, items[len(found) : len(found) + AT_ONCE], settings))
            except ServerError as error:
                if not found:
                    raise
                found += error.problems(len(items) - len(found))
        return found

    def _post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._send(self._calls.post(route, given, settings))

    def _send(self, call: _Call) -> dict[str, Any]:
        while True:
            try:
                wait = call.take(self._http.request(call.method, call.path, **call.sent))
            except httpx2.TransportError as error:
                wait = call.broken(error, str(self._http.base_url))
            if wait is None:
                return call.answer
            time.sleep(wait)


class AsyncJudgeClient:
    """`JudgeClient` for asynchronous programs; see there."""

    def __init__(
        self, url: str, *, model: str | None = None, key: str | None = None, timeout: float = 600, tries: int = 5
    ) -> None:
        self._calls = _Calls(model, tries)
        self._http = httpx2.AsyncClient(base_url=_plain(url), headers=_headers(key), timeout=timeout)

    async def pointwise(self, item: Item, **settings: Any) -> Judgement:
        return _judgement(await self._post("pointwise", _one(item), settings))

    async def pairwise(self, item: Item, **settings: Any) -> Judgement:
        return _judgement(await self._post("pairwise", _one(item), settings))

    async def pointwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        return await self._many("pointwise", items, settings)

    async def pairwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        return await self._many("pairwise", items, settings)

    async def questions(self) -> list[dict[str, Any]]:
        return list((await self._send(self._calls.get("/v1/judge/questions")))["questions"])

    async def version(self) -> dict[str, Any]:
        return await self._send(self._calls.get("/version"))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _many(self, route: str, items: Sequence[Item], settings: Mapping[str, Any]) -> list[Judgement | Problem]:
        found: list[Judgement | Problem] = []
        while len(found) < len(items):
            try:
                found += _results(await self._post(route, items[len(found) : len(found) + AT_ONCE], settings))
            except ServerError as error:
                if not found:
                    raise
                found += error.problems(len(items) - len(found))
        return found

    async def _post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> dict[str, Any]:
        return await self._send(self._calls.post(route, given, settings))

    async def _send(self, call: _Call) -> dict[str, Any]:
        while True:
            try:
                wait = call.take(await self._http.request(call.method, call.path, **call.sent))
            except httpx2.TransportError as error:
                wait = call.broken(error, str(self._http.base_url))
            if wait is None:
                return call.answer
            await asyncio.sleep(wait)


@dataclass(frozen=True)
class _Calls:
    """What both clients send."""

    model: str | None
    tries: int

    def get(self, path: str) -> _Call:
        return _Call("GET", path, None, self.tries)

    def post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> _Call:
        asked = _fields(given) if isinstance(given, Mapping | BaseModel) else [_fields(item) for item in given]
        body = {"input": asked, "model": self.model, **settings}
        return _Call(
            "POST", f"/v1/judge/{route}", {name: value for name, value in body.items() if value is not None}, self.tries
        )


class _Call:
    """One request on its way: what became of it, and how long to wait before the next try."""

    def __init__(self, method: str, path: str, body: dict[str, Any] | None, tries: int) -> None:
        self.method, self.path = method, path
        # ASCII: half a character arrives as it was given, so that the server says which item holds it.
        self.sent: dict[str, Any] = {} if body is None else {"content": _as_json(body), "headers": _JSON}
        self.answer: dict[str, Any] = {}
        self._left = tries
        self._pause_next = 0.5

    def take(self, response: httpx2.Response) -> float | None:
        """None: `answer` is there. Else seconds to wait before the next try."""
        if response.is_success:
            self.answer = response.json()
            return None
        self._left -= 1
        wait = self._pause(response.headers.get("retry-after"))
        if response.status_code in _AGAIN and self._left and wait <= LONGEST_WAIT:
            return wait
        problem = _problem(response)
        raise ServerError(problem.message, response.status_code, problem.details)

    def broken(self, error: httpx2.TransportError, url: str) -> float:
        """Seconds to wait after a connection failed. Only a refused one is tried again: others may have been worked on."""
        self._left -= 1
        if isinstance(error, httpx2.ConnectError) and self._left:
            return self._pause(None)
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            raise ServerError(
                f"{url} took longer than the client waits; give a longer timeout=, or fewer new tokens", 0
            ) from error
        reason = str(error) or type(error).__name__
        raise ServerError(f"no answer from {url} ({reason}); is the server running? python serve.py starts one", 0) from error

    def _pause(self, retry_after: str | None) -> float:
        if retry_after and retry_after.replace(".", "", 1).isdigit():
            return float(retry_after)
        pause, self._pause_next = self._pause_next, min(8.0, 2 * self._pause_next)
        return pause


def _as_json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"the items cannot be sent as JSON ({error}); give texts, numbers, lists and dictionaries") from None


def _plain(url: str) -> str:
    return plain_address(url, of="the server's address", keys="into PERSE_API_KEY or key=")


def _headers(key: str | None) -> dict[str, str]:
    key = key or os.environ.get("PERSE_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _one(item: Item) -> Item:
    if not isinstance(item, Mapping | BaseModel):
        raise BadInput(f"one item was expected, a {type(item).__name__} was given; pointwise_many and pairwise_many take lists")
    return item


def _fields(item: Item) -> dict[str, Any]:
    return dict(item) if isinstance(item, Mapping) else item.model_dump(mode="json", exclude_none=True)


def _judgement(answer: Mapping[str, Any]) -> Judgement:
    return Judgement.model_validate(answer)


def _results(answer: Mapping[str, Any]) -> list[Judgement | Problem]:
    return [
        Problem(found["error"]["message"], found["error"]["code"], found["error"].get("details", {}))
        if "question" not in found
        else _judgement(found)
        for found in answer["results"]
    ]


def _problem(response: httpx2.Response) -> Problem:
    try:
        error = response.json()["error"]
        return Problem(redact(str(error["message"])), response.status_code, error.get("details") or {})
    except (ValueError, KeyError, TypeError):
        return Problem(f"the server answered {response.status_code}: {redact(response.text)[:200]}", response.status_code, {})
