"""`perse data ...`: the command line of the data room. Thin: a command makes options, calls one function, shows the result."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perse.commands.data import paper, rewrite
from perse.commands.data.options import (
    AsJson,
    EmbeddingModel,
    Folds,
    KeepNames,
    Limit,
    Map,
    MaxK,
    MaxReviewers,
    OnErrorOption,
    OrderSeed,
    Out,
    Overwrite,
    ProfilesOption,
    ReviewText,
    Salt,
    Seed,
    SelectOption,
    ShownAspects,
    ShownK,
    SourceOption,
    Valid,
    read_columns,
    read_scale,
    show,
)
from perse.commands.terminal import run_app
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import DATA_SET, export_lines, load_folder
from perse.data.forgetting.forget import forget as forget_person
from perse.data.forgetting.forget import known_as
from perse.data.forgetting.remaining import other_names, remaining
from perse.data.persum.folder import PERSUM
from perse.data.profiles.selection import EMBEDDING_MODEL
from perse.data.profiles.splits import SplitBy
from perse.data.profiles.views import View
from perse.data.release import RELEASE
from perse.errors import BadInput
from perse.files.belongings import check_file
from perse.files.runlog import write_whole
from perse.records import Split

OWN_NAMES = {*DATA_SET.names, *PERSUM.names, *RELEASE.names}

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


@app.command()
def pointwise(
    reviews: Annotated[Path, typer.Option(help="Table of reviews: reviewer, item, score, review[, date].", show_default=False)],
    out: Out,
    items: Annotated[
        Path | None, typer.Option(help="Table of texts by item id; leave out if the reviews carry them.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Reviews in a profile.")] = 3,
    columns: Map = None,
    source: SourceOption = "reviews",
    scale: Annotated[str, typer.Option(metavar="LOW-HIGH", help="Lowest and highest raw score; rescaled to 1-10.")] = "1-10",
    split: Annotated[
        SplitBy, typer.Option(help="What training and validation must not share: reviewers, or reviewers and items.")
    ] = "reviewer",
    valid: Valid = 0.1,
    valid_items: Annotated[float, typer.Option(help="With --split reviewer_item: share of items for validation.")] = 0.3,
    folds: Folds = None,
    profiles: ProfilesOption = "per_example",
    max_k: MaxK = None,
    select: SelectOption = "random",
    embedding_model: EmbeddingModel = EMBEDDING_MODEL,
    max_queries: Annotated[int, typer.Option(help="At most so many examples per reviewer; 0 for all.")] = 10,
    min_reviews: Annotated[int, typer.Option(help="Leave out reviewers with fewer reviews.")] = 6,
    min_review_chars: Annotated[int, typer.Option(help="Leave out reviews with fewer characters.")] = 0,
    max_reviewers: MaxReviewers = None,
    limit: Limit = None,
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
        columns=read_columns(columns),
        source=source,
        scale=read_scale(scale),
        split=split,
        valid=valid,
        valid_items=valid_items,
        folds=folds,
        profiles=profiles,
        max_k=max_k,
        select=select,
        embedding_model=embedding_model,
        max_queries=max_queries or None,
        min_reviews=min_reviews,
        min_review_chars=min_review_chars,
        max_reviewers=max_reviewers,
        limit=limit,
        seed=seed,
        on_error=on_error,
        keep_names=keep_names,
        salt=salt,
        overwrite=overwrite,
    )
    show(build_pointwise(options), as_json=as_json)


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
    source: SourceOption = "pairs",
    split: Annotated[
        SplitBy, typer.Option(help="What training and validation must not share: annotators, or annotators and pairs.")
    ] = "reviewer_item",
    valid: Valid = 0.1,
    folds: Folds = None,
    profiles: ProfilesOption = "per_example",
    max_k: MaxK = None,
    select: SelectOption = "random",
    embedding_model: EmbeddingModel = EMBEDDING_MODEL,
    max_queries: Annotated[int, typer.Option(help="At most so many examples per annotator and aspect; 0 for all.")] = 10,
    min_comparisons: Annotated[int, typer.Option(help="Leave out annotators with fewer comparisons.")] = 2,
    max_reviewers: MaxReviewers = None,
    limit: Limit = None,
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
        columns=read_columns(columns),
        source=source,
        split=split,
        valid=valid,
        folds=folds,
        profiles=profiles,
        max_k=max_k,
        select=select,
        embedding_model=embedding_model,
        max_queries=max_queries or None,
        min_comparisons=min_comparisons,
        max_reviewers=max_reviewers,
        limit=limit,
        seed=seed,
        on_error=on_error,
        keep_names=keep_names,
        salt=salt,
        overwrite=overwrite,
    )
    show(build_pairwise(options), as_json=as_json)


@app.command()
def describe(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any file that perse reads, or a data set folder.", show_default=False)
    ],
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the description as JSON on stdout.")] = False,
) -> None:
    """Say what a file holds before anything is built of it: format, reviewers, items, scores, dates, problems.

    Example: [bold]perse data describe reviews.jsonl.gz[/bold]
    """
    from perse.data.describing.facts import describe as described
    from perse.data.describing.table import description_table

    found = described(path, limit=limit)
    if as_json:
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
    else:
        Console(highlight=False).print(description_table(found))


@app.command()
def samples() -> None:
    """Print the folder of the sample corpus that perse ships.

    Example:  perse data pointwise --reviews $(perse data samples)/reviews.jsonl --items $(perse data samples)/items.jsonl --out work/data
    """
    typer.echo(files("perse") / "samples")


@app.command()
def forget(
    person: Annotated[str, typer.Argument(metavar="ID", help="A pseudonym, or the name as the raw files have it.")],
    places: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Data set folders, PerSum folders, scored runs, or files of examples."),
    ],
    salt: Annotated[
        str | None, typer.Option(help="Of the pseudonyms, where the data was built with --salt.", show_default=False)
    ] = None,
    look_in: Annotated[
        list[Path] | None,
        typer.Option(help="A folder to look for the person in; nothing there is changed. May be repeated.", show_default=False),
    ] = None,
) -> None:
    """Remove a person: reviews, examples, and what a judge said of them. The raw files and trained models stay as they are.

    If one place is refused, none is changed. Each is changed wholly or not at all; after a kill the same command does the rest.

    Example: [bold]perse data forget "Ann Example" data/critics runs/first-valid valid.jsonl[/bold]
    """
    console = Console(stderr=True, highlight=False)
    ids = known_as(person, places, salt=salt)  # while what tells them is there
    linked = other_names(places)  # while they are the same file
    forgotten = forget_person(person, places, salt=salt)
    for gone in forgotten:
        said = (
            f"{gone.records:,} records and {gone.examples:,} examples removed"
            if gone.records or gone.examples
            else "nothing there"
        )
        console.print(f"{gone.path}: {said}", markup=False, soft_wrap=True)
    beside = [folder for place in places for folder in (place, place.resolve().parent)]
    left = remaining(ids, [*beside, *(look_in or [])])
    for still in left.places:
        console.print(f"still holds the person: {still}", markup=False, soft_wrap=True)
    for file in linked:
        console.print(f"may still hold the person: the other name of {file} (a hard link)", markup=False, soft_wrap=True)
    for file in left.unread:
        console.print(f"could not be looked into: {file}", markup=False, soft_wrap=True)
    looked = "looked into" if left.all else "looked into the first"
    console.print(
        f"{looked} {left.files:,} files in and beside these places{' and in --look-in' if look_in else ''}; what lies elsewhere, such as "
        "other exports, runs and copies, is not known: name its folders with --look-in",
        markup=False,
        soft_wrap=True,
    )
    if not any(gone.records or gone.examples for gone in forgotten):
        raise BadInput(
            f"nobody was forgotten: '{person}' is in none of these places (looked for {', '.join(sorted(ids))}); if they have not left "
            "before, check the spelling and --salt"
        )


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A data set folder.", show_default=False)],
    split: Annotated[Split, typer.Option(help="Which side.")] = "valid",
    fold: Annotated[int | None, typer.Option(help="With folds: the one that validates, from 0.", show_default=False)] = None,
    k: ShownK = None,
    order_seed: OrderSeed = None,
    review_text: ReviewText = True,
    profile_aspects: ShownAspects = "all",
    epoch: Annotated[int, typer.Option(min=0, help="Of a data set drawn per reviewer and epoch: which draw.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A file to write; else stdout.", show_default=False)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
) -> None:
    """Write one side of a data set as self-contained JSON lines, which every judging command reads.

    Example: [bold]perse data export data/critics --split valid --out valid.jsonl[/bold]
    """
    view = View(k=k, order_seed=order_seed, review_text=review_text, profile_aspects=profile_aspects)
    if out is not None:
        check_file(out, overwrite=overwrite, never=OWN_NAMES)
    lines = export_lines(load_folder(folder), split, fold=fold, view=view, epoch=epoch)
    if out is None:
        for line in lines:
            sys.stdout.write(line)
        return
    try:
        write_whole(out, "".join(lines))
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error}); give another --out") from None


def run(command: str) -> None:
    """Runs one command with the arguments of the process: what the scripts in data_prep/ do."""
    sys.argv[1:1] = [command]
    run_app(app)
