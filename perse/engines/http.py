"""Talking to a server of the OpenAI API: the SDK's client, the key, the models it lists, and its errors in our words.

Patience is the SDK's: 408, 409, 429, 5xx and lost connections are tried again, after half a second at first, eight at last, or
when Retry-After says; one of more than two minutes fails at once.
"""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from ssl import SSLContext
from typing import Any, TypeVar

import httpx2
from openai import APIError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel

from perse.addresses import plain_address
from perse.errors import BadInput
from perse.secrets import redact

TIMEOUT = httpx2.Timeout(600, connect=10)

LISTED = 20
"""Most models that a message lists."""

Answer = TypeVar("Answer")


class Entry(BaseModel):
    """A model in a server's list; all but the name is vLLM's."""

    id: str
    owned_by: str | None = None
    root: str | None = None
    parent: str | None = None
    max_model_len: int | None = None


async def served_models(client: AsyncOpenAI) -> dict[str, Entry]:
    class Models(BaseModel):
        data: list[Entry] | None = None

    said = await client.get("/models", cast_to=object)
    listed = Models.model_validate({"data": said} if isinstance(said, list) else said)
    return {entry.id: entry for entry in listed.data or ()}


def listed(names: Mapping[str, Entry], like: str) -> str:
    shown = sorted(names) if len(names) <= LISTED else difflib.get_close_matches(like, names, LISTED, cutoff=0)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"it has {', '.join(shown) or 'none'}{more}"


def api_client(url: str, retries: int, tls: SSLContext | None = None) -> AsyncOpenAI:
    """A client for one event loop. `tls` is shared by who makes many: reading the certificates takes longer than a request.

    Raises:
        BadInput: the address has a key in it, or a proxy that the environment names is no address.
    """
    url = plain_address(url, of="the server's address", keys="into the environment variable OPENAI_API_KEY")
    try:
        http = None if tls is None else DefaultAsyncHttpxClient(verify=tls, timeout=TIMEOUT)
        return AsyncOpenAI(base_url=url, api_key=api_key(), timeout=TIMEOUT, max_retries=retries, http_client=http)
    except (
        ValueError,
        ImportError,
        httpx2.InvalidURL,
    ) as error:  # of a proxy: an unknown scheme, a missing package, a wrong port
        raise BadInput(
            f"a proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used ({type(error).__name__}); write "
            "http://HOST:PORT, or unset it"
        ) from None


def api_key() -> str:
    return os.environ.get("OPENAI_API_KEY") or "none"  # a local server wants none, but the SDK does


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of `work`, on a loop of its own; in another thread where this one has a loop already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def key_refused(url: str, error: APIStatusError) -> BadInput:
    return BadInput(f"{url} refused the key ({error.status_code}: {said(error)}); put a valid one into OPENAI_API_KEY")


def tries(error: APIError) -> str:
    tries = 1 + int(error.request.headers.get("x-stainless-retry-count", 0))
    return "1 try" if tries == 1 else f"{tries} tries"


def cause(error: APIError) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {safe(str(cause))}".removesuffix(": ")


def said(error: APIStatusError) -> str:
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return safe(str(said or error.message))


def safe(text: str) -> str:
    """A server's words on one line, not many of them, and without a key, which some repeat."""
    return redact(" ".join(text.split()))[:300]
