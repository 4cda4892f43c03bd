"""`perse rehearsal leniency`: hold a judge of summaries against people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.medium import Medium
from perse.commands.options.rehearsal import SummaryScale
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.progress import shown_on
from perse.rehearsal.settings import WIDE


@grouped
def leniency(
    *,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="Graded summaries: summeval-op-detailed.jsonl or summeval-op.jsonl.", show_default=False
        ),
    ],
    judge: options.JudgeName,
    out: options.Out,
    products: Annotated[
        int | None, typer.Option("--limit", min=1, help="The first so many products.", show_default="all")
    ] = None,
    scale: SummaryScale = WIDE,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    loading: Loading,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """How much more a judge gives a summary than people do; the same command continues after a stop.

    Example:  perse rehearsal leniency summeval-op-detailed.jsonl --judge smollm2-135m --out runs/leniency

    Then:  perse rehearsal score work/persum runs/rehearsal --judge smollm2-135m --leniency runs/leniency
    """
    from perse.rehearsal.leniency.asking import ask
    from perse.rehearsal.leniency.kept import keep
    from perse.rehearsal.leniency.measuring import leniency as measured
    from perse.rehearsal.leniency.reading import read_graded
    from perse.rehearsal.leniency.telling import leniency_result

    graded = read_graded(data, limit=products)
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        asked = ask(
            loaded, graded, out, labels=scale, on_progress=lambda done, total: on_part("judging summaries", done, total)
        )
    who = loaded.identity.portable
    name = "+".join(filter(None, (who.model, who.adapter)))
    result = leniency_result(measured(asked, judge=name, labels=scale, resamples=resamples, seed=seed))
    keep(out, result)
    show_result(result, medium, everything=everything)
