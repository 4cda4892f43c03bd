"""`perse kgds agreement`: how far to trust a judge's verification. Thin: everything is in `agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

err = Console(stderr=True)


def agreement(
    benchmark: Annotated[Path, typer.Argument(metavar="BENCHMARK", help="The benchmark's JSON file.", show_default=False)],
    judge: Annotated[
        str,
        typer.Option(
            help="PATH or vllm:PATH (a training run, a model folder, an embedded model or a hub name), or openai:URL#MODEL.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The study's folder, to write or to continue.", show_default=False)],
    limit: Annotated[
        int, typer.Option(min=1, help="Facts, and opinions, drawn by seed; each is asked of two texts, facts in two ways.")
    ] = 400,
    samples: Annotated[int | None, typer.Option(min=1, help="The first so many samples.", show_default=False)] = None,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    context: Annotated[
        int | None, typer.Option(min=64, help="Tokens to use; by default what the model was made for.", show_default=False)
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Of a served model whose folder is not on this machine.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every draw.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples of the samples.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the result as Markdown on stdout.")] = False,
) -> None:
    """How far to trust a judge's verification: claims whose truth is known without an annotator.

    A key fact against its own paragraph and against another one, a clear opinion against all opinions and against the others:
    accuracy, calibration, and the cost of a question, one by one and in lists. The same command continues after a stop.

    Example:  perse kgds agreement KGDS.json --judge smollm2-135m --out studies/agreement

    Quickly:  perse kgds agreement KGDS.json --judge smollm2-135m --samples 10 --limit 40 --out studies/small
    """
    from perse.errors import BadInput
    from perse.judge import Judge
    from perse.kgds.agreement import agreement as study
    from perse.kgds.benchmark import read_benchmark
    from perse.studies.judging_commands import show, watched

    if dtype not in ("bfloat16", "float16", "float32"):
        raise BadInput(f"--dtype is '{dtype}'; choose bfloat16, float16 or float32")
    given = read_benchmark(benchmark).first(samples)
    with err.status(f"loading {judge}"):
        loaded = Judge.load(judge, dtype=dtype, context=context, tokenizer=tokenizer)
    with watched() as watch:
        result = study(loaded, given, out, limit=limit, seed=seed, resamples=resamples, watch=watch)
    show(result, out, as_json=as_json, markdown=markdown)
