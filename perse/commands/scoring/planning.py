"""`perse score plan`, and what `perse score --driver` begins with: examples cut into shards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.recipe import BatchConfig
from perse.commands.options.scoring import Driver, Question, ShardRows, Workers
from perse.commands.scoring.telling import tell_view
from perse.commands.terminal import err, say
from perse.engines.kind import LoadOptions
from perse.errors import BadInput

if TYPE_CHECKING:
    from perse.batch.sharded.inputs import Row
    from perse.batch.sharded.starting import Run

MANY = 500_000
"""Shards of which a person is told that these are many."""


@grouped
def plan(
    *,
    asked: Question,
    out: options.MaybeRun = None,
    shard_rows: ShardRows = 256,
    driver: Annotated[
        Driver | None,
        typer.Option(
            help="http for judge servers, of whose judge --judge is the name. Workers that load the judge (local, ray) have one plan.",
            show_default="workers that load the judge",
        ),
    ] = None,
    workers: Workers = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Judgements a second of one worker, which `perse score status` shows as 'each', or of the servers together; tells the hours.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Of one worker, or of the servers together, for an hour, in whatever currency; tells the cost."
        ),
    ] = None,
    config: BatchConfig = None,
    as_json: options.AsJson = False,
) -> None:
    """Cut examples into shards and say what judging them takes; judge nothing.

    Example:  perse score plan --examples 'examples/*.jsonl' --judge vllm:runs/first --out runs/all --workers 8 --rate 20 --price 2.5

    Pairs:    perse score plan --readers readers.parquet --texts texts.parquet --judge vllm:runs/first --out runs/pairs --shard-rows 4096

    Served:   perse score plan --examples 'examples/*.jsonl' --judge first --driver http --out runs/all --rate 40
    """
    if out is None:
        raise BadInput("missing option '--out' (see perse score plan --help)")
    if driver == "http":
        refuse_for_servers(asked, workers)
    run = begin(asked, out, shard_rows, served=driver == "http")
    shards, chars, shared = run.plan.shards, run.plan.totals.chars, run.plan.totals.shared
    busy = min(workers or 1, len(shards))
    hours = _hours(run.plan.rows, len(shards), busy, rate, served=run.served) if rate else None
    told = {
        "run": str(out),
        "examples": run.plan.rows,
        "shards": len(shards),
        "readers_at_most": run.plan.totals.readers,
        "characters": chars,
        "shared": round(shared / chars, 4) if chars else 0.0,
        "hours": hours,
        "cost": hours * price * busy if hours is not None and price is not None else None,
    }
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    say(f"{run.plan.rows:,} examples in {len(shards):,} {'shard' if len(shards) == 1 else 'shards'} of at most {shard_rows:,}")
    if len(shards) > MANY:
        say(f"note: {len(shards):,} shards are as many files, which is slow to list; give a larger --shard-rows, such as 4096")
    if busy < (workers or 1):
        say(
            f"note: {busy:,} of {workers:,} workers have a shard; the others have nothing to do, unless --shard-rows is smaller"
        )
    say(f"{chars:,} characters of examples, {shared / max(chars, 1):.0%} of them a profile that the example before has, too")
    if hours is not None and rate is not None:
        who = "servers that do" if run.served else f"{busy:,} {'worker' if busy == 1 else 'workers'} of"
        cost = f", cost {_some(hours * price * busy)}" if price is not None else ""
        say(f"{_some(hours)} hours with {who} {rate:g} judgements a second{cost}")
    err.print(f"planned: [bold]{escape(str(out))}[/bold]  next: {escape(run.continuing)}", soft_wrap=True)


def _some(number: float) -> str:
    """A number of which something is seen, however small it is."""
    return f"{number:,.2f}" if number >= 1 else f"{number:.2g}"


def _hours(rows: int, shards: int, workers: int, rate: float, *, served: bool) -> float:
    """Until the worker with most shards is through; servers share each shard."""
    most = rows if served else rows * -(-shards // workers) / shards
    return most / rate / 3600


def refuse_for_servers(asked: Question, workers: int | None) -> None:
    """Options of judges that are loaded here say nothing to servers.

    Raises:
        BadInput: one is given.
    """
    usual = vars(Loading())
    given = [f"--{name}" for name, value in vars(asked.loading).items() if value != usual[name]]
    given += ["--workers"] if workers is not None else []
    given += ["--trust-remote-code"] if asked.trust_remote_code else []
    given += ["--stacking"] if asked.stacked_by.stacking else []
    given += ["--no-stacking"] if asked.stacked_by.no_stacking else []
    if given:
        raise BadInput(
            f"{', '.join(given)}: of judges that are loaded here, and not of --driver http; a server has settings of its own (perse serve, such as no_stacking=true)"
        )


def begin(asked: Question, out: Path, shard_rows: int, *, served: bool = False) -> Run:
    """Plan the run in `out`, or find it there; what is left out is told.

    Raises:
        BadInput, RunMismatch: as `perse.batch.sharded.starting.start`.
    """
    from perse.batch.sharded.catalogue_inputs import read_candidates, read_readers, read_texts
    from perse.batch.sharded.inputs import digests_of, files_here, read_inputs, together
    from perse.batch.sharded.pieces import Pieces
    from perse.batch.sharded.starting import SERVED, Pairs, Request, start
    from perse.data.dataset.folder import is_data_folder
    from perse.formats.plain_files import State, states
    from perse.judging.trained import own_question

    place, judge = asked.given()
    rows: Iterator[Row] | Pairs
    files: list[str] = []
    watched: dict[Path, State] = {}
    data: dict[str, Any] = {}

    def known(some: str) -> str:
        watched.update(states(files_here(some)))
        digests = digests_of(some)
        files.extend(together([one]) for one in digests)
        return together(digests)

    if asked.catalogue:
        _refuse_views(asked, "--readers and --texts")
        readers, texts = asked.catalogue
        pairs = read_candidates(asked.candidates) if asked.candidates else None
        rows = Pairs(read_readers(readers), read_texts(texts), pairs)
        inputs: dict[str, object] = {"readers_sha256": known(readers), "texts_sha256": known(texts)}
        if asked.candidates:
            inputs["candidates_sha256"] = known(asked.candidates)
    elif is_data_folder(Path(place)):
        rows, inputs = _of_data_set(asked, Path(place), judge)
        data = {"data_folder": str(Path(place).resolve()), "data_digest": inputs["data_digest"]}
    else:
        _refuse_views(asked, f"{place} and other files of examples")
        rows, inputs = read_inputs(place), {"sha256": known(place)}
    stacking = asked.stacked_by.given
    if isinstance(stacking, Path):
        raise BadInput(
            "--stacking is for runs in this process; workers take the one beside the judge: leave it or --driver out"
        )
    request = Request(
        judge=f"{SERVED}{judge}" if served else judge,
        loading=LoadOptions(**asked.loading.of_model, trust_remote_code=asked.trust_remote_code),
        settings=asked.answering.settings(),
        inputs=inputs,
        question=asked.question,
        own=own_question(judge, stacking) if asked.question is None and not served else None,
        files=files,
        watched=watched,
        shard_rows=shard_rows,
        limit=asked.limit,
        adapters=asked.adapters,
        data=data,
        stacking=stacking,
    )
    with err.status("planning"):
        run = start(out, request, rows)
    if isinstance(shards := run.plan.shards, Pieces):
        if shards.left_out:
            say(f"note: {shards.left_out:,} pairs are not judged, since the reader's own profile has the text")
        if shards.idle:
            say(f"note: {shards.idle:,} readers have no text to judge")
    return run


def _refuse_views(asked: Question, what: str) -> None:
    """Raises:
    BadInput: an option that shows the profiles of a data set otherwise, or takes a part of it.
    """
    if asked.fold is not None or asked.shown != type(asked.shown)():
        raise BadInput(
            f"{what} show profiles as they stand there, and have no folds; leave --fold, --k and the other options of data sets out, or "
            "give the data set folder"
        )


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
