"""`perse rehearsal score`: ask a judge what the summaries are worth, and print the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.medium import Medium
from perse.commands.options.rehearsal import Data, Run, Samples, SummaryScale
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.progress import shown_on
from perse.rehearsal.settings import WIDE


@grouped
def score(
    *,
    data: Data,
    run: Run,
    judge: options.JudgeName,
    name: Annotated[str, typer.Option(help="Of these scores: a folder in RUN/scores; a name, no path.")] = "scored",
    leniency: Annotated[
        Path | None,
        typer.Option(
            help="What `perse rehearsal leniency` found of this judge, said before any number: its --out.", show_default=False
        ),
    ] = None,
    scale: SummaryScale = WIDE,
    samples: Samples = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    loading: Loading,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """Score every summary against the product's reviews, the history and the user's own review; the same command continues after a stop.

    Example:  perse rehearsal score work/persum runs/rehearsal --judge smollm2-135m --leniency runs/leniency
    """
    from perse.rehearsal.leniency.kept import keep, leniency_of
    from perse.rehearsal.samples import read_samples
    from perse.rehearsal.scoring.asking import check_samples_of, read_scores, scores_folder
    from perse.rehearsal.scoring.asking import score as ask
    from perse.rehearsal.scoring.results import results
    from perse.rehearsal.scoring.telling import rehearsal_result

    given = read_samples(data, limit=samples)
    scores_folder(run, name)  # before a judge is loaded
    check_samples_of(run, given.digest)
    loaded = loading.load(judge)
    found = leniency_of(leniency, loaded, scale) if leniency else None
    with shown_on(err) as on_part:
        folder = ask(
            loaded, given.samples, run, digest=given.digest, name=name, labels=scale,
            on_progress=lambda done, total: on_part("scoring", done, total),
        )  # fmt: skip
    if found is not None:
        keep(folder, found)
    scored = read_scores(given.samples, run, digest=given.digest, name=name)
    show_result(rehearsal_result(results(given.samples, scored, resamples=resamples, seed=seed)), medium, everything=everything)
