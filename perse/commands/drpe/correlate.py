"""`perse drpe correlate`: scores of candidates beside what people gave them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.drpe.selection import References, Which
from perse.progress import shown_on


@grouped
def correlate(
    *,
    documents: Annotated[
        Path,
        typer.Argument(
            metavar="DOCS", help="Documents with people's scores: SummEval's lines, or of the same form.", show_default=False
        ),
    ],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...", help="Folders that `perse drpe vote` wrote over these documents.", show_default=False
        ),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Whether ROUGE, BLEU and other metrics stand beside the runs.")
    ] = True,
    references: Annotated[
        References,
        typer.Option(
            help="What metrics compare with: a document's first reference, as published, or the best over all it has."
        ),
    ] = "first",
    candidates: Annotated[
        Which, typer.Option(help="The two best and two worst of each document by people's mean, as published, or all.")
    ] = "extremes",
    dimension: Annotated[
        list[str] | None,
        typer.Option(help="What people's mean is of; may be repeated.", show_default="every dimension of the file"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Look at the file's first so many documents.", show_default="all")
    ] = None,
    bertscore_model: options.BertScoreModel = None,
    bartscore_model: options.BartScoreModel = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """Which scores agree with people: votes of role-players, and the metrics that they are held against.

    Example:  perse drpe correlate summeval.jsonl.gz --references best

    Votes:    perse drpe correlate summeval.jsonl.gz runs/votes --candidates extremes
    """
    from perse.drpe.correlation.baselines import baselines as computed
    from perse.drpe.correlation.correlating import correlate as correlated
    from perse.drpe.correlation.run_scores import methods_of, of_extremes, of_wordings
    from perse.drpe.correlation.telling import correlate_result
    from perse.drpe.correlation.wordings import over_wordings
    from perse.drpe.documents import read_documents
    from perse.drpe.selection import select
    from perse.errors import BadInput

    if not runs and not baselines:
        raise BadInput("there is nothing to correlate: name a run, or leave out --no-baselines")
    selected = select(read_documents(documents, limit=limit), which=candidates, dimensions=dimension or ())
    votes = methods_of(runs or [], selected)
    beside = None
    if baselines:
        with shown_on(err) as on_part:
            beside = computed(
                selected.items,
                references=references,
                bertscore_model=bertscore_model,
                bartscore_model=bartscore_model,
                on_progress=lambda done, total: on_part("computing metrics", done, total),
            )
    found = correlated(selected, {**votes, **(beside.scores if beside else {})}, resamples=resamples, seed=seed)
    asked = {
        name: over_wordings(selected, each, resamples=resamples, seed=seed) for name, each in of_wordings(runs or []).items()
    }
    wordings = {name: one for name, one in asked.items() if one is not None}
    of_whom = "" if selected.between else of_extremes(runs or [])  # a note says it where there are some between
    show_result(correlate_result(found, beside, wordings, of_whom=of_whom), medium, everything=everything)
