"""What the paper does not print, as tables: every value with its interval, differences, each model's own samples, counts, costs.

Intervals are of samples. Differences are paired: both values stand on the same resamples of the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perse.kgds.benchmark import PARADIGMS, Pattern
from perse.kgds.reporting.tables import HEADINGS, PATTERN_NAMES, mean_change, metric_name, patterns
from perse.kgds.scoring.failures import at_most, failed_share
from perse.kgds.scoring.results import ALL_METRICS, Cost, Metric, Results, Scores
from perse.kgds.scoring.words import named
from perse.results.result import Cell, Table

FEW_DIFFERENCES = 6
"""More rows than these are shown on a terminal only when asked for: they are of five models and more."""
_HEAD = ("model", "paradigm")
_OF_DIFFERENCES = (
    "Points of percent, paired: on the same samples. Intervals are of other samples, too, at which one alone may fail even if none shows it: how much more often one fails has "
    "Newcombe's interval, each failure taking what its sample has; what both can be read of is resampled. Where an interval leaves out 0, the samples show a difference. Nothing is "
    "adjusted for how many are looked at: between models that are the same one interval in 20 at most leaves out 0 by chance."
)


def interval_tables(results: Results) -> list[Table]:
    """Every value with its interval: under each pattern, across patterns, what reflection changes, and between models."""
    found = [
        Table(
            title=f"{PATTERN_NAMES[pattern]} with intervals",
            header=(*_HEAD, *_headings(pattern)),
            rows=(*_rows(results.scores, pattern), *_average_rows(results, pattern)),
            notes=_of_no_failure(results, pattern),
            breaks=_break(results.scores, pattern) if any(one.pattern == pattern for one in results.averages) else (),
            digits=2,
        )
        for pattern in patterns(results)
    ]
    if results.across:
        across = tuple((one.model, one.paradigm, one.gap, one.mean) for one in results.across)
        header = (*_HEAD, "OP, EBS-AOS minus ABS-AOS", "OP, mean of both")
        found.append(Table(title="Both patterns", header=header, rows=across, digits=2))
    if results.deltas:
        found.append(_reflection(results))
    return [*found, *difference_tables(results), *own_tables(results)]


def _of_no_failure(results: Results, pattern: Pattern) -> tuple[str, ...]:
    """Of whose summaries none failed: resamples do not know of what no sample shows."""
    never = [
        f"{one.model}, {one.paradigm}" for one in results.scores if one.pattern == pattern and one.samples and not one.failed
    ]
    if not never:
        return ()
    samples = len(results.samples)
    return (
        f"No summary failed of {'; '.join(never)}: in other samples up to {at_most(samples)} may (none in {samples}, exact), of which these intervals do not "
        "know; each that does takes its sample to 0.",
    )


def _reflection(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (d.model, PATTERN_NAMES[d.pattern], *map(d.values.get, ALL_METRICS)) for d in results.deltas
    ]
    for pattern in patterns(results):
        sizes = [mean_change(results, pattern, metric) for metric in ALL_METRICS]
        if any(size is not None for size in sizes):
            cells = (None if size is None else f"{size:.2f}" for size in sizes)
            rows.append(("mean size, up or down", PATTERN_NAMES[pattern], *cells))
    return Table(
        title="Reflection minus structured",
        header=("model", "pattern", *(HEADINGS[metric] for metric in ALL_METRICS)),
        rows=tuple(rows),
        notes=(
            "Points of percent, on the same samples. R, P and F1 are of the pattern's background.",
            *(("The mean size is above 0 of changes that are chance, too.",) if len(rows) > len(results.deltas) else ()),
        ),
        breaks=(len(results.deltas),) if len(rows) > len(results.deltas) else (),
        digits=2,
    )


def difference_tables(results: Results) -> Iterator[Table]:
    """Every model minus every other, within a pattern and paradigm."""
    for pattern in patterns(results):
        for paradigm in PARADIGMS:
            found = [d for d in results.differences if (d.pattern, d.paradigm) == (pattern, paradigm)]
            if not found:
                continue
            metrics = _metrics(pattern)
            yield Table(
                title=f"{PATTERN_NAMES[pattern]}, {paradigm}: one model minus another",
                header=("model", "minus", *_headings(pattern)),
                rows=tuple((d.model, d.minus, *map(d.values.get, metrics)) for d in found),
                notes=(_OF_DIFFERENCES,),
                detail=len(found) > FEW_DIFFERENCES,
                digits=2,
            )


def own_tables(results: Results) -> Iterator[Table]:
    """Each row on all samples that it has itself, where others lack some of these."""
    for pattern in patterns(results):
        rows = [
            (one.model, one.paradigm, str(len(one.samples)), *map(one.values.get, _metrics(pattern)))
            for one in results.own
            if one.pattern == pattern
        ]
        if rows:
            yield Table(
                title=f"{PATTERN_NAMES[pattern]}, each model on all samples of its own",
                header=(*_HEAD, "samples", *_headings(pattern)),
                rows=tuple(rows),
                notes=("As the authors score. These rows are of different samples: compare models by the tables above.",),
                digits=2,
            )


def _metrics(pattern: Pattern) -> list[Metric]:
    return [metric for metric in ALL_METRICS if metric != "retrieved" or pattern == "ebs-aos"]


def _headings(pattern: Pattern) -> tuple[str, ...]:
    return tuple(metric_name(metric, pattern) for metric in _metrics(pattern))


def _rows(scores: Sequence[Scores], pattern: Pattern) -> list[tuple[Cell, ...]]:
    return [(one.model, one.paradigm, *map(one.values.get, _metrics(pattern))) for one in scores if one.pattern == pattern]


def _average_rows(results: Results, pattern: Pattern) -> list[tuple[Cell, ...]]:
    return [
        (f"mean of {one.models} models", one.paradigm, *map(one.values.get, _metrics(pattern)))
        for one in results.averages
        if one.pattern == pattern
    ]


def _break(scores: Sequence[Scores], pattern: Pattern) -> tuple[int, ...]:
    return (sum(one.pattern == pattern for one in scores),)


def count_tables(results: Results) -> list[Table]:
    """The counts behind the values, and what was left out."""
    rows = tuple(
        (
            scores.model,
            PATTERN_NAMES[scores.pattern],
            scores.paradigm,
            str(len(scores.samples)),
            str(scores.failed),
            failed_share(scores.failed, len(scores.samples)) if scores.samples else None,
            str(scores.unanswered),
            str(scores.strange) if scores.pattern == "ebs-aos" else None,
            str(scores.odd) if scores.pattern == "ebs-aos" else None,
            None if scores.errors is None else str(scores.errors.uncovered),
            None if scores.errors is None else str(scores.errors.classified),
        )
        for scores in results.scores
    )
    of_summaries = (
        "samples",
        "failed summaries",
        "in percent",
        "questions not answered",
        "citations of no paragraph",
        "tags of no number",
    )
    header = ("model", "pattern", "paradigm", *of_summaries, "opinions not covered", "of these classified")
    notes = (
        "A failed summary scores 0; the interval of how many do is exact (Clopper and Pearson's). Questions not answered are counted where the judge answered any of their kind, and what they ask about counts as not covered; where it answered none, that is not known. A citation of a paragraph that does "
        f"not exist, or a tag that is no paragraph's number, {'counts as a wrong one' if results.as_published else 'counts in nothing'}.",
    )
    found = [Table(title="What was counted", header=header, rows=rows, notes=notes, digits=2)]
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


def win_rate_table(results: Results) -> Table | None:
    """Figure 3: the experts' selection of paragraphs beside the models' own; None if nothing was asked."""
    if not results.win_rates:
        return None
    rows: list[tuple[Cell, ...]] = [
        (
            one.model,
            one.judge,
            _way(one.second_turn),
            f"{one.answered} of {one.differs}",
            one.share,
            None if one.order_gap is None else f"{one.order_gap:.2f}",
        )
        for one in results.win_rates
    ]
    rows += [(f"mean of {one.models} models", "", _way(one.second_turn), "", one.share, None) for one in results.mean_win_rates]
    return Table(
        title="Experts' selection of paragraphs preferred to the model's own",
        header=("model", "asked", "how", "answered", "win rate", "orders apart"),
        rows=tuple(rows),
        notes=(
            "Percent of the samples in which the two differ (`perse kgds feedback`); a tie is a half. The paper's mean of its 12 models, "
            "each asked in a second turn about itself, is 88.89.",
            "orders apart: mean distance of the answers in the two orders, 0 to 1; near 1 the judge goes by the place, and the win rate says little.",
        ),
        breaks=(len(results.win_rates),) if results.mean_win_rates else (),
        digits=2,
    )


def _way(second_turn: bool) -> str:
    return "second turn" if second_turn else "by itself"


def cost_table(results: Results) -> Table | None:
    """What summaries, verification, errors and feedback took, of each model and of all together; None where nothing is known."""
    if not results.costs:
        return None
    kinds = list(dict.fromkeys((one.model, one.what, one.asked) for one in results.costs))
    rows: list[tuple[Cell, ...]] = [
        (*kind, *_spent([one for one in results.costs if (one.model, one.what, one.asked) == kind])) for kind in kinds
    ]
    if len(rows) > 1:
        rows.append(("all", "", "", *_spent(results.costs)))
    notes = [
        "Over all patterns and paradigms, failed tries included. Summaries that came from elsewhere, or from an older perse, have none."
    ]
    if any(one.cost is None for one in results.costs):
        notes.append("Cost: unknown without prices (--prices NAME=INPUT,OUTPUT per million tokens, of those who were asked).")
    return Table(
        title="What it took",
        header=("model", "asked for", "asked", "questions", "prompt tokens", "of these computed", "generated", "cost"),
        rows=tuple(rows),
        notes=tuple(notes),
        breaks=(len(kinds),) if len(kinds) > 1 else (),
    )


def _spent(costs: Sequence[Cost]) -> tuple[Cell, ...]:
    prompt, cached = sum(one.prompt for one in costs), sum(one.cached for one in costs)
    known = [one.cost for one in costs if one.cost is not None]
    return (
        f"{sum(one.questions for one in costs):,}",
        f"{prompt:,}",
        f"{prompt - cached:,}",
        f"{sum(one.generated for one in costs):,}",
        f"{sum(known):,.4f}" if len(known) == len(costs) else None,
    )


def refused_table(results: Results) -> Table | None:
    """Models whose files cannot be read; None if all can."""
    if not results.refused:
        return None
    rows = tuple((one.model, PATTERN_NAMES[one.pattern], one.paradigm, one.why) for one in results.refused)
    return Table(title="Left out", header=("model", "pattern", "paradigm", "why"), rows=rows)
