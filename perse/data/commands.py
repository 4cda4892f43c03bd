"""`perse data ...`: the command line of the data room. Thin: a command makes options, calls one function, shows the result."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perse.data.build import (
    PairwiseOptions,
    PointwiseOptions,
    Summary,
    build_pairwise,
    build_pointwise,
    dropped_lines,
    summary_table,
)
from perse.data.folder import export_lines, load_folder
from perse.data.profiles import Profiles
from perse.data.sources.faults import OnError
from perse.data.splits import SplitBy
from perse.errors import BadInput
from perse.records import Split
from perse.runlog import write_whole

app = typer.Typer(no_args_is_help=True, help="Build data sets from raw tables, and export them.", rich_markup_mode="rich")

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
ProfilesOption = Annotated[
    Profiles,
    typer.Option(
        help="per_example: a profile drawn for each query, as in the paper; per_reviewer: one for each reviewer, shared."
    ),
]
Valid = Annotated[float, typer.Option(help="Share of the reviewers that is for validation.")]
Folds = Annotated[
    int | None, typer.Option(help="Cross-fitting: every reviewer in one of N folds, instead of a split.", show_default=False)
]
MaxReviewers = Annotated[
    int | None, typer.Option(help="At most so many reviewers, drawn by the seed, for a quick try.", show_default=False)
]
Seed = Annotated[int, typer.Option(help="Seeds every random choice: the same seed and files give the same bytes.")]
OnErrorOption = Annotated[OnError, typer.Option("--on-error", help="At a bad row: stop, or skip it, count it and list it.")]
KeepNames = Annotated[bool, typer.Option("--keep-names", help="Keep reviewer names as they are; else they become pseudonyms.")]
Salt = Annotated[
    str | None, typer.Option(help="Secret that makes pseudonyms unguessable; else derived from the seed.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it is a perse data set.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout; the table goes to stderr.")]


@app.command()
def pointwise(
    reviews: Annotated[Path, typer.Option(help="Table of reviews: reviewer, item, score, review[, date].", show_default=False)],
    out: Out,
    items: Annotated[
        Path | None, typer.Option(help="Table of texts by item id; leave out if the reviews carry them.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Reviews in a profile.")] = 3,
    columns: Map = None,
    scale: Annotated[str, typer.Option(metavar="LOW-HIGH", help="Lowest and highest raw score; rescaled to 1-10.")] = "1-10",
    split: Annotated[
        SplitBy, typer.Option(help="What training and validation must not share: reviewers, or reviewers and items.")
    ] = "reviewer",
    valid: Valid = 0.1,
    valid_items: Annotated[float, typer.Option(help="With --split reviewer_item: share of items for validation.")] = 0.3,
    folds: Folds = None,
    profiles: ProfilesOption = "per_example",
    max_queries: Annotated[int, typer.Option(help="At most so many examples per reviewer; 0 for all.")] = 10,
    min_reviews: Annotated[int, typer.Option(help="Leave out reviewers with fewer reviews.")] = 6,
    min_review_chars: Annotated[int, typer.Option(help="Leave out reviews with fewer characters.")] = 0,
    max_reviewers: MaxReviewers = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    keep_names: KeepNames = False,
    salt: Salt = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Build a data set of reviews: from k reviews of a reader, the next one.

    Files are .jsonl, .csv or .tsv, each also as .gz.

    Example: [bold]perse data pointwise --reviews reviews.jsonl --items items.jsonl --k 3 --out data/critics[/bold]

    Stars: [bold]perse data pointwise --reviews stars.csv --scale 1-5 --map text=synopsis --out data/stars[/bold]
    """
    options = PointwiseOptions(
        reviews=reviews,
        items=items,
        out=out,
        k=k,
        columns=_columns(columns),
        scale=_scale(scale),
        split=split,
        valid=valid,
        valid_items=valid_items,
        folds=folds,
        profiles=profiles,
        max_queries=max_queries or None,
        min_reviews=min_reviews,
        min_review_chars=min_review_chars,
        max_reviewers=max_reviewers,
        seed=seed,
        on_error=on_error,
        keep_names=keep_names,
        salt=salt,
        overwrite=overwrite,
    )
    _show(build_pointwise(options), as_json=as_json)


@app.command()
def pairwise(
    pairs: Annotated[
        Path, typer.Option(help="Table of judgements: annotator, aspect, two texts (or items), preference.", show_default=False)
    ],
    out: Out,
    items: Annotated[
        Path | None,
        typer.Option(help="Table of texts by item id, if the pairs name items (item_a, item_b).", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Comparisons in a profile.")] = 1,
    columns: Map = None,
    split: Annotated[
        SplitBy, typer.Option(help="What training and validation must not share: annotators, or annotators and pairs.")
    ] = "reviewer_item",
    valid: Valid = 0.1,
    folds: Folds = None,
    profiles: ProfilesOption = "per_example",
    max_queries: Annotated[int, typer.Option(help="At most so many examples per annotator and aspect; 0 for all.")] = 10,
    min_comparisons: Annotated[int, typer.Option(help="Leave out annotators with fewer comparisons.")] = 2,
    max_reviewers: MaxReviewers = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    keep_names: KeepNames = False,
    salt: Salt = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Build a data set of comparisons: which of two texts a reader prefers, aspect by aspect.

    Answers are A or B; both, neither, tie and nothing are left out and counted.

    Example: [bold]perse data pairwise --pairs pairs.jsonl --map text_a=story_a+ending_a --map text_b=story_b+ending_b
    --out data/endings[/bold]
    """
    options = PairwiseOptions(
        pairs=pairs,
        items=items,
        out=out,
        k=k,
        columns=_columns(columns),
        split=split,
        valid=valid,
        folds=folds,
        profiles=profiles,
        max_queries=max_queries or None,
        min_comparisons=min_comparisons,
        max_reviewers=max_reviewers,
        seed=seed,
        on_error=on_error,
        keep_names=keep_names,
        salt=salt,
        overwrite=overwrite,
    )
    _show(build_pairwise(options), as_json=as_json)


@app.command()
def samples() -> None:
    """Print the folder of the sample corpus that perse ships.

    Example:  perse data pointwise --reviews $(perse data samples)/reviews.jsonl --items $(perse data samples)/items.jsonl --out work/data
    """
    typer.echo(files("perse") / "samples")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A data set folder.", show_default=False)],
    split: Annotated[Split, typer.Option(help="Which side.")] = "valid",
    fold: Annotated[int | None, typer.Option(help="With folds: the one that validates, from 0.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="A file to write; else stdout.", show_default=False)] = None,
) -> None:
    """Write one side of a data set as self-contained JSON lines, which every judging command reads.

    Example: [bold]perse data export data/critics --split valid --out valid.jsonl[/bold]
    """
    lines = export_lines(load_folder(folder), split, fold=fold)
    if out is None:
        for line in lines:
            sys.stdout.write(line)
        return
    try:
        write_whole(out, "".join(lines))
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error}); give another --out") from None


def _columns(options: Sequence[str] | None) -> dict[str, str]:
    """`FIELD=COLUMN` options as a mapping. Raises BadInput for one that is none, and for a field mapped twice."""
    columns: dict[str, str] = {}
    for option in options or ():
        name, equals, column = (part.strip() for part in option.partition("="))
        if not (name and equals and column):
            raise BadInput(f"--map {option}: expected FIELD=COLUMN, such as --map text=plot")
        if name in columns:
            raise BadInput(f"--map {option}: field '{name}' is mapped twice, to '{columns[name]}' before; join columns with +")
        columns[name] = column
    return columns


def _scale(text: str) -> tuple[float, float]:
    number = r"([+-]?\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"\s*{number}\s*-\s*{number}\s*", text)
    if found is None:
        raise BadInput(f"--scale {text}: expected LOW-HIGH, such as --scale 1-5")
    return float(found.group(1)), float(found.group(2))


def _show(summary: Summary, *, as_json: bool) -> None:
    console = Console(stderr=True, highlight=False)
    console.print(summary_table(summary))
    for line in dropped_lines(summary):
        console.print(line, markup=False)
    for note in summary.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"written: {summary.out}", markup=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(summary.model_dump_json(indent=2) + "\n")
