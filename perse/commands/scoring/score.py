"""`perse score`: judge every example of a data set into a run folder, by itself or, with --driver, in shards by many workers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.addresses import plain_address
from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.reading import own_scale, read_columns
from perse.commands.options.recipe import BatchConfig
from perse.commands.options.scoring import Driver, FromReviews, Question, ShardRows, Taken, Workers
from perse.commands.scoring.telling import comparable, tell_length, tell_stand_in, tell_view
from perse.commands.terminal import err, say
from perse.data.variants.profile_variants import ProfileShown, stand_in
from perse.engines.kind import USUAL, Hardware
from perse.errors import BadInput
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.data.load import LoadedExamples
    from perse.judgement import Prices


@grouped
def score(
    *,
    called: typer.Context,
    asked: Question,
    tables: FromReviews,
    out: options.MaybeRun = None,
    profile: Annotated[
        ProfileShown,
        typer.Option(
            help="own; empty or shots (answers of other readers, the same for every query) for an unpersonalized judge to "
            "compare with; another (reader's) or shuffled (own reviews behind the wrong texts) to see what the profile is worth."
        ),
    ] = ProfileShown.OWN,
    shots: Annotated[int, typer.Option(min=1, help="With --profile shots: how many.")] = 3,
    prices: Annotated[
        str | None,
        typer.Option(
            help="Of a paid server, per million tokens: INPUT,OUTPUT or INPUT,OUTPUT,CACHED; shows the cost, and is kept with the run."
        ),
    ] = None,
    driver: Annotated[
        Driver | None,
        typer.Option(
            help="Cut the examples into shards, and have them judged by workers: processes of this machine (local), or of a Ray cluster (ray); or by judge servers (http).",
            show_default="one judge, in this process",
        ),
    ] = None,
    workers: Workers = None,
    servers: Annotated[
        str | None,
        typer.Option(
            help="With --driver http: addresses of judge servers (perse serve), with commas between them; --judge is the name that they serve "
            "their judge under, and PERSE_API_KEY is sent to all.",
            show_default=False,
        ),
    ] = None,
    shard_rows: ShardRows = 256,
    taken: Taken,
    config: BatchConfig = None,
    as_json: options.AsJson = False,
) -> None:
    """Judge every example; the same command continues a run that was stopped.

    Example:  perse score --examples work/data --judge runs/first --out runs/first-valid

    Server:   perse score --examples work/data --judge openai:http://127.0.0.1:8000/v1#first --out runs/served

    Tables:   perse score --reviews reviews.csv --texts texts.csv --scale 1-5 --judge runs/first --out runs/new

    Nobody:   perse score --examples work/data --judge smollm2-135m --profile shots --shots 3 --out runs/few-shot

    Many:     perse score --examples 'examples/*.jsonl' --judge vllm:runs/first --out runs/all --driver local --workers 8

    Pairs:    perse score --readers readers.parquet --texts texts.parquet --judge vllm:runs/first --out runs/pairs --driver local

    Recipe:   perse score --config node --examples 'examples/*.jsonl' --judge vllm:runs/first --out runs/all

    Served:   perse score --examples 'examples/*.jsonl' --judge first --out runs/all --driver http --servers http://one:8000,http://two:8000
    """
    if called.invoked_subcommand:
        return
    if out is None:
        raise BadInput("missing option '--out' (see perse score --help)")
    tables.check(asked, driver)
    if driver is None and servers:
        raise BadInput("--servers is for --driver http; a single server is asked by --judge openai:URL#MODEL, too")
    if driver is None and tables.reviews is None and asked.catalogue:
        raise BadInput("--readers and --texts are judged in shards; add --driver local")
    if asked.adapters and driver in (None, "http"):
        raise BadInput("--adapters is for judges that workers load; add --driver local")
    if driver is None:
        _in_this_process(
            asked, out, tables, profile=profile, shots=shots, prices=prices, hardware=taken.hardware, as_json=as_json
        )
        return
    if prices or profile is not ProfileShown.OWN:
        raise BadInput("--prices and --profile are not for runs in shards; leave them or --driver out")
    from perse.commands.scoring.planning import refuse_for_servers
    from perse.commands.scoring.sharded import score_in_shards

    if (driver == "http") != bool(servers):
        raise BadInput(
            "--driver http and --servers belong together; give both, such as --driver http --servers http://one:8000"
        )
    if driver == "http" and taken.hardware != USUAL:
        raise BadInput(
            "--memory-gb and --tensor-parallel are for judges that are loaded here; a server has its own (perse serve)"
        )
    if driver == "http":
        refuse_for_servers(asked, workers)
    given = [
        plain_address(one.strip(), of="the server's address", keys="into PERSE_API_KEY")
        for one in (servers or "").split(",")
        if one.strip()
    ]
    score_in_shards(
        asked,
        out,
        driver=driver,
        workers=workers,
        servers=given,
        shard_rows=shard_rows,
        hardware=replace(taken.hardware, concurrency=asked.loading.concurrency),
        as_json=as_json,
    )


def _in_this_process(
    given: Question,
    out: Path,
    tables: FromReviews,
    *,
    profile: ProfileShown,
    shots: int,
    prices: str | None,
    hardware: Hardware,
    as_json: bool,
) -> None:
    from perse.batch.local import check_out, check_unseen, sample
    from perse.batch.local import score as scored
    from perse.judgement import Prices
    from perse.judging.trained import own_question
    from perse.questions import question_for

    judge = given.given()[1] if tables.reviews is None else given.asked_judge()
    answering = given.answering
    costs = Prices.parse(prices) if prices else None
    whole = _of_examples(given, judge) if tables.reviews is None else _of_tables(given, tables, tables.reviews)
    some = sample(whole, given.limit, seed=answering.seed)
    loaded = stand_in(some, profile, among=whole, shots=shots, seed=answering.seed)
    tell_stand_in(some, loaded, profile)
    stacking = given.stacked_by.given
    own = own_question(judge, stacking) if given.question is None else None
    asked = question_for(loaded.examples, given.question, own=own)
    if given.split == "valid":
        check_unseen(judge, loaded)
    check_out(out, asked, loaded, answering.settings())
    with shown_on(err) as on_part:
        scored(
            given.loading.load(judge, trust_remote_code=given.trust_remote_code, hardware=hardware, stacking=stacking), asked, loaded, out,
            settings=answering.settings(), prices=costs, on_progress=partial(on_part, "judging"),
        )  # fmt: skip
    _show(out, costs, evaluable=comparable(asked.name, loaded.examples), as_json=as_json)


def _of_examples(given: Question, judge: str) -> LoadedExamples:
    from perse.batch.local import trained_aspects
    from perse.batch.sharded.inputs import for_shards_alone
    from perse.data.dataset.folder import is_data_folder
    from perse.data.load import load_examples

    place, _ = given.given()
    if for_shards_alone(place):
        raise BadInput(
            f"{place}: without --driver the examples are a data set folder, or one file of JSON lines or Parquet; a glob, a folder of files, CSV "
            "and an object store are read in shards: add --driver local (a CSV of reviews and of texts is --reviews and --texts)"
        )
    examples = Path(place)
    trained = trained_aspects(judge)
    view = given.shown.view(trained if is_data_folder(examples) else None)  # a file shows profiles as they were exported
    whole = load_examples(examples, split=given.split, fold=given.fold, view=view)
    tell_view(whole, trained, asked=given.shown.profile_aspects)
    return whole


def _of_tables(given: Question, tables: FromReviews, reviews: Path) -> LoadedExamples:
    from perse.batch.tables import load_tables
    from perse.data.sources.faults import Faults
    from perse.judging.trained import trained_profile

    faults = Faults(tables.on_error)
    try:
        whole, left_out = load_tables(
            reviews,
            Path(str(given.texts)),
            given.candidates,
            columns=read_columns(tables.columns),
            scale=own_scale(tables.scale),
            k=given.shown.k,
            faults=faults,
        )
    finally:  # what was left out may be why nothing is left, or why a candidate names what there is not
        if faults.counts:
            say(f"left out, rows: {faults.told()}")
    if given.shown.k is None:
        tell_length(whole, trained_profile(given.asked_judge()))
    if left_out:
        say(f"note: {left_out:,} pairs are not judged, since the reader's own reviews have the text")
    return whole


def _show(out: Path, prices: Prices | None, *, evaluable: bool, as_json: bool) -> None:
    """How many were answered and what it took; exit code 1 where the engine failed at everything."""
    from perse.batch.scored import read_run
    from perse.evaluation.costs import spent
    from perse.judgement import Status
    from perse.judging.loop import JUDGEMENTS

    run = read_run(out)
    statuses = Counter(str(judgement.status) for judgement in run.judgements)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    table = f"as a table: perse score export {escape(str(out))} --out answers.csv"
    then = f"next: perse evaluate {escape(str(out))}" if evaluable else f"answers: {escape(str(out / JUDGEMENTS))}; {table}"
    err.print(f"judged: [bold]{escape(str(out))}[/bold]  ({counts})  {then}", soft_wrap=True)
    if run.caution:
        say(f"note: {run.caution}")
    if prices:
        err.print(prices.bill(run.judgements), highlight=False, markup=False)
    if as_json:
        took = spent(run.judgements, prices=prices, seconds=run.seconds)
        typer.echo(json.dumps({"run": str(out), "statuses": dict(statuses), "spent": took.model_dump()}, indent=2))
    if run.judgements and statuses[Status.ENGINE_ERROR] == len(run.judgements):
        err.print(
            f"perse: the engine failed at every example: {run.judgements[0].error}",
            style="bold red", markup=False, soft_wrap=True,
        )  # fmt: skip
        raise typer.Exit(1)
