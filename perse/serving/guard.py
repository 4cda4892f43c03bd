"""Access control: requests with the key, or without a key from this machine only, and bodies that end. Pure ASGI: any server.

vLLM's own --api-key leaves some of its routes open; this stands before all of them, except those that say only whether the
server lives. Without a key the name that was asked for must be this machine's: a page of elsewhere whose name is made to lead
here (DNS rebinding) could otherwise ask through the browser of whoever opens it. A key in an address is not looked at, and no
query reaches the server's log.

A body is read here, whole, before anybody parses it: JSON takes a hundred times its size in memory, and whoever sends a byte a
second holds a connection for ever. Answers are not touched, so that they can be streamed.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perse.secrets import WithoutQuery
from perse.serving.problems import answer, body, brief
from perse.serving.schemas import ErrorBody
from perse.settings.serving import api_key

OPEN = frozenset({"/health", "/ready"})
HERE = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""This machine's names in a Host header, of which a request has one."""
LARGEST_BODY = 8 * 2**20
"""Bytes: a list of thousands of items, or the reviews of one reader's life."""
BODY_SECONDS = 60.0
"""Time for a whole body to arrive."""


class Guard:
    """Answers 401 to requests without `Authorization: Bearer KEY`, KEY being that in PERSE_API_KEY when the server starts;
    without one, 403 to those for another machine's name."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._key = api_key()
        for name in (
            "uvicorn.access",
            "uvicorn.error",
        ):  # of the server that runs this, vLLM's too; WebSockets are in the second
            logging.getLogger(name).addFilter(WithoutQuery())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None and scope["type"] == "http" and _has_body(scope):
            sent = await _read(scope, receive)
            if isinstance(sent, ErrorBody):
                await answer(sent, {"Connection": "close"})(scope, receive, send)
            elif sent is not None:
                await self.app(scope, _again(sent, receive), send)
        elif refusal is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await answer(refusal, {"WWW-Authenticate": "Bearer"} if self._key else None)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> ErrorBody | None:
        headers = dict(scope["headers"])
        if self._key is None:
            names = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
            if len(names) == 1 and HERE.fullmatch(names[0]):
                return None
            asked = brief("' and '".join(names))
            return body(f"this server answers to this machine only, not to the name '{asked}'", HTTPStatus.FORBIDDEN)
        if scope["type"] == "http" and scope["path"] in OPEN:
            return None
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key.encode()):
            return None
        elsewhere = ", not in the address" if scope.get("query_string") else ""
        return body(f"this server wants a key; send it as 'Authorization: Bearer KEY'{elsewhere}", HTTPStatus.UNAUTHORIZED)


def _has_body(scope: Scope) -> bool:
    return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


async def _read(scope: Scope, receive: Receive) -> bytes | ErrorBody | None:
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


def _too_large() -> ErrorBody:
    most = f"{LARGEST_BODY // 2**20} MiB"
    return body(f"the body is larger than {most}; send fewer items at a time", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _again(sent: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first, and then what the server tells: that the client leaves."""
    left = [sent]

    async def given() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return given
