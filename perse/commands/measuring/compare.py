"""`perse compare`: is one judge better than another?"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.progress import shown_on


@grouped
def compare(
    *,
    runs: options.ScoredRuns,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="kendall, spearman, pearson, within_kendall, mae, ..., or one of another package; accuracy for pairs. May be repeated.",
            show_default="all five; accuracy",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare all others with this run, by its folder's name, and not with each other.", show_default="all pairs"
        ),
    ] = None,
    permutations: Annotated[int, typer.Option(min=100, max=1_000_000, help="Exchanges of answers drawn for a p value.")] = 2000,
    resamples: options.Resamples = 1000,
    resample: options.ResampleOption = "auto",
    seed: options.Seed = 0,
    train_data: options.TrainData = None,
    embedding_model: options.EmbeddingModel = None,
    medium: Medium,
) -> None:
    """Is one judge better than another, and than the reviewer's own average?

    On the items that all runs judged: differences with 95% intervals, and p values adjusted for how many are looked at.

    Example:  perse compare runs/before runs/after

    Many:     perse compare runs/base runs/lora runs/full --against base --metric kendall

    Profiles: perse compare runs/k0 runs/k3    (the same queries with other profiles)
    """
    from perse.batch.comparing import gather
    from perse.errors import BadInput
    from perse.evaluation.comparing.comparison import compare as compared
    from perse.evaluation.comparing.telling import comparison_result
    from perse.models.vectors import KeptVectors

    if len(runs) < 2:
        raise BadInput(f"one run ({runs[0]}) is nothing to compare; give two or more, or `perse evaluate {runs[0]}`")
    gathered = gather(runs, train_data)
    with shown_on(err) as on_part:
        result = compared(
            gathered.judges,
            gathered.folds,
            seed=seed,
            resamples=resamples,
            resample=resample,
            permutations=permutations,
            metrics=metric or (),
            against=against,
            notes=gathered.notes,
            vectors=KeptVectors(embedding_model, on_progress=partial(on_part, "embedding texts")),
            on_progress=partial(on_part, "comparing"),
            on_fit=partial(on_part, "fitting baselines"),
        )
    if any(baseline.unavailable for baseline in result.baselines):
        for reason in gathered.missing:
            err.print(
                f"baselines that need training data are unavailable: {reason}", soft_wrap=True, markup=False, highlight=False
            )
    show_result(comparison_result(result), medium)
