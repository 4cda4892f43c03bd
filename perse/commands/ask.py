"""`perse ask`: judge one text for one reader. What is not given is asked for at the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.prompt import FloatPrompt, IntPrompt, Prompt
from rich.table import Table
from rich.text import Text

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Answering, Loading, StackedBy
from perse.commands.options.reading import own_scale
from perse.commands.terminal import err
from perse.data.examples_file import read_profile
from perse.errors import BadInput
from perse.formats.plain_files import refuse_endless
from perse.judgement import Judgement, Status
from perse.judging.one import example_of
from perse.records import ProfileReview, explain
from perse.scale import OwnScale, on_own_scale, rescale
from perse.secrets import printable
from perse.stacking.sources import IN_WORDS
from perse.strict import is_half


@grouped
def ask(
    *,
    judge: options.JudgeName = "smollm2-135m",
    reviews: Annotated[Path | None, typer.Option(help='JSON lines of past reviews: {"text", "review", "score"}.')] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="LOW-HIGH",
            help="Lowest and highest score of the reader's own scale; answers are told on it, too.",
        ),
    ] = "1-10",
    text: Annotated[str | None, typer.Option(help="The new text; @FILE reads it from a file.")] = None,
    question: options.MaybePointwise = None,
    answering: Answering,
    loading: Loading,
    stacked_by: StackedBy,
    trust_remote_code: options.TrustRemoteCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Judge one text for one reader, known by a few reviews. Called bare, it asks for them.

    Example:  perse ask --judge runs/first --reviews mine.jsonl --text @plot.txt
    """
    stacking = stacked_by.given
    own = own_scale(scale)
    profile = read_profile(reviews, scale=own) if reviews else prompt_for_reviews(err, scale=own)
    asked = read_text(text) if text is not None else prompt_for_text(err)
    example_of(profile, asked)  # what cannot be asked is refused before a judge is loaded, which may take minutes
    loaded = loading.load(judge, trust_remote_code=trust_remote_code, stacking=stacking)
    with err.status("reading as this reader would"):
        judgement = loaded.ask_one(reviews=profile, text=asked, question=question, settings=answering.settings(), scale=own)
    if as_json:
        typer.echo(judgement.model_dump_json(indent=2))
    else:
        show_judgement(Console(), judgement)
    if judgement.status is Status.ENGINE_ERROR:
        raise typer.Exit(2)


def _score(judgement: Judgement) -> str:
    """What is expected comes first, and a draw is called one: a label that was drawn may be one that the judge thinks unlikely."""
    likeliest = judgement.likeliest
    if judgement.expected is None or likeliest is None:
        expected = "" if judgement.expected is None else f", expected {judgement.expected:.1f}"
        return f"score [bold]{escape(str(judgement.label))}[/bold] of 10{expected}"
    said = f"expected [bold]{judgement.expected:.1f}[/bold] of 10, likeliest [bold]{likeliest}[/bold]"
    return said if likeliest == judgement.label else f"{said}, drawn {escape(str(judgement.label))}"


def read_text(given: str) -> str:
    """The text itself, or with @FILE the file's."""
    if not given.startswith("@"):
        return _typed(given)
    path = Path(given[1:])
    refuse_endless(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text; convert it first") from None


def _typed(text: str) -> str:
    if is_half(text):
        raise BadInput("the text is not UTF-8; set the terminal to UTF-8, or give it as @FILE")
    return text


def prompt_for_reviews(console: Console, *, scale: OwnScale | None = None) -> list[ProfileReview]:
    """Ask for reviews until an empty text.

    Raises:
        BadInput: the input ended, or what was typed is no review.
    """
    console.print(
        "A few texts that this reader has reviewed, one at a time; @FILE reads one from a file; an empty text ends the list."
    )
    reviews: list[ProfileReview] = []
    with _typed_by_someone(console):
        while text := Prompt.ask(
            f"[bold]text {len(reviews) + 1}[/bold]", console=console, default="", show_default=False
        ).strip():
            review = _typed(Prompt.ask("  their review (empty: none)", console=console, default="", show_default=False).strip())
            score = _prompt_for_score(console, scale)
            try:
                reviews.append(ProfileReview(text=read_text(text), review=review or None, score=score))
            except ValidationError as error:
                raise BadInput(f"text {len(reviews) + 1}: {explain(error)}") from None
            except BadInput as error:
                raise BadInput(f"text {len(reviews) + 1}: {error}") from None
    return reviews


def _prompt_for_score(console: Console, scale: OwnScale | None) -> int:
    """On 1 to 10, whichever scale it was given on."""
    if scale is None:
        return IntPrompt.ask("  their score", console=console, choices=[str(n) for n in range(1, 11)], show_choices=False)
    return rescale(FloatPrompt.ask(f"  their score, {scale[0]:g} to {scale[1]:g}", console=console), *scale)


def prompt_for_text(console: Console) -> str:
    """Ask for the text to judge.

    Raises:
        BadInput: the input ended.
    """
    with _typed_by_someone(console):
        return read_text(Prompt.ask("[bold]the new text[/bold]", console=console).strip())


@contextmanager
def _typed_by_someone(console: Console) -> Iterator[None]:
    """Without a terminal, as in a pipe or a job, ask for the options instead."""
    try:
        yield
    except EOFError:
        console.print()
        raise BadInput("the input ended where something was to be typed; give --reviews FILE and --text TEXT") from None


def show_judgement(console: Console, judgement: Judgement) -> None:
    """The review, the score, and the distribution as bars. What the model wrote is shown as plain text."""
    if judgement.text:
        console.print(
            Panel(
                Text(printable(judgement.text)),
                title="this reader's review, as predicted",
                title_align="left",
                width=min(100, console.width),
            )
        )
    if judgement.status is not Status.OK:
        console.print(f"no score ({judgement.status}): {printable(judgement.error or '')}", markup=False)
        return
    console.print(f"{_score(judgement)}   (profile of {judgement.k_effective} reviews)")
    if own := judgement.own_scale:
        likeliest = judgement.likeliest
        last = ("score", own.label) if likeliest is None else ("likeliest", on_own_scale(float(likeliest), (own.low, own.high)))
        parts = (("expected", own.expected), ("with the numbers that need no judge", own.stacked), last)
        said = ", ".join(f"{name} [bold]{value:.3g}[/bold]" for name, value in parts if value is not None)
        console.print(f"on {own.low:g} to {own.high:g}: {said}")
    table = Table.grid(padding=(0, 1))
    for label, p in (judgement.distribution or {}).items():
        table.add_row(Text(label, justify="right"), f"{p:5.2f}", "#" * round(40 * p))
    console.print(table)
    if judgement.not_stacked:
        console.print(f"without the numbers that need no judge: {judgement.not_stacked}", markup=False)
    if stacked := judgement.stacked:
        lacking = f" (without {', '.join(IN_WORDS.get(one, one) for one in stacked.without)})" if stacked.without else ""
        console.print(
            f"with the numbers that need no judge: expected [bold]{stacked.expected:.1f}[/bold]{escape(printable(lacking))}; whether the judge adds to them, or they to it, perse fit says"
        )
