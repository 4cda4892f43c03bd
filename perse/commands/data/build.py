"""`perse data ...`: build data sets from tables, look into them, export them, remove a person."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perse.commands import options
from perse.commands.data import paper, rewrite
from perse.commands.data.forget import forget
from perse.commands.data.showing import show
from perse.commands.options.building import Folds, Items, OfComparisons, OfReviews, ReviewTable, Rows, SourceName
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import ShownProfiles
from perse.commands.options.reading import read_columns, read_scale
from perse.commands.terminal import run_app
from perse.data.build import build_pairwise, build_pointwise
from perse.data.dataset.folder import DATA_SET, load_folder, new_texts
from perse.data.persum.folder import PERSUM
from perse.data.release import RELEASE
from perse.errors import BadInput
from perse.files.belongings import check_file
from perse.files.disk import write_bytes
from perse.records import Example, PointwiseExample, example_lines
from perse.records.kinds import example_fields
from perse.secrets import without_keys

OWN_NAMES = {*DATA_SET.names, *PERSUM.names, *RELEASE.names}
TABLES = (".csv", ".tsv", ".parquet", ".xlsx")

app = typer.Typer(
    no_args_is_help=True, help="Build data sets from raw files, look into them, and export them.", rich_markup_mode="rich"
)
app.command("per-mpst")(paper.per_mpst)
app.command("per-doc")(paper.per_doc)
app.command()(paper.persum)
app.command()(paper.release)
app.command()(paper.amazon)
app.command()(rewrite.anonymize)
app.command()(rewrite.summarize)
app.command()(forget)


@app.command()
@grouped
def pointwise(
    *,
    reviews: ReviewTable,
    out: options.NewFolder,
    items: Items = None,
    source: SourceName = "reviews",
    scale: options.ScoreRange = "1-10",
    valid_items: Annotated[float, typer.Option(help="With --split reviewer_item: share of items for validation.")] = 0.3,
    folds: Folds = None,
    built: OfReviews,
    as_json: options.AsJson = False,
) -> None:
    """Build a data set of reviews: from k reviews of a reader, the next one.

    Files are .jsonl, .csv or .tsv, each also as .gz.

    Example: [bold]perse data pointwise --reviews reviews.jsonl --items items.jsonl --k 3 --out data/critics[/bold]

    Stars: [bold]perse data pointwise --reviews stars.csv --scale 1-5 --map text=synopsis --out data/stars[/bold]
    """
    settings = built.settings(
        reviews=reviews, items=items, out=out, source=source, scale=read_scale(scale), valid_items=valid_items, folds=folds
    )
    show(build_pointwise(settings), as_json=as_json)


@app.command()
@grouped
def pairwise(
    *,
    pairs: Annotated[
        Path, typer.Option(help="Table of judgements: annotator, aspect, two texts (or items), preference.", show_default=False)
    ],
    out: options.NewFolder,
    items: Items = None,
    source: SourceName = "pairs",
    folds: Folds = None,
    built: OfComparisons,
    as_json: options.AsJson = False,
) -> None:
    """Build a data set of comparisons: which of two texts a reader prefers, aspect by aspect.

    Answers are A or B; both, neither, tie and nothing are left out and counted.

    Example: [bold]perse data pairwise --pairs pairs.jsonl --map text_a=story_a+ending_a --map text_b=story_b+ending_b
    --out data/endings[/bold]
    """
    settings = built.settings(pairs=pairs, items=items, out=out, source=source, folds=folds)
    show(build_pairwise(settings), as_json=as_json)


@app.command()
def describe(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any file that perse reads, or a data set folder.", show_default=False)
    ],
    columns: options.Map = None,
    limit: Rows = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what a file holds before anything is built of it: format, reviewers, items, scores, dates, problems.

    Example: [bold]perse data describe reviews.jsonl.gz[/bold]
    """
    from perse.data.describing.facts import describe as described
    from perse.data.describing.table import description_table

    found = described(path, limit=limit, columns=read_columns(columns))
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(description_table(found), crop=False)


@app.command()
def samples() -> None:
    """Print the folder of the sample corpus that perse ships.

    Example:  perse data pointwise --reviews $(perse data samples)/reviews.jsonl --items $(perse data samples)/items.jsonl --out work/data
    """
    typer.echo(files("perse") / "samples")


@app.command()
def evidence(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A data set folder of reviews.", show_default=False)],
    examples: Annotated[
        Path | None,
        typer.Option(
            help="Examples of another file, of whichever readers and texts: write them with what DIR says of their texts, into --out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=options.here, help="With --examples: the file to write, packed if it ends in .gz.", show_default=False
        ),
    ] = None,
    fold: options.Fold = None,
    embedding_model: options.EmbeddingModel = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Of the parts that are left out in turn, for DIR itself; by default 0.", show_default=False),
    ] = None,
    overwrite: options.OverwriteFile = False,
) -> None:
    """Add what the training side says of each text: other readers' scores, and an estimate from its words.

    The questions pointwise_evidence and pointwise_score_evidence show it. No score of the reader who is asked about is in it.

    Example: [bold]perse data evidence data/critics --embedding-model models/all-MiniLM-L6-v2[/bold]

    New readers and texts: [bold]perse data evidence data/critics --examples new.jsonl --out new-evidence.jsonl[/bold]
    """
    from functools import partial

    from perse.commands.terminal import err
    from perse.data.adding_evidence import add_evidence, evidence_for, strangers
    from perse.data.examples_file import read_examples
    from perse.evaluation.stacking.renamed import under_other_names
    from perse.models.vectors import KeptVectors
    from perse.progress import shown_on

    if (examples is None) != (out is None):
        raise BadInput(
            "--examples and --out belong together: the file to read and the one to write; give both, or neither for DIR itself"
        )
    if examples is None and fold is not None:
        raise BadInput("evidence of a data set is made for every fold; --fold goes with --examples, leave it out")
    if examples is not None and seed is not None:
        raise BadInput("--seed is of DIR's own evidence, whose parts the examples are told by; leave it out with --examples")
    if examples is not None and out is not None:
        _check_lines(out, overwrite=overwrite, inputs=(examples, folder))
    with shown_on(err) as on_part:
        vectors = KeptVectors(embedding_model, on_progress=partial(on_part, "embedding texts"))
        if examples is not None and out is not None:
            told = evidence_for(folder, read_examples(examples), vectors, fold=fold, on_progress=partial(on_part, "fitting"))
            _write_lines(out, example_lines(told))
            if again := under_other_names(_training_side(folder, fold), strangers(folder, told, fold=fold)):
                err.print(
                    f"note: {len(again)} readers of {examples} have the scores of training readers of {folder}, under other names: they are told as strangers, "
                    "with scores of their own in the numbers; name them as the data set does",
                    markup=False, highlight=False, soft_wrap=True,
                )  # fmt: skip
            known = sum(one.evidence.others > 0 for one in told if one.evidence)
            typer.echo(f"evidence of {len(told):,} examples, {_with_others(known, folder)}")
            typer.echo(f"written: {out}")
            return
        added = add_evidence(folder, vectors, seed=seed or 0, on_progress=partial(on_part, "fitting"))
    known = sum(row.others > 0 for row in added.rows)
    shown = "; ".join(f"{penalty:g}, of a reader's offset {reader:g}" for penalty, reader in dict.fromkeys(added.penalties))
    reviews, folds = len({row.review_id for row in added.rows}), len({row.fold for row in added.rows})
    several = f" in {folds} folds, of {len(added.rows):,} rows" if folds > 1 else ","
    typer.echo(f"evidence of {reviews:,} reviews{several} {_with_others(known, folder)}; penalty {shown}")
    typer.echo(f"written: {folder / 'evidence.parquet'}")


def _with_others(known: int, folder: Path) -> str:
    """How many are told what others scored; where none can be, why."""
    if not known and new_texts(load_folder(folder, evidence=False).manifest):
        return f"none with other readers' scores, since the texts of {folder}'s validation side are new and every text is told as those are"
    return f"{known:,} with other training readers' scores"


@app.command()
@grouped
def export(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A data set folder.", show_default=False)],
    split: options.SplitOption = "valid",
    fold: options.Fold = None,
    shown: ShownProfiles,
    epoch: Annotated[int, typer.Option(min=0, help="Of a data set drawn per reviewer and epoch: which draw.")] = 0,
    wording: Annotated[
        Path | None,
        typer.Option(
            help="A released Per-MPST file: write whole prompts in its words, which are asked as they are.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=options.here, help="A file to write, packed if its name ends in .gz; else stdout.", show_default=False
        ),
    ] = None,
    overwrite: options.OverwriteFile = False,
) -> None:
    """Write one side of a data set as self-contained JSON lines, which every judging command reads.

    Example: [bold]perse data export data/critics --split valid --out valid.jsonl[/bold]

    Theirs:  [bold]perse data export data/critics --wording PerMPST.k3.jsonl --out valid.jsonl[/bold]
    """
    from perse.data.variants.released_wording import in_wording, wording_of

    if out is not None:
        _check_lines(out, overwrite=overwrite, inputs=(wording, folder))
    examples: Sequence[Example] = load_folder(folder).examples(split, fold, view=shown.view(), epoch=epoch)
    lines = example_lines(examples if wording is None else in_wording(examples, wording_of(wording)))
    if out is None:
        for line in lines:
            sys.stdout.write(line)
        return
    _write_lines(out, lines)


def _training_side(folder: Path, fold: int | None) -> list[PointwiseExample]:
    return [one for one in load_folder(folder).examples("train", fold) if isinstance(one, PointwiseExample)]


def _check_lines(out: Path, *, overwrite: bool, inputs: Sequence[Path | None]) -> None:
    """
    Raises:
        BadInput: JSON lines may not be written there; its name says that it is a table, perhaps the very one that the data was built from.
    """
    if out.name.lower().removesuffix(".gz").endswith(TABLES):
        raise BadInput(f"{out} says another format; JSON lines are written: end it with .jsonl")
    check_file(out, alike=example_fields(), overwrite=overwrite, inputs=inputs, never=OWN_NAMES)


def _write_lines(out: Path, lines: Iterable[str]) -> None:
    """Packed without a time, so that the same examples give the same bytes."""
    text = without_keys("".join(lines)).encode()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(out, gzip.compress(text, mtime=0) if out.name.endswith(".gz") else text)
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error}); give another --out") from None


def run(command: str) -> None:
    """Runs one command with the arguments of the process: what the scripts in data_prep/ do."""
    sys.argv[1:1] = [command]
    run_app(app)
