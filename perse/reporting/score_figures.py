"""Pictures of scores: given scores, errors, and whether the expected score is right on average.

A judge that always says 7 can still have a fine mean error. So true and given scores stand side by side, and the commonest
label is named where it is much more frequent than among the readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Figure
from perse.drawing.marks import (
    BASELINE,
    DIM,
    HATCHES,
    INK,
    LINE,
    PAPER,
    SERIES,
    draw,
    empty,
    file_name,
    legend_above,
    panels,
    say,
    style,
)
from perse.drawing.named_rows import no_interval, value_in_words
from perse.evaluation.calibration.reliability import binned
from perse.evaluation.calibration.risk_coverage import entropy
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.results import Evaluation
from perse.evaluation.verdict import answering
from perse.reporting.collapse import commonest, is_collapsed, nearest
from perse.reporting.report_data import RunData
from perse.reporting.trust_figures import listed, panel_height, points_of, whiskers, xy
from perse.results.result import Estimate
from perse.results.words import in_percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

CALIBRATION_BINS = 8
NOTHING_KNOWN = "no judge answered an item whose true score is known"


def distributions(runs: Mapping[str, RunData]) -> Figure:
    """How often each score is true, given, and expected of the probabilities: a collapse shows at a glance."""
    name, title = "scores", "True and predicted scores"
    header = ("judge", "score", "true share", "share given", "share likeliest", "mean probability")
    shares = {judge: _shares(run) for judge, run in runs.items() if run.known.any()}
    if not shares:
        return empty(name, title=title, reason=NOTHING_KNOWN, header=header)
    collapsed = [words for judge in shares if (words := _collapse(runs[judge], shares[judge]))]
    bars = (("true", BASELINE, ""), ("given", SERIES[0], HATCHES[1]), ("mean probability", SERIES[1], HATCHES[2]))

    def paint(sheet: Sheet) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        for axis, (judge, (true, given, likeliest, mean)) in zip(panels(sheet, list(shares)), shares.items(), strict=True):
            at = np.arange(len(true), dtype=np.float64)
            for side, heights, (_, colour, hatch) in zip((-1, 0, 1), (true, given, mean), bars, strict=True):
                axis.bar(
                    at + 0.27 * side, np.nan_to_num(heights), 0.27, color=colour, hatch=hatch, edgecolor=PAPER, linewidth=0.5
                )
            axis.plot(at, likeliest, "D", color=INK, markerfacecolor=PAPER, markersize=4.5)
            axis.set_xticks(at, runs[judge].labels)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axis.grid(axis="y")
        handles: list[Artist] = [
            Patch(facecolor=colour, hatch=hatch, edgecolor=PAPER, label=label) for label, colour, hatch in bars
        ]
        handles.append(
            Line2D([], [], color=INK, marker="D", markerfacecolor=PAPER, linestyle="", markersize=4.5, label="likeliest")
        )
        legend_above(sheet, handles)
        sheet.supxlabel("score", fontsize=9.5)

    return draw(
        name,
        paint,
        height=2.6 if len(shares) == 1 else 0.6 + 1.5 * len(shares),
        title=f"{title}: {collapsed[0]}" if collapsed else title,
        alt=_shares_in_words(runs, shares, collapsed),
        header=header,
        rows=[
            (judge, label, *(None if np.isnan(cell) else float(cell) for cell in cells))
            for judge, four in shares.items()
            for label, *cells in zip(runs[judge].labels, *four, strict=True)
        ],
    )


def _shares(run: RunData) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of each label: true, given and likeliest shares, and the mean probability, NaN without distributions."""
    rows = run.known
    true, given, likeliest = (
        np.bincount(nearest(values[rows], run), minlength=len(run.labels)) / rows.sum()
        for values in (run.gold, run.label, run.likeliest)
    )
    mean = run.distributions[run.told].mean(axis=0) if run.told.any() else np.full(len(run.labels), np.nan)
    return true, given, likeliest, mean


def _collapse(run: RunData, shares: tuple[FloatArray, FloatArray, FloatArray, FloatArray]) -> str:
    true, given, likeliest, _ = shares
    for words, share, answers in (("gives", given, run.label), ("finds likeliest", likeliest, run.likeliest)):
        if is_collapsed(run, answers):
            most = int(share.argmax())
            return f"{run.name} {words} {run.labels[most]} in {in_percent(share[most])}, readers in {in_percent(true[most])}"
    return ""


def _shares_in_words(
    runs: Mapping[str, RunData],
    shares: Mapping[str, tuple[FloatArray, FloatArray, FloatArray, FloatArray]],
    collapsed: list[str],
) -> str:
    said = []
    for judge, (_, given, likeliest, _) in shares.items():
        common, likely = (commonest(one, runs[judge].labels) for one in (given, likeliest))
        words = f"{judge} gives {common} most often, {in_percent(given.max())} of the time ({_bits(given):.1f} bits)"
        said.append(f"{words}, and most often finds {likely} likeliest, {in_percent(likeliest.max())} of the time")
    if any(runs[judge].unanswered for judge in shares):
        each = [_true_in_words(runs[judge], four[0], of=f" of what {judge} answered") for judge, four in shares.items()]
        words = " ".join(f"{true}; {given}." for true, given in zip(each, said, strict=True))
    else:
        first = next(iter(shares))
        words = f"{_true_in_words(runs[first], shares[first][0], of='')}; {listed(said)}."
    return words + (f" Nearly one score for everything: {listed(collapsed)}." if collapsed else "")


def _true_in_words(run: RunData, true: FloatArray, *, of: str) -> str:
    """What the readers gave most often, to all that was judged or to what a judge answered `of` it."""
    nearest_to = "" if run.on_labels else " (to the nearest label)"
    top = commonest(true, run.labels)
    return f"The commonest true score{of}{nearest_to} is {top}, {in_percent(true.max())} of the time (entropy {_bits(true):.1f} bits)"


def of_answered(runs: Mapping[str, RunData], evaluation: Evaluation, *, but: str = "the tables") -> str:
    """A sentence on which items a picture is of, where some judge answered more than the values in the tables are of; else nothing."""
    if all(run.known.sum() <= evaluation.ok_items for run in runs.values()):
        return ""
    return f" Drawn is what each judge answered; {but} are of the {evaluation.ok_items} items that {answering(evaluation.judges)} answered."


def _bits(shares: FloatArray) -> float:
    return float(entropy(shares[None])[0])


def confusions(runs: Mapping[str, RunData]) -> list[Figure]:
    """A table of true by given scores for each judge."""
    names = numbered("confusion", list(runs))
    return [_confusion(run, names[judge]) for judge, run in runs.items()]


def numbered(what: str, judges: list[str]) -> dict[str, str]:
    """A file name for each judge's picture: `what` alone for one, else with its number and name."""
    if len(judges) == 1:
        return {judges[0]: what}
    return {judge: file_name(what, str(n), judge)[:60].rstrip("-") for n, judge in enumerate(judges, start=1)}


def _confusion(run: RunData, name: str) -> Figure:
    title = f"True and given scores: {run.name}"
    known = ~np.isnan(run.gold)
    failed = known & np.isnan(run.label)
    answers = (*run.labels, "N/A") if failed.any() else run.labels
    header = ("true score", *answers)
    if not (known & ~failed).any():
        return empty(name, title=title, reason=f"{run.name} answered no item whose true score is known", header=header)
    given = np.full(len(run.gold), len(run.labels))
    given[known & ~failed] = nearest(run.label[known & ~failed], run)
    table = np.zeros((len(run.labels), len(answers)), dtype=np.int64)
    np.add.at(table, (nearest(run.gold[known], run), given[known]), 1)

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        shade(axis, table, colour=SERIES[0])
        axis.set_xticks(range(len(answers)), answers)
        totals = [f"{label} ({row.sum()})" for label, row in zip(run.labels, table, strict=True)]
        axis.set_yticks(range(len(run.labels)), totals)
        axis.set(xlabel="given", ylabel="true (how many)")

    square = table[:, : len(run.labels)]
    off = np.abs(np.subtract.outer(np.arange(len(square)), np.arange(len(square))))
    exact, near = (square[off <= most].sum() / table.sum() for most in (0, 1))
    high, low = square[off > 0].sum(), np.triu(square, 1).sum()
    unanswered = f", {failed.sum()} of which it did not answer," if failed.any() else ""
    words = f"{run.name} gives {'exactly the true score' if run.on_labels else 'the label nearest to the true score'} in {in_percent(exact)} of {table.sum()} items{unanswered} and is within one step in {in_percent(near)}"
    words += f"; of its errors, {in_percent(low / high)} are too high" if high else ""
    return draw(
        name,
        paint,
        height=0.75 + 0.37 * len(run.labels),
        title=title,
        alt=f"{words}. Shades are shares of each true score.",
        header=header,
        rows=[(label, *map(int, row)) for label, row in zip(run.labels, table, strict=True)],
    )


def shade(axis: Axes, table: IntArray, *, colour: str) -> None:
    """A table of counts, each cell as dark as its share of its row (never so dark that ink cannot be read on it)."""
    from matplotlib.patches import Rectangle

    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    for (down, across), count in np.ndenumerate(table):
        if not count:
            continue
        part = float(share[down, across])
        axis.add_patch(Rectangle((across - 0.48, down - 0.48), 0.96, 0.96, facecolor=colour, alpha=round(0.06 + 0.5 * part, 3)))
        size = 9 if count < 1000 else 7.5
        axis.text(across, down, str(count), ha="center", va="center", fontsize=size, color=INK)
    axis.set(xlim=(-0.5, table.shape[1] - 0.5), ylim=(table.shape[0] - 0.5, -0.5))
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def calibration(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """The mean true score of items with about the same expected score."""
    name, title = "calibration", "Does the expected score come true?"
    header = ("judge", "mean expected score", "mean true score", "low", "high", "items", "reason")
    points = {judge: _calibration_points(run, evaluation) for judge, run in runs.items()}
    if not any(points.values()):
        return empty(name, title=title, reason=NOTHING_KNOWN, header=header)
    ends = [
        end
        for found in points.values()
        for x, e in found
        for end in (x, e.value, e.interval.low, e.interval.high)
        if end is not None
    ]
    margin = max(0.4, 0.04 * (max(ends) - min(ends)))
    limits = (min(ends) - margin, max(ends) + margin)

    def paint(sheet: Sheet) -> None:
        for nth, (axis, (judge, found)) in enumerate(zip(panels(sheet, list(runs), columns=2), points.items(), strict=True)):
            look = style(list(runs).index(judge))
            axis.plot(limits, limits, color=DIM, linewidth=1, linestyle=(0, (4, 3)))
            for x, estimate in found:
                whiskers(axis, x, estimate, look.colour)
            axis.plot(*xy(found), look.marker + "-", color=look.colour, markersize=5.5)
            if not found:
                say(axis, "nothing answered")
            axis.set(xlim=limits, ylim=limits)
            axis.grid(color=LINE)
            if nth == 0:
                axis.set_ylabel("mean true score")
        sheet.supxlabel("mean expected score (dashed: exactly right)", fontsize=9.5)

    said = [f"{judge}: {_came_true(found)}" for judge, found in points.items() if found]
    return draw(
        name,
        paint,
        height=panel_height(len(runs)),
        title=title,
        alt=f"{listed(said)}.{no_interval([estimate for found in points.values() for _, estimate in found])}{of_answered(runs, evaluation)}",
        header=header,
        rows=[
            (judge, x, e.value, e.interval.low, e.interval.high, e.items, e.interval.reason)
            for judge, found in points.items()
            for x, e in found
        ],
    )


def _came_true(points: list[tuple[float, Estimate]]) -> str:
    ends = points if len(points) == 1 else [points[0], points[-1]]
    return " and ".join(f"where it expects {x:.1f} readers gave {value_in_words(estimate)}" for x, estimate in ends)


def _calibration_points(run: RunData, evaluation: Evaluation) -> list[tuple[float, Estimate]]:
    """Bins of about as many items each; equal expectations stay together."""
    expected = run.expected[run.known]
    if not len(expected):
        return []
    cuts = np.unique(np.quantile(expected, np.arange(1, CALIBRATION_BINS) / CALIBRATION_BINS))
    place = np.searchsorted(cuts, expected, side="left").astype(np.int64)
    who, true = run.reviewer[run.known], run.gold[run.known]
    text = None if run.text is None else run.text[run.known]
    found = binned(expected, true, place, reviewer=who, text=text, resamples=evaluation.resamples, seed=evaluation.seed)
    return points_of(found)
