"""One sample's story on a terminal: how its summary came about, with what changed from text to text.

Words that came and went are coloured; where there are no colours, they stand in {+ +} and [- -].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perse.data.persum.folder import ProductReview, Sample
from perse.rehearsal.folder import Filtered, Played, Round, Trace
from perse.rehearsal.methods import METHODS
from perse.rehearsal.reporting.changes import Change, changes, is_new
from perse.rehearsal.reporting.compared import ComparedRound, rounds, turns, versions
from perse.results.terminal import safe

_LOOKS = {"=": "", "-": "red strike", "+": "green underline"}
_SIGNS = {"=": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
_STEP = 2
"""Blanks before what belongs to a heading."""

Line = tuple[int, Text]
"""How deep it stands, and what it says."""


def print_story(trace: Trace, console: Console, *, sample: Sample | None, chain: bool, everything: bool) -> None:
    """Args:
    sample: with its reviews, these are shown, too.
    chain: as in `compared.versions`.
    everything: also each response of the practice, and reviews that were kept.
    """
    for depth, text in _story(
        trace, sample=sample, chain=chain, everything=everything, colours=console.color_system is not None
    ):
        console.print(Padding(text, (0, 0, 0, depth * _STEP), expand=False), highlight=False)


def _story(trace: Trace, *, sample: Sample | None, chain: bool, everything: bool, colours: bool) -> Iterator[Line]:
    yield _heading(f"Sample {trace.sample}, {METHODS[trace.method].published if trace.method in METHODS else trace.method}")
    if sample is not None:
        yield 0, safe(f"reader {sample.own.reviewer_id}, product {sample.own.item_id}, {sample.category}, {sample.group}")
        yield from _titled("The user's own review, which no writer is shown", sample.own.review)
    if trace.analysis is not None:
        yield from _titled("What the user cares about", trace.analysis)
    if trace.general is not None:
        yield from _titled("General summary", trace.general)
    if trace.practice:
        yield _heading(f"Practice: {sum(one.passed for one in trace.practice)} of {len(trace.practice)} rounds passed")
        for number, played in enumerate(trace.practice, start=1):
            yield 1, Text(f"round {number}: {came_of(played, supervised=True)}")
            yield from (_turns(played, colours=colours, depth=2) if everything else ())
        yield 1, Text(f"demonstrations shown: {len(trace.demonstrations)}")
    if trace.suggestions is not None:
        supervised = trace.method in METHODS and METHODS[trace.method].supervised
        yield _heading(f"Suggestions: {came_of(trace.suggestions, supervised=supervised)}")
        yield from _turns(trace.suggestions, colours=colours, depth=1)
    if trace.filtered is not None:
        yield _heading("Reviews for the rewriting")
        yield from _filtered(trace.filtered, sample, everything=everything)
    for number, one in enumerate(versions(trace, chain=chain), start=1):
        score = "no score" if one.version.score is None else f"score {one.version.score:.1f}"
        yield _heading(f"Version {number}: {score}{', kept' if number == trace.kept else ''}")
        if one.version.summary is not None:
            yield 1, _compared(one.before, one.version.summary, colours=colours)
        yield from _why(one.version.failed)
    for number, each in enumerate(rounds(trace), start=1):
        yield _heading(f"Round {number}: {stood(each)}")
        yield from _round(each.round, each.before, sample, everything=everything, colours=colours)
    if not (trace.versions or trace.rounds) and trace.summary is not None:
        yield _heading("Summary")
        yield 1, _compared(trace.general, trace.summary, colours=colours)
    if trace.summary is None:
        yield _heading("No summary")
        yield from _why(trace.failed)


def came_of(played: Played, *, supervised: bool) -> str:
    """ "passed, 2 responses"."""
    responses = f"{played.responses} response{'' if played.responses == 1 else 's'}"
    if not supervised:
        return f"{responses}, unsupervised"
    return f"{'passed' if played.passed else 'not passed'}, {responses}"


def stood(compared: ComparedRound) -> str:
    """ "the reader would rather have it with 62%, stands". 55.04% is above a threshold of 55%, and 54.96% is not: decimals where there are some. Of a
    rewriting that changes nothing no judge is asked."""
    one = compared.round
    if one.summary is not None and one.summary == compared.before:
        return "the rewriting changes nothing"
    percent = "" if one.preferred is None else f"{100 * one.preferred:.2f}".rstrip("0").rstrip(".")
    rather = "no preference" if one.preferred is None else f"the reader would rather have it with {percent}%"
    return f"{rather}, {'stands' if one.stands else 'does not stand'}"


def _round(one: Round, before: str | None, sample: Sample | None, *, everything: bool, colours: bool) -> Iterator[Line]:
    if one.suggestions is not None:
        yield 1, Text("user", style="bold")
        yield 2, safe(one.suggestions.analysis)
        yield 2, Text("suggests", style="dim")
        yield 2, safe(one.suggestions.suggestions)
    if one.filtered is not None:
        yield from _filtered(one.filtered, sample, everything=everything)
    if one.summary is not None:
        yield 1, Text("rewriting", style="bold")
        yield 2, _compared(before, one.summary, colours=colours)
    yield from _why(one.failed)


def _turns(played: Played, *, colours: bool, depth: int) -> Iterator[Line]:
    for number, (turn, before) in enumerate(((one.turn, one.before) for one in turns(played)), start=1):
        yield depth, Text(f"user, response {number}", style="bold")
        if turn.response is not None:
            yield depth + 1, _compared(before.analysis if before else None, turn.response.analysis, colours=colours)
            yield depth + 1, Text("suggests", style="dim")
            yield depth + 1, _compared(before.suggestions if before else None, turn.response.suggestions, colours=colours)
        if turn.verdict is not None:
            yield (
                depth,
                Text(f"supervisor: {'no suggestions, passed' if turn.verdict.passed else 'to be revised'}", style="bold"),
            )
            yield from ((depth + 1, safe(text)) for text in (turn.verdict.thought, turn.verdict.recommendations) if text)
        yield from ((depth + more, text) for more, text in _why(turn.failed))


def _filtered(filtered: Filtered, sample: Sample | None, *, everything: bool) -> Iterator[Line]:
    drawn = f", of these by chance: {_listed(filtered.drawn)}" if filtered.drawn else ""
    yield 1, Text(f"product reviews removed: {_listed(filtered.removed)}{drawn}")
    if sample is not None:
        yield from _reviews(sample.product_reviews, set(filtered.removed), "removed", everything=everything)
    by_chance = ", by chance" if filtered.history_drawn else ""
    yield 1, Text(f"review of the history chosen: {filtered.history or 'none'}{by_chance}")
    if sample is not None:
        yield from _reviews(sample.history, {filtered.history}, "chosen", everything=everything)
    yield from _why(filtered.failed)


def _reviews(
    reviews: Sequence[ProductReview], marked: set[int] | set[int | None], mark: str, *, everything: bool
) -> Iterator[Line]:
    """Those that are marked, or all."""
    for number, review in enumerate(reviews, start=1):
        if number in marked or everything:
            yield 2, safe(f"{number}{f' ({mark})' if number in marked else ''}: {review.review}")


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"


def _compared(before: str | None, after: str, *, colours: bool) -> Text:
    """The second text with its differences from the first, if there is one of which something stayed."""
    found = (Change("=", after),) if before is None else changes(before, after)
    if is_new(found):
        return Text.assemble(("(a new text) ", "dim"), safe(after))
    made = Text()
    for one in found:
        opened, closed = ("", "") if colours else _SIGNS[one.kind]
        made.append(f"{opened}{safe(one.text).plain}{closed}", style=_LOOKS[one.kind])
    return made


def _titled(title: str, text: str) -> Iterator[Line]:
    yield _heading(title)
    yield 1, safe(text)


def _heading(title: str) -> Line:
    return 0, Text.assemble("\n" if not title.startswith("Sample ") else "", (safe(title).plain, "bold"))


def _why(failed: str | None) -> Iterator[Line]:
    if failed is not None:
        yield 1, Text(safe(failed).plain, style="red")
