"""Pictures of choices between two texts: right by aspect, confused by aspect, and how much the order of the texts decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import (
    DIM,
    INK,
    PAPER,
    SERIES,
    Style,
    draw,
    empty,
    legend_above,
    legend_height,
    panels,
    plain,
    say,
    style,
)
from perse.drawing.named_rows import no_interval
from perse.evaluation.stats.accuracy import NOT_ANSWERED
from perse.evaluation.stats.results import Evaluation, Row
from perse.reporting.report_data import RunData
from perse.reporting.score_figures import numbered, shade
from perse.reporting.trust_figures import listed, panel_height
from perse.results.result import Estimate
from perse.results.words import in_percent
from perse.scale import CHOICES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

BAR = 0.17
"""Inches of a bar."""


def aspects(evaluation: Evaluation) -> Figure:
    """Accuracy of each judge and baseline on each aspect, with intervals."""
    name, title = "aspects", "Right choices by aspect"
    header = ("aspect", "row", "judge", "accuracy", "low", "high", "items", "reason")
    with_values = [row for row in evaluation.rows if row.aspects]
    names = list(dict.fromkeys(aspect for row in with_values for aspect in row.aspects))
    drawn = [row for row in with_values if row.judge is None or not row.name.endswith("(label)")]
    if not names:
        return empty(name, title=title, reason="no row has an accuracy by aspect", header=header)
    looks = _looks(drawn, list(evaluation.judges))

    def paint(sheet: Sheet) -> None:
        from matplotlib.patches import Patch

        axis = sheet.subplots()
        group = len(drawn) + 2.2
        for nth, aspect in enumerate(names):
            axis.text(0, -(nth * group) + 1.0, plain(aspect, 50), va="center", fontsize=9.5, fontweight="bold")
            for place, row in enumerate(drawn):
                estimate, look, y = row.aspects.get(aspect), looks[row.name], -(nth * group + place)
                _bar(axis, y, estimate, look)
        axis.axvline(0.5, color=DIM, linestyle=(0, (4, 3)), linewidth=1, zorder=0)
        axis.set(xlim=(0, 1), ylim=(-len(names) * group + 1.6, 1.8), yticks=[], xlabel="accuracy (dashed: a coin)")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axis.spines["left"].set_visible(False)
        handles = [
            Patch(facecolor=looks[row.name].colour, hatch=looks[row.name].hatch, edgecolor=PAPER, label=row.judge or row.name)
            for row in drawn
        ]
        legend_above(sheet, handles)

    judged = [row for row in drawn if row.judge is not None]
    return draw(
        name,
        paint,
        height=0.6 + legend_height([row.judge or row.name for row in drawn]) + BAR * (len(drawn) + 2.2) * len(names),
        title=title,
        alt=_aspects_in_words(judged, [row for row in drawn if row.judge is None]),
        header=header,
        rows=[(aspect, *_cells(row, row.aspects[aspect])) for aspect in names for row in with_values if aspect in row.aspects],
    )


def _bar(axis: Axes, y: float, estimate: Estimate | None, look: Style) -> None:
    if estimate is None or estimate.value is None:
        axis.text(0.01, y, "undefined", va="center", fontsize=8, style="italic")
        return
    axis.barh(y, estimate.value, 0.82, color=look.colour, hatch=look.hatch, edgecolor=PAPER, linewidth=0.4)
    low, high = estimate.interval.low, estimate.interval.high
    if not estimate.value:
        axis.text(0.01, y, "0%", va="center", fontsize=8)
    if low is not None and high is not None:
        axis.plot([low, high], [y, y], color=PAPER, linewidth=3.6, solid_capstyle="butt")
        axis.plot([low, high], [y, y], color=INK, linewidth=1.4, solid_capstyle="butt")


def _looks(rows: Sequence[Row], judges: list[str]) -> dict[str, Style]:
    baselines = [row.name for row in rows if row.judge is None]
    return {
        row.name: style(judges.index(row.judge)) if row.judge else style(baselines.index(row.name), baseline=True)
        for row in rows
    }


def _percent(estimate: Estimate) -> str:
    """The value and its interval in percent: "47% [41%, 54%]"."""
    if estimate.value is None:
        return "undefined"
    low, high = estimate.interval.low, estimate.interval.high
    return in_percent(estimate.value) + ("" if low is None or high is None else f" [{in_percent(low)}, {in_percent(high)}]")


def _cells(row: Row, estimate: Estimate) -> tuple[Cell, ...]:
    interval = estimate.interval
    return (row.name, row.judge, estimate.value, interval.low, interval.high, estimate.items, interval.reason)


def _aspects_in_words(judged: Sequence[Row], baselines: Sequence[Row]) -> str:
    said = []
    for row in judged:
        known = {aspect: e for aspect, e in row.aspects.items() if e.value is not None}
        if not known:
            continue
        by_value = sorted(known, key=lambda aspect: known[aspect].value or 0.0)
        words = f"{row.name} is right in {_percent(known[by_value[-1]])} on {by_value[-1]}"
        said.append(words + (f" and {_percent(known[by_value[0]])} on {by_value[0]}" if len(by_value) > 1 else ""))
    best = [
        f"{row.name} {in_percent(max(e.value for e in row.aspects.values() if e.value is not None))} at best"
        for row in baselines
        if any(e.value is not None for e in row.aspects.values())
    ]
    words = f"{listed(said)}. Baselines: {listed(best)}." if best else f"{listed(said)}."
    return words + no_interval([e for row in judged for e in row.aspects.values()])


def choice_confusions(evaluation: Evaluation) -> list[Figure]:
    """True by likeliest choice for each aspect, with what was not answered, of each judge."""
    rows = {row.judge: row for row in evaluation.rows if row.judge and row.name.endswith("(likeliest)")}
    names = numbered("confusion", list(rows)) if rows else {}
    return [_choice_confusion(row, names[judge]) for judge, row in rows.items()]


def _choice_confusion(row: Row, name: str) -> Figure:
    title = f"True and likeliest choices: {row.judge}"
    answers = (*CHOICES.labels, NOT_ANSWERED)
    header = ("aspect", "true choice", *answers)
    tables = {
        aspect: np.array([[counts[truth][given] for given in answers] for truth in CHOICES.labels], dtype=np.int64)
        for aspect, counts in row.counts.items()
    }
    if not tables:
        return empty(name, title=title, reason="the evaluation holds no counts of choices", header=header)

    def paint(sheet: Sheet) -> None:
        for nth, (axis, table) in enumerate(zip(panels(sheet, list(tables), columns=2), tables.values(), strict=True)):
            shade(axis, table, colour=SERIES[0])
            axis.set_xticks(range(len(answers)), answers)
            axis.set_yticks(range(len(CHOICES.labels)), CHOICES.labels)
            if nth == 0:
                axis.set_ylabel("true")
        sheet.supxlabel("likeliest", fontsize=9.5)

    whole = sum(tables.values(), np.zeros((2, 3), dtype=np.int64))
    total, first = int(whole.sum()), int(whole[:, 0].sum())
    words = (
        f"{row.judge} chose A in {first} and B in {whole[:, 1].sum()} of {total} pairs (where neither is likelier, by rule or by lot) and did not answer "
        f"{whole[:, 2].sum()}"
    )
    return draw(
        name,
        paint,
        height=2.0 if len(tables) == 1 else 0.5 + 1.35 * -(-len(tables) // 2),
        title=title,
        alt=f"{words}; A is truly preferred in {whole[0].sum()}. Shades are shares of each true choice.",
        header=header,
        rows=[
            (aspect, truth, *map(int, line))
            for aspect, table in tables.items()
            for truth, line in zip(CHOICES.labels, table, strict=True)
        ],
    )


def order_gaps(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """How far P(A) moves when the two texts are swapped."""
    name, title = "order-gap", "How much does the order of the two texts decide?"
    edges = np.linspace(0, 1, 11)
    header = ("judge", *(f"{low:.1f} to {low + 0.1:.1f}" for low in edges[:-1]))
    gaps = {judge: run.order_gap[~np.isnan(run.order_gap)] for judge, run in runs.items()}
    if not any(len(values) for values in gaps.values()):
        return empty(name, title=title, reason="no judge was asked in both orders", header=header)

    def paint(sheet: Sheet) -> None:
        for nth, (axis, (judge, values)) in enumerate(zip(panels(sheet, list(runs), columns=2), gaps.items(), strict=True)):
            look = style(list(runs).index(judge))
            axis.hist(values, bins=edges.tolist(), color=look.colour, hatch=look.hatch, edgecolor=PAPER)
            if not len(values):
                say(axis, "asked in one order")
            else:
                axis.axvline(float(values.mean()), color=INK, linewidth=1.5, linestyle=(0, (4, 2)))
            axis.set_xlim(0, 1)
            axis.grid(axis="y")
            if nth == 0:
                axis.set_ylabel("pairs")
        sheet.supxlabel("|P(A) as given - P(A) swapped| (dashed: mean)", fontsize=9.5)

    said = []
    for judge, values in gaps.items():
        if len(values):
            row = next((row for row in evaluation.rows if row.judge == judge and "order_consistency" in row.columns), None)
            same = f"; it names the same text either way in {_percent(row.columns['order_consistency'])}" if row else ""
            if np.isnan(runs[judge].distributions).any(axis=1).all():
                said.append(
                    f"{judge} gives labels alone: of {len(values)} pairs it chooses another in {in_percent(values.mean())} when the two are swapped, "
                    "what a temperature above 0 samples included"
                )
            else:
                said.append(f"P(A) of {judge} moves by {values.mean():.2f} on average, over {len(values)} pairs{same}")
    height = panel_height(len(runs)) - (0.5 if len(runs) == 1 else 0)
    rows: list[tuple[Cell, ...]] = [(judge, *map(int, np.histogram(values, bins=edges)[0])) for judge, values in gaps.items()]
    return draw(name, paint, height=height, title=title, alt=f"{listed(said)}.", header=header, rows=rows)
