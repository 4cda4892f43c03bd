"""`perse score --driver ...`, and the command that works on a run in shards."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.recipe import BatchConfig
from perse.commands.options.scoring import Driver, Question, RunFolder, Taken, Workers
from perse.commands.scoring.finishing import end
from perse.commands.scoring.planning import begin
from perse.commands.terminal import err, say
from perse.engines.kind import Hardware
from perse.errors import EngineLost
from perse.progress import OnProgress, shown_on

if TYPE_CHECKING:
    from perse.batch.sharded.starting import Run

LOST = 3
"""Exit code of a worker whose engine is gone: another start may help."""


def score_in_shards(
    asked: Question,
    out: Path,
    *,
    driver: Driver,
    workers: int | None,
    servers: Sequence[str],
    shard_rows: int,
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Plan the run or find it, have it judged, and look whether it is whole."""
    from perse.batch.sharded.finishing import set_aside
    from perse.batch.sharded.running import Places

    run = begin(asked, out, shard_rows, served=driver == "http")
    session = _session()
    if damaged := set_aside(Places(run.folder), run.plan):
        say(f"note: {damaged:,} damaged files of answers were set aside; their examples are judged again")
    if driver != "http":
        _tell_words(run, trust=asked.trust_remote_code)
    with shown_on(err) as on_part:
        if driver == "ray":
            from perse.batch.sharded.on_ray import work_on_ray

            work_on_ray(
                run,
                workers,
                session=session,
                hardware=hardware,
                trust_remote_code=asked.trust_remote_code,
                on_progress=partial(on_part, "judging"),
            )
        elif driver == "http":
            from perse.serving.scoring import score_on_servers

            name = f"{socket.gethostname()}-{os.getpid()}"
            score_on_servers(run, servers, session=session, name=name, on_progress=partial(on_part, "judging"))
        else:
            _work_here(run, workers, session, hardware, partial(on_part, "judging"), trust=asked.trust_remote_code)
    end(run, as_json=as_json)


@grouped
def work(
    *,
    run: RunFolder,
    workers: Workers = None,
    taken: Taken,
    concurrency: options.Concurrency = None,
    trust_remote_code: options.TrustRemoteCode = False,
    config: BatchConfig = None,
) -> None:
    """Judge what is left of a run in shards; as many machines as share its folder may do so at once, and may come and go.

    Example:  perse score work runs/all --workers 8

    Large:    perse score work runs/all --workers 2 --tensor-parallel 4

    Slurm:    sbatch --array=0-31 slurm/score.sbatch runs/all
    """
    from perse.batch.sharded.starting import read

    begun = read(run)
    hardware = replace(taken.hardware, concurrency=concurrency)
    _tell_words(begun, trust=trust_remote_code)
    with shown_on(err) as on_part:
        _work_here(begun, workers, _session(), hardware, partial(on_part, "judging"), trust=trust_remote_code)
    err.print(f"nothing is left to judge in [bold]{escape(str(run))}[/bold]  next: perse score audit {escape(str(run))}")


@grouped
def worker(
    *,
    run: RunFolder,
    name: Annotated[str, typer.Option()],
    session: Annotated[str, typer.Option()],
    number: Annotated[int, typer.Option()] = 0,
    of: Annotated[int, typer.Option()] = 1,
    parent: Annotated[int, typer.Option()] = 0,
    taken: Taken,
    concurrency: options.Concurrency = None,
    trust_remote_code: options.TrustRemoteCode = False,
) -> None:
    """One worker of a run in shards; `perse score work` starts it."""
    from perse.batch.sharded.asking import judge_of
    from perse.batch.sharded.claims import Claims, Holder
    from perse.batch.sharded.running import Places
    from perse.batch.sharded.starting import read
    from perse.batch.sharded.working import Share
    from perse.batch.sharded.working import work as worked

    _end_with(parent)
    begun = read(run)
    asker, at_once = judge_of(
        begun, hardware=replace(taken.hardware, concurrency=concurrency), trust_remote_code=trust_remote_code
    )
    claims = Claims(run / "claims", Holder.me(name))
    try:
        worked(
            Places(run), begun.plan, asker, claims, session=session, share=Share(number, of), at_once=at_once
        )  # fmt: skip
    except EngineLost as error:
        say(f"perse: {error}")
        raise typer.Exit(LOST) from None


def _work_here(
    run: Run, workers: int | None, session: str, hardware: Hardware, on_progress: OnProgress, *, trust: bool
) -> None:
    from perse.batch.sharded.drivers import work_here

    name = f"{socket.gethostname()}-{os.getpid()}"
    work_here(run, workers, session=session, name=name, hardware=hardware, trust_remote_code=trust, on_progress=on_progress)


def _tell_words(run: Run, *, trust: bool) -> None:
    """A judge that gives no distributions is told of before its workers are through, and not by what their answers lack."""
    from perse.batch.sharded.asking import without_distributions
    from perse.batch.sharded.running import Places

    places = Places(run.folder)
    if all(places.done(shard) for shard in run.plan.shards):
        return
    if words := without_distributions(run, trust_remote_code=trust):
        say(f"note: {words}")


def _session() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, of whom it would have been told to end."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if parent:
        threading.Thread(target=watch, daemon=True).start()
