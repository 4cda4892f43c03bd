"""The door of the server, before all of its routes: who asks, whether there is room, the body, the time limit, one line in the log.

Pure ASGI, so that it stands in vLLM's server as in ours; vLLM's own --api-key leaves some of its routes open. Without a key the name
that was asked for must be this machine's: a page of elsewhere whose name is made to lead here (DNS rebinding) could otherwise ask
through the browser of whoever opens it. A key in an address is not looked at, and no query reaches a log.

Only the beginning of an answer is touched, so that it can be streamed. What is known of the server is at `app.state.front`; where
that is missing, as when a plugin did not load, nobody comes in.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perse.secrets import WithoutQuery, redact
from perse.serving.front import bodies
from perse.serving.front.front import Front
from perse.serving.front.gate import Refusal
from perse.serving.front.keys import ANYONE_HERE, Caller
from perse.serving.front.keys import Scope as Needed
from perse.serving.front.scopes import is_open, needed
from perse.serving.front.stopping import when_started
from perse.serving.front.visit import Visit
from perse.serving.problems import ANOTHER_SERVER, answer, body, brief
from perse.serving.requests import IDEMPOTENCY_KEY
from perse.serving.schemas import ErrorBody
from perse.settings.serving import SHORTEST_KEY

HERE = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""This machine's names in a Host header, of which a request has one."""

_OWN_KEY = "found the key of this request in {}, too, where it may be kept in a file; send it in Authorization alone"

_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class Guard:
    """The middleware. vLLM makes it by its name, so it takes nothing but the application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        for name in ("uvicorn.access", "uvicorn.error"):  # of whichever server runs this; WebSockets are in the second
            logging.getLogger(name).addFilter(WithoutQuery())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, when_started(scope["app"], send))
            return
        front: Front | None = getattr(getattr(scope.get("app"), "state", None), "front", None)
        visit = Visit(_request_id(scope, front), Caller("", frozenset()))
        if front is None:
            missing = body("the judge is not loaded", HTTPStatus.SERVICE_UNAVAILABLE)
            await _refuse(visit, missing, scope, receive, send, {"Retry-After": str(ANOTHER_SERVER)})
            return
        try:
            await self._answer(front, visit, scope, receive, send)
        finally:
            if scope["type"] == "http":
                front.note(visit, scope)

    async def _answer(self, front: Front, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        if why := _strange_path(scope):
            visit.reason = "path"
            await _refuse(visit, body(why, HTTPStatus.BAD_REQUEST), scope, receive, send)
            return
        if why := bodies.strange_length(scope):
            visit.reason = "body"
            await _refuse(visit, body(why, HTTPStatus.BAD_REQUEST), scope, receive, send)
            return
        if scope["type"] == "http" and is_open(scope) and (front.keys.wanted or _named_here(scope)):
            await self.app(scope, receive, _named(visit, send))
            return
        asking = _who(front, scope)
        if isinstance(asking, Caller):
            visit.caller = asking  # in the log also where the key may not do this
        refused_to = _missing_scope(asking, scope) if isinstance(asking, Caller) else asking
        if refused_to is not None:
            visit.reason = "access"
            challenge = {"WWW-Authenticate": "Bearer"} if refused_to.error.code == HTTPStatus.UNAUTHORIZED else {}
            await _refuse(visit, refused_to, scope, receive, send, challenge)
            return
        if _holds_key(scope):
            visit.reason = "key"
            await _refuse(
                visit, body(_OWN_KEY.format("the address, or in Idempotency-Key"), HTTPStatus.BAD_REQUEST), scope, receive, send
            )
            return
        scope.setdefault("state", {})["visit"] = visit
        if scope["type"] != "http" or not bodies.has_body(scope):
            await self.app(scope, receive, _named(visit, send))
            return
        if refused := front.gate.refusal(visit.caller):
            await bodies.swallow(receive)
            await _later(visit, refused, scope, receive, send)
            return
        await self._work(front, visit, scope, receive, send)

    async def _work(self, front: Front, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        """A request with a body, within the time limit."""
        seconds = front.gate.limits.deadline
        try:
            async with asyncio.timeout(seconds) as limit:
                with front.gate.visit(visit.caller, limit):
                    sent = await bodies.read(scope, receive)
                    if isinstance(sent, ErrorBody):
                        visit.reason = "body"
                        await _refuse(visit, sent, scope, receive, send)
                    elif sent is not None:
                        await self._pass(front, visit, sent, scope, receive, send)
        except TimeoutError:
            if not limit.expired():
                raise
            visit.reason = "draining" if front.gate.draining else "deadline"
            if visit.status is None:  # else the answer has begun, and breaks off here
                late = body(
                    f"not answered within {seconds:g} s, and given up; send fewer items, or ask for shorter texts",
                    HTTPStatus.GATEWAY_TIMEOUT,
                )
                stopped = body("the server is stopping; ask again, another may answer", HTTPStatus.SERVICE_UNAVAILABLE)
                told = (stopped, {"Retry-After": "1"}) if front.gate.draining else (late, {})
                await _refuse(visit, told[0], scope, receive, send, told[1])

    async def _pass(self, front: Front, visit: Visit, sent: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        with front.gate.holding(len(sent)) as refused:
            if refused:
                await _later(visit, refused, scope, receive, send)
            elif _key_in(sent, scope):
                visit.reason = "key"
                await _refuse(visit, body(_OWN_KEY.format("the body"), HTTPStatus.BAD_REQUEST), scope, receive, send)
            else:
                await self.app(scope, bodies.again(sent, receive), _named(visit, send))


def _holds_key(scope: Scope) -> bool:
    """Whether the path, or the one header that is kept, holds the request's own key; some clients send theirs by further ones."""
    kept = [value for name, value in scope["headers"] if name.lower() == IDEMPOTENCY_KEY.lower().encode()]
    return any(_key_in(each, scope) for each in (scope["path"].encode(), *kept))


def _key_in(sent: bytes, scope: Scope) -> bool:
    given = (
        next((value for name, value in scope["headers"] if name.lower() == b"authorization"), b"").partition(b" ")[2].strip()
    )
    return len(given) >= SHORTEST_KEY and (given in sent or json.dumps(given.decode("latin-1"))[1:-1].encode() in sent)


def _who(front: Front, scope: Scope) -> Caller | ErrorBody:
    """Who asks, or why that is not known."""
    if not front.keys.wanted:
        if not _named_here(scope):
            asked = brief("' and '".join(_hosts(scope)))
            return body(f"this server answers to this machine only, not to the name '{asked}'", HTTPStatus.FORBIDDEN)
        return ANYONE_HERE
    sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(sent) > 1:  # a proxy and we might each look at another one
        return body(f"found {len(sent)} headers 'Authorization'; send one", HTTPStatus.UNAUTHORIZED)
    scheme, _, given = (sent[0] if sent else b"").partition(b" ")
    caller = front.keys.caller(given.strip().decode("latin-1")) if scheme.lower() == b"bearer" else None
    if caller is None:
        elsewhere = ", not in the address" if scope.get("query_string") else ""
        return body(f"this server wants a key; send it as 'Authorization: Bearer KEY'{elsewhere}", HTTPStatus.UNAUTHORIZED)
    return caller


def _missing_scope(caller: Caller, scope: Scope) -> ErrorBody | None:
    """Why this caller may not do that, if so."""
    scope_of_route = needed(scope)
    if scope_of_route is None or caller.may(scope_of_route):
        return None
    if scope_of_route is Needed.ADMIN:
        why = "this route changes the server; it wants an administrator's key (PERSE_ADMIN_KEY, or one of scope 'admin')"
    else:
        why = f"this key may not do that; it needs the scope '{scope_of_route}'"
    return body(why, HTTPStatus.FORBIDDEN)


def _hosts(scope: Scope) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]


def _named_here(scope: Scope) -> bool:
    names = _hosts(scope)
    return len(names) == 1 and HERE.fullmatch(names[0]) is not None


async def _later(visit: Visit, refused: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    visit.reason = refused.reason
    headers = {"Retry-After": str(refused.retry_after)}
    await _refuse(visit, body(refused.message, refused.status), scope, receive, send, headers)


async def _refuse(
    visit: Visit, why: ErrorBody, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str] | None = None
) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1008})
        return
    closing = {"Connection": "close"} if bodies.has_body(scope) else {}  # some of it may not have been read
    await answer(why, {**closing, **(headers or {})})(scope, receive, _named(visit, send))


def _named(visit: Visit, send: Send) -> Send:
    """A `send` that gives the answer the request's name, and notes its status."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            visit.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", visit.id.encode())]}
        await send(message)

    return sending


def _strange_path(scope: Scope) -> str | None:
    """Why no route may see the path: servers decode what is not UTF-8 to one and the same sign, and patterns of routes end before a last
    line end, so that two names would be one."""
    try:
        path = unquote_to_bytes(scope.get("raw_path") or scope["path"].encode()).decode()
    except UnicodeDecodeError as error:
        return f"the path is not UTF-8 (byte 0x{error.object[error.start]:02x}); encode names as UTF-8 before they are percent-encoded"
    found = next((one for one in path if one < " " or one == "\x7f"), None)
    return None if found is None else f"the path holds the control character U+{ord(found):04X}; leave it out"


def _request_id(scope: Scope, front: Front | None) -> str:
    """The client's own name for the request (X-Request-ID), where it is a plain one and no key, or a new one: it stands in the log."""
    given = next((value for name, value in scope["headers"] if name.lower() == b"x-request-id"), b"").decode("latin-1")
    plain = _REQUEST_ID.fullmatch(given) and redact(given) == given
    return given if plain and not (front and front.keys.caller(given)) else uuid.uuid4().hex[:16]
