"""Bounds the answers of servers: no redirects are followed, and sizes are limited.

The packages below us would follow a redirect with the request's body, which holds people's reviews, and would unpack an
answer of any size into memory. So one coding at most is asked for and taken, of a kind that packs a thousand bytes into one at
best, and what comes out of it is counted, and so is the time until it is whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urljoin, urlsplit

LARGEST = 64 << 20
"""Bytes of one answer, unpacked."""

PATIENCE = 60
"""Seconds that a whole answer may take beyond those that one silence may: a drip has no end of its own."""

CODINGS = ("gzip", "deflate")
ACCEPTED = {"Accept-Encoding": ", ".join(CODINGS)}
"""The header that every client of ours sends."""

_HOST = re.compile(r"[\w.-]{1,253}|[0-9a-f:.]{2,45}", re.IGNORECASE)


class Unfit(ValueError):
    """An answer that is not read to its end; the message says why, after the server's name."""


class Deadline:
    """When an answer must be whole that begins to be waited for now, with so many seconds of patience for each silence."""

    def __init__(self, silence: float | None) -> None:
        self.seconds = None if silence is None else silence + PATIENCE
        self._began = time.monotonic()

    @property
    def passed(self) -> bool:
        return self.seconds is not None and time.monotonic() - self._began > self.seconds

    @property
    def unfit(self) -> Unfit:
        return Unfit(f"the answer was not whole after {self.seconds:g} s")


class Body:
    """The parts of an answer, unpacked, with the headers that came before them.

    Args:
        deadline: until when all of it must be there.
    Raises:
        Unfit: packed in a way that was not asked for, too large, or late.
    """

    def __init__(self, headers: Mapping[str, str], deadline: Deadline | None = None) -> None:
        coding = headers.get("content-encoding", "identity").strip().lower()
        if coding not in (*CODINGS, "identity", ""):
            raise Unfit(f"the answer is packed as '{coding[:40]}', expected gzip, deflate or plain")
        self._parts: list[bytes] = []
        self._size = 0
        self._deadline = deadline

    def add(self, part: bytes) -> None:
        if self._deadline and self._deadline.passed:
            raise self._deadline.unfit
        self._size += len(part)
        if self._size > LARGEST:
            raise Unfit(f"the answer is larger than {LARGEST >> 20} MiB")
        self._parts.append(part)

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)


def asked_to_wait(headers: Mapping[str, str]) -> float:
    """Seconds that Retry-After says, as a number or as a date; 0 without one."""
    said = headers.get("retry-after", "")
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        return (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError, OverflowError):  # a date without a zone is invalid
        return 0.0


def not_followed(url: str, location: str) -> str:
    """Why a request got no answer from `url`, which points to `location`: of that, the host alone is said."""
    try:
        here, there = urlsplit(url), urlsplit(urljoin(url, location))
        host = there.hostname or ""
        shown = _origin(there) if there.scheme in ("http", "https") and _HOST.fullmatch(host) else "an invalid address"
        shown = "another path there" if shown == _origin(here) else shown
    except ValueError:
        shown = "an invalid address"
    return f"{url} points to {shown}, and no redirect is followed; give that address itself if you trust it"


def _origin(parts: SplitResult) -> str:
    host = parts.hostname or ""
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"
