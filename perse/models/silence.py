"""How long a server that was asked may say nothing, and the line that tells of it long before.

A server that takes requests and answers none looks like one that is at work. It is waited for as long as a slow one needs; whoever
watches is told after a minute whom perse waits for, and how to wait less.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from perse.errors import BadInput
from perse.secrets import redact

log = logging.getLogger(__name__)

VARIABLE = "PERSE_TIMEOUT"
"""Environment variable: seconds that a server may be silent."""

USUAL = 600.0
TOLD_AFTER = 60.0
"""Seconds of silence after which a line says so."""


def patience() -> float:
    """Seconds that a server may be silent: 600, or what PERSE_TIMEOUT says.

    Raises:
        BadInput: that is no number of seconds above 0.
    """
    given = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(given or USUAL)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e8:
        raise BadInput(
            f"{VARIABLE} in the environment is '{redact(given)[:100]}', expected seconds above 0, such as 120; correct it"
        )
    return seconds


class Watch:
    """Tells that nothing comes from a server while it is waited for: once, until it answers within the minute again. Used by several
    threads.

    Args:
        seconds: that each request is waited for.
        tries: how often it is sent where nothing comes.
        given: by the program, which says by itself how long it waits.
    """

    def __init__(self, url: str, seconds: float, *, tries: int = 1, given: bool = False) -> None:
        again = "" if tries == 1 else f", {tries} times"
        less = "timeout=SECONDS" if given else f"{VARIABLE}=SECONDS in the environment"
        self._line = (
            f"{url} has not answered for {TOLD_AFTER:g} s; each request is waited for up to {seconds:g} s{again}: look after the server, or "
            f"wait less ({less})"
        )
        self._lock = threading.Lock()
        self._heard = float("-inf")
        self._told = False

    def tell(self, asked: float) -> None:
        """To be called `TOLD_AFTER` after a request of the time `asked` (of the monotonic clock) that has no answer."""
        with self._lock:
            if self._told or self._heard > asked:  # it answers others, or it was said
                return
            self._told = True
        log.warning(self._line)

    def heard(self, asked: float) -> None:
        """To be called when a request of the time `asked` has an answer."""
        with self._lock:
            self._heard = time.monotonic()
            self._told = self._told and self._heard - asked >= TOLD_AFTER

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a request that this thread waits for."""
        asked = time.monotonic()
        timer = threading.Timer(TOLD_AFTER, self.tell, [asked])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.heard(asked)
