"""`perse rehearsal trace`: how one sample's summary came about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.rehearsal import MethodName, Run


def trace(
    run: Run,
    sample: Annotated[str, typer.Argument(metavar="SAMPLE", help="A sample's id.", show_default=False)],
    method: Annotated[MethodName | None, typer.Option(help="Of the run.", show_default="the one with the most parts")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The run's PerSum folder: shows the words of the reviews, too.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print each response of the practice, and the reviews that were kept, too.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """The story of one sample's summary: general summary, practice, suggestions and verdicts, reviews filtered away, each rewriting.

    Example:  perse rehearsal trace runs/rehearsal SAMPLE --data work/persum --all
    """
    from rich.console import Console

    from perse.files.runlog import read_manifest
    from perse.rehearsal.folder import read_traces
    from perse.rehearsal.reporting.compared import in_chain
    from perse.rehearsal.reporting.finding import sample_of, trace_of
    from perse.rehearsal.reporting.terminal import print_story

    found = trace_of(read_traces(run), sample, method=None if method is None else str(method.value), run=run)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    shown = None if data is None else sample_of(data, sample)
    print_story(found, Console(), sample=shown, chain=in_chain(read_manifest(run)), everything=everything)
