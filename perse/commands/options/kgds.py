"""What several `perse kgds` commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from perse.kgds.benchmark import Paradigm, Pattern

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
Name = Annotated[
    str, typer.Option(help="Of the verification: a folder in RUN, so that several can stand side by side; a name, no path.")
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model to take, by its name or released folder; may be repeated.", show_default="all"),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Count as the authors' script: tags that are no paragraph of the article are wrong ones, any conclusion but knowable is no.",
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(help="NAME=INPUT,OUTPUT[,CACHED] per million tokens of the writer or judge of that name; may be repeated."),
]
Samples = Annotated[int | None, typer.Option(min=1, help="The first so many samples.", show_default=False)]
WriterName = Annotated[
    str, typer.Option("--writer", help="The model that writes, named as a judge is; the paper's is GPT-4o.", show_default=False)
]


class PatternName(StrEnum):
    """A `Pattern` as an option that may be repeated, which typer takes of an enumeration only."""

    EBS_AOS = "ebs-aos"
    ABS_AOS = "abs-aos"

    @property
    def as_pattern(self) -> Pattern:
        return "ebs-aos" if self is PatternName.EBS_AOS else "abs-aos"


class ParadigmName(StrEnum):
    """A `Paradigm`, as `PatternName`."""

    STRUCTURED = "structured"
    REFLECTION = "reflection"

    @property
    def as_paradigm(self) -> Paradigm:
        return "structured" if self is ParadigmName.STRUCTURED else "reflection"
