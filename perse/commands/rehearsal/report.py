"""`perse rehearsal report`: tables, pass rates and the story of every sample as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.rehearsal import Data, Run, Samples
from perse.commands.terminal import err


def report(
    data: Data,
    run: Run,
    out: options.NewFolder,
    name: Annotated[str, typer.Option(help="Of the scores: a folder in RUN/scores; a name, no path.")] = "scored",
    leniency: Annotated[
        Path | None,
        typer.Option(
            help="What `perse rehearsal leniency` found of the judge of the scores, said before any number: its --out.",
            show_default=False,
        ),
    ] = None,
    samples: Samples = None,
    title: options.Title = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    max_samples: Annotated[
        int, typer.Option(min=0, help="Stories in the page; those without a scored summary come before others.")
    ] = 2000,
) -> None:
    """The paper's tables and figure 3, and how each summary came about, as one HTML file that needs no network.

    Beside the page: tables.md, results.json, the figures, and manifest.json, which says what it was made of.

    Example:  perse rehearsal report work/persum runs/rehearsal --out reports/rehearsal
    """
    from perse.files.own_files import refuse_inputs
    from perse.files.runlog import environment, file_digest
    from perse.rehearsal.folder import TRACES, check_run
    from perse.rehearsal.reporting.report import refuse_strangers, write_report
    from perse.rehearsal.samples import read_samples

    refuse_strangers(out)
    refuse_inputs(out, [data, run, leniency])
    check_run(run)
    given = read_samples(data, limit=samples)
    made = {
        "samples": {"path": str(data), "limit": samples, "sha256": given.digest},
        "run": {"path": str(run), "traces_sha256": file_digest(run / TRACES)},
        "name": name,
        "leniency": None if leniency is None else str(leniency),
        "title": title,
        "resamples": resamples,
        "seed": seed,
        "max_samples": max_samples,
        "environment": environment(),
    }
    with err.status("counting and drawing"):
        page = write_report(
            given, run, out,
            name=name, leniency=leniency, title=title, resamples=resamples, seed=seed, max_samples=max_samples, manifest=made,
        )  # fmt: skip
    err.print("report:", end=" ")
    typer.echo(page)
