"""`perse report`: one HTML file that says how far to trust a judge."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.terminal import err
from perse.formats.plain_files import own_bytes
from perse.progress import shown_on


def report(
    runs: options.ScoredRuns,
    study: Annotated[list[Path] | None, typer.Option(help="A folder that `perse study` finished; once for each.")] = None,
    out: Annotated[
        Path | None, typer.Option(callback=options.here, help="The folder to write; by default `report` in the first run.")
    ] = None,
    title: options.Title = None,
    train_data: options.TrainData = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    resample: options.ResampleOption = "auto",
    bertscore_model: options.BertScoreModel = None,
    bartscore_model: options.BartScoreModel = None,
    embedding_model: options.EmbeddingModel = None,
    max_samples: Annotated[int, typer.Option(min=0, help="Samples in the page; failures come before others.")] = 10_000,
) -> None:
    """How far to trust a judge, as one HTML file that needs no network: verdict, tables, plots, every sample.

    Example:  perse report runs/before runs/after

    Studies:  perse report runs/after --study studies/k-curve --study studies/order --out reports/after
    """
    from perse.evaluation.evaluate import Texts
    from perse.models.vectors import KeptVectors
    from perse.reporting.report import NUMBERS, write_report
    from perse.results.result import Result
    from perse.results.terminal import safe

    with shown_on(err) as on_part:
        page = write_report(
            runs,
            studies=study or (),
            out=out or runs[0] / "report",
            title=title,
            train_data=train_data,
            seed=seed,
            resamples=resamples,
            resample=resample,
            texts=Texts(True, bertscore_model, bartscore_model),
            max_samples=max_samples,
            vectors=KeptVectors(embedding_model, on_progress=partial(on_part, "embedding texts")),
            on_part=on_part,
        )
    result = Result.model_validate_json(own_bytes(page.parent / NUMBERS))
    err.print(safe(result.answer), style="bold", highlight=False, soft_wrap=True)
    err.print("report:", end=" ")
    typer.echo(page)
