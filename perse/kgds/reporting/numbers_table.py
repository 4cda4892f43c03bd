"""The numbers of KGDS for a terminal: tables 1 and 2 of the paper, and what they stand on, in 100 columns.

A value and its interval stand one above the other, and reflection below structured as the change it makes. Names of models come
from folders and are shown as they are, never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perse.evaluation.stats.results import Estimate
from perse.kgds.benchmark import PATTERNS, Pattern
from perse.kgds.outcomes import ErrorType
from perse.kgds.scoring.results import METRICS, Delta, Results, Scores

ABSENT = "-"
_BACKGROUND = {"ebs-aos": "supporting paragraphs (BSP)", "abs-aos": "key facts (KBSAF)"}
_HEADER = ("R", "P", "F1", "CAO R", "OP")

Line = tuple[Text, ...]


def numbers_view(results: Results) -> RenderableType:
    """All tables and notes."""
    parts: list[RenderableType] = []
    for pattern in PATTERNS:
        if lines := list(_scores(results, pattern)):
            title = f"{pattern}: {_BACKGROUND[pattern]}, opinions (CAO), overall performance (OP), in percent"
            parts.append(_table(title, ("", *_HEADER), lines))
    for pattern in PATTERNS:
        if lines := list(_errors(results, pattern)):
            header = ("", *(str(kind) for kind in ErrorType), "classified")
            parts.append(_table(f"{pattern}: why opinions are not covered, in percent of those classified", header, lines))
    if results.across:
        lines = [
            (Text(f"{one.model}, {one.paradigm}"), _estimate(one.gap, signed=True), _estimate(one.mean))
            for one in results.across
        ]
        parts.append(_table("Overall performance over both patterns", ("", "ebs-aos minus abs-aos", "mean"), lines))
    if _correlated(results):
        lines = [
            (
                Text(f"{one.pattern}, {one.paradigm}"),
                Text(str(one.models)),
                _coefficient(one.pearson),
                _coefficient(one.spearman),
            )
            for one in results.correlations
        ]
        parts.append(_table("Correlation of F1 with CAO R, across models", ("", "models", "Pearson", "Spearman"), lines))
    parts.append(_counts(results))
    return Group(*parts, *(Text(f"- {note}") for note in _notes(results)))


def _scores(results: Results, pattern: Pattern) -> Iterator[Line]:
    for scores, delta in _with_deltas(results, pattern):
        yield (_name(scores), *(_estimate(scores.values.get(metric)) for metric in METRICS))
        if delta:
            yield (Text("  with reflection"), *(_estimate(delta.values.get(metric), arrow=True) for metric in METRICS))


def _errors(results: Results, pattern: Pattern) -> Iterator[Line]:
    for scores, delta in _with_deltas(results, pattern):
        found = scores.errors
        if found is None:
            continue
        shares = found.shares or {}
        cells = (Text(f"{shares[kind]:.2f}" if kind in shares else ABSENT) for kind in ErrorType)
        yield (_name(scores), *cells, Text(f"{found.classified} of {found.uncovered}"))
        if found.probable:
            probable = (Text(f"{found.probable[kind]:.2f}", style="dim") for kind in ErrorType)
            yield (Text("  by probability", style="dim"), *probable, Text())
        if delta and delta.errors:
            yield (Text("  with reflection"), *(Text(_arrow(delta.errors[kind])) for kind in ErrorType), Text())


def _with_deltas(results: Results, pattern: Pattern) -> Iterator[tuple[Scores, Delta | None]]:
    """Reflection is a change where there is something to change, and else a row of its own."""
    deltas = {delta.model: delta for delta in results.deltas if delta.pattern == pattern}
    for scores in results.scores:
        if scores.pattern == pattern and not (scores.paradigm == "reflection" and scores.model in deltas):
            yield scores, deltas.get(scores.model)


def _name(scores: Scores) -> Text:
    return Text(scores.model if scores.paradigm == "structured" else f"{scores.model} (reflection)")


def _counts(results: Results) -> Table:
    lines = []
    for one in results.scores:
        extracted = one.values.get("retrieved")
        counts = (len(one.samples), one.failed, one.unanswered)
        strange = Text(str(one.strange) if one.pattern == "ebs-aos" else ABSENT)
        name = Text(f"{one.model}, {one.pattern}, {one.paradigm}")
        lines.append((name, *(Text(str(count)) for count in counts), _estimate(extracted), strange))
    title = f"What they stand on; of the paragraphs {results.supporting_share:.2f}% are supporting"
    header = ("", "summaries", "failed", "unanswered", "extracted %", "not there")
    return _table(title, header, lines)


def _notes(results: Results) -> Iterator[str]:
    yield f"intervals: 95%, bootstrap over the {len(results.samples)} samples, {results.resamples} resamples, seed {results.seed}"
    reasons = dict.fromkeys(one.interval.reason for one in _estimates(results) if one.interval.reason)
    yield from (f"some intervals are {reason}" for reason in reasons)
    if not _correlated(results):
        yield "a correlation across models needs three or more"
    if any(one.pattern == "ebs-aos" for one in results.scores):
        yield "not there: citations of paragraphs that the article does not have; they count in nothing"
    yield "failed summaries score 0; unanswered questions count as not covered"
    yield from results.notes


def _estimates(results: Results) -> Iterator[Estimate]:
    for scores in results.scores:
        yield from scores.values.values()
    for delta in results.deltas:
        yield from delta.values.values()
    for across in results.across:
        yield from (across.gap, across.mean)
    for correlation in results.correlations if _correlated(results) else ():
        yield from (correlation.pearson, correlation.spearman)


def _correlated(results: Results) -> bool:
    return any(one.pearson.value is not None for one in results.correlations)


def _estimate(estimate: Estimate | None, *, signed: bool = False, arrow: bool = False) -> Text:
    """The value, and below it the interval, shorter by a digit."""
    if estimate is None or estimate.value is None:
        return Text(ABSENT)
    value = _arrow(estimate.value) if arrow else f"{estimate.value:{'+' if signed and estimate.value else ''}.2f}"
    low, high = estimate.interval.low, estimate.interval.high
    shown = Text(value)
    if low is not None and high is not None:
        form = f"{'+' if signed or arrow else ''}z.1f"
        shown.append(f"\n[{low:{form}}, {high:{form}}]", style="dim")
    return shown


def _coefficient(estimate: Estimate) -> Text:
    low, high = estimate.interval.low, estimate.interval.high
    if estimate.value is None:
        return Text(ABSENT)
    return Text(f"{estimate.value:z.3f}" + ("" if low is None or high is None else f" [{low:z.3f}, {high:z.3f}]"))


def _arrow(value: float) -> str:
    """As the paper writes changes."""
    return f"{'↑' if value > 0 else '↓' if value < 0 else ''}{abs(value):.2f}"


def _table(title: str, header: Sequence[str], lines: Iterable[Line]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(header):
        table.add_column(column, justify="right" if at else "left", overflow="fold", no_wrap=at > 0)
    for line in lines:
        table.add_row(*line)
    return table
