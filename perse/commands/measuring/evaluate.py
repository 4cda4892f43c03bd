"""`perse evaluate`: how well judges agree with readers, in words, as tables, or as JSON."""

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
    factors: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Of matrix factorization; by default 2 or 8, as held-out training readers choose."),
    ] = None,
    factor_penalty: Annotated[
        float | None,
        typer.Option(
            min=1e-6, max=1e6, help="Of its factors' squares; by default 5, 20 or 100, as held-out training readers choose."
        ),
    ] = None,
    embedding_model: options.EmbeddingModel = None,
    p_values: Annotated[
        bool,
        typer.Option("--p-values", help="Of the pooled correlations, as papers print them; they take items for independent."),
    ] = False,
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
    from perse.evaluation.baselines.factors import FACTOR_PENALTIES, FACTORS, Factorization
    from perse.evaluation.costs import parse_prices
    from perse.evaluation.evaluate import Texts, Validation, evaluate_many
    from perse.evaluation.telling import evaluation_result
    from perse.models.vectors import KeptVectors

    gathered = gather(runs, train_data)
    judges = gathered.judges
    known, seconds = run_costs(gathered.runs)
    validation = None
    if validation_run:
        theirs = gather(validation_run, train_data)
        if len(theirs.judges) != len(judges):
            raise BadInput(f"{len(theirs.judges)} validation runs for {len(judges)} judges; give one for each, in their order")
        validation = Validation(dict(zip(judges, theirs.judges.values(), strict=True)), theirs.folds)
    with shown_on(err) as on_part:
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
            factorization=Factorization(
                FACTORS if factors is None else (factors,), FACTOR_PENALTIES if factor_penalty is None else (factor_penalty,)
            ),
            vectors=KeptVectors(embedding_model, on_progress=partial(on_part, "embedding texts")),
            p_values=p_values,
            on_progress=partial(on_part, "evaluating"),
            on_fit=partial(on_part, "fitting baselines"),
        )
    show_result(evaluation_result(result), medium, everything=everything)
