"""`perse report`: one HTML file that says how far to trust a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console

err = Console(stderr=True)


def report(
    runs: Annotated[list[Path], typer.Argument(help="One or more folders that `perse score` wrote.")],
    study: Annotated[list[Path] | None, typer.Option(help="A folder that `perse study` finished; once for each.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; by default `report` in the first run.")] = None,
    title: Annotated[str | None, typer.Option(help="Of the page; by default after the judges.")] = None,
    train_data: Annotated[
        Path | None, typer.Option(help="Data set folder for the baselines; by default the one that was scored.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples, 100 or more.")] = 1000,
    resample: Annotated[
        str, typer.Option(help="reviewers, or two-way: reviewers and texts, for texts that several readers judged.")
    ] = "reviewers",
    bertscore_model: Annotated[Path | None, typer.Option(help="Folder of an encoder, for BERTScore.")] = None,
    bartscore_model: Annotated[Path | None, typer.Option(help="Folder of a BART, for BARTScore.")] = None,
    max_samples: Annotated[int, typer.Option(min=0, help="Samples in the page; failures come before others.")] = 10_000,
) -> None:
    """How far to trust a judge, as one HTML file that needs no network: verdict, tables, plots, every sample.

    Example:  perse report runs/before runs/after

    Studies:  perse report runs/after --study studies/k-curve --study studies/order --out reports/after
    """
    from perse.errors import BadInput
    from perse.evaluation.evaluate import Texts
    from perse.evaluation.stats.results import Resample
    from perse.reporting.report import NUMBERS, write_report
    from perse.results.result import Result

    if resample not in get_args(Resample):
        raise BadInput(f"--resample is '{resample}'; choose {' or '.join(get_args(Resample))}")
    with err.status("counting and drawing"):
        page = write_report(
            runs,
            studies=study or (),
            out=out or runs[0] / "report",
            title=title,
            train_data=train_data,
            seed=seed,
            resamples=resamples,
            resample=cast(Resample, resample),
            texts=Texts(True, bertscore_model, bartscore_model),
            max_samples=max_samples,
        )
    result = Result.model_validate_json((page.parent / NUMBERS).read_bytes())
    err.print(result.answer, style="bold", markup=False, highlight=False, soft_wrap=True)
    err.print("report:", end=" ")
    typer.echo(page)
