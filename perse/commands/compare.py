"""`perse compare`: is one judge better than another? Thin: everything is in `comparison`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from perse.commands.showing import show_result


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more folders that `perse score` wrote, of the same data set.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="kendall, spearman, pearson, within_kendall, mae, ...; accuracy for pairs. May be repeated.",
            show_default="all five; accuracy",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare all others with this run, by its folder's name, and not with each other.", show_default="all pairs"
        ),
    ] = None,
    permutations: Annotated[int, typer.Option(min=100, help="Exchanges of answers drawn for a p value.")] = 2000,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 1000,
    resample: Annotated[
        str, typer.Option(help="reviewers, or two-way: reviewers and texts, for texts that several readers judged.")
    ] = "reviewers",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
    train_data: Annotated[
        Path | None, typer.Option(help="Data set folder for the baselines; by default the one that was scored.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
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
    from perse.evaluation.stats.results import Resample

    if resample not in get_args(Resample):
        raise BadInput(f"--resample is '{resample}'; choose {' or '.join(get_args(Resample))}")
    if len(runs) < 2:
        raise BadInput(f"one run ({runs[0]}) is nothing to compare; give two or more, or `perse evaluate {runs[0]}`")
    err = Console(stderr=True)
    gathered = gather(runs, train_data)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    ) as shown:
        task = shown.add_task("comparing", total=None)
        result = compared(
            gathered.judges,
            gathered.parts,
            seed=seed,
            resamples=resamples,
            resample=cast(Resample, resample),
            permutations=permutations,
            metrics=metric or (),
            against=against,
            notes=gathered.notes,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
        )
    if any(baseline.unavailable for baseline in result.baselines):
        for reason in gathered.missing:
            err.print(
                f"baselines that need training data are unavailable: {reason}", soft_wrap=True, markup=False, highlight=False
            )
    show_result(comparison_result(result), as_json=as_json, markdown=markdown)
