"""`perse data per-mpst | per-doc | persum | release | amazon`: data sets of published corpora, one command each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from perse.commands.data.options import (
    AsJson,
    EmbeddingModel,
    KeepNames,
    Limit,
    Map,
    MaxK,
    MaxReviewers,
    OnErrorOption,
    Out,
    Overwrite,
    ProfilesOption,
    Salt,
    Seed,
    SelectOption,
    Valid,
    read_columns,
    read_pairs,
    read_scale,
    show,
)
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.profiles.selection import EMBEDDING_MODEL
from perse.data.profiles.splits import SplitBy

Rouge = Literal["both", "either"]

WriterOption = Annotated[
    str,
    typer.Option(
        help="Who rewrites the plots: a judge's name (PATH, vllm:PATH or openai:URL#MODEL), rules, or none (as they are)."
    ),
]
Ner = Annotated[
    str, typer.Option(help="Who finds names: rules, or an installed spaCy pipeline, such as en_core_web_sm, or its folder.")
]
Words = Annotated[int, typer.Option(help="Length of a summary to ask for.")]
Tries = Annotated[int, typer.Option(help="At most so many answers for each text and step.")]
Cache = Annotated[
    Path | None, typer.Option(help="File that keeps the writer's answers.", show_default="OUT.work/answers.sqlite")
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Of a served model whose folder is not on this machine.", show_default=False)
]
Dtype = Annotated[str, typer.Option(help="Of a model in this process: bfloat16, float16 or float32.")]


def per_mpst(
    plots: Annotated[
        Path, typer.Option(help="mpst_full_data.csv, or any table of plots: id, text[, title].", show_default=False)
    ],
    reviews: Annotated[Path, typer.Option(help="Table of reviews: reviewer, item, score, review[, date].", show_default=False)],
    out: Out,
    writer: WriterOption = "rules",
    ner: Ner = "rules",
    summarize: Annotated[bool, typer.Option("--summarize/--no-summarize", help="Summarize the anonymized plots.")] = True,
    words: Words = 300,
    tries: Tries = 3,
    cache: Cache = None,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    k: Annotated[int, typer.Option("--k", help="Reviews in a profile.")] = 3,
    max_k: Annotated[int, typer.Option("--max-k", help="Reviews kept for each profile: any k up to this can be shown.")] = 5,
    columns: Map = None,
    scale: Annotated[str, typer.Option(metavar="LOW-HIGH", help="Lowest and highest raw score; rescaled to 1-10.")] = "1-10",
    split: Annotated[SplitBy, typer.Option(help="What training and validation must not share.")] = "reviewer",
    valid: Valid = 0.1,
    profiles: ProfilesOption = "per_example",
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
    """Per-MPST (PerSE, 4.1): plots anonymized and summarized, readers with 6 reviews or more, k up to 5.

    A killed build is continued by the same command: no answer of the writer is asked for twice.

    Example: [bold]perse data per-mpst --plots mpst_full_data.csv --reviews reviews.csv --writer openai:http://127.0.0.1:8000/v1#llama
    --out data/per-mpst[/bold]

    Without a model: [bold]perse data per-mpst --plots items.jsonl --reviews reviews.jsonl --out data/critics[/bold]
    """
    from perse.data.per_mpst import PerMpstOptions, build_per_mpst
    from perse.data.rewriting.plots import RewriteOptions
    from perse.data.rewriting.tables import answers_file

    options = PerMpstOptions(
        plots=plots,
        build=PointwiseOptions(
            reviews=reviews,
            out=out,
            k=k,
            max_k=max_k,
            columns=read_columns(columns),
            scale=read_scale(scale),
            split=split,
            valid=valid,
            profiles=profiles,
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
        ),
        rewriting=RewriteOptions(
            writer=writer,
            ner=ner,
            steps=("anonymize", "summarize") if summarize else ("anonymize",),
            words=words,
            tries=tries,
            cache=answers_file(out, cache),
            dtype=dtype,
            tokenizer=tokenizer,
        ),
    )
    with steps() as progress:
        summary = build_per_mpst(options, step=step_in(progress))
    show(summary, as_json=as_json, paper=True)


def per_doc(
    annotations: Annotated[
        Path,
        typer.Option(
            help="Table of annotations: worker, premise, two plots, and the answers to five questions.", show_default=False
        ),
    ],
    out: Out,
    k: Annotated[int, typer.Option("--k", help="Comparisons in a profile.")] = 1,
    max_k: MaxK = None,
    columns: Map = None,
    split: Annotated[SplitBy, typer.Option(help="What training and validation must not share.")] = "reviewer_item",
    valid: Valid = 0.1,
    profiles: ProfilesOption = "per_example",
    select: SelectOption = "random",
    embedding_model: EmbeddingModel = EMBEDDING_MODEL,
    max_queries: Annotated[int, typer.Option(help="At most so many examples per annotator and aspect; 0 for all.")] = 0,
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
    """Per-DOC (PerSE, 4.1): which of two plots an annotator prefers, on five aspects; annotators and pairs unseen in validation.

    One row a comparison with five answers, or one row an answer with its aspect. A profile shows all preferences on its pair, and
    the asked aspect comes last, so that five questions share one prompt; the paper shows the asked one alone:
    [bold]perse data export data/per-doc --profile-aspects asked[/bold], and the same option of perse score.

    Example: [bold]perse data per-doc --annotations doc.csv --map Ending=q5 --out data/per-doc[/bold]
    """
    options = PairwiseOptions(
        pairs=annotations,
        source="doc",
        out=out,
        k=k,
        max_k=max_k,
        columns=read_columns(columns),
        split=split,
        valid=valid,
        profiles=profiles,
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
    show(build_pairwise(options), as_json=as_json, paper=True)


def persum(
    reviews: Annotated[
        list[Path],
        typer.Option(
            help="Amazon reviews of one category; its name is the file's. Give one for each category.", show_default=False
        ),
    ],
    out: Out,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Who answers coverage and sentiment: PATH, vllm:PATH or openai:URL#MODEL. Without one only the first two filters "
            "are counted.",
            show_default=False,
        ),
    ] = None,
    min_product_reviews: Annotated[int, typer.Option(help="Reviews by others that a product must have.")] = 1,
    rouge: Annotated[
        Rouge, typer.Option(help="Which overlap must suffice: with history and product's reviews, or with either.")
    ] = "both",
    min_overlap: Annotated[float, typer.Option(help="Least sum of ROUGE-1, -2 and -L.")] = 0.45,
    counts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CATEGORY=HIGH,LOW,HHPL",
            help="How many samples of a category to draw, each a number or all; may be repeated.",
            show_default="the paper's for its four categories; else 100,all,all",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="At most so many candidates of a category go to the judge, drawn by the seed.", show_default=False
        ),
    ] = None,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    keep_names: KeepNames = False,
    salt: Salt = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """PerSum (Rehearsal, 4.1, A): samples for personalized opinion summaries, by three filters on Amazon's reviews.

    The judge's answers are kept in OUT.work: a killed build is continued by the same command.

    Example: [bold]perse data persum --reviews Electronics_5.json.gz --reviews Home_and_Kitchen_5.json.gz --judge vllm:MODEL
    --out data/persum[/bold]
    """
    from perse.data.persum.build import build_persum
    from perse.data.persum.folder import persum_tables
    from perse.data.persum.judging import notes
    from perse.data.persum.options import Counts, PersumOptions

    options = PersumOptions(
        reviews=tuple(reviews),
        out=out,
        min_product_reviews=min_product_reviews,
        rouge=rouge,
        min_overlap=min_overlap,
        counts={
            name: Counts.parse(text) for name, text in read_pairs(counts, option="--counts", example="Electronics=100,all,52")
        },
        limit=limit,
        seed=seed,
        on_error=on_error,
        keep_names=keep_names,
        salt=salt,
        overwrite=overwrite,
    )
    console = Console(stderr=True, highlight=False)
    loaded = None
    if judge is not None:
        from perse.judging.judge import Judge

        loaded = Judge.load(judge, dtype=dtype, tokenizer=tokenizer)
        for note in notes(loaded):
            console.print(f"note: {note}", markup=False)
    with steps() as progress:
        task = progress.add_task("judging", total=None, visible=loaded is not None)
        summary = build_persum(options, loaded, tick=lambda done, of: progress.update(task, completed=done, total=of))
    for table in persum_tables(summary):
        console.print(table)
    for category, reasons in summary.left_out.items():
        ranked = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
        console.print(f"left out, {category}: " + "; ".join(f"{count:,} {reason}" for reason, count in ranked), markup=False)
    for note in summary.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"written: {out}" if summary.out else "nothing written: give --judge for the last filter", markup=False)
    if as_json:
        sys.stdout.write(summary.model_dump_json(indent=2) + "\n")


def release(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Released Per-MPST files, or Per-DOC files (one for each aspect).", show_default=False
        ),
    ],
    out: Out,
    aspect: Annotated[
        str | None,
        typer.Option(help="Of Per-DOC files whose names do not tell it: I, A, S, C, E or its name.", show_default=False),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    keep_names: KeepNames = False,
    salt: Salt = None,
    overwrite: Overwrite = False,
) -> None:
    """The data sets that PerSE's authors released: as they are (verbatim.jsonl), and taken apart (examples.jsonl).

    Example: [bold]perse data release PerMPST.k3.valid.jsonl --out data/released[/bold], then
    [bold]perse score --examples data/released/verbatim.jsonl --judge runs/first --out runs/released[/bold]
    """
    from perse.data.release import build_release

    summary = build_release(
        files,
        out,
        aspect=aspect,
        limit=limit,
        keep_names=keep_names,
        salt=salt,
        seed=seed,
        on_error=on_error,
        overwrite=overwrite,
    )
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in summary.lines():
        console.print(line, markup=False)


def amazon(
    reviews: Annotated[
        Path,
        typer.Option(
            help="Amazon reviews, 5-core: .json, .jsonl or .csv, with or without header, also .gz.", show_default=False
        ),
    ],
    meta: Annotated[
        Path, typer.Option(help="The products' file, which has their titles and descriptions.", show_default=False)
    ],
    out: Out,
    k: Annotated[int, typer.Option("--k", help="Reviews in a profile.")] = 3,
    max_k: MaxK = None,
    columns: Map = None,
    split: Annotated[SplitBy, typer.Option(help="What training and validation must not share.")] = "reviewer",
    valid: Valid = 0.1,
    profiles: ProfilesOption = "per_example",
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
    """Would this customer like this product? Amazon's reviews with the products' descriptions; stars become 1 to 10.

    Example: [bold]perse data amazon --reviews Books_5.json.gz --meta meta_Books.json.gz --out data/books[/bold]
    """
    options = PointwiseOptions(
        reviews=reviews,
        items=meta,
        source="amazon",
        out=out,
        k=k,
        max_k=max_k,
        columns=read_columns(columns),
        split=split,
        valid=valid,
        profiles=profiles,
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


def steps() -> Progress:
    """A progress bar on stderr for long steps; nothing where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def step_in(progress: Progress) -> Callable[[str, int], Callable[[int], None]]:
    """Begins a bar for each step it is told of."""

    def step(what: str, of: int) -> Callable[[int], None]:
        task = progress.add_task(escape(what), total=of)
        return lambda done: progress.advance(task, done)

    return step
