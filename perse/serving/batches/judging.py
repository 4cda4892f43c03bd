"""Judges what batches hold, beside the requests of clients who wait, which go first: a few items at a time, and none while others stand in the queue.

Batches are judged one after the other, owners in turn. Items are asked about as a list of the live routes would be, so the answers are the same.
A server that is told to stop lets its items go, and one that is killed is asked again once it is back (`perse.serving.batches.kept`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perse.errors import BadInput, EngineLost, PerseError, SaveFailed
from perse.serving.batches.kept import DEADLY, REMOVE, Batch, Batches, Journal, deadly, remove_files
from perse.serving.front.gate import Gate
from perse.serving.problems import Busy, ClientLeft, NotThere, StoreFailed, problem
from perse.serving.readers.store import Reader, Readers
from perse.serving.requests import judge_routes
from perse.serving.schemas import Asking
from perse.serving.service import JudgeService, names_readers

log = logging.getLogger("perse.serving")

PART = 8
"""Items that are asked about together: whoever comes meanwhile waits for no more than these."""
PARTS = 8
"""Of them in the engine at once, and never in more than half of it: after a kill all that were in it are asked about alone."""
PATIENCE = 60.0
"""Seconds that a part waits for an empty queue, at most: on a server that is always busy batches come on slowly, but they do."""
LOOK_AGAIN = 0.2
SWEEP_EVERY = 600.0
DISK_AGAIN = 10.0
"""Seconds until answers that could not be written are written again."""


class Judging:
    """The work on a server's batches, from `start` to `stop`."""

    def __init__(self, batches: Batches, service: JudgeService, readers: Readers | None) -> None:
        self.batches = batches
        self._service, self._readers = service, readers
        self._woken, self._stop = asyncio.Event(), asyncio.Event()
        self._writing = asyncio.Lock()
        self._turns: dict[str, int] = {}
        """By owner: the number of the last batch that was judged."""
        self._tried: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None

    def start(self, gate: Gate) -> None:
        """Begin with what is kept, in the running event loop; until `gate` lets nobody in any more."""
        gate.when_draining(self.stop)
        gate.before_the_end(self.stopped)
        self._task = asyncio.get_running_loop().create_task(self._work())

    def wake(self) -> None:
        """There is a new batch."""
        self._woken.set()

    def stop(self) -> None:
        """Begin nothing more; what is being asked is let go, and kept for the next start."""
        self._stop.set()
        self.wake()

    async def stopped(self) -> None:
        """Wait until nothing is written any more, and give the folder back."""
        self.stop()
        if self._task is not None:
            await asyncio.wait({self._task})
        self.batches.close()

    async def _work(self) -> None:
        while not self._stop.is_set():
            self._woken.clear()
            await asyncio.to_thread(self._sweep)
            batch = self._next()
            if batch is None:
                await _wait(self._woken, SWEEP_EVERY)
                continue
            self._turns[batch.about.owner] = max(self._turns.values(), default=0) + 1
            self._tried[batch.id] += 1
            before = len(batch.answered)
            try:
                await self._judge(batch)
                if batch.gone:  # while it was being opened
                    await asyncio.to_thread(remove_files, batch.folder)
                elif batch.ended is None and len(batch.answered) == before and not self._over(batch):
                    raise BadInput("none of its items could be answered")
            except EngineLost:
                log.error("%s: the engine is gone; it goes on when the server is started again", batch.id)
                return
            except (SaveFailed, BadInput, OSError) as error:
                if not batch.gone:
                    log.error("%s waits: %s", batch.id, error)
                    await _wait(self._woken, DISK_AGAIN)
            except Exception as error:  # a bug of ours is no end of all other batches
                log.error("%s waits", batch.id, exc_info=error)
                await _wait(self._woken, DISK_AGAIN)

    def _sweep(self) -> None:
        try:
            self.batches.sweep()
        except StoreFailed as error:
            log.error("%s", error)

    def _next(self) -> Batch | None:
        """The oldest batch of the owner who has waited longest; one that could not be judged to its end comes after those not yet tried."""
        left = self.batches.unfinished()
        return min(
            left, key=lambda one: (self._turns.get(one.about.owner, 0), self._tried[one.id], one.about.created), default=None
        )

    async def _judge(self, batch: Batch) -> None:
        items = await asyncio.to_thread(batch.items)
        if len(items) != batch.about.size:
            raise BadInput(f"{batch.folder} has {len(items)} of {batch.about.size} items; {REMOVE}")
        with batch.journal() as journal:
            left = [n for n in _in_order(items) if n not in batch.answered]
            together = [n for n in left if not batch.deaths[n]]
            parts = [together[start : start + PART] for start in range(0, len(together), PART)]
            room = asyncio.Semaphore(max(1, min(PARTS, self._service.turns.room // (2 * PART))))
            try:
                async with asyncio.TaskGroup() as group:
                    for part in parts:
                        await room.acquire()
                        if not await self._quiet(batch):
                            break
                        task = group.create_task(self._part(batch, journal, items, part))
                        task.add_done_callback(lambda _: room.release())
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None
            for n in [n for n in left if n not in batch.answered]:
                while n not in batch.answered and await self._quiet(batch):
                    if batch.deaths[n] >= DEADLY:
                        await self._write(journal.answered, [(n, deadly(batch.deaths[n]))])
                    else:
                        await self._part(batch, journal, items, [n])
            if len(batch.answered) == batch.about.size and not batch.gone:
                await self._write(journal.ended)

    async def _quiet(self, batch: Batch) -> bool:
        """Whether to go on, once nobody waits for the engine."""
        until = time.monotonic() + PATIENCE
        while self._service.turns.waiting and time.monotonic() < until and not self._over(batch):
            await asyncio.sleep(LOOK_AGAIN)
        return not self._over(batch)

    def _over(self, batch: Batch) -> bool:
        return self._stop.is_set() or batch.gone

    async def _part(self, batch: Batch, journal: Journal, items: Sequence[Mapping[str, Any]], part: Sequence[int]) -> None:
        """Ask about some items. One that fails in a way nobody has foreseen counts as one that a server died of."""
        await self._write(journal.begun, part)
        try:
            results = await self._asked(batch, [items[n] for n in part])
        except EngineLost:
            raise  # what it died of may be one of these
        except Exception as error:
            log.error("%s: %d items could not be asked about", batch.id, len(part), exc_info=error)
            return
        if results is None:
            await self._write(journal.left, part)
        elif not batch.gone:
            said = [(n, _numbered(result, n)) for n, result in zip(part, results, strict=True)]
            await self._write(journal.answered, said)

    async def _write(self, write: Callable[..., None], *told: Any) -> None:
        """Write it, on a full disk as soon as there is room: what was judged is not judged twice.

        Raises:
            SaveFailed: the server is stopping, and there still is none.
        """
        said = False
        while True:
            try:
                async with self._writing:  # what failed takes the end of the file away
                    await asyncio.to_thread(write, *told)
                return
            except SaveFailed as error:
                if self._stop.is_set():
                    raise
                if not said:
                    log.error("answers of a batch wait: %s", error)
                    said = True
                await _wait(self._stop, DISK_AGAIN)

    async def _asked(self, batch: Batch, items: Sequence[Mapping[str, Any]]) -> list[Any] | None:
        """What is said of each; None where it was let go."""

        async def let_go() -> bool:
            return self._over(batch)

        while not self._over(batch):
            try:
                self._same_judge(batch)
                said = await self._service.answer(self._request(batch, items), let_go, self._kept(batch))
                return list(said.model_dump(mode="json")["results"])
            except (Busy, StoreFailed):
                await asyncio.sleep(1.0)
            except ClientLeft:
                if not self._over(batch):
                    raise
            except EngineLost:
                raise
            except PerseError as error:  # of the request: what it asks for is not here any more
                return [problem(error).model_dump(mode="json")] * len(items)
        return None

    def _same_judge(self, batch: Batch) -> None:
        """Raises:
        NotThere: the server has another judge under this name now; its answers would not go with the others.
        """
        served = self._service.version().models.get(str(batch.about.asked["model"]))
        if served is not None and served.sha256 != batch.about.asked["sha256"]:
            raise NotThere(f"'{batch.about.asked['model']}' was another judge when this batch came; send it again")

    def _request(self, batch: Batch, items: Sequence[Mapping[str, Any]]) -> Asking:
        fields = batch.about.settings
        if not names_readers(items):
            fields = {name: value for name, value in fields.items() if name not in ("k", "pick")}
        return judge_routes()[batch.about.kind].request.model_validate({**fields, "input": list(items)})

    def _kept(self, batch: Batch) -> Callable[[str], Reader] | None:
        """Readers of the batch's owner, as they are now."""
        readers = self._readers
        if readers is None:
            return None

        def kept(reader: str) -> Reader:
            found = readers.get(batch.about.owner, reader)
            if found is None:
                raise NotThere(f"there is no reader '{reader}' of yours here any more")
            return found.record

        return kept


def _numbered(result: dict[str, Any], number: int) -> dict[str, Any]:
    """An error says which item of the batch it is of, and not which of the part that was asked."""
    error = result.get("error")
    if not isinstance(error, dict) or not error.get("param"):
        return result
    return {"error": {**error, "param": f"input.{number}"}}


def _in_order(items: Sequence[Mapping[str, Any]]) -> list[int]:
    """Their numbers, those of a reader side by side, and of these the ones that begin alike."""

    def key(n: int) -> tuple[str, str]:
        one = items[n]
        return str(one.get("reader") or one.get("reviewer_id")), json.dumps(one.get("profile") or one.get("text"))

    return sorted(range(len(items)), key=key)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
