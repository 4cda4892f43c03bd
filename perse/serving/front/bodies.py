"""Reads a request's body whole before anybody parses it: JSON takes a hundred times its size in memory, and whoever sends a byte a
second holds a connection for ever."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.types import Message, Receive, Scope

from perse.serving.problems import body
from perse.serving.schemas import ErrorBody

LARGEST_BODY = 8 * 2**20
"""Bytes: a list of thousands of items, or the reviews of one reader's life."""
BODY_SECONDS = 60.0
"""Time for a whole body to arrive."""
POLITE_SECONDS, POLITE_BYTES = 0.2, 2**20
"""What of a refused request's body is still taken: a client that is cut off while it sends may never read why."""


def has_body(scope: Scope) -> bool:
    return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def strange_length(scope: Scope) -> str | None:
    """Why nobody can say where the body ends: of the two headers a proxy before us may believe the other one (request smuggling)."""
    names = {name.lower() for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        return "found both Content-Length and Transfer-Encoding; send one of them"
    return None


async def read(scope: Scope, receive: Receive) -> bytes | ErrorBody | None:
    """The body; why it is not taken; or None where its client has left."""
    told = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    if any(value.isdigit() and int(value[:20]) > LARGEST_BODY for value in told):
        return _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > LARGEST_BODY:
                    return _too_large()
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        return body(f"the body did not arrive within {BODY_SECONDS:.0f} s; send it at once", HTTPStatus.REQUEST_TIMEOUT)


async def swallow(receive: Receive) -> None:
    """Take the body of a request that is refused, if it is small and comes at once."""
    size = 0
    try:
        async with asyncio.timeout(POLITE_SECONDS):
            while size < POLITE_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


def again(sent: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first, and then what the server tells: that the client leaves."""
    left = [sent]

    async def given() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return given


def _too_large() -> ErrorBody:
    most = f"{LARGEST_BODY // 2**20} MiB"
    return body(f"the body is larger than {most}; send fewer items at a time", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
