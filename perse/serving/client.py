"""A client of the judge server: `JudgeClient`, and `AsyncJudgeClient` with the same methods awaited.

    with JudgeClient("http://127.0.0.1:8000") as judge:
        judgement = judge.pointwise({"profile": [{"text": ..., "review": ..., "score": 8}], "query": "a new plot"})
        judgements = judge.pointwise_many(items)   # in order; a bad item is a Problem in its place
    judge.ask("claim", {"text": ..., "claim": ...})   # any route; judge.claims has several claims in one prompt
    judge.put_reader("ann", reviews=[...]); judge.pointwise({"reader": "ann", "query": "a new plot"})
    batch = judge.submit("pointwise", items)   # judged in the server's own time; judge.batch(batch), judge.batch_results(batch)

Items are dictionaries or the examples of `perse.records`. The key is taken from PERSE_API_KEY. Answers that may come right
on another try (429, 503, a connection refused or lost) are tried again, after Retry-After where the server gives it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
from pydantic import BaseModel

from perse.addresses import header_key, plain_address
from perse.errors import BadInput
from perse.judgement import Judgement
from perse.models.incoming import ACCEPTED, Body, Deadline, Unfit, not_followed
from perse.models.silence import Watch, patience
from perse.records import Asked, ClaimsExample, ProfileComparison, ProfileReview
from perse.serving.answers import Answers, Problem, ServerError
from perse.serving.requests import IDEMPOTENCY_KEY, LONGEST_ID, judge_routes
from perse.strict import is_half

__all__ = ["AsyncJudgeClient", "JudgeClient", "Problem", "ServerError"]

Item = Mapping[str, Any] | Asked
Entry = Mapping[str, Any] | ProfileReview | ProfileComparison

AT_ONCE = 32
"""Items sent in one request of a long list: what a small server answers within the time limit."""

PAGE, MOST_READERS = 1000, 1_000_000
"""Names of readers in one answer of the server, and in all of them: one that ever names new ones would be asked without end."""

LONGEST_WAIT = 120.0
"""Seconds that a server may ask to wait; one that asks for more has refused."""

_JSON = {"Content-Type": "application/json"}

_AGAIN = frozenset({429, 503})


class JudgeClient:
    """Asks a judge server.

    Args:
        url: where the server is, such as http://127.0.0.1:8000, without a key in it (`BadInput`).
        model: a served model's or adapter's name; by default the server's model.
        key: by default that in PERSE_API_KEY.
        timeout: seconds to wait for each part of an answer, and a minute more for all of it; by default PERSE_TIMEOUT, or 600.
        tries: how often a request is sent that may come right on another try.
    """

    def __init__(
        self, url: str, *, model: str | None = None, key: str | None = None, timeout: float | None = None, tries: int = 5
    ) -> None:
        key, seconds = _key(key), _patience(timeout)
        self._calls = _Calls(model, _count(tries, "tries"), Answers(_plain(url), key))
        self._silence = Watch(_plain(url), seconds, given=timeout is not None)
        self._http = httpx2.Client(base_url=_plain(url), headers=_headers(key), timeout=seconds, follow_redirects=False)

    def pointwise(self, item: Item, **settings: Any) -> Judgement:
        """Would this reader like this text, and what would they say? `settings`: question, temperature, max_new_tokens, seed.

        Raises:
            ServerError: the server refused (the item is wrong or too long, the model is unknown) or cannot be reached.
            BadInput: a list, which `pointwise_many` takes.
        """
        return self._calls.judgement(self._post("pointwise", _one(item), settings), item, "pointwise", settings)

    def pairwise(self, item: Item, **settings: Any) -> Judgement:
        """Which of two texts would this reader prefer, on one aspect? As `pointwise` otherwise."""
        return self._calls.judgement(self._post("pairwise", _one(item), settings), item, "pairwise", settings)

    def pointwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """A judgement for every item, in order; a bad item is a `Problem` in its place.

        Raises:
            ServerError: the very first items failed. What fails later is a `Problem` too, so that nothing answered is lost.
        """
        return self._many("pointwise", items, settings)

    def pairwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """A judgement for every item, in order; as `pointwise_many`."""
        return self._many("pairwise", items, settings)

    def ask(self, kind: str, item: Item, **settings: Any) -> Judgement:
        """Any route with one judgement an item, such as "claim" or "summary"; as `pointwise`."""
        return self._calls.judgement(self._post(_single(kind), _one(item), settings), item, kind, settings)

    def ask_many(self, kind: str, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """Any such route about several items; as `pointwise_many`."""
        return self._many(_single(kind), items, settings)

    def claims(self, item: Item, **settings: Any) -> list[Judgement]:
        """Which of an item's "claims" follow from its "text"? A judgement for each, asked in one prompt."""
        return self._calls.claims(self._post("claims", _one(item), settings), item, settings)

    def put_reader(self, reader: str, *, reviews: Sequence[Entry] = (), comparisons: Sequence[Entry] = ()) -> None:
        """Have the server keep a reader's past reviews and comparisons, oldest first, in the place of what it kept.

        Items may then say `"reader": reader` in the place of a profile.

        Raises:
            ServerError: not kept; what was before is.
        """
        self._send(self._calls.put(reader, reviews, comparisons))

    def reader(self, reader: str) -> dict[str, Any]:
        """All that the server keeps of a reader: "record" has "reviews" and "comparisons"."""
        return self._send(self._calls.on_reader("GET", reader))

    def delete_reader(self, reader: str) -> None:
        """Remove a reader from the server, and from what its engine has computed.

        Raises:
            ServerError: there was none (404), or the reader may still be there.
        """
        self._send(self._calls.on_reader("DELETE", reader))

    def readers(self) -> list[str]:
        """Names of all readers that the server keeps for this key."""
        names: dict[str, None] = {}
        while True:
            page = self._calls.names(self._send(self._calls.get(_page(names))), names)
            names |= dict.fromkeys(page)
            if len(page) < PAGE:
                return list(names)

    def submit(self, kind: str, items: Sequence[Item], **settings: Any) -> str:
        """Have the server keep a list of items and judge them in its own time; the batch's name.

        An answer that is lost is asked for again, under the same random key, by which the server knows the batch that it keeps already.

        Raises:
            ServerError: not kept: it keeps no batches (404), or no more of them (409), or something in the request is wrong.
        """
        return self._calls.batch_name(self._send(self._calls.submit(kind, items, settings)))

    def batch(self, name: str) -> dict[str, Any]:
        """How far a batch is: "status" is waiting, running or done; "answered" of "items"; "failed" of these."""
        return self._send(self._calls.on_batch("GET", name))

    def batch_results(self, name: str) -> list[Judgement | Problem]:
        """A judgement or a problem for every item of a batch that is done, in order.

        Raises:
            ServerError: it is not done (409).
        """
        return self._calls.batch_results(self._send(self._calls.on_batch("GET", name, "/results")), self.batch(name))

    def delete_batch(self, name: str) -> None:
        """Remove a batch with its items and answers; what is left of it is not judged any more."""
        self._send(self._calls.on_batch("DELETE", name))

    def questions(self) -> list[dict[str, Any]]:
        """The questions, with JSON Schemas."""
        return self._calls.questions(self._send(self._calls.get("/v1/judge/questions")))

    def version(self) -> dict[str, Any]:
        """The served models and programs."""
        return self._send(self._calls.get("/version"))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _many(self, route: str, items: Sequence[Item], settings: Mapping[str, Any]) -> list[Judgement | Problem]:
        _several(items)
        found: list[Judgement | Problem] = []
        while len(found) < len(items):
            try:
                some = items[len(found) : len(found) + AT_ONCE]
                found += self._calls.results(self._post(route, some, settings), some, route, settings)
            except ServerError as error:
                if not found:
                    raise
                found += error.problems(len(items) - len(found))
        return found

    def _post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._send(self._calls.post(route, given, settings))

    def _send(self, call: _Call) -> dict[str, Any]:
        while True:
            deadline = Deadline(self._http.timeout.read)
            try:
                with self._silence.waiting(), self._http.stream(call.method, call.path, **call.sent) as response:
                    body = call.body(response, deadline)
                    for part in response.iter_bytes():
                        body.add(part)
                wait = call.take(response, body.content)
            except (httpx2.RequestError, Unfit) as error:
                wait = call.broken(error)
            if wait is None:
                return call.answer
            time.sleep(wait)


class AsyncJudgeClient:
    """`JudgeClient` for asynchronous programs; see there. At most `at_once` of its requests are under way, the others wait here."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
        tries: int = 5,
        at_once: int = 32,
    ) -> None:
        key = _key(key)
        self._room = asyncio.Semaphore(_count(at_once, "at_once"))
        self._calls = _Calls(model, _count(tries, "tries"), Answers(_plain(url), key))
        self._http = httpx2.AsyncClient(
            base_url=_plain(url), headers=_headers(key), timeout=_patience(timeout), follow_redirects=False
        )

    async def pointwise(self, item: Item, **settings: Any) -> Judgement:
        return self._calls.judgement(await self._post("pointwise", _one(item), settings), item, "pointwise", settings)

    async def pairwise(self, item: Item, **settings: Any) -> Judgement:
        return self._calls.judgement(await self._post("pairwise", _one(item), settings), item, "pairwise", settings)

    async def pointwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        return await self._many("pointwise", items, settings)

    async def pairwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        return await self._many("pairwise", items, settings)

    async def ask(self, kind: str, item: Item, **settings: Any) -> Judgement:
        return self._calls.judgement(await self._post(_single(kind), _one(item), settings), item, kind, settings)

    async def ask_many(self, kind: str, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        return await self._many(_single(kind), items, settings)

    async def claims(self, item: Item, **settings: Any) -> list[Judgement]:
        return self._calls.claims(await self._post("claims", _one(item), settings), item, settings)

    async def put_reader(self, reader: str, *, reviews: Sequence[Entry] = (), comparisons: Sequence[Entry] = ()) -> None:
        await self._send(self._calls.put(reader, reviews, comparisons))

    async def reader(self, reader: str) -> dict[str, Any]:
        return await self._send(self._calls.on_reader("GET", reader))

    async def delete_reader(self, reader: str) -> None:
        await self._send(self._calls.on_reader("DELETE", reader))

    async def readers(self) -> list[str]:
        names: dict[str, None] = {}
        while True:
            page = self._calls.names(await self._send(self._calls.get(_page(names))), names)
            names |= dict.fromkeys(page)
            if len(page) < PAGE:
                return list(names)

    async def submit(self, kind: str, items: Sequence[Item], **settings: Any) -> str:
        return self._calls.batch_name(await self._send(self._calls.submit(kind, items, settings)))

    async def batch(self, name: str) -> dict[str, Any]:
        return await self._send(self._calls.on_batch("GET", name))

    async def batch_results(self, name: str) -> list[Judgement | Problem]:
        found = await self._send(self._calls.on_batch("GET", name, "/results"))
        return self._calls.batch_results(found, await self.batch(name))

    async def delete_batch(self, name: str) -> None:
        await self._send(self._calls.on_batch("DELETE", name))

    async def questions(self) -> list[dict[str, Any]]:
        return self._calls.questions(await self._send(self._calls.get("/v1/judge/questions")))

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
        _several(items)
        found: list[Judgement | Problem] = []
        while len(found) < len(items):
            try:
                some = items[len(found) : len(found) + AT_ONCE]
                found += self._calls.results(await self._post(route, some, settings), some, route, settings)
            except ServerError as error:
                if not found:
                    raise
                found += error.problems(len(items) - len(found))
        return found

    async def _post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> dict[str, Any]:
        return await self._send(self._calls.post(route, given, settings))

    async def _send(self, call: _Call) -> dict[str, Any]:
        while True:
            async with self._room:
                wait = await self._try(call)
            if wait is None:
                return call.answer
            await asyncio.sleep(wait)

    async def _try(self, call: _Call) -> float | None:
        """Send it once; seconds to wait before the next try, if it has no answer."""
        deadline = Deadline(self._http.timeout.read)
        try:
            async with (
                asyncio.timeout(deadline.seconds) as limit,
                self._http.stream(call.method, call.path, **call.sent) as response,
            ):
                body = call.body(response, deadline)
                async for part in response.aiter_bytes():
                    body.add(part)
            return call.take(response, body.content)
        except TimeoutError:
            if not limit.expired():
                raise
            return call.broken(deadline.unfit)
        except (httpx2.RequestError, Unfit) as error:
            return call.broken(error)


@dataclass(frozen=True)
class _Calls:
    """The requests and answers of both clients."""

    model: str | None
    tries: int
    answers: Answers

    def get(self, path: str) -> _Call:
        return _Call("GET", path, None, self.tries, self.answers)

    def post(self, route: str, given: Item | Sequence[Item], settings: Mapping[str, Any]) -> _Call:
        asked = [_fields(item) for item in given] if isinstance(given, Sequence) else _fields(given)
        body = {"input": asked, "model": self.model, **settings}
        said = {name: value for name, value in body.items() if value is not None}
        return _Call("POST", f"/v1/judge/{route}", said, self.tries, self.answers)

    def put(self, reader: str, reviews: Sequence[Entry], comparisons: Sequence[Entry]) -> _Call:
        for entries in (reviews, comparisons):
            if not isinstance(entries, Sequence) or not all(isinstance(one, Mapping | BaseModel) for one in entries):
                raise BadInput("a reader's reviews and comparisons are lists of dictionaries, or of entries of profiles")
        record = {"reviews": list(map(_fields, reviews)), "comparisons": list(map(_fields, comparisons))}
        return _Call("PUT", _reader_path(reader), record, self.tries, self.answers)

    def on_reader(self, method: str, reader: str) -> _Call:
        return _Call(method, _reader_path(reader), None, self.tries, self.answers)

    def submit(self, kind: str, items: Sequence[Item], settings: Mapping[str, Any]) -> _Call:
        _several(items)
        call = self.post("batches", items, {"kind": _single(kind), **settings})
        call.sent["headers"] = {**_JSON, IDEMPOTENCY_KEY: secrets.token_hex(16)}
        return call

    def on_batch(self, method: str, name: str, part: str = "") -> _Call:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name):
            raise BadInput("a batch's name is what submit() gave")
        return _Call(method, f"/v1/judge/batches/{name}{part}", None, self.tries, self.answers)

    def batch_name(self, answer: Mapping[str, Any]) -> str:
        found = answer.get("batch")
        if not isinstance(found, str):
            raise self.answers.strange("no batch")
        return found

    def batch_results(self, answer: Mapping[str, Any], about: Mapping[str, Any]) -> list[Judgement | Problem]:
        size, found = about.get("items"), answer.get("results")
        if not isinstance(size, int) or not isinstance(found, list) or size != len(found):
            told = f"{len(found)} results" if isinstance(found, list) else "no list of results"
            raise self.answers.strange(f"{told} of a batch of {size!r:.20} items")
        return self.answers.results(answer, [{}] * size, str(about.get("question")))

    def names(self, answer: Mapping[str, Any], before: Collection[str]) -> list[str]:
        """The readers that come after those `before`; a server that names one again, or ever new ones, would be asked without end."""
        found = answer.get("readers")
        if not isinstance(found, list) or not all(map(_names_a_reader, found)):
            raise self.answers.strange("no list of readers")
        if len(set(found)) < len(found) or any(name in before for name in found):
            raise self.answers.strange("a reader twice in the list of readers")
        if len(before) + len(found) > MOST_READERS:
            raise self.answers.strange(f"more than {MOST_READERS:,} readers")
        return found

    def judgement(self, answer: object, item: Item, route: str, settings: Mapping[str, Any]) -> Judgement:
        return self.answers.judgement(answer, _fields(item), _question(route, settings))

    def claims(self, answer: Mapping[str, Any], item: Item, settings: Mapping[str, Any]) -> list[Judgement]:
        return self.answers.claims(answer, _fields(item), _question("claims", settings))

    def results(
        self, answer: Mapping[str, Any], items: Sequence[Item], route: str, settings: Mapping[str, Any]
    ) -> list[Judgement | Problem]:
        return self.answers.results(answer, [_fields(item) for item in items], _question(route, settings))

    def questions(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = answer.get("questions")
        if not isinstance(found, list):
            raise self.answers.strange("no list of questions")
        return found


class _Call:
    """One request: its outcome, and how long to wait before the next try."""

    def __init__(self, method: str, path: str, body: dict[str, Any] | None, tries: int, answers: Answers) -> None:
        self.method, self.path = method, path
        # ASCII: half a character arrives as it was given, so that the server says which item holds it.
        self.sent: dict[str, Any] = {} if body is None else {"content": _as_json(body), "headers": _JSON}
        self.answer: dict[str, Any] = {}
        self._left = tries
        self._answers = answers
        self._pause_next = 0.5

    def body(self, response: httpx2.Response, deadline: Deadline) -> Body:
        """What will hold the answer. One that points elsewhere is read no further.

        Raises:
            ServerError: it does.
        """
        if response.has_redirect_location:
            why = not_followed(self._answers.url, response.headers["location"])
            raise ServerError(self._answers.words(why), response.status_code)
        return Body(response.headers, deadline)

    def take(self, response: httpx2.Response, content: bytes) -> float | None:
        """None if `answer` is ready, else seconds to wait before the next try."""
        if response.is_success:
            self.answer = self._answers.fields(content)
            return None
        self._left -= 1
        wait = self._pause(response.headers.get("retry-after"))
        if response.status_code in _AGAIN and self._left and wait <= LONGEST_WAIT:
            return wait
        problem = self._answers.problem(content, response.status_code)
        raise ServerError(problem.message, response.status_code, problem.details)

    def broken(self, error: httpx2.RequestError | Unfit) -> float:
        """Seconds to wait after a connection failed. One that was refused or lost, as when an idle one is closed or a server dies in
        the middle of an answer, is tried again: to ask twice changes nothing. One whose time is over is not."""
        if isinstance(error, Unfit):
            raise self._answers.strange(str(error)) from None
        url = self._answers.url
        if (why := _distrusted(error)) is not None:  # no other try changes it
            raise ServerError(
                f"{url} has a certificate that is not trusted here ({self._answers.words(why)}); if it is your own, set SSL_CERT_FILE to it (PEM), "
                "and ask by a name that it holds",
                0,
            ) from error
        self._left -= 1
        lost = httpx2.ConnectError | httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError
        if isinstance(error, lost) and self._left:
            return self._pause(None)
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            raise ServerError(
                f"{url} took longer than the client waits; give a longer timeout= (or PERSE_TIMEOUT), or fewer new tokens", 0
            ) from error
        reason = self._answers.words(str(error)) or type(error).__name__
        raise ServerError(f"no answer from {url} ({reason}); is the server running? python serve.py starts one", 0) from error

    def _pause(self, retry_after: str | None) -> float:
        if retry_after and retry_after.isascii() and retry_after.replace(".", "", 1).isdigit():
            return float(retry_after)
        pause, self._pause_next = self._pause_next, min(8.0, 2 * self._pause_next)
        return pause


def _question(kind: str, settings: Mapping[str, Any]) -> str:
    """What is asked: by default the usual question of the route."""
    return str(settings.get("question") or judge_routes()[kind].usual)


def _single(kind: str) -> str:
    """A route with one judgement an item."""
    kinds = [name for name in judge_routes() if name != ClaimsExample.kind]
    if kind not in kinds:
        more = "claims() asks about several claims" if kind == ClaimsExample.kind else f"found {kind!r:.100}"
        raise BadInput(f"the kind of what is asked is one of {', '.join(kinds)}; {more}")
    return kind


def _as_json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body).encode()
    except RecursionError:
        raise BadInput("the items cannot be sent as JSON (lists or dictionaries are nested too deeply); give texts") from None
    except (TypeError, ValueError) as error:
        raise BadInput(f"the items cannot be sent as JSON ({error}); give texts, numbers, lists and dictionaries") from None


def _distrusted(error: BaseException | None) -> str | None:
    """Why the server's certificate is not trusted, if that is what lies under `error`."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _plain(url: str) -> str:
    return plain_address(url, of="the server's address", keys="into PERSE_API_KEY or key=")


def _key(given: str | None) -> str | None:
    return header_key(given or os.environ.get("PERSE_API_KEY", ""), of="key=" if given else "PERSE_API_KEY") or None


def _headers(key: str | None) -> dict[str, str]:
    return {**ACCEPTED, **({"Authorization": f"Bearer {key}"} if key else {})}


def _one(item: Item) -> Item:
    if not isinstance(item, Mapping | BaseModel):
        raise BadInput(
            f"one item was expected, a {type(item).__name__} was given; pointwise_many, pairwise_many and ask_many take lists"
        )
    return item


def _several(items: Sequence[Item]) -> None:
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
        raise BadInput(
            f"a list of items was expected, a {type(items).__name__} was given; pointwise, pairwise and ask take one item"
        )
    if (odd := next((one for one in items if not isinstance(one, Mapping | BaseModel)), items)) is not items:
        raise BadInput(
            f"a list of items was expected, and one of them is a {type(odd).__name__}; an item is a dictionary or an example"
        )


def _patience(seconds: float | None) -> float:
    if seconds is None:
        return patience()
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e8:
        raise BadInput(f"timeout={seconds!r:.100} is no number of seconds above 0; give one, such as 600")
    return seconds


def _count(number: int, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise BadInput(f"{name}={number!r:.100} is no whole number above 0; give one")
    return number


def _reader_path(reader: str) -> str:
    if not isinstance(reader, str) or not 0 < len(reader) <= LONGEST_ID:
        raise BadInput(f"a reader's name is a text of 1 to {LONGEST_ID} characters")
    if not _names_a_reader(reader):
        raise BadInput(f"'{reader}' cannot stand in an address as a reader's name; take another")
    return f"/v1/readers/{quote(reader, safe='')}"


def _names_a_reader(name: object) -> bool:
    """Whether it can stand in an address as one."""
    return isinstance(name, str) and 0 < len(name) <= LONGEST_ID and name not in (".", "..") and not is_half(name)


def _page(names: dict[str, None]) -> str:
    after = f"&after={quote(next(reversed(names)), safe='')}" if names else ""
    return f"/v1/readers?count={PAGE}{after}"


def _fields(item: Item | Entry) -> dict[str, Any]:
    return dict(item) if isinstance(item, Mapping) else item.model_dump(mode="json", exclude_none=True)
