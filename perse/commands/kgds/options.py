"""What several `perse kgds` commands take, each said once, and the judge that some of these options name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from perse.judging.loading import judge_help

if TYPE_CHECKING:
    from perse.judging.judge import Judge

BenchmarkFile = Annotated[Path, typer.Argument(metavar="BENCHMARK", help="The benchmark's JSON file.", show_default=False)]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `perse kgds generate` wrote.", show_default=False)]
Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Folders of `perse kgds generate`, or the `outputs` that the authors released.",
        show_default=False,
    ),
]
JudgeName = Annotated[
    str,
    typer.Option(
        help=judge_help(),
        show_default=False,
    ),
]
Name = Annotated[
    str, typer.Option(help="Of the verification: a folder in RUN, so that several can stand side by side; a name, no path.")
]
Samples = Annotated[int | None, typer.Option(min=1, help="The first so many samples.", show_default=False)]
Dtype = Annotated[str, typer.Option(help="Of a model in this process: bfloat16, float16 or float32.")]
Context = Annotated[
    int | None, typer.Option(min=64, help="Tokens to use; by default what the model was made for.", show_default=False)
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Of a served model whose folder is not on this machine.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every draw.")]
Resamples = Annotated[int, typer.Option(min=100, help="Bootstrap resamples of the samples.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def load_judge(name: str, *, dtype: str, context: int | None, tokenizer: str | None) -> Judge:
    """The judge of this name; a person sees that it is being loaded.

    Raises:
        BadInput: no such dtype, or what `Judge.load` refuses.
    """
    from perse.errors import BadInput
    from perse.judging.judge import Judge
    from perse.secrets import redact

    if dtype not in ("bfloat16", "float16", "float32"):
        raise BadInput(f"--dtype is '{dtype}'; choose bfloat16, float16 or float32")
    with Console(stderr=True).status(f"loading {escape(redact(name))}"):
        return Judge.load(name, dtype=dtype, context=context, tokenizer=tokenizer)
