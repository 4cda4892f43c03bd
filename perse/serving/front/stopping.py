"""SIGTERM empties the server: nobody new is let in, what is inside is answered, and then it ends with exit code 0.

vLLM as shipped aborts what runs, and with `shutdown_timeout` answers it with 500. So its handler of the signal is replaced once its
server stands, and what remains for it to do is to leave an empty house: `should_exit` ends the loop of uvicorn, under it and under us.
A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.types import Message, Send

from perse.serving.front.connections import close_silent
from perse.serving.front.front import Front

log = logging.getLogger("perse.serving")

LAST_SECONDS = 5
"""For answers that say that the server stops, after the time to empty it is over."""

UVICORN: Mapping[str, Any] = MappingProxyType(
    {
        "http": "h11",  # bounds headers, which httptools does not
        "ws": "none",  # no route of a judge has one, and a request that asks for one with a body was never closed
        "timeout_graceful_shutdown": LAST_SECONDS,
    }
)
"""Settings of uvicorn, under vLLM as under us."""


def when_started(app: Any, send: Send) -> Send:
    """A lifespan's `send` that takes the signals over at the moment that the server has started."""

    async def sending(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            _take_over(app)
        await send(message)

    return sending


def _take_over(app: Any) -> None:
    front: Front | None = getattr(app.state, "front", None)
    server = getattr(app.state, "server", None)
    if front is None or server is None:  # a test's, which has neither
        return
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = {loop.create_task(close_silent(server))}
    app.state.perse_tasks = tasks  # held, or they may vanish
    if threading.current_thread() is not threading.main_thread():
        return

    def told(name: str) -> None:
        if front.gate.draining:
            log.warning("%s again: ending now", name)
            server.should_exit = server.force_exit = True
            return
        front.gate.drain()
        tasks.add(loop.create_task(empty(front, server, name)))

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, told, number.name)


async def empty(front: Front, server: Any, why: str) -> None:
    """Answer what is inside, and end the server."""
    gate = front.gate
    log.info("%s: no more requests are let in; %d are being answered, for at most %g s", why, gate.inside, gate.limits.drain)
    if not await gate.emptied(gate.limits.drain):
        log.warning("%d requests took longer than %g s, and are given up", gate.inside, gate.limits.drain)
        gate.end_all()
        await gate.emptied(LAST_SECONDS)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(gate.finished(), LAST_SECONDS)
    server.should_exit = True
