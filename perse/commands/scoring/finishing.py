"""The commands that say what has become of a run in shards: how far it is, whether it is whole, and all its answers as one file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.scoring import RunFolder
from perse.commands.scoring.telling import comparable
from perse.commands.terminal import err, say
from perse.errors import BadInput
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.batch.sharded.finishing import Audit
    from perse.batch.sharded.starting import Run


def status(*, run: RunFolder, as_json: options.AsJson = False) -> None:
    """Say how far a run in shards is, while it goes on; it changes nothing.

    Example:  perse score status runs/all
    """
    from perse.batch.sharded.running import Places
    from perse.batch.sharded.starting import read
    from perse.batch.sharded.underway import status as looked

    begun = read(run)
    now = looked(Places(run), begun.plan)
    if as_json:
        typer.echo(json.dumps(vars(now), indent=2))
        return
    say(f"{now.judged:,} of {now.rows:,} examples judged, {now.done:,} of {now.shards:,} shards; {now.claimed:,} being judged")
    over = now.judged == now.rows
    if not now.workers and not over:
        say(f"no shard is being judged; unless a worker is still loading its judge, go on with: {begun.continuing}")
    if now.each is None:
        return
    shared = "" if now.shared is None else f", {now.shared:.0%} of the prompt tokens shared"
    left = "" if now.seconds_left is None else f", {now.seconds_left / 3600:,.2f} hours left"
    if now.a_second is None:
        who = "the servers" if begun.served else "each worker"
        say(f"{who} did {now.each:,.1f} judgements a second{shared}")
    elif begun.served:
        say(f"{now.a_second:,.1f} judgements a second by the servers{shared}{left}")
    else:
        say(f"{now.a_second:,.1f} judgements a second by {now.workers} workers, {now.each:,.1f} each{shared}{left}")


def audit(*, run: RunFolder, as_json: options.AsJson = False) -> None:
    """Read every answer of a run in shards: is there one, and one alone, for every example? Exit code 1 if not.

    Damaged files are set aside, and the command that began the run judges their examples again.

    Example:  perse score audit runs/all
    """
    from perse.batch.sharded.starting import read

    end(read(run), as_json=as_json)


def merge(
    *,
    run: RunFolder,
    out: Annotated[
        Path, typer.Option("--out", callback=options.here, help="The file to write: .jsonl or .parquet.", show_default=False)
    ],
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="Only so many texts of each reader, those with the highest scores.", show_default="all judgements"
        ),
    ] = None,
    overwrite: options.OverwriteFile = False,
) -> None:
    """Write all judgements of a run in shards as one file, each reader's together; or each reader's best texts.

    Example:  perse score merge runs/all --out all.parquet

    Best:     perse score merge runs/pairs --top 10 --out best.parquet
    """
    from perse.batch.sharded.finishing import MERGED
    from perse.batch.sharded.finishing import merge as merged
    from perse.batch.sharded.ranking import RANKED, write_best
    from perse.batch.sharded.running import Places
    from perse.batch.sharded.starting import read, refuse_own_inputs
    from perse.files.belongings import check_file

    if out.suffix not in (".jsonl", ".parquet"):
        raise BadInput(f"{out} says no format; end it with .jsonl or .parquet (CSV of a run of --examples: perse score export)")
    begun = read(run)
    refuse_own_inputs(begun, out)
    check_file(out, alike=[MERGED, RANKED], overwrite=overwrite)
    with shown_on(err) as on_part:
        shown = partial(on_part, "merging")
        count, cut = (
            write_best(Places(run), begun.plan, top, out, on_progress=shown)
            if top
            else (merged(Places(run), begun.plan, out, on_progress=shown), 0)
        )
    err.print(f"merged: [bold]{escape(str(out))}[/bold]  ({count:,} {'texts' if top else 'judgements'})")
    if cut:
        say(
            f"note: of {cut:,} readers a text that is left out has the score of the last that is in: among equal scores the order is that of "
            "the texts' ids (column 'tied')"
        )


def end(run: Run, *, as_json: bool) -> None:
    """What the audit found; exit code 1 where an example has no answer."""
    from perse.batch.sharded.finishing import audit as audited
    from perse.batch.sharded.running import Places

    with shown_on(err) as on_part:
        found = audited(Places(run.folder), run.plan, on_progress=partial(on_part, "checking"))
    _say(run, found, as_json=as_json)
    if not found.whole:
        raise typer.Exit(1)


def _say(run: Run, found: Audit, *, as_json: bool) -> None:
    from perse.batch.sharded.pieces import Pieces

    folder = run.folder
    counts = ", ".join(f"{count:,} {status}" for status, count in found.statuses.most_common()) or "none"
    if as_json:
        typer.echo(json.dumps({"run": str(folder), "whole": found.whole, **vars(found)}, indent=2))
    if found.whole:
        of_pairs = isinstance(run.plan.shards, Pieces)
        if of_pairs:
            then = f"score merge {folder} --top 10 --out best.parquet"
        else:
            asked = (one for shard in run.plan.shards for one in run.plan.examples(shard))
            then = f"evaluate {folder}" if comparable(run.question.name, asked) else f"score export {folder} --out answers.csv"
        err.print(f"judged: [bold]{escape(str(folder))}[/bold]  ({counts})  next: perse {escape(then)}", soft_wrap=True)
        return
    say(f"{found.rows - found.missing_rows:,} of {found.rows:,} examples have an answer ({counts})")
    if found.missing:
        say(f"{len(found.missing):,} of {found.shards:,} shards are missing; go on with: {run.continuing}")
    if found.damaged:
        say(
            f"{len(found.damaged):,} damaged files of answers were set aside; their examples are judged again by: {run.continuing}"
        )
