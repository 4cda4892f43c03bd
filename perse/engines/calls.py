"""Calls of engines from several threads: side by side, each answer when it is there; and cancelled together when no caller waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def as_they_come(work: Callable[[Item], Iterable[Answer]], asked: Iterable[Item], at_once: int) -> Iterator[Answer]:
    """What `work` yields for each of `asked`, at the moment it does; `at_once` of them are worked on, each in a thread of its own.

    `asked` is drawn from as there is room, by the thread that iterates; once it stops, nothing more begins. Threads are
    daemons, which an end of the process does not wait for: those of an executor would hold up Ctrl-C for as long as a server
    is silent.

    Raises:
        Whatever `work` raised, as soon as it did.
    """
    come: SimpleQueue[Future[Answer] | None] = SimpleQueue()

    def run(one: Item) -> None:
        try:
            for answer in work(one):
                ready: Future[Answer] = Future()
                ready.set_result(answer)
                come.put(ready)
        except BaseException as error:  # noqa: BLE001  # not ended here, but raised again by `result`
            failed: Future[Answer] = Future()
            failed.set_exception(error)
            come.put(failed)
        come.put(None)

    running = 0
    for one in asked:
        while running == at_once or not come.empty():
            if (ready := come.get()) is None:
                running -= 1
            else:
                yield ready.result()
        threading.Thread(target=run, args=(one,), daemon=True).start()
        running += 1
    while running:
        if (ready := come.get()) is None:
            running -= 1
        else:
            yield ready.result()


class Calls:
    """The running calls of one request. After `cancel` no new ones start."""

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
        """Cancel running and future calls."""
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for call in running:
            call.cancel()
