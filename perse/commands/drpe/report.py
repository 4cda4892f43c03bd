"""`perse drpe report`: how the roles voted, why, and how far that agrees with people, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.drpe import EmbeddingModel
from perse.commands.terminal import err
from perse.drpe.selection import References
from perse.models.embeddings import EMBEDDING_MODEL
from perse.progress import shown_on


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders that `perse drpe vote` wrote: the first is shown, others are compared.",
            show_default=False,
        ),
    ],
    out: options.NewFolder,
    baselines: Annotated[
        bool,
        typer.Option("--baselines/--no-baselines", help="Whether metrics of words in common are computed beside the votes."),
    ] = True,
    references: Annotated[
        References, typer.Option(help="What these metrics take: the first reference, or the best value over all there are.")
    ] = "first",
    roles: Annotated[
        Path | None,
        typer.Option(
            help="The folder of `perse drpe roles` whose roles voted: draws their map into the page.", show_default=False
        ),
    ] = None,
    embedding_model: EmbeddingModel = EMBEDDING_MODEL,
    bertscore_model: options.BertScoreModel = None,
    bartscore_model: options.BartScoreModel = None,
    title: options.Title = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    max_candidates: Annotated[
        int, typer.Option(min=0, help="Candidates in the page; those that lack a vote come before others.")
    ] = 2000,
) -> None:
    """The votes on every candidate with their reasons, whom texts win, and the agreement with people, as one HTML file that needs no network.

    Beside the page: tables.md, results.json, the figures, and manifest.json, which says what it was made of.

    Example:  perse drpe report runs/votes --out reports/votes

    With a map of the roles:  perse drpe report runs/votes --roles runs/roles --out reports/votes
    """
    from perse.drpe.clustering import embedding
    from perse.drpe.correlation.baselines import baselines as computed
    from perse.drpe.reporting.report import refuse_strangers, selected_of, voters_map, write_report
    from perse.drpe.roles_folder import read_roles
    from perse.drpe.votes.run_folder import BALLOTS, read_run
    from perse.files.own_files import refuse_inputs
    from perse.files.runlog import environment, file_digest

    refuse_strangers(out)
    refuse_inputs(out, [*runs, *([roles] if roles else [])])
    shown = read_run(runs[0])
    selected = selected_of(shown)
    drawn = voters_map(shown, read_roles(roles), embedding(embedding_model)) if roles else None
    beside = None
    if baselines and selected is not None:
        with shown_on(err) as on_part:
            beside = computed(
                selected.items,
                references=references,
                bertscore_model=bertscore_model,
                bartscore_model=bartscore_model,
                on_progress=lambda done, total: on_part("computing metrics", done, total),
            )
    made = {
        "runs": [{"path": str(run), "ballots_sha256": file_digest(run / BALLOTS)} for run in runs if (run / BALLOTS).is_file()],
        "baselines": baselines,
        "references": references,
        "roles": str(roles) if roles else None,
        "title": title,
        "resamples": resamples,
        "seed": seed,
        "max_candidates": max_candidates,
        "environment": environment(),
    }
    with err.status("counting and drawing"):
        page = write_report(
            runs, out,
            baselines=beside, roles=drawn, title=title, resamples=resamples, seed=seed, max_candidates=max_candidates, manifest=made,
        )  # fmt: skip
    err.print("report:", end=" ")
    typer.echo(page)
