"""`perse quickstart`: one command from a person's own files to a judge and a report, which prints the commands that it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.reading import read_columns
from perse.commands.terminal import err, say
from perse.errors import BadInput

if TYPE_CHECKING:
    from perse.quickstart.understanding import Understood


def quickstart(
    reviews: Annotated[Path, typer.Argument(help="Table of reviews: who, of what, the score, what they wrote.")],
    texts: Annotated[
        Path | None, typer.Argument(help="Table of the texts that are reviewed, where the reviews do not carry them.")
    ] = None,
    columns: options.Map = None,
    minutes: Annotated[
        float, typer.Option(min=1, max=10_000, help="About how long all of it may take; most of it is training.")
    ] = 10,
    model: Annotated[
        str, typer.Option(help="What is trained: an embedded model, a folder, or a name on the hub.")
    ] = "smollm2-135m",
    embedding_model: options.EmbeddingModel = None,
    out: Annotated[
        Path, typer.Option("--out", callback=options.here, help="Where data set, judge, judgements and report go.")
    ] = Path("work/quickstart"),
    yes: Annotated[bool, typer.Option("--yes", help="Go on without asking whether the files were understood.")] = False,
) -> None:
    """From your own reviews to a trained judge and a report on how far to trust it, by commands that are shown and can be edited.

    Stopped, the same command goes on.

    Example:  perse quickstart reviews.csv texts.csv --minutes 10
    """
    from perse.files.belongings import resolved
    from perse.files.locking import locked
    from perse.quickstart.journal import opened
    from perse.quickstart.understanding import understand

    understood = understand(reviews, texts, read_columns(columns))
    _show(understood)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("is this right? There is no terminal to ask on: give --yes to go on, or --map to put it right")
        typer.confirm("Is this right? (no: put it right by --map FIELD=COLUMN)", default=True, abort=True, err=True)
    files = {"reviews": reviews} | ({"texts": texts} if texts else {})
    with locked(resolved(out)):
        journal = opened(out, files, minutes, say)
        from perse.engines.sixteen_bit import slow_in_16_bit
        from perse.quickstart.steps import walk

        dtype = "float32" if slow_in_16_bit() else "bfloat16"
        walk(understood, journal, model=model, dtype=dtype, embedding_model=embedding_model)
    page = out / "report" / "report.html"
    took = (journal.kept.planning + sum(ran.seconds for ran in journal.kept.ran)) / 60
    say(
        f"\nits commands took {took:.1f} minutes, counted from the last start of each. To go on from one of them, edit it, and give it and "
        "those after it another --out (train: output=):"
    )
    for ran in journal.kept.ran:
        say(f"  {ran.shown}")
    say(
        f"next: open {page}, or ask what somebody would say of a new text (it asks for their past reviews): "
        f"perse ask --judge {out / 'judge'} --scale {understood.scale}"
    )
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.launch(str(page))


def _show(understood: Understood) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(understood):
        table.add_row(Text(name), Text("".join(one if one.isprintable() else "\ufffd" for one in value)))
    err.print(table)


def _rows(understood: Understood) -> Iterator[tuple[str, str]]:
    """What was understood, name by name."""
    from perse.data.describing.facts import ENOUGH
    from perse.data.sources.table import TAKEN

    found, texts = understood.description, understood.texts
    yield "reviews", f"{found.file}: {found.rows:,} rows, {found.reviewers:,} readers ({found.fields.get('reviewer_id', '?')})"
    if found.per_reviewer is not None:
        yield (
            "",
            f"of each {found.per_reviewer.spread.median:g} in the median; {found.per_reviewer.enough:,} readers have {ENOUGH} or more; "
            f"kept is who has {understood.fewest} or more that can be used",
        )
    if texts is not None:
        yield "texts", f"{texts.file.name}: {texts.rows:,} rows; {texts.text} is the text, {texts.words:.0f} words on average"
        yield (
            "joined by",
            f"{texts.by} = {texts.item_id}, which finds a text for {texts.found:,} of the first {texts.looked:,} reviews",
        )
    elif "text" in found.fields:
        yield "texts", f"{found.fields['text']}, in the same file"
    yield "what they wrote", found.fields.get("review", "?")
    scores = ", ".join(f"{score}: {count:,}" for score, count in list(found.scores.items())[:12])
    yield (
        "score",
        f"{found.fields.get('score', '?')} ({scores}{', ...' if len(found.scores) > 12 else ''}), taken for a scale of {understood.scale}",
    )
    if found.dates is not None and found.dates.iso:
        yield "dates", f"{found.fields.get('time', '?')}, {found.dates.first} to {found.dates.last}"
    for reason, count in found.problems.counts.items():
        yield "look at" if TAKEN in reason else "left out", f"{count:,} {reason}"
    for row in found.problems.first:
        yield "", row
