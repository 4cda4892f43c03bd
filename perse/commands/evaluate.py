"""`perse evaluate`: how well judges agree with readers, in words, as tables, or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from perse.commands.showing import show_result


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="One or more folders that `perse score` wrote, of the same data set.")],
    train_data: Annotated[
        Path | None, typer.Option(help="Data set folder for the baselines; by default the one that was scored.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples, 100 or more.")] = 1000,
    resample: Annotated[
        str, typer.Option(help="reviewers, or two-way: reviewers and texts, for texts that several readers judged.")
    ] = "reviewers",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
    validation_run: Annotated[
        list[Path] | None,
        typer.Option(help="Run of other reviewers to calibrate ties on; once for each judge, in their order."),
    ] = None,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Compare written reviews with the readers' own.")] = True,
    bertscore_model: Annotated[Path | None, typer.Option(help="Folder of an encoder, for BERTScore.")] = None,
    bartscore_model: Annotated[Path | None, typer.Option(help="Folder of a BART, for BARTScore.")] = None,
    prices: Annotated[
        list[str] | None, typer.Option(help="NAME=INPUT,OUTPUT[,CACHED] per million tokens of the judge of that name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print everything as Markdown on stdout.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Print the finer tables, too.")] = False,
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
    from perse.evaluation.stats.results import Resample
    from perse.evaluation.telling import evaluation_result

    if resample not in get_args(Resample):
        raise BadInput(f"--resample is '{resample}'; choose {' or '.join(get_args(Resample))}")
    gathered = gather(runs, train_data)
    judges = gathered.judges
    known, seconds = run_costs(gathered.runs)
    validation = None
    if validation_run:
        theirs = gather(validation_run, train_data)
        if len(theirs.judges) != len(judges):
            raise BadInput(f"{len(theirs.judges)} validation runs for {len(judges)} judges; give one for each, in their order")
        validation = Validation(dict(zip(judges, theirs.judges.values(), strict=True)), theirs.parts)
    result = evaluate_many(
        judges,
        gathered.parts,
        seed=seed,
        resamples=resamples,
        resample=cast(Resample, resample),
        validation=validation,
        texts=Texts(text, bertscore_model, bartscore_model),
        prices=known | parse_prices(prices or [], judges),
        seconds=seconds,
        notes=[
            *gathered.notes,
            *(f"baselines that need training data are unavailable: {reason}" for reason in gathered.missing),
        ],
    )
    show_result(evaluation_result(result), as_json=as_json, markdown=markdown, everything=everything)
