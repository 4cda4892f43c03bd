"""The numbers of KGDS as a Result: the contents of the paper's tables 1 and 2, with intervals and counts."""

from __future__ import annotations

from collections.abc import Iterator

from perse.kgds.outcomes import ErrorType
from perse.kgds.reporting.finer import (
    cost_table,
    count_tables,
    failure_table,
    interval_tables,
    refused_table,
    win_rate_table,
)
from perse.kgds.reporting.tables import PATTERN_NAMES, correlation_table, highest, models, patterns
from perse.kgds.scoring.across_models import FEWEST_MODELS
from perse.kgds.scoring.results import Results, Scores
from perse.results.result import Cell, Estimate, Result, Table
from perse.results.words import ABSENT

KGDS_METRICS = "kgds metrics"


def kgds_result(results: Results) -> Result:
    """All models on the same samples."""
    said = [line for pattern in patterns(results) for line in highest(results, pattern)]
    beside = [win_rate_table(results), cost_table(results)]
    missing = [failure_table(results), refused_table(results)]
    correlated = any(one.pearson.value is not None for one in results.correlations)
    return Result(
        name=KGDS_METRICS,
        asks="How much of the background and of the opinions do the summaries hold?",
        answer="\n".join(said) or f"No overall performance (OP) is known of {', '.join(models(results))}.",
        tables=(
            *interval_tables(results),
            *_errors(results),
            *([correlation_table(results)] if correlated else []),
            *(table for table in beside if table),
            *count_tables(results),
            *(table for table in missing if table),
        ),
        notes=tuple(_notes(results, correlated=correlated)),
        details=results.model_dump(mode="json"),
    )


def _errors(results: Results) -> Iterator[Table]:
    """Why opinions are not covered, as shares of those classified."""
    for pattern in patterns(results):
        rows = [row for scores in results.scores if scores.pattern == pattern for row in _error_rows(results, scores)]
        if rows:
            yield Table(
                title=f"{PATTERN_NAMES[pattern]}: why opinions are not covered, in percent of those classified",
                header=("model", "paradigm", *map(str, ErrorType), "classified"),
                rows=tuple(rows),
                notes=(
                    "`perse kgds errors` counts under IRU those that the summary leaves out altogether.",
                    "intervals of shares are exact (Clopper and Pearson's), of fewer opinions where those of one sample go together; what reflection changes is of other "
                    "opinions, and taken for independent of them; each interval is looked at by itself",
                ),
                digits=2,
            )


def _error_rows(results: Results, scores: Scores) -> Iterator[tuple[Cell, ...]]:
    found = scores.errors
    if found is None:
        return
    shares = found.shares or {}
    ends = found.intervals or {}
    cells = (
        Estimate(value=shares[kind], interval=ends[kind], items=found.classified) if kind in ends else ABSENT
        for kind in ErrorType
    )
    yield (scores.model, scores.paradigm, *cells, f"{found.classified} of {found.uncovered}")
    if found.probable:
        yield (scores.model, f"{scores.paradigm}, by probability", *(f"{found.probable[kind]:.2f}" for kind in ErrorType), None)
    deltas = [one for one in results.deltas if (one.model, one.pattern) == (scores.model, scores.pattern)]
    if scores.paradigm == "reflection" and deltas and (changes := deltas[0].errors) and (reach := deltas[0].error_intervals):
        apart = (
            Estimate(value=changes[kind], interval=reach[kind], items=found.classified, difference=True) for kind in ErrorType
        )
        yield (scores.model, "reflection minus structured", *apart, None)


def _notes(results: Results, *, correlated: bool) -> Iterator[str]:
    yield (
        f"percent; intervals: 95%, bootstrap over the {len(results.samples)} samples, {results.resamples} resamples, "
        f"seed {results.seed}; of a sample's paragraphs {results.supporting_share:.2f}% are supporting on average"
    )
    if results.deltas or results.averages or results.differences:
        yield "means of models and differences are of the values as they are printed, to 0.01"
    if not correlated:
        reasons = [one.pearson.interval.reason for one in results.correlations if one.models >= FEWEST_MODELS]
        yield from (f"the correlation across models is {reason}" for reason in dict.fromkeys(reasons))
        if not reasons:
            yield "a correlation across models needs three or more of which F1 and CAO R are known"
    yield from results.notes
