"""A million shards claimed by a thousand workers that fail, in simulated time: is any missed or judged twice, and what does the file system bear?

    python benchmarks/claims_at_scale.py

The workers run `perse.batch.sharded.working.free` itself, over files that are simulated: which shards are finished, and who holds which since when.
A shard takes ten minutes, more or less; a worker is lost after twenty hours on average, and another begins two minutes later at its part of the plan; a claim without a sign of life for 90 s may be
taken, and signs are given every 15 s; one worker in 10,000 shards stands still for a quarter of an hour and then goes on. Counted are operations on the shared file system: lists of a folder, looks at a file, files made, renamed and removed.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from perse.batch.sharded.claims import LEASE, TOUCH
from perse.batch.sharded.shards import Shard
from perse.batch.sharded.working import LONGEST_WAIT, LOOK_AGAIN, Share, free

FOLDERS = 256
"""Folders that hold the answers; a list of all is a list of each."""
SPREAD = 0.3
"""Standard deviation of the logarithm of a shard's time."""


@dataclass
class Files:
    """The run's folder, as far as claims and answers go. Times are seconds of the simulation."""

    ended: dict[str, float] = field(default_factory=dict)
    holder: dict[str, int] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    """When the holder of a claim was lost."""
    now: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    by_minute: Counter[int] = field(default_factory=Counter)

    def count(self, what: str, number: int = 1) -> None:
        self.operations[what] += number
        self.by_minute[int(self.now // 60)] += number

    def exists(self, shard: Shard) -> bool:
        self.count("looks")
        return self.ended.get(shard.id, float("inf")) <= self.now

    def take(self, name: str, worker: int) -> bool:
        self.count("looks")
        if name in self.holder:
            self.count("looks")  # who holds it
            if self.now - self.gone.get(name, float("inf")) < LEASE:
                return False
            self.count("changes", 2)
        self.count("changes", 3)
        self.holder[name] = worker
        self.gone.pop(name, None)
        return True


class Listed:
    """What was finished when it was listed: as a set, without a copy for each worker."""

    def __init__(self, files: Files) -> None:
        files.count("lists", FOLDERS)
        self._ended, self._then = files.ended.get, files.now

    def __contains__(self, name: object) -> bool:
        ended = self._ended(name)  # type: ignore[call-overload]
        return ended is not None and ended <= self._then


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600, help="That a shard takes, on average.")
    parser.add_argument("--lost-after", type=float, default=20, help="Hours after which a worker is lost, on average.")
    parser.add_argument("--back-after", type=float, default=120, help="Seconds until another takes its place.")
    parser.add_argument(
        "--asleep", type=float, default=1e-4, help="Share of shards whose worker stands still for 15 minutes, and goes on."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.shards, options.workers = 2000, 20
    begun = time.perf_counter()
    files, twice, lost, end = _run(options)
    _show(options, files, twice, lost, end, time.perf_counter() - begun)


def _run(options: argparse.Namespace) -> tuple[Files, int, int, float]:
    rng, files = random.Random(options.seed), Files()
    shards = [Shard(f"{number:x}", 0, 0, 256, 1, 0, 0) for number in range(options.shards)]
    at: list[tuple[float, int, int]] = []  # time, worker, which of its lives
    lives = [0] * options.workers
    loops: list[Iterator[Shard | None]] = [iter(()) for _ in range(options.workers)]
    dies = [0.0] * options.workers
    pause = [LOOK_AGAIN] * options.workers
    working: list[str | None] = [None] * options.workers
    twice = lost = 0
    end = 0.0

    def begin(worker: int) -> None:
        share = Share(worker, options.workers)
        loops[worker] = free(share.order(shards), lambda: Listed(files), files.exists, lambda name: files.take(name, worker))
        dies[worker] = files.now + rng.expovariate(1 / (options.lost_after * 3600))

    for worker in range(options.workers):
        begin(worker)
        heapq.heappush(at, (rng.random() * 60, worker, 0))
    while at:
        files.now, worker, life = heapq.heappop(at)
        if life != lives[worker]:
            continue
        if working[worker] is not None:
            name = working[worker]
            working[worker] = None
            assert name is not None
            if files.now >= dies[worker]:
                lost += 1
                files.gone[name] = dies[worker]
                lives[worker] += 1
                begin(worker)
                heapq.heappush(at, (files.now + options.back_after, worker, lives[worker]))
                continue
            files.done[name] += 1
            twice += files.done[name] > 1
            files.ended[name] = files.now
            files.count("changes", 3)  # answers written, renamed; the claim removed
            if files.holder.get(name) == worker:
                del files.holder[name]
            end = files.now
        try:
            shard = next(loops[worker])
        except StopIteration:
            continue
        if shard is None:
            heapq.heappush(at, (files.now + pause[worker], worker, life))
            pause[worker] = min(LONGEST_WAIT, 2 * pause[worker])
            continue
        pause[worker] = LOOK_AGAIN
        working[worker] = shard.id
        takes = _takes(rng, options.seconds)
        if rng.random() < options.asleep:
            files.gone[shard.id] = files.now  # gives no sign of life, and goes on later
            takes += 10 * LEASE
        files.count("touches", int(takes // TOUCH))
        heapq.heappush(at, (min(files.now + takes, max(dies[worker], files.now)), worker, life))
    return files, twice, lost, end


def _takes(rng: random.Random, seconds: float) -> float:
    """How long a shard takes: lognormal, `seconds` on average."""
    return seconds * rng.lognormvariate(-(SPREAD**2) / 2, SPREAD)


def _show(options: argparse.Namespace, files: Files, twice: int, lost: int, end: float, took: float) -> None:
    table = Table(
        title=f"{options.shards:,} shards, {options.workers:,} workers, {options.seconds:g} s a shard, a worker lost after {options.lost_after:g} h"
    )
    for column in ("", "value"):
        table.add_column(column, justify="left" if not column else "right")
    ideal = options.shards * options.seconds / options.workers
    busiest = max(files.by_minute.values()) / 60
    rows = {
        "shards judged": f"{len(files.done):,}",
        "missing": f"{options.shards - len(files.done):,}",
        "judged twice (the same file, written again)": f"{twice:,}",
        "workers lost": f"{lost:,}",
        "hours, of which without losses and waits": f"{end / 3600:.1f} of {ideal / 3600:.1f}",
        "operations a shard": f"{sum(files.operations.values()) / options.shards:.1f}",
        "of these signs of life": f"{files.operations['touches'] / options.shards:.1f}",
        "operations a second, on average": f"{sum(files.operations.values()) / max(end, 1):,.0f}",
        "in the busiest minute": f"{busiest:,.0f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console(width=120).print(table)
    print(json.dumps({"options": vars(options), "operations": files.operations, "simulated_in": round(took, 1)}))


if __name__ == "__main__":
    main()
