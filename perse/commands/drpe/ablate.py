"""`perse drpe ablate`: what each part of DRPE brings, from one run's votes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from perse.commands import options
from perse.commands.options.drpe import DocumentsFile, FirstDocuments, Thinning
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import err, say


@grouped
def ablate(
    *,
    documents: DocumentsFile,
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A run of `perse drpe vote` in which static roles and all invented ones vote (--clusterer none).",
            show_default=False,
        ),
    ],
    others: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[OTHER]...",
            help="Runs to hold beside it: all roles in one prompt, nobody in particular, another wording.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        Literal["score", "expected", "votes"],
        typer.Option(
            help="Which of a candidate's scores: formula 4 as published, the mean probability, or the share of votes."
        ),
    ] = "score",
    limit: FirstDocuments = None,
    thinning: Thinning,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the role curve into this folder, as PNG, SVG and the numbers as CSV.", show_default=False),
    ] = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """Without clustering, without static roles, with k of 0, 2, 4 and 6: counted from the votes of one run, and nothing is asked.

    Example:  perse drpe vote summeval.jsonl.gz --judge MODEL --roles static --roles runs/roles --clusterer none --out runs/everybody

    Then:  perse drpe ablate summeval.jsonl.gz runs/everybody --figure runs/curve

    Beside other runs:  perse drpe ablate summeval.jsonl.gz runs/everybody runs/batch runs/plain
    """
    from perse.drawing.figure import save_figure
    from perse.drpe.clustering import embedding
    from perse.drpe.correlation.ablations import WHOLE, ablations
    from perse.drpe.correlation.ablations_telling import ablations_result
    from perse.drpe.correlation.correlating import correlate
    from perse.drpe.correlation.run_scores import methods_of
    from perse.drpe.documents import read_documents
    from perse.drpe.selection import select
    from perse.drpe.votes.ballots import PROMPTINGS
    from perse.drpe.votes.run_folder import read_run
    from perse.reporting.study_figures import study_figures

    clustering = thinning.clustering()
    voted = read_run(run)
    wanted = tuple(f" {by}, {prompting}" for prompting in PROMPTINGS)
    selected = select(read_documents(documents, limit=limit))
    methods_of([run], selected)  # refuses votes on other texts
    beside = {name: scores for name, scores in methods_of(others or [], selected).items() if name.endswith(wanted)}
    with err.status("counting votes"):
        found = ablations(voted, clustering, embedding(clustering.model), by=by, seed=seed)
        scores = {**{name: one.scores for name, one in found.variants.items()}, **beside}
        compared = correlate(selected, scores, resamples=resamples, seed=seed, beside=WHOLE)
        result = ablations_result(found, compared, by=by)
        for drawn in study_figures(result) if figure else ():
            save_figure(drawn, figure or run)
    if figure:
        say(f"figures: {figure}")
    show_result(result, medium, everything=everything)
