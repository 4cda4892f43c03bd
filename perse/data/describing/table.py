"""A description of a file for the terminal: names on the left, a bar for each score, problems, and what to type next.

Text from users and files is shown as plain text, never as markup.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perse.data.describing.facts import ENOUGH, Dates, Description

MOST_BARS = 20
"""A histogram of more scores is drawn over ten ranges."""


def description_table(description: Description) -> RenderableType:
    """The description for the terminal."""
    one = description
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def line(name: str, value: str) -> None:
        table.add_row(_plain(name), _plain(value))

    line("file", f"{one.file}, {one.bytes:,} bytes, sha256 {one.sha256[:12]}")
    line("format", one.format)
    line("rows", f"{one.rows:,}" + ("" if one.whole else " (the limit; there are more)"))
    if one.columns:
        line("columns", ", ".join(one.columns))
    if one.fields:
        line("taken for", ", ".join(f"{field} = {column}" for field, column in one.fields.items()))
    if one.per_reviewer is not None:
        spread = one.per_reviewer.spread
        line(
            "reviewers",
            f"{one.reviewers:,}, with {spread.least:,} to {spread.most:,} rows, median {spread.median:g}; "
            f"{one.per_reviewer.enough:,} have {ENOUGH} or more",
        )
    if one.items:
        line("items", f"{one.items:,}")
    for name, words in (("words of a text", one.text_words), ("words of a review", one.review_words)):
        if words is not None:
            line(name, f"median {words.median:g}, at most {words.most:,}")
    if one.dates is not None:
        line("dates", _dates_line(one.dates))
    for aspect, answers in one.answers.items():
        line(aspect, ", ".join(f"{answer}: {count:,}" for answer, count in answers.items()))
    bars = _bars(one.scores)
    most = max((count for _, count in bars), default=0)
    for label, count in bars:
        line(f"score {label}", f"{'█' * round(40 * count / most) or ('▏' if count else '')} {count:,}")
    for reason, count in one.problems.counts.items():
        line("problem", f"{count:,} {reason}")
    for message in one.problems.first:
        line("", message)
    if one.next and one.note:
        line("note", one.note)
    last = _plain(f"next: {one.next or one.note}")
    last.no_wrap, last.overflow = True, "ignore"  # it is copied as it stands; to be printed with crop=False
    return Group(table, last)


def _dates_line(dates: Dates) -> str:
    range_ = f"{dates.first} to {dates.last}" if dates.iso else "none is ISO"
    return range_ + (
        f"; {dates.other:,} are not ISO, such as '{dates.example}', and are not put in order" if dates.other else ""
    )


def _bars(scores: Mapping[str, int]) -> list[tuple[str, int]]:
    """The histogram as drawn: each score, or ten ranges where there are too many."""
    if len(scores) <= MOST_BARS:
        return list(scores.items())
    numbers = {float(label): count for label, count in scores.items() if "/" not in label}
    shares = sum(count for label, count in scores.items() if "/" in label)
    others = [("N/M", shares)] if shares else []
    if len(numbers) <= MOST_BARS:
        return [(f"{number:g}", count) for number, count in numbers.items()] + others
    low, high = min(numbers), max(numbers)
    width = (high - low) / 10
    counts = [0] * 10
    for number, count in numbers.items():
        counts[min(9, int((number - low) / width))] += count
    return [(f"{low + at * width:g}-{low + (at + 1) * width:g}", count) for at, count in enumerate(counts)] + others


def _plain(text: str) -> Text:
    """Text from a file, without control characters."""
    return Text("".join(one if one.isprintable() else "\ufffd" for one in text))
