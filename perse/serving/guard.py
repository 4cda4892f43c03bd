"""Lets in who sends the key. Pure ASGI, so that it works in any server and costs no buffering.

vLLM's own --api-key leaves some of its routes open; this one stands before all of them, except those that say only whether
the server lives.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from perse.serving.problems import answer, body

OPEN = frozenset({"/health", "/ready"})


class KeyGuard:
    """Answers 401 to requests without `Authorization: Bearer KEY`."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self.app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] in OPEN) or self._knows(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            missing = body("this server wants a key; send it as 'Authorization: Bearer KEY'", HTTPStatus.UNAUTHORIZED)
            await answer(missing, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _knows(self, scope: Scope) -> bool:
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(given, self._expected)
