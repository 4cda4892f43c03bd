"""`perse data per-mpst | per-doc | persum | release | amazon`: data sets of published corpora, one command each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.data.showing import show
from perse.commands.options.building import (
    Cache,
    MaxK,
    MaxQueries,
    Ner,
    OfComparisons,
    OfReviews,
    ProfilesOption,
    Reading,
    ReviewTable,
    Rows,
    Words,
    WriterName,
)
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.reading import read_pairs, read_scale
from perse.commands.terminal import err, say
from perse.data.build import build_pairwise, build_pointwise
from perse.data.persum.options import Rouge, RougeAgainst
from perse.judging.loading import judge_forms
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.data.persum.folder import PersumSummary


@dataclass(frozen=True, kw_only=True)
class OfMpst(OfReviews):
    """The paper has k up to 5, and never asks about what a profile shows."""

    max_k: MaxK = 5
    profiles: ProfilesOption = "per_example_apart"


@grouped
def per_mpst(
    *,
    plots: Annotated[
        Path, typer.Option(help="mpst_full_data.csv, or any table of plots: id, text[, title].", show_default=False)
    ],
    reviews: ReviewTable,
    out: options.NewFolder,
    writer: WriterName = "rules",
    ner: Ner = "rules",
    summarize: Annotated[bool, typer.Option("--summarize/--no-summarize", help="Summarize the anonymized plots.")] = True,
    words: Words = 300,
    tries: options.Tries = 3,
    cache: Cache = None,
    loading: Loading,
    scale: options.ScoreRange = "1-10",
    built: OfMpst,
    as_json: options.AsJson = False,
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

    build = built.settings(reviews=reviews, out=out, scale=read_scale(scale))
    rewriting = RewriteOptions(
        writer=writer, ner=ner, steps=("anonymize", "summarize") if summarize else ("anonymize",), words=words, tries=tries,
        cache=answers_file(out, cache), **vars(loading),
    )  # fmt: skip
    with shown_on(err) as on_part:
        summary = build_per_mpst(PerMpstOptions(plots=plots, build=build, rewriting=rewriting), on_progress=on_part)
    show(summary, as_json=as_json, paper=True)


@dataclass(frozen=True, kw_only=True)
class OfDoc(OfComparisons):
    """The paper has all questions of a reader."""

    max_queries: MaxQueries = 0


@grouped
def per_doc(
    *,
    annotations: Annotated[
        Path,
        typer.Option(
            help="Table of annotations: worker, premise, two plots, and the answers to five questions.", show_default=False
        ),
    ],
    out: options.NewFolder,
    built: OfDoc,
    as_json: options.AsJson = False,
) -> None:
    """Per-DOC (PerSE, 4.1): which of two plots an annotator prefers, on five aspects; annotators and pairs unseen in validation.

    One row a comparison with five answers, or one row an answer with its aspect. A profile shows all preferences on its pair, and
    the asked aspect comes last, so that five questions share one prompt; the paper shows the asked one alone:
    [bold]perse data export data/per-doc --profile-aspects asked[/bold], and the same option of perse score.

    Example: [bold]perse data per-doc --annotations doc.csv --map Ending=q5 --out data/per-doc[/bold]
    """
    settings = built.settings(pairs=annotations, source="doc", out=out)
    show(build_pairwise(settings), as_json=as_json, paper=True)


@grouped
def persum(
    *,
    reviews: Annotated[
        list[Path],
        typer.Option(
            help="Amazon reviews of one category; its name is the file's. Give one for each category.", show_default=False
        ),
    ],
    out: options.NewFolder,
    judge: Annotated[
        str | None,
        typer.Option(
            help=f"Who answers coverage and sentiment: {judge_forms()}. Without one only the first two filters are counted.",
            show_default=False,
        ),
    ] = None,
    min_product_reviews: Annotated[int, typer.Option(help="Reviews by others that a product must have.")] = 1,
    keep_repeats: Annotated[
        bool,
        typer.Option("--keep-repeats", help="Keep samples in which a copy of the own review stands beside it."),
    ] = False,
    rouge: Annotated[
        Rouge, typer.Option(help="Which overlap must suffice: with history and product's reviews, or with either.")
    ] = "both",
    rouge_against: Annotated[
        RougeAgainst,
        typer.Option(
            help="How a review is compared with a set: with its best single review, the mean over them, or all as one text."
        ),
    ] = "best",
    min_overlap: Annotated[float, typer.Option(help="Least sum of ROUGE-1, -2 and -L.")] = 0.45,
    history_over: Annotated[int, typer.Option(help="A history has more reviews than this ...")] = 5,
    history_under: Annotated[int, typer.Option(help="... and fewer than this,")] = 50,
    chars_under: Annotated[int, typer.Option(help="of fewer characters together than this.")] = 27_000,
    high: Annotated[float, typer.Option(help="High: scores above this.")] = 4.0,
    low: Annotated[float, typer.Option(help="Low: scores above this, up to --high.")] = 3.0,
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
    loading: Loading,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """PerSum (Rehearsal, 4.1, A): samples for personalized opinion summaries, by three filters on Amazon's reviews.

    The judge's answers are kept in OUT.work: a killed build is continued by the same command.

    Example: [bold]perse data persum --reviews Electronics_5.json.gz --reviews Home_and_Kitchen_5.json.gz --judge vllm:MODEL
    --out data/persum[/bold]
    """
    from perse.data.persum.build import build_persum
    from perse.data.persum.judging import notes
    from perse.data.persum.options import Counts, PersumOptions

    given = read_pairs(counts, option="--counts", example="Electronics=100,all,52")
    settings = PersumOptions(
        reviews=tuple(reviews), out=out, min_product_reviews=min_product_reviews, keep_repeats=keep_repeats, rouge=rouge,
        rouge_against=rouge_against, min_overlap=min_overlap, history_over=history_over, history_under=history_under, chars_under=chars_under, high=high, low=low,
        counts={name: Counts.parse(text) for name, text in given}, limit=limit, **vars(reading),
    )  # fmt: skip
    loaded = None if judge is None else loading.load(judge)
    for note in notes(loaded) if loaded else ():
        say(f"note: {note}")
    with shown_on(err) as on_part:
        summary = build_persum(settings, loaded, on_progress=partial(on_part, "judging"))
    _show_persum(summary, out, as_json=as_json)


def _show_persum(summary: PersumSummary, out: Path, *, as_json: bool) -> None:
    from perse.data.persum.folder import UNSEEN, persum_tables

    for table in persum_tables(summary):
        err.print(table, highlight=False)
    for category, reasons in summary.left_out.items():
        ranked = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
        say(f"left out, {category}: " + "; ".join(f"{count:,} {reason}" for reason, count in ranked))
    for against, sets in summary.unseen.items():
        say(sets.told(UNSEEN[against]))
    for note in summary.notes:
        say(f"note: {note}")
    say(f"written: {out}" if summary.out else "nothing written: give --judge for the last filter")
    if as_json:
        typer.echo(summary.model_dump_json(indent=2))


@grouped
def release(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Released Per-MPST files, or Per-DOC files (one for each aspect).", show_default=False
        ),
    ],
    out: options.NewFolder,
    aspect: Annotated[
        str | None,
        typer.Option(help="Of Per-DOC files whose names do not tell it: I, A, S, C, E or its name.", show_default=False),
    ] = None,
    limit: Rows = None,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """The data sets that PerSE's authors released: as they are (verbatim.jsonl), and taken apart (examples.jsonl).

    Example: [bold]perse data release PerMPST.k3.valid.jsonl --out data/released[/bold], then
    [bold]perse score --examples data/released/verbatim.jsonl --judge runs/first --out runs/released[/bold]
    """
    from perse.data.release import build_release

    summary = build_release(files, out, aspect=aspect, limit=limit, **vars(reading))
    for line in summary.lines():
        say(line)
    if as_json:
        typer.echo(json.dumps(dict(summary.manifest), indent=2))


@grouped
def amazon(
    *,
    reviews: Annotated[
        Path,
        typer.Option(
            help="Amazon reviews, 5-core: .json, .jsonl or .csv, with or without header, also .gz.", show_default=False
        ),
    ],
    meta: Annotated[
        Path, typer.Option(help="The products' file, which has their titles and descriptions.", show_default=False)
    ],
    out: options.NewFolder,
    built: OfReviews,
    as_json: options.AsJson = False,
) -> None:
    """Would this customer like this product? Amazon's reviews with the products' descriptions; stars become 1 to 10.

    Example: [bold]perse data amazon --reviews Books_5.json.gz --meta meta_Books.json.gz --out data/books[/bold]
    """
    settings = built.settings(reviews=reviews, items=meta, out=out, source="amazon")
    show(build_pointwise(settings), as_json=as_json)
