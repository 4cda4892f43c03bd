"""The pictures of scoring runs: how good, how sure, where wrong, what failed, what it cost. One list for the report.

Values with intervals are those of the tables (`Evaluation`); everything else is drawn from the answers themselves (`RunData`), of
each judge what it answered. Judges keep their colour and marker in all pictures; baselines are grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, HATCHES, SERIES, Style, draw, empty, legend_above, style
from perse.drawing.named_rows import (
    ROW,
    NamedRow,
    around,
    dots,
    name_row,
    no_interval,
    reference_line,
    value_in_words,
)
from perse.evaluation.metrics import METRICS, Kind, added, lower_is_better, metrics_of
from perse.evaluation.stats.estimates import SKIPPING
from perse.evaluation.stats.results import Evaluation, Row
from perse.evaluation.verdict import BY_TIES, in_words
from perse.judgement import Status
from perse.reporting.choice_figures import aspects, choice_confusions, order_gaps
from perse.reporting.report_data import RunData
from perse.reporting.reviewer_figures import reviewers, within
from perse.reporting.score_figures import calibration, confusions, distributions
from perse.reporting.trust_figures import listed, reliability, risk_coverage
from perse.results.result import Estimate
from perse.results.words import in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet
    from matplotlib.patches import Patch


def run_figures(runs: Mapping[str, RunData], evaluation: Evaluation) -> list[Figure]:
    """All pictures of these runs, in the order in which one reads them.

    Args:
        runs: of `report_data`, from the same items as the evaluation.
    Raises:
        BadInput: matplotlib is not installed.
    """
    return (pointwise_figures if evaluation.kind == "pointwise" else pairwise_figures)(runs, evaluation)


def pointwise_figures(runs: Mapping[str, RunData], evaluation: Evaluation) -> list[Figure]:
    """Pictures of scores, be they of texts or of summaries."""
    return [
        *_metrics(evaluation, "scores"),
        distributions(runs),
        *confusions(runs),
        calibration(runs, evaluation),
        reliability(runs, evaluation),
        risk_coverage(runs),
        reviewers(runs, evaluation),
        within(runs, evaluation),
        failures(runs),
        tokens(runs, evaluation),
    ]


def pairwise_figures(runs: Mapping[str, RunData], evaluation: Evaluation) -> list[Figure]:
    """Pictures of choices between two texts."""
    return [
        *_metrics(evaluation, "choices"),
        aspects(evaluation),
        *choice_confusions(evaluation),
        reliability(runs, evaluation),
        order_gaps(runs, evaluation),
        risk_coverage(runs),
        failures(runs),
        tokens(runs, evaluation),
    ]


def _metrics(evaluation: Evaluation, kind: Kind) -> list[Figure]:
    """One of each metric that wants to be drawn."""
    known = {name for row in evaluation.rows for name in row.columns}
    drawn = [one for one in metrics_of(kind) if one.drawn and (one.name in known or not added(one))]
    return [metric(evaluation, one.name) for one in drawn]


def metric(evaluation: Evaluation, column: str) -> Figure:
    """One value of all judges and baselines, with intervals; the best baseline as a dashed line through all rows."""
    name, header = f"metric-{column.replace('_', '-')}", ("row", "judge", "value", "low", "high", "items", "reason")
    title = METRICS[column].drawn or METRICS[column].alone
    shown = [row for row in evaluation.rows if column in row.columns or row.unavailable]
    rows = [_named(row, row.columns.get(column), list(evaluation.judges)) for row in shown]
    found = {row.name: row.columns[column] for row in shown if column in row.columns}
    best = _best(evaluation, column, judged=False)
    if not any(estimate.value is not None for estimate in found.values()):
        reasons = dict.fromkeys(estimate.interval.reason for estimate in found.values() if estimate.interval.reason)
        reason = "; ".join(filter(None, reasons)) or "no row has this value"
        return empty(name, title=title, reason=f"{title}: {reason}", header=header)

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        dots(axis, rows)
        _limits(axis, list(found.values()), column, rows=rows)
        if best:
            reference_line(axis, best[1], rows=rows, baseline=True)
        better = "lower is better" if lower_is_better(column) else "higher is better"
        axis.set_xlabel(better + (f"; dashed: {best[0]}" if best else ""))

    return draw(
        name,
        paint,
        height=0.65 + ROW * len(rows),
        title=title,
        alt=_metric_in_words(evaluation, column, title, best),
        header=header,
        rows=[_cells(row, row.columns.get(column)) for row in shown],
    )


def _named(row: Row, estimate: Estimate | None, judges: list[str]) -> NamedRow:
    look = style(0, baseline=True) if row.judge is None else style(judges.index(row.judge))
    if row.judge is None:
        look = Style(look.colour, "|", look.hatch, look.dash)
    hollow = row.name.endswith("(label)") or row.judge is None
    return NamedRow(row.name, estimate, look, hollow=hollow, missing=row.unavailable or "")


def _limits(axis: Axes, estimates: list[Estimate], column: str, *, rows: list[NamedRow]) -> None:
    ends = [end for e in estimates for end in (e.value, e.interval.low, e.interval.high) if end is not None]
    chance = METRICS[column].chance
    if chance is not None:
        ends.append(chance)
        reference_line(axis, chance, rows=rows, baseline=False)
    around(axis, ends)


def _best(evaluation: Evaluation, column: str, *, judged: bool, among: Sequence[str] | None = None) -> tuple[str, float] | None:
    """The best judge's row, or the best baseline, and its value; `among` these rows alone, if they are named: rounded answers have other ties."""
    known = [
        (row.name, value)
        for row in evaluation.rows
        if (row.judge is not None) is judged
        and (among is None or row.name in among)
        and (value := getattr(row.columns.get(column), "value", None)) is not None
    ]
    sign = -1 if lower_is_better(column) else 1
    return max(known, key=lambda one: sign * one[1], default=None)


def _against(evaluation: Evaluation, ours: tuple[str, float], best: tuple[str, float], column: str) -> str:
    """Whether a judge's row is ahead of the best baseline; of values of other readers, neither is."""
    row, baseline = ours[0], best[0]
    known = {one.baseline: one.estimate for one in evaluation.differences if (one.row, one.column) == (row, column)}
    if readers := _of_other_readers(evaluation, row, baseline, column, known.get(baseline)):
        apart = (
            f": on those whose texts both order the difference is {value_in_words(known[baseline])}"
            if baseline in known
            else ""
        )
        apart += _of_all(evaluation, row, baseline, column)
        return f" The values of {row} and {baseline} {readers}, and neither is called better{apart}."
    ahead = ours[1] < best[1] if lower_is_better(column) else ours[1] > best[1]
    return (
        _ahead(evaluation, row, baseline, column, known) if ahead else f" Of these {row} comes closest and is not ahead of it."
    )


def _of_other_readers(evaluation: Evaluation, row: str, baseline: str, column: str, difference: Estimate | None) -> str:
    """That two values within readers are, or may be, of other readers, since each leaves out those whose texts it does not order; else nothing."""
    of_rows = {one.name: one.columns[column] for one in evaluation.rows if one.name in (row, baseline)}
    ours, best = of_rows[row], of_rows[baseline]
    counts = {ours.skipped_reviewers or 0, best.skipped_reviewers or 0}
    if column not in SKIPPING or counts == {0}:
        return ""
    # A difference is of the readers whom both order: of the same as the values, if it is theirs.
    if difference and difference.value is not None and abs(difference.value - ((ours.value or 0) - (best.value or 0))) < 1e-9:
        return ""
    return "are of other readers" if len(counts) > 1 else "may be of other readers"


def _ahead(evaluation: Evaluation, row: str, baseline: str, column: str, known: Mapping[str, Estimate]) -> str:
    """How far a judge's row is ahead of a baseline, and whether chance, ties, or readers of whom it says nothing may have made that."""
    estimate = known.get(baseline)
    again = next((name for name in BY_TIES.get(baseline, ()) if name in known), None)
    better = f" The value of {row} is better than that of {baseline}"
    if again is not None:
        first = "" if estimate is None else f"the difference is {value_in_words(estimate)}, and "
        return f"{better}, which ties may make: {first}{value_in_words(known[again])} from {in_words(again, own_scores=evaluation.own_scores)}."
    if estimate is None:
        return f"{better}; whether by more than chance was not computed."
    if estimate.interval.low is None or estimate.interval.high is None:
        return f"{better}, which may be chance: the interval of the difference is {estimate.interval.reason}."
    of_all = _of_all(evaluation, row, baseline, column)
    chance = estimate.interval.low <= 0 <= estimate.interval.high
    why = ", which may be chance" if chance else ", which readers whose texts are not ordered may make" if of_all else ""
    return f"{better}{why}: the difference is {value_in_words(estimate)}{of_all}."


def _of_all(evaluation: Evaluation, row: str, baseline: str, column: str) -> str:
    """Where the verdict takes a lead within readers back: what is left of it over all readers."""
    of_all = (row, baseline, SKIPPING.get(column))
    found = next((one.estimate for one in evaluation.differences if (one.row, one.baseline, one.column) == of_all), None)
    return f", and {value_in_words(found)} where readers whose texts are not ordered count 0" if found else ""


def _metric_in_words(evaluation: Evaluation, column: str, title: str, best: tuple[str, float] | None) -> str:
    of_rows = {row.name: row.columns.get(column) for row in evaluation.rows}
    judged = [row.name for row in evaluation.rows if row.judge is not None]
    read = [name for name in judged if not name.endswith("(label)")] or judged
    words = f"{title}: {listed([f'{name} {value_in_words(of_rows[name])}' for name in read])}; "
    words += f"best baseline: {best[0]} {value_in_words(of_rows[best[0]])}." if best else "no baseline has a value."
    words += _as_good([name for name in of_rows if name not in judged], of_rows, best) if best else ""
    ours = _best(evaluation, column, judged=True, among=read)
    if ours and best and f"{ours[1]:.2f}" != f"{best[1]:.2f}":
        words += _against(evaluation, ours, best, column) + _as_good(judged, of_rows, ours)
    return words + _left_out(of_rows, [*read, *([best[0]] if best else [])]) + no_interval(list(of_rows.values()))


def _left_out(of_rows: Mapping[str, Estimate | None], named: Sequence[str]) -> str:
    """Of values within readers, how many readers each leaves out; nothing where none does."""
    counts = {name: (one.skipped_reviewers or 0) if (one := of_rows[name]) else 0 for name in named}
    said = [f"{name} {count}" for name, count in counts.items() if count]
    return f" Without the readers of one text, or whose texts a row, or they, score all alike: {listed(said)}." if said else ""


def _as_good(judged: Sequence[str], of_rows: Mapping[str, Estimate | None], best: tuple[str, float]) -> str:
    """Which other rows have exactly the value of the best one."""
    others = [name for name in judged if name != best[0] and getattr(of_rows[name], "value", None) == best[1]]
    return f" Of the same value as {best[0]}: {listed(others)}." if others else ""


def _cells(row: Row, estimate: Estimate | None) -> tuple[Cell, ...]:
    if estimate is None:
        return (row.name, row.judge, None, None, None, None, row.unavailable)
    interval = estimate.interval
    return (row.name, row.judge, estimate.value, interval.low, interval.high, estimate.items, interval.reason)


def failures(runs: Mapping[str, RunData]) -> Figure:
    """Outcomes of the questions, as shares of all."""
    counts = {name: {status: run.statuses.count(status) for status in Status} for name, run in runs.items()}
    seen = [status for status in Status if any(count[status] for count in counts.values())]
    colours = dict(zip(Status, (SERIES[2], SERIES[1], SERIES[4], SERIES[3], DIM), strict=True))
    hatches = dict(zip(Status, HATCHES, strict=False))

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        for place, (name, count) in enumerate(counts.items()):
            asked, left = sum(count.values()), 0.0
            name_row(axis, -place, name, f"{count[Status.OK]} of {asked} ok")
            for status in seen:
                share = count[status] / asked
                axis.barh(-place, share, 0.4, left=left, color=colours[status], hatch=hatches[status], edgecolor="#ffffff")
                left += share
        axis.set(xlim=(0, 1), ylim=(-len(runs) + 0.5, 0.75), yticks=[], xlabel="share of the questions asked")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axis.spines["left"].set_visible(False)
        legend_above(sheet, [_patch(str(status).replace("_", " "), colours[status], hatches[status]) for status in seen])

    said = [f"{name} answered {count[Status.OK]} of {sum(count.values())}{_others(count)}" for name, count in counts.items()]
    return draw(
        "failures",
        paint,
        height=1.0 + 0.42 * len(runs),
        title="What became of the questions",
        alt=f"Of the questions asked, {listed(said)}.",
        header=("judge", *(str(status) for status in Status), "asked"),
        rows=[(name, *count.values(), sum(count.values())) for name, count in counts.items()],
    )


def _others(count: Mapping[Status, int]) -> str:
    other = [f"{number} {status.replace('_', ' ')}" for status, number in count.items() if number and status is not Status.OK]
    return f" ({', '.join(other)})" if other else ""


def tokens(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """What a judgement took: prompt tokens, those of them that came from a cache, and tokens written."""
    of_judges: dict[str, tuple[float, float, float, float | None]] = {}
    for name, run in runs.items():
        prompt, cached, written = run.tokens.mean(axis=0).tolist()
        spent = evaluation.judges[name].spent if name in evaluation.judges else None
        of_judges[name] = (prompt - cached, cached, written, spent.tokens_per_second if spent else None)
    parts = (("prompt", SERIES[0], HATCHES[0]), ("prompt, cached", SERIES[5], HATCHES[1]), ("written", SERIES[1], HATCHES[3]))

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        for place, (name, (*means, speed)) in enumerate(of_judges.items()):
            name_row(
                axis, -place, name, (f"{sum(means):,.0f}" if any(means) else "unknown") + (f", {speed:,.0f}/s" if speed else "")
            )
            left = 0.0
            for mean, (_, colour, hatch) in zip(means, parts, strict=True):
                axis.barh(-place, mean, 0.4, left=left, color=colour, hatch=hatch, edgecolor="#ffffff")
                left += mean
        axis.set(ylim=(-len(runs) + 0.5, 0.75), yticks=[], xlabel="tokens per judgement")
        axis.set_xlim(0, max(1.0, *(sum(means) for *means, _ in of_judges.values())))
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.spines["left"].set_visible(False)
        legend_above(sheet, [_patch(*part) for part in parts])

    said = [_spent_in_words(name, *numbers) for name, numbers in of_judges.items()]
    return draw(
        "tokens",
        paint,
        height=1.0 + 0.42 * len(runs),
        title="Tokens per judgement",
        alt=f"Tokens per judgement: {listed(said)}.",
        header=("judge", "prompt, not cached", "prompt, cached", "written", "tokens per second"),
        rows=[(name, *(numbers if any(numbers[:3]) else [None] * 4)) for name, numbers in of_judges.items()],
    )


def _spent_in_words(name: str, fresh: float, cached: float, written: float, speed: float | None) -> str:
    prompt = fresh + cached
    if not prompt + written:
        return f"of {name} unknown"
    share = f" ({in_percent(cached / prompt)} of them cached)" if prompt else ""
    return f"{name} read {prompt:,.0f}{share} and wrote {written:,.0f}" + (f", {speed:,.0f} a second" if speed else "")


def _patch(label: str, colour: str, hatch: str) -> Patch:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, hatch=hatch, edgecolor="#ffffff", label=label)
