"""`perse kgds agreement`: how far to trust a judge's verification. Thin: everything is in `agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands.kgds.options import (
    AsJson,
    BenchmarkFile,
    Context,
    Dtype,
    JudgeName,
    Resamples,
    Samples,
    Seed,
    Tokenizer,
    load_judge,
)


def agreement(
    benchmark: BenchmarkFile,
    judge: JudgeName,
    out: Annotated[Path, typer.Option(help="The study's folder, to write or to continue.", show_default=False)],
    limit: Annotated[
        int, typer.Option(min=1, help="Facts, and opinions, drawn by seed; each is asked of two texts, facts in two ways.")
    ] = 400,
    samples: Samples = None,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the result as Markdown on stdout.")] = False,
) -> None:
    """How far to trust a judge's verification: claims whose truth is known without an annotator.

    A key fact against its own paragraph and against another one, a clear opinion against all opinions and against the others:
    accuracy, calibration, and the cost of a question, one by one and in lists. The same command continues after a stop.

    Example:  perse kgds agreement KGDS.json --judge smollm2-135m --out studies/agreement

    Quickly:  perse kgds agreement KGDS.json --judge smollm2-135m --samples 10 --limit 40 --out studies/small
    """
    from perse.commands.studies.judging import show, watched
    from perse.kgds.agreement.study import agreement as study
    from perse.kgds.benchmark import read_benchmark

    given = read_benchmark(benchmark).first(samples)
    loaded = load_judge(judge, dtype=dtype, context=context, tokenizer=tokenizer)
    with watched() as watch:
        result = study(loaded, given, out, limit=limit, seed=seed, resamples=resamples, watch=watch)
    show(result, out, as_json=as_json, markdown=markdown)
