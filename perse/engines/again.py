"""The line that says that a server refuses, or cannot be reached, and how long it is asked again: the SDK tries by itself, and says nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

PATIENT = 5.0
"""Seconds after which whoever watches is told. Tries that fail at once are told of at the third, a second and a half after the first."""
EVERY = 60.0
"""Seconds between two lines about one server, which may let in some requests and refuse others all the time."""
_FIRST, _LONGEST = 0.5, 8.0
"""The SDK's waits: twice as long each time."""


class Again:
    """Tells of tries that failed at one server. Used by several threads.

    Args:
        retries: how often a request is sent again at most.
    """

    def __init__(self, url: str, retries: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._retries, self._clock = url, retries, clock
        self._lock = threading.Lock()
        self._told = float("-inf")

    def failed(self, what: str, before: int, *, took: float, asked: float = 0.0) -> None:
        """A try that `what` is said of, as in "answered 429", has failed after so many seconds, and `before` it others of this request.

        Args:
            asked: seconds that the server wants to be left alone, 0 where it says nothing.
        """
        if before >= self._retries or (before < 2 and max(took, asked) < PATIENT):
            return
        with self._lock:
            if self._clock() - self._told < EVERY:
                return
            self._told = self._clock()
        waits = sum(min(_FIRST * 2**n, _LONGEST) for n in range(before, self._retries)) + took * (self._retries - before)
        left = f"in {asked:.0f} s, as it wants" if asked >= 1 else f"for about {waits:.0f} s more"
        log.warning(
            "%s %s, try %d of %d: it is asked again %s; Ctrl-C to stop", self._url, what, before + 1, self._retries + 1, left
        )
