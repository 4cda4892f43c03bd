"""`perse fit`: combine a judge's distribution with the numbers that need no judge, and say what each adds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.progress import shown_on


@grouped
def fit(
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders that `perse score` wrote, of one judge and one data set.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="In the place of runs: a data set folder, to see what the numbers alone say of its validation readers.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", callback=options.here, help="The file to write.", show_default="stacking.json beside the judge"),
    ] = None,
    overwrite: options.Overwrite = False,
    train_data: options.TrainData = None,
    resamples: options.Resamples = 1000,
    resample: options.ResampleOption = "auto",
    seed: options.Seed = 0,
    medium: Medium,
) -> None:
    """What does each source add: the language model, the reader's own scores, other readers', the words of the text?

    Fits proportional odds on judged readers that the judge was not trained on, and writes them beside the judge: from then on perse score, ask and serve
    tell `stacked` beside the judge's own values. What is printed is of readers that were not fitted on (cross-fitted).

    Example:  perse fit runs/first-valid

    Folds:    perse fit runs/f0 runs/f1 runs/f2    (measured together; nothing is written)

    Numbers:  perse fit --data work/data
    """
    from perse.batch.stacked_runs import read_judged, read_unjudged
    from perse.errors import BadInput
    from perse.evaluation.stacking.making import fit as fitted_on
    from perse.evaluation.stacking.telling import fit_result
    from perse.stacking.file import check_place, write_stacking

    if bool(runs) == bool(data):
        raise BadInput("give runs that `perse score` wrote, or --data with a data set folder: one of them")
    if data is not None and (out is not None or train_data is not None):
        raise BadInput(
            "--data asks no judge, so that nothing is written and it has its own training side; leave --out and --train-data out"
        )
    judged = read_unjudged(data) if data is not None else read_judged(runs or [], train_data)
    place = None
    if judged.judge is not None and judged.data is not None:
        place = out or judged.place
        if place is None:
            raise BadInput(
                f"the judge {judged.judge} is no folder on this machine; say where the stacking goes: --out stacking.json"
            )
        check_place(place, overwrite=overwrite)
    elif out is not None:
        raise BadInput(
            "runs of several folds are of several judges, and a stacking belongs to one; leave --out out, or give one run"
        )
    with shown_on(err) as on_part:
        found = fitted_on(
            judged.folds,
            judged.judgements,
            seed=seed,
            resamples=resamples,
            resample=resample,
            on_progress=partial(on_part, "leaving sources out"),
        )
    if place is not None and judged.judge is not None and judged.data is not None:
        write_stacking(place, found.stacking(question=str(judged.question), judge=judged.judge, data=judged.data))
    show_result(
        fit_result(found, judged=judged.judge is not None, written=None if place is None else str(place), notes=judged.notes),
        medium,
    )
