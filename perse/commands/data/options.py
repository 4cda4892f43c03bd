"""Options that several `perse data` commands share, how their values are read, and how a build's result is shown."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perse.data.build import Summary, dropped_lines, summary_table
from perse.data.dataset.table1 import table1
from perse.data.profiles.profiles import Profiles
from perse.data.profiles.selection import Select
from perse.data.profiles.views import ProfileAspects
from perse.data.sources.faults import OnError
from perse.errors import BadInput

Out = Annotated[Path, typer.Option("--out", help="The folder to write.", show_default=False)]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Which column holds a field, where perse does not find it; may be repeated. Join columns with +: "
        "[bold]--map text_a=story_a+ending_a[/bold]. For the items file: [bold]--map items.item_id=id[/bold].",
        show_default=False,
    ),
]
SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="What the files are read as, for formats that another package adds: `perse data describe FILE` says its name.",
    ),
]
ProfilesOption = Annotated[
    Profiles,
    typer.Option(
        help="per_example: a profile drawn for each query, as in the paper; per_reviewer_epoch: one for each reviewer, shared "
        "by their queries, and drawn anew in every epoch of training."
    ),
]
Valid = Annotated[float, typer.Option(help="Share of the reviewers that is for validation.")]
Folds = Annotated[
    int | None, typer.Option(help="Cross-fitting: every reviewer in one of N folds, instead of a split.", show_default=False)
]
MaxReviewers = Annotated[
    int | None, typer.Option(help="At most so many reviewers, drawn by the seed, for a quick try.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Seeds every random choice: the same seed and files give the same bytes.")]
OnErrorOption = Annotated[OnError, typer.Option("--on-error", help="At a bad row: stop, or skip it, count it and list it.")]
KeepNames = Annotated[bool, typer.Option("--keep-names", help="Keep reviewer names as they are; else they become pseudonyms.")]
Salt = Annotated[
    str | None, typer.Option(help="Secret that makes pseudonyms unguessable; else derived from the seed.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it is a perse data set.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout; the table goes to stderr.")]
MaxK = Annotated[
    int | None,
    typer.Option(
        "--max-k",
        help="Keep longer profiles than are shown, so that any k up to this can be asked for later.",
        show_default=False,
    ),
]
SelectOption = Annotated[
    Select,
    typer.Option(
        help="What makes a profile: random (the paper), recent (the latest before the query), bm25 or embedding (nearest to the "
        "query), diverse."
    ),
]
EmbeddingModel = Annotated[str, typer.Option(help="For --select embedding: a folder or a hub name.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Read only so many rows, for a quick try.", show_default=False)]
ShownK = Annotated[
    int | None,
    typer.Option("--k", min=0, help="Profile entries to show, at most what the folder keeps.", show_default="the folder's own"),
]
OrderSeed = Annotated[int | None, typer.Option(min=0, help="Shuffle every profile by this seed.", show_default="oldest first")]
ReviewText = Annotated[
    bool, typer.Option("--review-text/--no-review-text", help="Whether profiles show what the reader wrote, or scores alone.")
]
ShownAspects = Annotated[
    ProfileAspects, typer.Option(help="Pairs: what a profile entry shows, all its preferences or the asked aspect's alone.")
]


def read_columns(options: Sequence[str] | None) -> dict[str, str]:
    """`FIELD=COLUMN` options as a mapping. Raises BadInput for one that is none, and for a field mapped twice."""
    columns: dict[str, str] = {}
    for name, column in read_pairs(options, option="--map", example="text=plot", shape="FIELD=COLUMN"):
        if name in columns:
            raise BadInput(
                f"--map {name}={column}: field '{name}' is mapped twice, to '{columns[name]}' before; join columns with +"
            )
        columns[name] = column
    return columns


def read_pairs(options: Sequence[str] | None, *, option: str, example: str, shape: str = "NAME=VALUE") -> list[tuple[str, str]]:
    """`NAME=VALUE` options, taken apart. Raises BadInput for one that is none."""
    pairs = []
    for given in options or ():
        name, equals, value = (part.strip() for part in given.partition("="))
        if not (name and equals and value):
            raise BadInput(f"{option} {given}: expected {shape}, such as {option} {example}")
        pairs.append((name, value))
    return pairs


def read_scale(text: str) -> tuple[float, float]:
    number = r"([+-]?\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"\s*{number}\s*-\s*{number}\s*", text)
    if found is None:
        raise BadInput(f"--scale {text}: expected LOW-HIGH, such as --scale 1-5")
    return float(found.group(1)), float(found.group(2))


def show(summary: Summary, *, as_json: bool, paper: bool = False) -> None:
    """What a build made: the table, what was left out, and what a person should know; `paper` adds PerSE's Table 1."""
    console = Console(stderr=True, highlight=False)
    console.print(summary_table(summary))
    if paper:
        console.print(table1(summary), soft_wrap=True)
    for line in dropped_lines(summary):
        console.print(line, markup=False)
    for note in summary.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"written: {summary.out}", markup=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(summary.model_dump_json(indent=2) + "\n")
