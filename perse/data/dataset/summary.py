"""The numbers of a build: PerSE's Table 1, and what was left out and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.table import Table
from rich.text import Text

from perse.data.profiles.lengths import Cell
from perse.data.profiles.profiles import ExampleRow
from perse.identity import text_key
from perse.records import Comparison, Kind, Review

_BLOCKS = " ▁▂▃▄▅▆▇█"

_SCORES = tuple(str(score) for score in range(1, 11))


class SplitCounts(BaseModel):
    """One side of a split, or one fold."""

    model_config = ConfigDict(frozen=True)

    name: str
    reviewers: int
    examples: int
    texts: int
    """Distinct texts in queries and profiles."""
    words: float
    """Average number of words of a whole prompt, as it is shown by default and after the budget."""
    cells: tuple[Cell, ...]
    """The columns of Table 1: for each k that the folder keeps, or for each aspect."""
    answers: dict[str, dict[str, int]]
    """Pointwise: {"score": {"1": n, ...}}; pairwise: {aspect: {"A": n, "B": n}}. Of the queries."""
    train_examples: int | None = None
    """Folds: how many examples are for training when this fold validates."""
    show_queries: int | None = None
    """How many examples show in their profile a record that another example of the same reader asks about."""
    queries_shown: int | None = None
    """How many examples ask about a record that stands in the profile of another of the same reader."""
    texts_in_training: int | None = None
    """Validation sides of pairs: how many of `texts` also stand in examples for training."""


class Summary(BaseModel):
    """The result of a build, as `--json` prints it."""

    model_config = ConfigDict(frozen=True)

    out: Path
    kind: Kind
    k: int
    digest: str
    reviewers: int
    records: int
    parts: tuple[SplitCounts, ...]
    dropped: dict[str, dict[str, int]]
    """unit (rows, answers of rows that hold several, reviews or comparisons, reviewers, examples) -> reason -> how many."""
    notes: tuple[str, ...]
    """Cautions about the data."""


def describe(
    name: str,
    rows: Sequence[ExampleRow],
    *,
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
    cells: Sequence[Cell],
    k: int,
) -> SplitCounts:
    """The numbers of the examples `rows`; one of `reviews` and `comparisons` holds their records.

    Args:
        cells: their columns of Table 1.
        k: how many profile entries are shown by default.
    """
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.aspect is None:
            answers["score"][str(reviews[row.query_id].score)] += 1
        else:
            answers[row.aspect][comparisons[row.query_id].preference[row.aspect]] += 1
    # An id names its record's reviewer, so ids alone tell one reader from another.
    asked = {row.query_id for row in rows}
    shown = {one for row in rows for one in row.profile_ids[:k]}
    told = [cell for cell in cells if cell.name == f"k={k}" or not reviews]
    fitting = sum(cell.examples - cell.too_long for cell in told)
    return SplitCounts(
        name=name,
        reviewers=len({row.reviewer_id for row in rows}),
        examples=len(rows),
        texts=len(_texts(rows, reviews, comparisons)),
        words=sum(cell.words * (cell.examples - cell.too_long) for cell in told) / fitting if fitting else 0.0,
        cells=tuple(cells),
        answers={of: _ordered(counts) for of, counts in sorted(answers.items())},
        show_queries=sum(not asked.isdisjoint(row.profile_ids[:k]) for row in rows),
        queries_shown=sum(row.query_id in shown for row in rows),
    )


def shared_texts(train: Iterable[ExampleRow], valid: Iterable[ExampleRow], comparisons: Mapping[str, Comparison]) -> int:
    """How many distinct texts of the `valid` examples also stand, when normalised, in the `train` examples."""
    seen = {text_key(text) for text in _texts(train, {}, comparisons)}
    return sum(text_key(text) in seen for text in _texts(valid, {}, comparisons))


def summary_table(summary: Summary) -> Table:
    """PerSE's Table 1 for this data set."""
    pointwise = summary.kind == "pointwise"
    title = f"{summary.out.name}: {summary.kind}, k = {summary.k}"
    caption = "Texts: how many distinct ones. Words: of a prompt, on average."
    table = Table(
        title=Text(title), caption=caption, title_justify="left", caption_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    table.add_column("", no_wrap=True)
    for name in ("Reviewers", "Examples", "Texts", "Words"):
        table.add_column(name, justify="right", no_wrap=True)
    folds = any(part.train_examples is not None for part in summary.parts)
    if folds:
        table.add_column("To train on", justify="right", no_wrap=True)
    table.add_column("Scores 1 to 10" if pointwise else "Answers", no_wrap=True)
    for part in summary.parts:
        counts = [f"{part.reviewers:,}", f"{part.examples:,}", f"{part.texts:,}", f"{part.words:.0f}"]
        if folds:
            counts.append(f"{part.train_examples:,}")
        table.add_row(part.name, *counts, _bars(part.answers["score"]) if pointwise else Text(_shares(part.answers)))
    return table


def dropped_lines(summary: Summary) -> list[str]:
    """What was left out, one line per unit, commonest reason first."""
    lines = []
    for unit, reasons in summary.dropped.items():
        ranked = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
        lines.append(f"left out, {unit}: " + "; ".join(f"{count:,} {reason}" for reason, count in ranked))
    return lines


def _texts(rows: Iterable[ExampleRow], reviews: Mapping[str, Review], comparisons: Mapping[str, Comparison]) -> set[str]:
    """The distinct texts of queries and profiles."""
    shown = {one for row in rows for one in (row.query_id, *row.profile_ids)}
    if reviews:
        return {reviews[one].text for one in shown}
    return {text for one in shown for text in (comparisons[one].text_a, comparisons[one].text_b)}


def _ordered(counts: Counter[str]) -> dict[str, int]:
    labels: Iterable[str] = ("A", "B") if counts.keys() <= {"A", "B"} else _SCORES
    return {label: counts[label] for label in labels}


def _bars(counts: Mapping[str, int]) -> str:
    """A bar for each score, the commonest at full height; a score that occurs is never shown as absent."""
    most = max(1, *counts.values())
    return "".join(_BLOCKS[max(count > 0, round(8 * count / most))] for count in counts.values())


def _shares(answers: Mapping[str, Mapping[str, int]]) -> str:
    return "\n".join(f"{aspect}: {sum(counts.values()):,} ({_percent(counts)} A)" for aspect, counts in answers.items())


def _percent(counts: Mapping[str, int]) -> str:
    return f"{100 * counts['A'] / sum(counts.values()):.0f}%"
