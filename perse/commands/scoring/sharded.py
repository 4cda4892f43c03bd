"""`perse score --driver ...`, and the commands that plan a run in shards and work on it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.recipe import BatchConfig
from perse.commands.options.scoring import Driver, Question, RunFolder, ShardRows, Taken, Workers
from perse.commands.scoring.finishing import end
from perse.commands.scoring.telling import tell_view
from perse.commands.terminal import err, say
from perse.engines.kind import Hardware, LoadOptions
from perse.errors import BadInput, EngineLost
from perse.progress import OnProgress, shown_on

if TYPE_CHECKING:
    from perse.batch.sharded.inputs import Row
    from perse.batch.sharded.starting import Run

MANY = 500_000
"""Shards of which a person is told that these are many."""
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

    run = _begun(asked, out, shard_rows, served=driver == "http")
    session = _session()
    if damaged := set_aside(Places(run.folder), run.plan):
        say(f"note: {damaged:,} damaged files of answers were set aside; their examples are judged again")
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
def plan(
    *,
    asked: Question,
    out: options.MaybeRun = None,
    shard_rows: ShardRows = 256,
    workers: Workers = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Judgements a second of one worker, which `perse score status` shows as 'each'; tells the hours."
        ),
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0.0, help="Of one worker for an hour, in whatever currency; tells the cost.")
    ] = None,
    config: BatchConfig = None,
    as_json: options.AsJson = False,
) -> None:
    """Cut examples into shards and say what judging them takes; judge nothing.

    Example:  perse score plan --examples 'examples/*.jsonl' --judge vllm:runs/first --out runs/all --workers 8 --rate 20 --price 2.5

    Pairs:    perse score plan --readers readers.parquet --texts texts.parquet --judge vllm:runs/first --out runs/pairs --shard-rows 4096
    """
    if out is None:
        raise BadInput("missing option '--out' (see perse score plan --help)")
    run = _begun(asked, out, shard_rows)
    shards, chars, shared = run.plan.shards, run.plan.totals.chars, run.plan.totals.shared
    hours = run.plan.rows / rate / (workers or 1) / 3600 if rate else None
    told = {
        "run": str(out),
        "examples": run.plan.rows,
        "shards": len(shards),
        "readers_at_most": run.plan.totals.readers,
        "characters": chars,
        "shared": round(shared / chars, 4) if chars else 0.0,
        "hours": hours,
        "cost": hours * price * (workers or 1) if hours is not None and price is not None else None,
    }
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    say(f"{run.plan.rows:,} examples in {len(shards):,} shards of at most {shard_rows:,}")
    if len(shards) > MANY:
        say(f"note: {len(shards):,} shards are as many files, which is slow to list; give a larger --shard-rows, such as 4096")
    say(f"{chars:,} characters of examples, {shared / max(chars, 1):.0%} of them a profile that the example before has, too")
    if hours is not None:
        cost = f", cost {told['cost']:,.2f}" if told["cost"] is not None else ""
        say(f"{hours:,.2f} hours with {workers or 1} workers of {rate:g} judgements a second{cost}")
    err.print(f"planned: [bold]{escape(str(out))}[/bold]  next: perse score work {escape(str(out))}")


@grouped
def work(
    *,
    run: RunFolder,
    workers: Workers = None,
    taken: Taken,
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
    with shown_on(err) as on_part:
        _work_here(begun, workers, _session(), taken.hardware, partial(on_part, "judging"), trust=trust_remote_code)
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
    asker, at_once = judge_of(begun, hardware=taken.hardware, trust_remote_code=trust_remote_code)
    claims = Claims(run / "claims", Holder.me(name))
    try:
        worked(
            Places(run), begun.plan, asker, claims, session=session, share=Share(number, of), at_once=at_once
        )  # fmt: skip
    except EngineLost as error:
        say(f"perse: {error}")
        raise typer.Exit(LOST) from None


def _begun(asked: Question, out: Path, shard_rows: int, *, served: bool = False) -> Run:
    from perse.batch.sharded.catalogue_inputs import read_candidates, read_readers, read_texts
    from perse.batch.sharded.inputs import digests_of, read_inputs, together
    from perse.batch.sharded.pieces import Pieces
    from perse.batch.sharded.starting import SERVED, Pairs, Request, start
    from perse.data.dataset.folder import is_data_folder

    place, judge = asked.given()
    rows: Iterator[Row] | Pairs
    files: list[str] = []

    def known(some: str) -> str:
        digests = digests_of(some)
        files.extend(together([one]) for one in digests)
        return together(digests)

    if asked.catalogue:
        readers, texts = asked.catalogue
        pairs = read_candidates(asked.candidates) if asked.candidates else None
        rows = Pairs(read_readers(readers), read_texts(texts), pairs)
        inputs: dict[str, object] = {"readers_sha256": known(readers), "texts_sha256": known(texts)}
        if asked.candidates:
            inputs["candidates_sha256"] = known(asked.candidates)
    elif is_data_folder(Path(place)):
        rows, inputs = _of_data_set(asked, Path(place), judge)
    else:
        rows, inputs = read_inputs(place), {"sha256": known(place)}
    request = Request(
        judge=f"{SERVED}{judge}" if served else judge,
        loading=LoadOptions(**vars(asked.loading), trust_remote_code=asked.trust_remote_code),
        settings=asked.answering.settings(),
        inputs=inputs,
        question=asked.question,
        files=files,
        shard_rows=shard_rows,
        limit=asked.limit,
        adapters=asked.adapters,
    )
    with err.status("planning"):
        run = start(out, request, rows)
    if isinstance(shards := run.plan.shards, Pieces):
        if shards.left_out:
            say(f"note: {shards.left_out:,} pairs are not judged, since the reader's own profile has the text")
        if shards.idle:
            say(f"note: {shards.idle:,} readers have no text to judge")
    return run


def _of_data_set(asked: Question, place: Path, judge: str) -> tuple[Iterator[Row], dict[str, object]]:
    from perse.batch.local import check_unseen, trained_aspects
    from perse.batch.sharded.inputs import Row
    from perse.data.load import load_examples

    trained = trained_aspects(judge)
    view = asked.shown.view(trained)
    loaded = load_examples(place, split=asked.split, fold=asked.fold, view=view)
    tell_view(loaded, trained, asked=asked.shown.profile_aspects)
    if asked.split == "valid":
        check_unseen(judge, loaded)
    rows = (Row(example, str(place), number) for number, example in enumerate(loaded.examples, start=1))
    return rows, {
        "data_digest": loaded.digest,
        "split": asked.split,
        "fold": asked.fold,
        "view": {name: getattr(view, name) for name in vars(asked.shown)},
    }


def _work_here(
    run: Run, workers: int | None, session: str, hardware: Hardware, on_progress: OnProgress, *, trust: bool
) -> None:
    from perse.batch.sharded.drivers import work_here

    name = f"{socket.gethostname()}-{os.getpid()}"
    work_here(run, workers, session=session, name=name, hardware=hardware, trust_remote_code=trust, on_progress=on_progress)


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
