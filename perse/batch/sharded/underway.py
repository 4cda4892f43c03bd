"""How far a run in shards is, and how fast: told by its files, from any machine, while it goes on and when it is over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.batch.sharded.claims import LEASE, Holder, living
from perse.batch.sharded.running import Places
from perse.batch.sharded.shards import Plan
from perse.batch.sharded.working import TELEMETRY
from perse.files.runlog import read_lines
from perse.formats.json_text import is_amount

LATELY = 20
"""Last shards of a worker that say how fast it is."""
_NUMBERS = ("prompt", "cached", "ended", "seconds", "judged")


@dataclass(frozen=True)
class StatusNow:
    """How far a run is."""

    rows: int
    judged: int
    shards: int
    done: int
    claimed: int
    workers: int
    """Those that hold a shard now, or held one a moment ago; not those of this machine whose processes are gone."""
    each: float | None
    """Judgements a second of one worker, as of late: of those at it, or where nobody is, of all that were."""
    a_second: float | None
    """Judgements a second of all that are at it; None where nobody is. Those that have finished no shard yet count as fast as the others."""
    shared: float | None
    """Of the prompt tokens, those that came from a cache."""
    seconds_left: float | None


def status(places: Places, plan: Plan, *, now: float | None = None) -> StatusNow:
    """Look at the files of a run; it may be going on."""
    now = time.time() if now is None else now
    there = places.finished()
    done = [shard for shard in plan.shards if shard.id in there]
    judged = sum(shard.rows for shard in done)
    by_worker = {path.stem: told for path in sorted((places.run / TELEMETRY).glob("*.jsonl")) if (told := _told(path))}
    prompt, cached = (sum(line[name] for told in by_worker.values() for line in told) for name in ("prompt", "cached"))
    holders = living(places.run / "claims", now)
    lately = {name for name, told in by_worker.items() if now - told[-1]["ended"] < LEASE and not _gone(told[-1].get("by"))}
    at_it = {*holders, *lately} if judged < plan.rows else set()
    paces = [_pace(told) for name, told in by_worker.items() if name in at_it]
    paces = paces or [_pace(told) for told in by_worker.values()]
    each = sum(paces) / len(paces) if paces else None
    together = each * len(at_it) if each and at_it else None
    return StatusNow(
        rows=plan.rows,
        judged=judged,
        shards=len(plan.shards),
        done=len(done),
        claimed=sum(holders.values()),
        workers=len(at_it),
        each=each,
        a_second=together,
        shared=cached / prompt if prompt else None,
        seconds_left=(plan.rows - judged) / together if together else None,
    )


def _pace(told: Sequence[Mapping[str, float]]) -> float:
    """Judgements a second of one worker, from the begin of one of its shards to the end of another: it may judge two side by side."""
    lately = told[-LATELY:]
    return sum(line["judged"] for line in lately) / max(
        lately[-1]["ended"] - min(line["ended"] - line["seconds"] for line in lately), 1e-9
    )


def _gone(by: object) -> bool:
    """Whether the process that wrote a line is known to be gone."""
    try:
        return Holder(**by).gone  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _told(path: Path) -> list[dict[str, Any]]:
    """What a worker finished; lines that say something else are passed over, since nothing hangs on them."""
    return [line for line in read_lines(path) if all(is_amount(line.get(name)) for name in _NUMBERS)]
