"""Talking to a server of the OpenAI API: the SDK's client, the key, the models it lists, and its errors in our words.

Patience is the SDK's: 408, 409, 429, 5xx and lost connections are tried again, after half a second at first, eight at last, or
when Retry-After says; one of more than two minutes fails at once. A request to which nothing comes is sent twice at most.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import os
import re
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from ssl import SSLContext
from typing import Any, ClassVar, TypeVar

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAsyncHttpxClient, Timeout
from openai import __version__ as openai_version
from pydantic import BaseModel, ValidationError

from perse.addresses import header_key, plain_address
from perse.engines.again import Again
from perse.errors import BadInput
from perse.models.incoming import ACCEPTED, Body, Deadline, Unfit, asked_to_wait, not_followed
from perse.models.silence import patience
from perse.secrets import printable, redact
from perse.strict import Strict

CONNECT = 10
"""Seconds until a connection must be there."""
FIRST_TIMEOUT = Timeout(60, connect=CONNECT)
"""Timeout of a server's self-description, which takes no computing."""

SILENT_TRIES = 2
"""How often a request is sent to which nothing comes in time: a connection may have been lost unseen, a server that is at work would begin anew."""

_HTTP: Any = importlib.import_module(DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
"""The SDK's HTTP library: httpx for openai 2, httpx2 for openai 3. Their objects do not mix."""

LONGEST_WAIT, HEEDED = 120, 60
"""Seconds that a server may ask to wait before another try; those that every openai heeds."""

_UNFIT = "perse.unfit"
"""The extension of an answer that says why it was not read."""
_SILENT = "perse.silent"
"""The extension of one that stands for none."""
_RETRIES = "x-stainless-retry-count"
"""The SDK's header."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

LISTED = 20
"""Most models that a message lists."""

Answer = TypeVar("Answer")


class Entry(Strict):
    """A model in a server's list; all but the name is vLLM's."""

    number_as_text: ClassVar[bool] = True

    id: str
    owned_by: str | None = None
    root: str | None = None
    parent: str | None = None
    max_model_len: int | None = None


class OddList(ValueError):
    """JSON that is not the API's list of models."""


async def served_models(client: AsyncOpenAI) -> dict[str, Entry]:
    """The models by their names.

    Raises:
        OddList, ValueError: no such list; no JSON at all.
    """

    class Models(BaseModel):
        data: list[Entry] | None = None

    said = await client.get("/models", cast_to=object, options={"timeout": FIRST_TIMEOUT})
    if not isinstance(said, list | dict):
        raise ValueError("no JSON")
    try:
        listed = Models.model_validate({"data": said} if isinstance(said, list) else said)
    except ValidationError as error:
        raise OddList(f"{error.error_count()} of its fields are not the API's") from None
    return {entry.id: entry for entry in listed.data or ()}


def listed(names: Mapping[str, Entry], like: str) -> str:
    shown = sorted(names) if len(names) <= LISTED else difflib.get_close_matches(like, names, LISTED, cutoff=0)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"it has {', '.join(shown) or 'none'}{more}"


def api_client(url: str, retries: int, tls: SSLContext | None = None, again: Again | None = None) -> AsyncOpenAI:
    """A client for one event loop. `tls` and `again` are shared by who makes many: reading the certificates takes longer than a request, and whoever
    watches is told of one server once.

    Raises:
        BadInput: the address has a key in it, an invalid key, or an invalid proxy address or time in the environment.
    """
    url = plain_address(url, of="the server's address", keys="into the environment variable OPENAI_API_KEY")
    _check_headers(os.environ.get("OPENAI_CUSTOM_HEADERS", ""))
    timeout = Timeout(patience(), connect=CONNECT)
    try:
        http = _Http(verify=True if tls is None else tls, timeout=timeout, follow_redirects=False, headers=ACCEPTED)
        http.again = again or Again(url, retries)
        return _Client(base_url=url, api_key=api_key(), timeout=timeout, max_retries=retries, http_client=http)
    except (
        ValueError,
        ImportError,
        _HTTP.InvalidURL,
    ) as error:  # of a proxy: an unknown scheme, a missing package, a wrong port
        raise BadInput(
            f"a proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used ({type(error).__name__}); write "
            "http://HOST:PORT, or unset it"
        ) from None


def _check_headers(given: str) -> None:
    """What the openai package sends with every request, and would take for a failure of the server where it cannot be sent.

    Raises:
        BadInput: a line that is no header; it is not repeated, since it may hold a key.
    """
    for number, line in enumerate(given.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if line.strip() and not (
            colon and _HEADER_NAME.fullmatch(name.strip()) and value.isascii() and value.strip().isprintable()
        ):
            raise BadInput(
                f"OPENAI_CUSTOM_HEADERS, line {number}, is no header; write NAME: VALUE, a header a line, in ASCII, or unset it"
            )


class ClientFault(RuntimeError):
    """A request that failed in this program or a package, not at the server."""


class _Http(DefaultAsyncHttpxClient):
    again: Again

    async def send(self, *given: Any, **named: Any) -> Any:
        """Network errors pass through; anything else becomes a `ClientFault`.

        Patience is that of openai 3 with openai 2 too, which heeds no Retry-After of more than a minute.
        """
        request = given[0] if given else named["request"]
        before, began = int(request.headers.get(_RETRIES, 0)), time.monotonic()
        deadline = Deadline(request.extensions.get("timeout", {}).get("read"))
        try:
            async with asyncio.timeout(deadline.seconds) as limit:
                response = await _bounded(await super().send(*given, **{**named, "stream": True, "follow_redirects": False}))
        except TimeoutError:
            if not limit.expired():  # the network's own
                raise
            response = _unread(request, deadline.unfit)
        except _HTTP.ReadTimeout:
            if before + 1 < SILENT_TRIES:
                raise
            response = _HTTP.Response(502, headers={"x-should-retry": "false"}, request=request, extensions={_SILENT: True})
        except (_HTTP.HTTPError, _HTTP.InvalidURL, OSError, UnicodeError) as error:
            self.again.failed(f"gives no answer ({type(error).__name__})", before, took=time.monotonic() - began)
            raise
        except Exception as error:
            stands_on = f"openai {openai_version} on {_HTTP.__name__} {_HTTP.__version__}"
            raise ClientFault(f"nothing was sent: {type(error).__name__}: {error} ({stands_on})") from error
        wait = max(0.0, asked_to_wait(response.headers)) if response.is_error else 0.0
        if wait > LONGEST_WAIT:
            response.headers["x-should-retry"] = "false"
        if response.is_error and _tried_again(response):
            self.again.failed(f"answered {response.status_code}", before, took=time.monotonic() - began, asked=wait)
            if wait > HEEDED:
                await asyncio.sleep(wait - HEEDED)
                response.headers["retry-after-ms"] = str(HEEDED * 1000)
        return response


def _tried_again(response: Any) -> bool:
    """Whether the SDK sends the request again after this answer."""
    told = response.headers.get("x-should-retry")
    return told == "true" or (told != "false" and (response.status_code in (408, 409, 429) or response.status_code >= 500))


async def _bounded(response: Any) -> Any:
    """The answer, read and unpacked; one that is not to be read is another, which says so and is not asked for again."""
    kept = response.headers.copy()
    try:
        body = Body(response.headers)
        async for part in response.aiter_bytes():
            body.add(part)
    except Unfit as error:
        return _unread(response.request, error)
    finally:
        await response.aclose()
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        kept.pop(name, None)
    return _HTTP.Response(
        response.status_code, headers=kept, content=body.content, request=response.request, extensions=response.extensions
    )


def _unread(request: Any, why: Unfit) -> Any:
    return _HTTP.Response(502, headers={"x-should-retry": "false"}, request=request, extensions={_UNFIT: str(why)})


class _Client(AsyncOpenAI):
    async def request(self, *given: Any, **named: Any) -> Any:
        """Unwraps what openai 2 reports as a connection error.

        Raises:
            BadInput: the server points to another address.
            APITimeoutError: nothing came in time, `SILENT_TRIES` times.
            Unfit: its answer cannot be read.
        """
        try:
            return await super().request(*given, **named)
        except RecursionError:
            raise Unfit("the answer is nested too deeply") from None
        except APIStatusError as error:
            if unfit := error.response.extensions.get(_UNFIT):
                raise Unfit(unfit) from None
            if error.response.extensions.get(_SILENT):
                raise APITimeoutError(error.request) from None
            if error.response.has_redirect_location:
                raise BadInput(not_followed(str(self.base_url).rstrip("/"), error.response.headers["location"])) from None
            raise
        except APIConnectionError as error:
            if isinstance(error.__cause__, ClientFault):
                raise error.__cause__ from None
            raise


def tls_context() -> SSLContext:
    """The trusted certificates, to be read once for many clients (`api_client`).

    Raises:
        BadInput: the environment names certificates that cannot be read.
    """
    try:
        return _HTTP.create_ssl_context()  # type: ignore[no-any-return]
    except OSError as error:  # SSLError is one, too
        named = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)}
        told = ", ".join(f"{name}={value}" for name, value in named.items()) or "the trusted certificates"
        raise BadInput(
            f"{told}: cannot be read as certificates ({error.strerror or error}); name a file of certificates (PEM), or unset it"
        ) from None


def api_key() -> str:
    """Raises BadInput if a header cannot carry it."""
    return (
        header_key(os.environ.get("OPENAI_API_KEY", ""), of="OPENAI_API_KEY") or "none"
    )  # the SDK wants one, local servers none


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of `work`, on a loop of its own; in another thread where this one has a loop already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class SharedClient:
    """One client, and the event loop that it lives on, for calls from several threads: they share its connections.

    Both exist only during calls, so that nothing is left open or running afterwards.
    """

    def __init__(self, url: str, retries: int, tls: SSLContext, concurrency: int) -> None:
        self._made = url, retries, tls, Again(url, retries)
        self._concurrency = concurrency
        self._callers = 0
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop
        self.client: AsyncOpenAI
        self.gate: asyncio.Semaphore

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """The result of `work`, which may use `client` and should pass `gate` before each request."""
        with self._lock:
            if not self._callers:
                try:
                    self._begin()
                except BaseException:  # an address or a proxy that cannot be used
                    work.close()
                    raise
            self._callers += 1
            call = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return call.result()
        finally:
            call.cancel()  # also after a Ctrl-C
            with self._lock:
                self._callers -= 1
                if not self._callers:
                    self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self) -> None:
        self.client, self.gate, self._loop = (
            api_client(*self._made),
            asyncio.Semaphore(self._concurrency),
            asyncio.new_event_loop(),
        )
        threading.Thread(target=_until_stopped, args=(self._loop, self.client), daemon=True).start()


def _until_stopped(loop: asyncio.AbstractEventLoop, client: AsyncOpenAI) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, client.close(), return_exceptions=True))
    loop.close()


def key_refused(url: str, error: APIStatusError) -> BadInput:
    return BadInput(f"{url} refused the key ({error.status_code}: {said(error)}); put a valid one into OPENAI_API_KEY")


def tries(error: APIError) -> str:
    tries = 1 + int(error.request.headers.get(_RETRIES, 0))
    return "1 try" if tries == 1 else f"{tries} tries"


def cause(error: APIError) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {safe(str(cause))}".removesuffix(": ")


def said(error: APIStatusError) -> str:
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return safe(str(said or error.message))


def safe(text: str) -> str:
    """A server's words on one line, not many of them, and without a key, which some repeat."""
    return printable(redact(" ".join(text[:100_000].split())))[:300]
