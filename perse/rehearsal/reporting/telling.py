"""A run's scores and what happened on the way to them, as one `Result`: that of `perse rehearsal score`, with two more tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from perse.rehearsal.folder import Trace
from perse.rehearsal.methods import METHODS
from perse.rehearsal.reporting.figures import Rates, in_order, shown, stop_at
from perse.rehearsal.scoring.asking import Scored
from perse.rehearsal.scoring.results import Results
from perse.rehearsal.scoring.telling import ASKS, REHEARSAL_SCORE, rehearsal_result
from perse.results.result import Cell, Result, Table

PASS_RATES = "Pass rate by iteration"
ON_THE_WAY = "On the way to a summary"

Traces = Mapping[str, Mapping[str, Trace]]


def report_result(found: Results | str, scored: Scored, rates: Rates, *, together: bool) -> Result:
    """Args:
    found: the means and differences, or why there are none.
    together: as in `figures.pass_rates`.
    """
    scores = rehearsal_result(found) if isinstance(found, Results) else _nothing(found, scored)
    more = (pass_rate_table(rates, together=together), way_table(scored.traces))
    return scores.model_copy(
        update={
            "tables": (*scores.tables, *(table for table in more if table)),
            "details": {**scores.details, "rates": {name: list(values) for name, values in rates.items()}},
        }
    )


def _nothing(why: str, scored: Scored) -> Result:
    """Of a run in which nothing can be compared: how many summaries each method has, and how many of these have all scores."""
    samples = {name for of_one in scored.traces.values() for name in of_one}
    complete = {method: sum(None not in one.values() for one in of_one.values()) for method, of_one in scored.scores.items()}
    return Result(
        name=REHEARSAL_SCORE,
        asks=ASKS,
        answer=f"{why[:1].upper()}{why[1:]}.",
        tables=(
            Table(
                title="Samples",
                header=("method", "summaries", "scored"),
                rows=tuple(
                    (
                        METHODS[method].published,
                        f"{len(of_one)} of {len(scored.traces[method])}",
                        f"{complete[method]} of {len(of_one)}",
                    )
                    for method, of_one in scored.scores.items()
                ),
            ),
        ),
        details={"judge": scored.judge, "samples": len(samples), "compared": 0, "readers": 0},
    )


def pass_rate_table(rates: Rates, *, together: bool) -> Table | None:
    """What figure 3 is drawn from; None where nobody was supervised."""
    most = max(map(len, rates.values()), default=0)
    if not most:
        return None
    rows = [
        (name, "yes" if shown(name, together=together) else "no", *(_percent(rates[name], at) for at in range(most)))
        for name in in_order(rates)
    ]
    stops = ("stops at", None, *(f"{stop_at(at):.0f}" if stop_at(at) else "any" for at in range(1, most + 1)))
    return Table(
        title=PASS_RATES,
        header=("played", "demonstrations", *(str(at) for at in range(1, most + 1))),
        rows=(*rows, stops),
        breaks=(len(rows),),
        notes=("Percent of all samples that have passed after each iteration. A model passes its own role-play easily.",),
    )


def _percent(values: Sequence[float], at: int) -> str | None:
    return f"{100 * values[at]:.1f}" if at < len(values) else None


def way_table(traces: Traces) -> Table | None:
    """Of each method that rewrites: role-play, filter, and which version was kept."""
    playing = {method: list(of_one.values()) for method, of_one in traces.items() if METHODS[method].plays}
    if not playing:
        return None
    most = max((max(len(trace.versions), len(trace.rounds)) for of_one in playing.values() for trace in of_one), default=0)
    return Table(
        title=ON_THE_WAY,
        header=(
            "method", "suggestions passed", "responses", "reviews removed", "of these by chance",
            *(f"kept {number}" for number in range(1, most + 1)),
        ),
        rows=tuple(_way(method, of_one, most) for method, of_one in playing.items()),
        notes=(
            "Responses, and reviews removed at a time: means over the samples. By chance: drawn, since the filter did not name enough. "
            "Kept: of how many samples each rewriting is the summary; under the personal judge the general one is where none stood.",
        ),
    )  # fmt: skip


def _way(method: str, traces: Sequence[Trace], most: int) -> tuple[Cell, ...]:
    played = [trace.suggestions for trace in traces if trace.suggestions is not None]
    in_rounds = [sum(one.suggestions is not None for one in trace.rounds) for trace in traces if trace.rounds]
    responses = in_rounds or [one.responses for one in played]
    filtered = [one for trace in traces for one in trace.filters]
    kept = Counter(_last_that_stood(trace) if trace.rounds else trace.kept for trace in traces)
    removed = sum(len(one.removed) for one in filtered)
    return (
        METHODS[method].published,
        f"{sum(one.passed for one in played)} of {len(traces)}" if METHODS[method].supervised else None,
        _mean(responses),
        _mean(len(one.removed) for one in filtered),
        f"{sum(len(one.drawn) for one in filtered)} of {removed}" if filtered else None,
        *(str(kept[number]) for number in range(1, most + 1)),
    )


def _last_that_stood(trace: Trace) -> int | None:
    """Its number; None where the general summary stayed."""
    return max((number for number, one in enumerate(trace.rounds, start=1) if one.stands), default=None)


def _mean(values: Iterable[int]) -> str | None:
    known = list(values)
    return f"{fmean(known):.2f}" if known else None
