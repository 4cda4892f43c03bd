"""Results as the tables of a report: the paper's two, and beside them what the paper does not print: intervals, counts, failures.

The paper's tables show the structured prompt, with what reflection changes beside each value. A model that has reflection alone has a
row that says so. Ranks are among values of one paradigm only, so that reflection gives no model an extra place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perse.drawing.named_rows import value_in_words
from perse.formats.templates import table
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Paradigm, Pattern
from perse.kgds.outcomes import ErrorType
from perse.kgds.scoring.results import METRICS, Errors, Metric, Results, Scores
from perse.kgds.scoring.words import named
from perse.publishing.markdown import plain
from perse.results.result import Table

PATTERN_NAMES: Mapping[Pattern, str] = {"ebs-aos": "EBS-AOS", "abs-aos": "ABS-AOS"}
_BACKGROUND: Mapping[Pattern, str] = {"ebs-aos": "BSP", "abs-aos": "KBSAF"}
_RANKED: frozenset[Metric] = frozenset(("f1", "cao", "op"))
_PLACES = 3
_INTERVALS: tuple[Metric, ...] = (*METRICS, "retrieved")
_HEADINGS: Mapping[Metric, str] = {
    "recall": "R",
    "precision": "P",
    "f1": "F1",
    "cao": "CAO R",
    "op": "OP",
    "retrieved": "retrieved",
}


@dataclass(frozen=True)
class PaperCell:
    """A value and what reflection does to it; `best`: among the first three of its column."""

    value: str
    beside: str = ""
    best: bool = False


@dataclass(frozen=True)
class PaperTable:
    """A table whose columns stand in groups, as the paper's two do; None is an empty cell."""

    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[str, tuple[PaperCell | None, ...]], ...]
    notes: tuple[str, ...] = ()


def models(results: Results) -> list[str]:
    """The models, in the order in which they were given."""
    return list(dict.fromkeys(scores.model for scores in results.scores))


def patterns(results: Results) -> list[Pattern]:
    """The patterns under which there is any summary."""
    return [pattern for pattern in PATTERNS if any(scores.pattern == pattern for scores in results.scores)]


def metric_name(metric: Metric, pattern: Pattern) -> str:
    """The headings of table 1, such as "BSP F1" and "CAO R"."""
    return f"{_BACKGROUND[pattern]} {_HEADINGS[metric]}" if metric in ("recall", "precision", "f1") else _HEADINGS[metric]


def shown(results: Results, model: str, pattern: Pattern) -> Scores | None:
    """A model's main scores: of its structured prompt, else of its reflection."""
    found = {scores.paradigm: scores for scores in results.scores if (scores.model, scores.pattern) == (model, pattern)}
    return next((found[paradigm] for paradigm in PARADIGMS if paradigm in found), None)


def highest(results: Results, pattern: Pattern) -> Sequence[str]:
    """The highest overall performance of any model, by its structured prompt where there is one."""
    found = [scores for model in models(results) if (scores := shown(results, model, pattern))]
    known = {s.model: s.values["op"] for s in found if "op" in s.values and s.values["op"].value is not None}
    if not known:
        return ()
    top = max(estimate.value or 0.0 for estimate in known.values())
    names = [f"{model}, {value_in_words(estimate)}" for model, estimate in known.items() if estimate.value == top]
    return (f"Highest overall performance (OP) under {PATTERN_NAMES[pattern]}: {'; '.join(names)}.",)


def table_1(results: Results) -> PaperTable:
    """Recall, precision and F1 of the background, recall of opinions, and overall performance."""
    columns = [(pattern, metric) for pattern in patterns(results) for metric in METRICS]
    best = {column: _best(results, *column) for column in columns if column[1] in _RANKED}
    rows = [
        (_row_name(*row), tuple(_main_cell(results, *row, *column, best=row[0] in best.get(column, ())) for column in columns))
        for row in _paper_rows(results)
    ]
    notes = [f"Percent, averaged over {len(results.samples)} samples that all count the same."]
    if any(best.values()):
        notes.append(f"Set apart: the best {_PLACES} of F1, CAO R and OP, those that tie with them included.")
    groups = tuple(
        (PATTERN_NAMES[pattern], tuple(metric_name(metric, pattern) for metric in METRICS)) for pattern in patterns(results)
    )
    return PaperTable(
        "Table 1: background, opinions and overall performance", groups, tuple(rows), (*notes, *_how_to_read(results))
    )


def table_2(results: Results) -> PaperTable:
    """How opinions that are not covered went wrong: the share of each type."""
    columns = [(pattern, error) for pattern in patterns(results) for error in ErrorType]
    rows = [(_row_name(*row), tuple(_error_cell(results, *row, *column) for column in columns)) for row in _paper_rows(results)]
    groups = tuple((PATTERN_NAMES[pattern], tuple(map(str, ErrorType))) for pattern in patterns(results))
    notes = ("Percent of the opinions that are not covered and were classified.", *_how_to_read(results))
    return PaperTable("Table 2: why opinions are not covered", groups, tuple(rows), notes)


def probable_errors(results: Results) -> PaperTable | None:
    """The same by the judge's probabilities; None without any."""
    known = [scores for scores in results.scores if scores.errors and scores.errors.probable]
    if not known:
        return None
    groups = tuple((PATTERN_NAMES[pattern], tuple(map(str, ErrorType))) for pattern in patterns(results))
    rows = []
    for model, paradigm in dict.fromkeys((scores.model, scores.paradigm) for scores in known):
        found = {s.pattern: s.errors for s in known if (s.model, s.paradigm) == (model, paradigm)}
        cells = [_probable(found.get(pattern), error) for pattern in patterns(results) for error in ErrorType]
        rows.append((f"{model}, {paradigm}", tuple(cells)))
    note = "Means of the judge's probabilities of each type, in percent: an opinion of which it is unsure counts in several."
    return PaperTable("Table 2 by probability", groups, tuple(rows), (note,))


def interval_tables(results: Results) -> list[Table]:
    """Every value with its interval: under each pattern, across patterns, and what reflection changes."""
    head = ("model", "paradigm")
    found = []
    for pattern in patterns(results):
        metrics = [metric for metric in _INTERVALS if metric != "retrieved" or pattern == "ebs-aos"]
        header = (*head, *(metric_name(metric, pattern) for metric in metrics))
        rows = [
            (scores.model, scores.paradigm, *(scores.values.get(metric) for metric in metrics))
            for scores in results.scores
            if scores.pattern == pattern
        ]
        found.append(Table(title=f"{PATTERN_NAMES[pattern]} with intervals", header=header, rows=tuple(rows), digits=2))
    if results.across:
        across = tuple((one.model, one.paradigm, one.gap, one.mean) for one in results.across)
        header = (*head, "OP, EBS-AOS minus ABS-AOS", "OP, mean of both")
        found.append(Table(title="Both patterns", header=header, rows=across, digits=2))
    if results.deltas:
        changed = tuple((d.model, PATTERN_NAMES[d.pattern], *map(d.values.get, _INTERVALS)) for d in results.deltas)
        header = ("model", "pattern", *(_HEADINGS[metric] for metric in _INTERVALS))
        notes = ("Points of percent, on the same samples. R, P and F1 are of the pattern's background.",)
        found.append(Table(title="Reflection minus structured", header=header, rows=changed, notes=notes, digits=2))
    return found


def correlation_table(results: Results) -> Table:
    """Behind figures 4 and 5."""
    rows = tuple((PATTERN_NAMES[c.pattern], c.paradigm, str(c.models), c.pearson, c.spearman) for c in results.correlations)
    header = ("pattern", "paradigm", "models", "Pearson", "Spearman")
    return Table(title="F1 of the background with CAO R, across models", header=header, rows=rows)


def count_tables(results: Results) -> list[Table]:
    """The counts behind the values, and what was left out."""
    rows = tuple(
        (
            scores.model,
            PATTERN_NAMES[scores.pattern],
            scores.paradigm,
            str(len(scores.samples)),
            str(scores.failed),
            str(scores.unanswered),
            str(scores.strange) if scores.pattern == "ebs-aos" else None,
            None if scores.errors is None else str(scores.errors.uncovered),
            None if scores.errors is None else str(scores.errors.classified),
        )
        for scores in results.scores
    )
    of_summaries = ("samples", "failed summaries", "questions not answered", "citations of no paragraph")
    header = ("model", "pattern", "paradigm", *of_summaries, "opinions not covered", "of these classified")
    notes = (
        "A failed summary scores 0. A question that was not answered counts as not covered. A citation of a paragraph that does "
        "not exist counts in nothing.",
    )
    found = [Table(title="What was counted", header=header, rows=rows, notes=notes)]
    if results.left_out:
        left = tuple((model or "everybody", str(len(out)), named(out)) for model, out in results.left_out.items())
        title = "Samples of the benchmark that are not compared"
        found.append(Table(title=title, header=("first missing for", "how many", "which"), rows=left))
    return found


def failure_table(results: Results) -> Table | None:
    """Why summaries failed; None if none did."""
    rows = tuple(
        (scores.model, PATTERN_NAMES[scores.pattern], scores.paradigm, str(sample.sample), sample.failed)
        for scores in results.scores
        for sample in scores.samples
        if sample.failed is not None
    )
    header = ("model", "pattern", "paradigm", "sample", "why")
    return Table(title="Failed summaries", header=header, rows=rows) if rows else None


def markdown(tables: Sequence[PaperTable]) -> str:
    """Tables as Markdown; names are escaped, the best are bold."""
    lines = []
    for one in tables:
        header = ["Model", *(f"{group} {column}" for group, columns in one.groups for column in columns)]
        rows = [[plain(name), *map(_markdown_cell, cells)] for name, cells in one.rows]
        lines += [f"## {one.title}", "", table(header, rows), "", *(f"- {plain(note)}" for note in one.notes), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_cell(cell: PaperCell | None) -> str:
    if cell is None:
        return "–"  # noqa: RUF001 (as in the page)
    return (f"**{cell.value}**" if cell.best else cell.value) + (f" {cell.beside}" if cell.beside else "")


def _best(results: Results, pattern: Pattern, metric: Metric) -> set[str]:
    """The models of the first three values, of structured prompts if there are any; empty if three or fewer have one."""
    values: dict[Paradigm, dict[str, float]] = {}
    for model in models(results):
        scores = shown(results, model, pattern)
        estimate = scores.values.get(metric) if scores else None
        if scores and estimate and estimate.value is not None:
            values.setdefault(scores.paradigm, {})[model] = estimate.value
    ranked = next((values[paradigm] for paradigm in PARADIGMS if paradigm in values), {})
    if len(ranked) <= _PLACES:
        return set()
    last = sorted(ranked.values(), reverse=True)[_PLACES - 1]
    return {model for model, value in ranked.items() if value >= last}


def _paper_rows(results: Results) -> list[tuple[str, Paradigm]]:
    """A row for each model; two for one that has reflection alone under one pattern only."""
    found = [scores for model in models(results) for pattern in patterns(results) if (scores := shown(results, model, pattern))]
    return list(dict.fromkeys((scores.model, scores.paradigm) for scores in found))


def _row_name(model: str, paradigm: Paradigm) -> str:
    return model if paradigm == "structured" else f"{model}, reflection alone"


def _main_cell(
    results: Results, model: str, paradigm: Paradigm, pattern: Pattern, metric: Metric, *, best: bool
) -> PaperCell | None:
    scores = shown(results, model, pattern)
    estimate = scores.values.get(metric) if scores and scores.paradigm == paradigm else None
    if estimate is None:
        return None
    if estimate.value is None:
        return PaperCell("undefined")
    delta = next((d.values.get(metric) for d in results.deltas if (d.model, d.pattern) == (model, pattern)), None)
    return PaperCell(f"{estimate.value:.2f}", "" if delta is None or delta.value is None else _points(delta.value), best)


def _error_cell(results: Results, model: str, paradigm: Paradigm, pattern: Pattern, error: ErrorType) -> PaperCell | None:
    scores = shown(results, model, pattern)
    if scores is None or scores.errors is None or scores.paradigm != paradigm:
        return None
    if scores.errors.shares is None:
        return PaperCell("undefined")
    deltas = next((d.errors for d in results.deltas if (d.model, d.pattern) == (model, pattern)), None)
    return PaperCell(f"{scores.errors.shares[error]:.2f}", _points(deltas[error]) if deltas else "")


def _probable(errors: Errors | None, error: ErrorType) -> PaperCell | None:
    return None if errors is None or errors.probable is None else PaperCell(f"{errors.probable[error]:.2f}")


def _points(change: float) -> str:
    """A change with its arrow, or ±0.00."""
    size = f"{abs(change):.2f}"
    return "±0.00" if size == "0.00" else f"{'↑' if change > 0 else '↓'}{size}"


def _how_to_read(results: Results) -> tuple[str, ...]:
    return ("↑ ↓: reflection minus structured, in points.",) if results.deltas else ()
