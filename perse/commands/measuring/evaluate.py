"""`perse evaluate`: how well judges agree with readers, in words, as tables, or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result


@grouped
def evaluate(
    *,
    runs: options.ScoredRuns,
    train_data: options.TrainData = None,
    resamples: options.Resamples = 1000,
    resample: options.ResampleOption = "auto",
    seed: options.Seed = 0,
    validation_run: Annotated[
        list[Path] | None,
        typer.Option(help="Run of other reviewers to calibrate ties on; once for each judge, in their order."),
    ] = None,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Compare written reviews with the readers' own.")] = True,
    bertscore_model: options.BertScoreModel = None,
    bartscore_model: options.BartScoreModel = None,
    prices: Annotated[
        list[str] | None, typer.Option(help="NAME=INPUT,OUTPUT[,CACHED] per million tokens of the judge of that name.")
    ] = None,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """How well the judge agrees with the readers, with 95% intervals, beside baselines.

    Example:  perse evaluate runs/before runs/after

    Folds:    perse evaluate runs/f0 runs/f1 runs/f2

    Costs:    perse evaluate runs/served runs/mine --prices served=0.15,0.60 --all
    """
    from perse.batch.comparing import gather, run_costs
    from perse.errors import BadInput
    from perse.evaluation.costs import parse_prices
    from perse.evaluation.evaluate import Texts, Validation, evaluate_many
    from perse.evaluation.telling import evaluation_result

    gathered = gather(runs, train_data)
    judges = gathered.judges
    known, seconds = run_costs(gathered.runs)
    validation = None
    if validation_run:
        theirs = gather(validation_run, train_data)
        if len(theirs.judges) != len(judges):
            raise BadInput(f"{len(theirs.judges)} validation runs for {len(judges)} judges; give one for each, in their order")
        validation = Validation(dict(zip(judges, theirs.judges.values(), strict=True)), theirs.folds)
    result = evaluate_many(
        judges,
        gathered.folds,
        seed=seed,
        resamples=resamples,
        resample=resample,
        validation=validation,
        texts=Texts(text, bertscore_model, bartscore_model),
        prices=known | parse_prices(prices or [], judges),
        seconds=seconds,
        notes=[
            *gathered.notes,
            *(f"baselines that need training data are unavailable: {reason}" for reason in gathered.missing),
        ],
    )
    show_result(evaluation_result(result), medium, everything=everything)
