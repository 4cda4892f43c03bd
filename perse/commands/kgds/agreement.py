"""`perse kgds agreement`: how far to trust a judge's verification."""

from __future__ import annotations

from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.kgds import BenchmarkFile, Samples
from perse.commands.options.medium import Medium
from perse.commands.terminal import err
from perse.progress import shown_on


@grouped
def agreement(
    *,
    benchmark: BenchmarkFile,
    judge: options.JudgeName,
    out: options.Out,
    limit: Annotated[
        int, typer.Option(min=1, help="Facts, and opinions, drawn by seed; each is asked of two texts, facts in two ways.")
    ] = 400,
    samples: Samples = None,
    loading: Loading,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    medium: Medium,
) -> None:
    """How far to trust a judge's verification: claims whose truth is known without an annotator.

    A key fact against its own paragraph and against another one, a clear opinion against all opinions and against the others:
    accuracy, calibration, and the cost of a question, one by one and in lists. The same command continues after a stop.

    Example:  perse kgds agreement KGDS.json --judge smollm2-135m --out studies/agreement

    Quickly:  perse kgds agreement KGDS.json --judge smollm2-135m --samples 10 --limit 40 --out studies/small
    """
    from perse.commands.studies.judging import show
    from perse.kgds.agreement.study import agreement as study
    from perse.kgds.benchmark import read_benchmark

    given = read_benchmark(benchmark).first(samples)
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        result = study(loaded, given, out, limit=limit, seed=seed, resamples=resamples, on_progress=on_part)
    show(result, out, medium)
