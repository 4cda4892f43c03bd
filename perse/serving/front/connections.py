"""Closes connections on which nothing is asked: uvicorn waits for a request's first line and headers without end.

A connection is silent while no request on it is being answered. One that stays so for `SILENT_SECONDS`, whatever dribbles in, is
closed. (Idle ones, after an answer, uvicorn itself closes sooner.)
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

SILENT_SECONDS = 20.0
LOOK_EVERY = 2.0


async def close_silent(server: Any, *, seconds: float = SILENT_SECONDS, every: float = LOOK_EVERY) -> None:
    """Watch the connections of a uvicorn server, until cancelled."""
    since: dict[Any, float] = {}
    while True:
        await asyncio.sleep(every)
        silent = [one for one in list(server.server_state.connections) if _is_silent(one)]
        since = {one: since.get(one, time.monotonic()) for one in silent}
        for connection, began in since.items():
            if time.monotonic() - began >= seconds:
                connection.transport.close()


def _is_silent(connection: Any) -> bool:
    """Whether no request is being answered on it. WebSockets, which have no cycles of request and answer, are not looked at."""
    if not hasattr(connection, "cycle"):
        return False
    cycle = connection.cycle
    return cycle is None or bool(cycle.response_complete)
