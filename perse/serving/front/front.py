"""What a server knows before any route is asked: its keys, its gate, its counters, and how it writes its log."""

from __future__ import annotations

import json
import logging
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from starlette.types import Scope

from perse.serving.front.gate import Gate
from perse.serving.front.keys import Keys
from perse.serving.front.visit import Visit
from perse.serving.metrics import Metrics
from perse.serving.problems import CLIENT_LEFT, StoreFailed
from perse.serving.readers.store import Readers
from perse.serving.turns import Turns
from perse.settings.serving import Limits, admin_key, api_key

log = logging.getLogger("perse.requests")

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"))

QUIET = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by whatever watches the server: not in the log unless they fail."""


def log_requests() -> None:
    """Have each request's line on standard error, as it is: no frame, no colours, no line breaks."""
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)


class Named(Protocol):
    """A route, whose path has `{names}` in the place of what was asked."""

    path: str


@dataclass(frozen=True)
class Front:
    """See the module. `json_log`: lines of JSON, for programs, instead of words."""

    keys: Keys
    gate: Gate
    metrics: Metrics
    json_log: bool = False

    @classmethod
    def of(cls, limits: Limits, keys: Path | None, metrics: Metrics, *, json_log: bool = False) -> Front:
        """With the keys of the environment, and of a file.

        Raises:
            BadInput: a key that cannot be one, or a file that holds none.
        """
        return cls(Keys(api_key(), admin_key(), keys), Gate(limits), metrics, json_log)

    def watch(self, turns: Turns, readers: Readers | None) -> None:
        """Have the gauges ask the gate, the queue before the engine, and the store."""
        self.metrics.ask("inside", lambda: self.gate.inside)
        self.metrics.ask("draining", lambda: float(self.gate.draining))
        self.metrics.ask("waiting_items", lambda: turns.waiting)
        self.metrics.ask("readers", lambda: _count(readers))

    def note(self, visit: Visit, scope: Scope) -> None:
        """Count an answered request, and write its line: no text, no key, no query, no reader's name."""
        seconds = time.monotonic() - visit.begun
        path = path_of(scope)
        status = visit.status or CLIENT_LEFT
        self.metrics.request(path, status, seconds, visit.reason)
        if path in QUIET and status < HTTPStatus.BAD_REQUEST:
            return
        said = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": visit.id,
            "key": visit.caller.name,
            "method": scope["method"] if scope["method"] in METHODS else "other",  # a client's words like any
            "path": path,
            "status": status,
            "seconds": round(seconds, 3),
            **({"refused": visit.reason} if visit.reason else {}),
        }
        words = "{time} {status} {method} {path} {seconds} s, key '{key}', id {id}".format(**said)
        log.info(json.dumps(said) if self.json_log else words + (f", refused: {visit.reason}" if visit.reason else ""))


def _count(readers: Readers | None) -> float:
    """How many readers are kept; NaN where the store does not say."""
    try:
        return readers.count() if readers else 0
    except StoreFailed:
        return math.nan


def path_of(scope: Scope) -> str:
    """The route's path as it was declared, without names of readers; what no route has is one thing."""
    route: Named | None = scope.get("route")
    if route is not None and getattr(route, "path", None):
        return route.path
    return scope["path"] if scope["path"] in QUIET else "other"
