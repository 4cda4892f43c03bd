"""Plots by reviewer: does the judge know who is lenient, and does it know what each of them likes?

Over all items the two are mixed: a judge that only knows how lenient a reviewer is seems to know their taste.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, INK, LINE, PAPER, draw, empty, panels, say, style
from perse.drawing.named_rows import value_in_words
from perse.evaluation.shared_texts import SHOWN_ELSEWHERE
from perse.evaluation.stats.correlation import FloatArray, IntArray, kendall, within_reviewers
from perse.evaluation.stats.results import Evaluation
from perse.reporting.report_data import RunData
from perse.reporting.score_figures import NOTHING_KNOWN, of_answered
from perse.reporting.trust_figures import listed, panel_height
from perse.results.words import in_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

DRAWN_REVIEWERS = 1500
"""Most points that are drawn; the CSV holds all."""


def reviewers(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """Mean true against mean expected score of each reviewer, sized by their number of items."""
    name, title = "reviewers", "Does it know who is lenient?"
    header = ("judge", "reviewer", "items", "mean true score", "mean expected score")
    means = {judge: _means(run) for judge, run in runs.items()}
    if not any(len(who) for who, *_ in means.values()):
        return empty(name, title=title, reason=NOTHING_KNOWN, header=header)
    ends = np.concatenate([np.concatenate([true, predicted]) for _, _, true, predicted in means.values()])
    limits = (float(ends.min()) - 0.4, float(ends.max()) + 0.4)

    def paint(sheet: Sheet) -> None:
        for nth, (axis, (judge, (_, items, true, predicted))) in enumerate(
            zip(panels(sheet, list(runs), columns=2), means.items(), strict=True)
        ):
            look = style(list(runs).index(judge))
            axis.plot(limits, limits, color=DIM, linewidth=1, linestyle=(0, (4, 3)))
            drawn = np.argsort(-items, kind="stable")[:DRAWN_REVIEWERS]
            sizes = 8 + 50 * items[drawn] / items.max() if len(items) else items
            axis.scatter(
                true[drawn], predicted[drawn], s=sizes, marker=look.marker, facecolor=look.colour, alpha=0.45, linewidths=0
            )
            if not len(items):
                say(axis, "nothing answered")
            axis.set(xlim=limits, ylim=limits)
            axis.grid(color=LINE)
            if nth == 0:
                axis.set_ylabel("mean expected score")
        sheet.supxlabel("a reviewer's mean true score (dashed: equal)", fontsize=9.5)

    said = [_reviewers_in_words(judge, *means[judge][1:], evaluation) for judge in runs if len(means[judge][0])]
    numbers = sorted({len(who) for who, *_ in means.values() if len(who)})
    most = numbers[-1]
    few = f" Drawn are the {DRAWN_REVIEWERS} with most items." if most > DRAWN_REVIEWERS else ""
    rows: list[tuple[Cell, ...]] = [
        (judge, who, int(n), float(x), float(y))
        for judge, (ids, items, true, predicted) in means.items()
        for who, n, x, y in zip(ids, items, true, predicted, strict=True)
    ]
    # "... in 14 of 84 examples", to the colon
    shown = next((note.partition(":")[0] for note in evaluation.notes if note.startswith(SHOWN_ELSEWHERE)), "")
    copied = (
        f" {shown[:1].upper()}{shown[1:]}: the more of them, the nearer who repeats the mean of a profile comes to these means, whoever is lenient."
        if shown
        else ""
    )
    number = f"{numbers[0]} to {most}" if len(numbers) > 1 else f"{most}"
    alt = f"Mean scores of {number} reviewers: {listed(said)}.{of_answered(runs, evaluation, but='Kendall between reviewers, and the tables,')}{few}{copied}"
    return draw(name, paint, height=panel_height(len(runs)), title=title, alt=alt, header=header, rows=rows)


def _means(run: RunData) -> tuple[list[str], IntArray, FloatArray, FloatArray]:
    """Ids of the reviewers with an answered item, how many they have, and their mean true and expected scores."""
    who, size = run.reviewer[run.known], len(set(run.reviewers))
    items = np.bincount(who, minlength=size)
    there = items > 0
    true, predicted = (
        np.bincount(who, weights=values[run.known], minlength=size)[there] / items[there] for values in (run.gold, run.expected)
    )
    ids = [one for one, some in zip(sorted(set(run.reviewers)), there, strict=True) if some]
    return ids, items[there].astype(np.int64), true, predicted


def _reviewers_in_words(judge: str, items: IntArray, true: FloatArray, predicted: FloatArray, evaluation: Evaluation) -> str:
    words = (
        f"{judge} spreads them from {predicted.min():.1f} to {predicted.max():.1f}, truly {true.min():.1f} to {true.max():.1f}"
    )
    row = next((row for row in evaluation.rows if row.judge == judge and "between_kendall" in row.columns), None)
    return words + (f", Kendall between reviewers {value_in_words(row.columns['between_kendall'])}" if row else "")


def within(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """How many reviewers' texts were ordered well: Kendall's tau of each reviewer's items."""
    name, title = "within-reviewers", "How well does it order each reviewer's texts?"
    header = ("judge", "reviewer", "Kendall tau-b")
    found: dict[str, tuple[list[str], FloatArray]] = {}
    for judge, run in runs.items():
        of_each = within_reviewers(
            kendall, run.gold[run.known], predicted=run.expected[run.known], reviewer=run.reviewer[run.known]
        )
        ids = sorted(set(run.reviewers))
        found[judge] = ([ids[one] for one in of_each.reviewers], of_each.values)
    defined = {judge: values[~np.isnan(values)] for judge, (_, values) in found.items()}
    if not any(len(values) for values in defined.values()):
        reason = "no reviewer has two answered items with different true and different expected scores"
        return empty(name, title=title, reason=reason, header=header)

    def paint(sheet: Sheet) -> None:
        from matplotlib.ticker import MaxNLocator

        for nth, (axis, (judge, values)) in enumerate(zip(panels(sheet, list(runs), columns=2), defined.items(), strict=True)):
            look = style(list(runs).index(judge))
            axis.hist(values, bins=np.linspace(-1, 1, 11).tolist(), color=look.colour, hatch=look.hatch, edgecolor=PAPER)
            if len(values):
                axis.axvline(float(values.mean()), color=INK, linewidth=1.5, linestyle=(0, (4, 2)))
            else:
                say(axis, "undefined")
            axis.set_xlim(-1.05, 1.05)
            axis.grid(axis="y")
            axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
            if nth == 0:
                axis.set_ylabel("reviewers")
        sheet.supxlabel("Kendall tau-b of a reviewer's items (dashed: mean)", fontsize=9.5)

    said = [
        f"{judge} has a tau-b above 0 for {in_percent((values > 0).mean())} of {len(values)} reviewers (a coin has it for half of them, of few texts each for less, since tau is then often 0; and "
        f"knowing what most like is enough for more), mean {values.mean():.2f}"
        + (f" ({np.isnan(found[judge][1]).sum()} reviewers without a value)" if len(values) < len(found[judge][1]) else "")
        for judge, values in defined.items()
        if len(values)
    ]
    rows: list[tuple[Cell, ...]] = [
        (judge, who, None if np.isnan(value) else float(value))
        for judge, (ids, values) in found.items()
        for who, value in zip(ids, values, strict=True)
    ]
    height = panel_height(len(runs)) - (0.4 if len(runs) == 1 else 0)
    alt = f"{listed(said)}.{of_answered(runs, evaluation)}"
    return draw(name, paint, height=height, title=title, alt=alt, header=header, rows=rows)
