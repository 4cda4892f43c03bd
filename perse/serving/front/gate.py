"""How many requests are inside at once, how often one caller may ask, how long a request may take, and how a server empties.

Counted in this process: several servers behind one address each have limits of their own. A refusal says when to come again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from perse.serving.front.keys import Caller
from perse.settings.serving import Limits

LONGEST_WAIT = 30
"""Seconds, at most, after which a refused client is asked to come again."""

REMEMBERED = 64
"""Requests whose times say how long the next one may have to wait."""


@dataclass(frozen=True)
class Refusal:
    """Why a request is not let in, and after how many seconds it may be."""

    status: HTTPStatus
    message: str
    retry_after: int
    reason: str
    """One word, for counting."""


class Gate:
    """Lets requests in, and knows which are inside."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._draining = False
        self._tell: list[Callable[[], None]] = []
        self._finish: list[Callable[[], Awaitable[None]]] = []
        self._clock = clock
        self._inside: set[asyncio.Timeout] = set()
        self._callers: Counter[str] = Counter()
        self._budgets: dict[str, tuple[float, float]] = {}  # caller -> (requests left, when)
        self._bytes = 0
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def draining(self) -> bool:
        """Whether the server has been told to stop: nobody is let in from then on."""
        return self._draining

    def drain(self) -> None:
        """Let nobody in any more."""
        self._draining = True
        for tell in self._tell:
            tell()

    def when_draining(self, tell: Callable[[], None]) -> None:
        """Have `tell` called at that moment."""
        self._tell.append(tell)

    def before_the_end(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Have `finish` awaited once nobody is inside any more."""
        self._finish.append(finish)

    async def finished(self) -> None:
        """Wait for what was given to `before_the_end`."""
        for finish in self._finish:
            await finish()

    @property
    def inside(self) -> int:
        """Requests being worked on or waiting."""
        return len(self._inside)

    def refusal(self, caller: Caller) -> Refusal | None:
        """Why a request of this caller cannot come in now; None takes one of what it may ask a minute."""
        if self.draining:
            return Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping; ask again, another may answer", 1, "draining"
            )
        most = self.limits.requests
        if self.inside >= most:
            full = f"{most} requests are being answered, as many as this server takes"
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{full}; ask again later", self.wait(), "full")
        own = self.limits.per_key
        if own is not None and self._callers[caller.name] >= own:
            busy = f"{own} requests with this key are being answered, as many as it may have at once"
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, f"{busy}; wait for one of them", self.wait(), "per_key")
        return self._too_often(caller)

    def wait(self) -> int:
        """Seconds after which there may be room: what a request took of late."""
        typical = math.fsum(self._times) / len(self._times) if self._times else 1.0
        return max(1, min(LONGEST_WAIT, math.ceil(typical)))

    @contextmanager
    def visit(self, caller: Caller, limit: asyncio.Timeout) -> Iterator[None]:
        """Counts a request while it is inside; `limit` ends it."""
        self._inside.add(limit)
        self._callers[caller.name] += 1
        self._empty.clear()
        begun = self._clock()
        try:
            yield
        finally:
            self._times.append(self._clock() - begun)
            self._inside.discard(limit)
            self._callers[caller.name] -= 1
            if not self._callers[caller.name]:
                del self._callers[caller.name]
            if not self._inside:
                self._empty.set()

    @contextmanager
    def holding(self, size: int) -> Iterator[Refusal | None]:
        """Counts the bytes of a body while it is worked on; gives why it cannot be, where others hold too many."""
        if self._bytes and self._bytes + size > self.limits.body_mb * 2**20:
            said = "the bodies being worked on are as large as this server takes; ask again later"
            yield Refusal(HTTPStatus.SERVICE_UNAVAILABLE, said, self.wait(), "bytes")
            return
        self._bytes += size
        try:
            yield None
        finally:
            self._bytes -= size

    async def emptied(self, seconds: float) -> bool:
        """Whether all that is inside was answered within `seconds`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), seconds)
        return self._empty.is_set()

    def end_all(self) -> None:
        """End what is still inside, as if its time were over."""
        now = asyncio.get_running_loop().time()
        for limit in self._inside:
            if not limit.expired():
                limit.reschedule(now)

    def _too_often(self, caller: Caller) -> Refusal | None:
        """A bucket of a minute's requests for each caller, filled evenly."""
        a_minute = self.limits.per_minute
        if a_minute is None:
            return None
        now = self._clock()
        left, since = self._budgets.get(caller.name, (float(a_minute), now))
        left = min(float(a_minute), left + (now - since) * a_minute / 60)
        if left < 1 - 1e-9:  # what is added up in parts may miss 1 by its last bits
            self._budgets[caller.name] = left, now
            wait = max(1, math.ceil((1 - left) * 60 / a_minute))
            often = f"this key may ask {a_minute} times a minute"
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, f"{often}; ask again in {wait} s", wait, "per_minute")
        self._budgets[caller.name] = left - 1, now
        return None
