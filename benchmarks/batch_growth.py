"""What a run in shards costs besides the judge: milliseconds a row and memory, from a thousand to a million rows, with a scripted judge.

    OMP_NUM_THREADS=1 python benchmarks/batch_growth.py --rows 1000 10000 100000 1000000

Rows have a profile of three short reviews, eight questions a reader. Planning (read, check, sort, cut), judging (by one worker, then by two) and the end (audit, merge) each
run in processes of their own; memory is the most that a process of it held.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from perse.answering.base import JudgeSettings
from perse.batch.sharded.asking import asker_of
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import audit, merge
from perse.batch.sharded.inputs import read_inputs
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import Request, read, start
from perse.batch.sharded.working import Share, work
from perse.engines.kind import LoadOptions
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.records import PointwiseExample, ProfileReview, ReviewReference
from perse.rendering.prompt import TextRenderer

SETTINGS = JudgeSettings(temperature=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shard-rows", type=int, default=256)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.rows, options.workers = [200], [1]
    found = [_measured(rows, workers, options.shard_rows) for rows in options.rows for workers in options.workers]
    table = Table(title=f"shards of {options.shard_rows} rows")
    for column in (
        "rows",
        "workers",
        "plan, ms a row",
        "judge, ms a row",
        "audit and merge, ms a row",
        "MiB: plan",
        "worker",
        "end",
    ):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else f"{value:.3f}" for value in one.values()))
    Console(width=140).print(table)
    print(json.dumps(found))


def _measured(rows: int, workers: int, shard_rows: int) -> dict[str, float | int]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place / "in.jsonl", rows)
        [planned] = _timed(_plan, [(place, shard_rows)])
        judged = _timed(_work, [(place, number, workers) for number in range(workers)])
        [ended] = _timed(_end, [(place,)])
    return {
        "rows": rows,
        "workers": workers,
        "plan": 1000 * planned[0] / rows,
        "judge": 1000 * max(one[0] for one in judged) / rows,
        "end": 1000 * ended[0] / rows,
        "plan_mib": planned[1],
        "worker_mib": max(one[1] for one in judged),
        "end_mib": ended[1],
    }


def _timed(what: Callable[..., None], calls: list[tuple[Any, ...]]) -> list[tuple[float, int]]:
    """Seconds, and MiB held at most, of each call in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(calls), maxtasksperchild=1) as pool:
        return pool.starmap(_one, [(what, call) for call in calls], chunksize=1)


def _one(what: Callable[..., None], call: tuple[Any, ...]) -> tuple[float, int]:
    begun = time.perf_counter()
    what(*call)
    return time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _write(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for number in range(rows):
            reader = number // 8
            past = tuple(
                ProfileReview(
                    text=f"An old story, {n} of {reader}, told in a few words.",
                    review="It was fine.",
                    score=1 + n,
                    item_id=f"p{n}",
                )
                for n in range(3)
            )
            one = PointwiseExample(
                id=f"{number:08}", reviewer_id=f"r{reader:07}", item_id=f"i{number}", profile=past,
                query=f"A new story, {number}, which nobody has read.", reference=ReviewReference(review="Good.", score=1 + number % 10),
            )  # fmt: skip
            lines.write(one.model_dump_json(exclude_none=True) + "\n")


def _plan(place: Path, shard_rows: int) -> None:
    request = Request("smollm2-135m", LoadOptions(), SETTINGS, {"sha256": "x"}, shard_rows=shard_rows)
    start(place / "run", request, read_inputs(str(place / "in.jsonl")))


def _work(place: Path, number: int, of: int) -> None:
    run = read(place / "run")
    judge = Judge(
        ScriptedEngine(lambda message, seed: f"[Review] of {len(message)}\n[Score] {1 + len(message) % 10}/10"),
        TextRenderer(),
        name="script",
    )
    claims = Claims(run.folder / "claims", Holder.me(f"w{number}"))
    work(Places(run.folder), run.plan, asker_of(judge, run), claims, session="s", share=Share(number, of))


def _end(place: Path) -> None:
    plan, places = read_plan(place / "run"), Places(place / "run")
    assert audit(places, plan).whole
    merge(places, plan, place / "all.jsonl")


if __name__ == "__main__":
    main()
