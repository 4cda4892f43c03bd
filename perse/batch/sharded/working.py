"""A worker: it takes shard after shard, judges it and keeps its answers, until none is left; others do the same beside it.

Each begins at another place of the plan and goes round, so that they seldom want the same shard; shards that lie side by side share readers, and
with them what the engine has computed. A worker that finds only shards that others hold waits: their holders may die.

Many workers share one file system, so they look little: a worker lists what is finished when it begins and when it has come upon a row of finished shards,
and looks at one file before it takes a shard (`benchmarks/claims_at_scale.py` counts what that costs).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.running import Asker, Places, run_shard
from perse.batch.sharded.shards import Plan, Shard
from perse.files.disk import GrowingFile
from perse.judgement import Judgement

TELEMETRY = "telemetry"
LOOK_AGAIN = 1.0
"""Seconds between looks at shards that others hold, at first; twice as long each time."""
LONGEST_WAIT = 15.0
LOOKS = 64
"""Shards of others that a worker looks at before it waits again: a thousand workers would else look at a thousand each, again and again."""
PASSED = 32
"""Finished shards in a row that a worker looks at one by one, before it lists what is finished."""


@dataclass(frozen=True)
class Share:
    """Which of how many workers this is; it begins at its own part of the plan."""

    number: int = 0
    of: int = 1

    def order(self, shards: Sequence[Shard]) -> Iterator[Shard]:
        """All shards, from the worker's part on."""
        begin = len(shards) * (self.number % self.of) // self.of
        yield from (shards[n] for n in range(begin, len(shards)))
        yield from (shards[n] for n in range(begin))


def work(
    places: Places, plan: Plan, asker: Asker, claims: Claims, *, session: str, share: Share = Share(), at_once: int = 1
) -> int:
    """Judge whatever shard is neither done nor held by another, until all are done; how many this worker did.

    Args:
        at_once: shards that are judged side by side, where the engine answers calls of several threads together: then the end of one
            is no time without work.
    Raises:
        EngineLost, BadInput, SaveFailed: as `run_shard`, once the shards beside it have ended.
    """
    done = 0
    with (
        claims.working(),
        Telemetry(places.run, claims.holder) as telemetry,
        ThreadPoolExecutor(at_once) as pool,
    ):

        def judge(shard: Shard) -> int:
            return judge_claimed(places, plan, shard, asker, claims, telemetry, session=session)

        running: set[Future[int]] = set()
        pause = LOOK_AGAIN
        for shard in free(share.order(plan.shards), places.finished, lambda one: places.answers(one).exists(), claims.take):
            if shard is not None:
                running.add(pool.submit(judge, shard))
                pause = LOOK_AGAIN
            elif not running:
                time.sleep(pause)
                pause = min(LONGEST_WAIT, 2 * pause)
            if running and (shard is None or len(running) == at_once):
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                done += sum(one.result() for one in ended)
        done += sum(one.result() for one in running)
        claims.sweep()
        for shard in _begun(places, plan):  # by workers that were killed behind the last answer
            places.sweep(shard)
    return done


def judge_claimed(
    places: Places, plan: Plan, shard: Shard, asker: Asker, claims: Claims, telemetry: Telemetry, *, session: str
) -> int:
    """Judge a shard that this worker holds, and give it back; 0 where it was done by who held it before."""
    try:
        if places.done(shard):
            return 0
        began = time.monotonic()
        judgements = run_shard(places, plan, shard, asker, session=session)
        telemetry.judged(shard, judgements, time.monotonic() - began)
        return 1
    finally:
        claims.give_back(shard.id)


def _begun(places: Places, plan: Plan) -> list[Shard]:
    folder = places.run / "attempts"
    names = {one.name for one in folder.iterdir()} if folder.is_dir() else set()
    return [shard for shard in plan.shards if shard.id in names]


def free(
    shards: Iterable[Shard],
    finished: Callable[[], Container[str]],
    done: Callable[[Shard], bool],
    take: Callable[[str], bool],
) -> Iterator[Shard | None]:
    """Shards that this worker has taken, until all are done; None where others hold what is left.

    Args:
        finished: lists the ids of all shards that are done.
        done: looks whether one is.
        take: whether a shard is this worker's now.
    """
    known, passed = finished(), 0
    held: deque[Shard] = deque()
    for shard in shards:
        if shard.id in known:
            continue
        if done(shard):
            passed += 1
            if passed == PASSED:
                known, passed = finished(), 0
            continue
        passed = 0
        if take(shard.id):
            yield shard
        else:
            held.append(shard)
    while held:
        yield None
        looked = 0
        for _ in range(len(held)):
            shard = held.popleft()
            if done(shard):
                continue
            if take(shard.id):
                yield shard
                continue
            held.append(shard)
            looked += 1
            if looked == LOOKS:
                break


class Telemetry:
    """What a worker did and how long it took, in a file of its own."""

    def __init__(self, run: Path, worker: Holder) -> None:
        folder = run / TELEMETRY
        folder.mkdir(parents=True, exist_ok=True)
        self._worker = worker
        self._file = GrowingFile(folder / f"{worker.worker}.jsonl")
        self._file.cut_torn_line()
        self._lock = threading.Lock()

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def judged(self, shard: Shard, judgements: Sequence[Judgement], seconds: float) -> None:
        """A shard was finished."""
        told = {
            "shard": shard.id,
            "judged": len(judgements),
            "seconds": round(seconds, 3),
            "ended": round(time.time(), 3),
            **{name: sum(getattr(one.tokens, name) for one in judgements) for name in ("prompt", "cached", "generated")},
            "by": vars(self._worker),
        }
        with self._lock:
            self._file.append([json.dumps(told) + "\n"], sync=False)
