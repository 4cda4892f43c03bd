"""One request on its way: who asks, its name, and what became of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from perse.serving.front.keys import Caller


@dataclass
class Visit:
    """One request on its way, for routes (`request.state.visit`) and the log."""

    id: str
    caller: Caller
    begun: float = field(default_factory=time.monotonic)
    status: int | None = None
    """Of the answer, once it has begun."""
    reason: str = ""
    """Why it was refused, in a word."""
