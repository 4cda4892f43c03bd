"""Calls of an engine that lives on an event loop, made from other threads, and cancelled together when nobody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Calls:
    """What one request has running. After `cancel` nothing more is begun."""

    def __init__(self) -> None:
        self._running: set[Future[Any]] = set()
        self._cancelled = False
        self._lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, Answer], loop: asyncio.AbstractEventLoop) -> Answer:
        """The result of `work` on `loop`.

        Raises:
            CancelledError: the request was cancelled, before or meanwhile.
        """
        with self._lock:
            if self._cancelled:
                work.close()
                raise CancelledError
            call = asyncio.run_coroutine_threadsafe(work, loop)
            self._running.add(call)
        try:
            return call.result()
        finally:
            self._running.discard(call)

    def check(self) -> None:
        """Raises:
        CancelledError: the request was cancelled.
        """
        if self._cancelled:
            raise CancelledError

    def cancel(self) -> None:
        """Cancel what runs, and whatever would be begun."""
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for call in running:
            call.cancel()
