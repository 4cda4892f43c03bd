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
from perse.kgds.scoring.failures import at_most
from perse.kgds.scoring.results import METRICS, Errors, Metric, Results, Scores, comparable
from perse.publishing.markdown import plain
from perse.results.result import Estimate, Table

PATTERN_NAMES: Mapping[Pattern, str] = {"ebs-aos": "EBS-AOS", "abs-aos": "ABS-AOS"}
_BACKGROUND: Mapping[Pattern, str] = {"ebs-aos": "BSP", "abs-aos": "KBSAF"}
_RANKED: frozenset[Metric] = frozenset(("f1", "cao", "op"))
_PLACES = 3
HEADINGS: Mapping[Metric, str] = {
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
    return f"{_BACKGROUND[pattern]} {HEADINGS[metric]}" if metric in ("recall", "precision", "f1") else HEADINGS[metric]


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
    if not comparable([one for one in found if one.model in known], "op"):
        return (
            f"No overall performance (OP) is called the highest under {PATTERN_NAMES[pattern]}: different judges, or one asked in different ways, verified the models.",
        )
    top = max(estimate.value or 0.0 for estimate in known.values())
    names = [f"{model}, {value_in_words(estimate)}" for model, estimate in known.items() if estimate.value == top]
    by = (
        ", by the structured prompt where a model has one, whatever reflection makes of it"
        if any(one.pattern == pattern for one in results.deltas)
        else ""
    )
    picked = f" (picked as the highest of {len(known)}, which flatters it)" if len(known) > 1 else ""
    said = f"Highest overall performance (OP) under {PATTERN_NAMES[pattern]}{by}: {'; '.join(names)}{picked}{_minus_next(results, pattern, known)}"
    if unknown := [one.model for one in found if one.model not in known]:
        said += f"; that of {', '.join(unknown)} is not known"
    alone = [one.model for one in found if one.model in known and one.paradigm == "reflection"]
    if len(alone) < len(known) and alone:
        said += f"; {' and '.join(alone)} {'was' if len(alone) == 1 else 'were'} asked by reflection alone"
    samples = len(results.samples)
    unfailing = [one.model for one in found if not one.failed and known.get(one.model) and known[one.model].value == top]
    not_answered = _not_answered([one for one in found if one.model in known and one.unanswered])
    if not unfailing:
        return (f"{said}.{not_answered}",)
    whose = "" if len(unfailing) == len(known) else f" of {' and '.join(unfailing)}"
    which = " so asked" if by else ""
    return (
        f"{said}; none of the {samples} summaries{whose}{which} failed, up to {at_most(samples)} of others may.{not_answered}",
    )


def _not_answered(rows: Sequence[Scores]) -> str:
    """A sentence, or nothing without rows."""
    if not rows:
        return ""
    told = [f"{one.unanswered} question{'' if one.unanswered == 1 else 's'} about {one.model}" for one in rows]
    return f" Not answered, and counted as not covered, {'was' if rows[0].unanswered == 1 else 'were'} {' and '.join(told)}."


def _minus_next(results: Results, pattern: Pattern, known: Mapping[str, Estimate]) -> str:
    """The paired difference of the highest and the next, where they were asked in one way: the highest of several is chosen after looking."""
    ranked = sorted(known, key=lambda model: known[model].value or 0.0, reverse=True)[:2]
    paradigms = {found.paradigm for model in ranked if (found := shown(results, model, pattern))}
    for one in results.differences:
        if (
            {one.model, one.minus} == set(ranked)
            and one.pattern == pattern
            and {one.paradigm} == paradigms
            and "op" in one.values
        ):
            apart = one.values["op"] if one.model == ranked[0] else one.values["op"].turned
            if apart.value:
                return f"; minus the next, {ranked[1]}, {value_in_words(apart)}{'' if apart.above_zero else ', not shown to be higher'}"
    return ""


def table_1(results: Results) -> PaperTable:
    """Recall, precision and F1 of the background, recall of opinions, and overall performance."""
    columns = [(pattern, metric) for pattern in patterns(results) for metric in METRICS]
    best = {column: _best(results, *column) for column in columns if column[1] in _RANKED}
    rows = [
        (_row_name(*row), tuple(_main_cell(results, *row, *column, best=row[0] in best.get(column, ())) for column in columns))
        for row in _paper_rows(results)
    ]
    rows += [(_average_name(results, paradigm), _average_cells(results, paradigm, columns)) for paradigm in _averaged(results)]
    notes = [f"Percent, averaged over {len(results.samples)} samples that all count the same."]
    if any(best.values()):
        notes.append(
            f"Set apart: the best {_PLACES} of F1, CAO R and OP where more can be compared, those that tie with them included."
        )
    groups = tuple(
        (PATTERN_NAMES[pattern], tuple(metric_name(metric, pattern) for metric in METRICS)) for pattern in patterns(results)
    )
    return PaperTable(
        "Table 1: background, opinions and overall performance", groups, tuple(rows), (*notes, *_how_to_read(results))
    )


def _averaged(results: Results) -> list[Paradigm]:
    """The paradigm whose values stand in table 1: structured where there is one."""
    found = {average.paradigm for average in results.averages}
    return [paradigm for paradigm in PARADIGMS if paradigm in found][:1]


def _average_name(results: Results, paradigm: Paradigm) -> str:
    numbers = {average.pattern: average.models for average in results.averages if average.paradigm == paradigm}
    if len(set(numbers.values())) == 1:
        return _row_name(f"mean of {next(iter(numbers.values()))} models", paradigm)
    each = ", ".join(f"{number} under {PATTERN_NAMES[pattern]}" for pattern, number in numbers.items())
    return _row_name(f"mean of models ({each})", paradigm)


def _average_cells(
    results: Results, paradigm: Paradigm, columns: Sequence[tuple[Pattern, Metric]]
) -> tuple[PaperCell | None, ...]:
    """Means over models; beside them, the mean size of what reflection changes, up or down."""
    values = {average.pattern: average.values for average in results.averages if average.paradigm == paradigm}
    cells: list[PaperCell | None] = []
    for pattern, metric in columns:
        estimate = values.get(pattern, {}).get(metric)
        size = mean_change(results, pattern, metric)
        known = estimate is not None and estimate.value is not None
        cells.append(PaperCell(f"{estimate.value:.2f}", "" if size is None else f"↕{size:.2f}") if known and estimate else None)
    return tuple(cells)


def mean_change(results: Results, pattern: Pattern, metric: Metric) -> float | None:
    """By how many points reflection changes a value, up or down, on average over two or more models (KGDS, section 6.4)."""
    changes = [d.values[metric].value for d in results.deltas if d.pattern == pattern and metric in d.values]
    known = [abs(change) for change in changes if change is not None]
    return round(sum(known) / len(known), 2) if len(known) > 1 else None


def table_2(results: Results) -> PaperTable:
    """How opinions that are not covered went wrong: the share of each type."""
    columns = [(pattern, error) for pattern in patterns(results) for error in ErrorType]
    rows = [(_row_name(*row), tuple(_error_cell(results, *row, *column) for column in columns)) for row in _paper_rows(results)]
    groups = tuple((PATTERN_NAMES[pattern], tuple(map(str, ErrorType))) for pattern in patterns(results))
    notes = (
        "Percent of the opinions that are not covered and were classified. `perse kgds errors` counts under IRU those that the summary leaves "
        "out altogether. What reflection changes is of other opinions than those before: `perse kgds metrics` has its intervals.",
        *_how_to_read(results),
    )
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


def correlation_table(results: Results) -> Table:
    """Behind figures 4 and 5."""
    rows = tuple((PATTERN_NAMES[c.pattern], c.paradigm, str(c.models), c.pearson, c.spearman) for c in results.correlations)
    header = ("pattern", "paradigm", "models", "Pearson", "Spearman")
    notes = (
        "of these models alone: samples are drawn anew, models are not, and with few of them chance makes large correlations",
    )
    return Table(title="F1 of the background with CAO R, across models", header=header, rows=rows, notes=notes)


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
    known = [one for model in models(results) if (one := shown(results, model, pattern)) and metric in one.values]
    if not comparable(known, metric):
        return set()
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
    """A change with its arrow; that of none is level, since ± would read as a margin of error."""
    size = f"{abs(change):.2f}"
    return "→0.00" if size == "0.00" else f"{'↑' if change > 0 else '↓'}{size}"


def _how_to_read(results: Results) -> tuple[str, ...]:
    if not results.deltas:
        return ()
    averaged = " ↕: the mean size of these changes, over the models that were asked both ways." if results.averages else ""
    return (f"↑ ↓ →: reflection minus structured, in points.{averaged}",)
