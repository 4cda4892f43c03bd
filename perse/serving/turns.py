"""Whose items the engine takes next: those of a reader who is being judged already, so that the work on the profile is shared.

The engine has room for so many items; the rest wait. When room comes free, items that begin with the same profile as some that are
inside go first (DESIGN.md, section 5): prefix caches are small, and other readers' items between them push the profile out. Whoever
is first in the queue is overtaken at most `PATIENCE` times.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from perse.serving.problems import Busy

PATIENCE = 16


@dataclass(eq=False)
class _Waiting:
    key: str
    items: int
    room: int
    """That its turn takes: no more than there is."""
    turn: asyncio.Future[None]
    overtaken: int = 0
    since: float = field(default_factory=time.monotonic)


class Turns:
    """Room for `room` items in the engine, and for `most` that wait.

    Args:
        queued: told how many seconds each turn was waited for.
        wait: seconds after which there may be room again.
    """

    def __init__(
        self,
        room: int,
        most: int,
        *,
        queued: Callable[[float], None] = lambda seconds: None,
        wait: Callable[[], int] = lambda: 1,
    ) -> None:
        self.room = room
        self.most = most
        self._queued = queued
        self._wait = wait
        self._used = 0
        self._inside: Counter[str] = Counter()
        self._last = ""  # of the engine's cache, where room is for one alone
        self._queue: list[_Waiting] = []

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return sum(one.items for one in self._queue)

    def check(self, size: int) -> None:
        """Raises:
        Busy: so many items would not fit into the queue.
        """
        if self.waiting + size > self.most:
            told = f"{self.waiting} items wait for the engine, and {size} more would be above the limit of {self.most}"
            raise Busy(f"{told}; ask again later", self._wait())

    @asynccontextmanager
    async def turn(self, key: str, size: int, *, items: int | None = None) -> AsyncIterator[None]:
        """Waits until `size` prompts that begin with `key` may be asked; more than there is room for take all of it. While they
        wait they count as what they are, `items` where a prompt asks several."""
        one = _Waiting(key, size if items is None else items, min(size, self.room), asyncio.get_running_loop().create_future())
        self._queue.append(one)
        self._admit()
        try:
            await one.turn
        except asyncio.CancelledError:
            if one.turn.cancelled():
                self._queue = [other for other in self._queue if other is not one]
            else:
                self._leave(one)  # its turn had come at the same moment
            raise
        self._queued(time.monotonic() - one.since)
        try:
            yield
        finally:
            self._leave(one)

    def _leave(self, one: _Waiting) -> None:
        self._used -= one.room
        self._last = one.key
        self._inside[one.key] -= 1
        if not self._inside[one.key]:
            del self._inside[one.key]
        self._admit()

    def _admit(self) -> None:
        while (one := self._next()) is not None:
            self._queue.remove(one)
            self._used += one.room
            self._inside[one.key] += 1
            one.turn.set_result(None)

    def _next(self) -> _Waiting | None:
        self._queue = [one for one in self._queue if not one.turn.cancelled()]
        if not self._queue:
            return None
        first, free = self._queue[0], self.room - self._used
        if first.overtaken < PATIENCE and not self._known(first):
            for one in self._queue[1:]:
                if self._known(one) and one.room <= free:
                    first.overtaken += 1
                    return one
        return first if first.room <= free else None

    def _known(self, one: _Waiting) -> bool:
        return one.key in self._inside or one.key == self._last
