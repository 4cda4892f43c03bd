"""The first picture of a report: what each source knows alone, all numbers together, and the same with each judge.

A judge costs something and the numbers nothing, so whoever reads a report first asks what it adds to them. Texts that training readers
scored and others stand apart, since other readers' scores, which say most of the former, say nothing of the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Figure
from perse.drawing.marks import draw, empty, style
from perse.drawing.named_rows import ROW, NamedRow, around, dots, no_interval, reference_line, value_in_words
from perse.evaluation.stacking.adding import SEEN
from perse.evaluation.stacking.knowing import TOGETHER, Knowledge, KnownRow
from perse.reporting.trust_figures import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

KNOWLEDGE = "knows"
"""Begins the names of these figures."""
_TITLE = "What knows what"
_HEADER = ("row", "judge", "Kendall tau-b", "low", "high", "items", "reason")


def knowledge_figures(known: Sequence[Knowledge] | str, judges: Sequence[str]) -> list[Figure]:
    """One figure of each kind of texts.

    Args:
        known: of `what_knows_what`, or why there is nothing of it.
        judges: in the order of all figures, which gives them their looks.
    """
    if isinstance(known, str):
        return [empty(KNOWLEDGE, title=_TITLE, reason=known, header=_HEADER)]
    return [_figure(one, judges) for one in known]


def _figure(known: Knowledge, judges: Sequence[str]) -> Figure:
    rows = [_named(row, judges) for row in known.rows]
    estimates = [row.estimate for row in known.rows if row.estimate is not None]
    numbers = next(row.estimate for row in known.rows if row.name == TOGETHER and row.judge is None)

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        dots(axis, rows)
        around(axis, [0.0, *(end for e in estimates for end in (e.value, e.interval.low, e.interval.high) if end is not None)])
        reference_line(axis, 0.0, rows=rows, baseline=False)
        if numbers is not None and numbers.value is not None:
            reference_line(axis, numbers.value, rows=rows, baseline=True)
        axis.set_xlabel("Kendall tau-b of what is fitted on each and true scores\n(0: no order; dashed: the numbers together)")

    said = [f"{row.name} {value_in_words(row.estimate)}" for row in sorted(known.rows, key=_first_said) if row.estimate]
    without = "".join(f" Nothing of {row.judge}: {row.missing}." for row in known.rows if row.judge == row.name and row.missing)
    return draw(
        f"{KNOWLEDGE}-{'seen' if known.kind == SEEN else 'new'}",
        paint,
        height=0.9 + ROW * len(rows),
        title=f"{_TITLE}: {known.kind} ({known.examples:,} examples, of {known.readers:,} readers)",
        alt=f"Kendall tau-b of what is fitted on each, of {known.kind}: {listed(said)}.{without}{no_interval(estimates)}",
        header=_HEADER,
        rows=[_cells(row) for row in known.rows],
    )


def _first_said(row: KnownRow) -> int:
    """What is told in words, where there is room for some: the numbers together, then judges, then single sources."""
    return 1 if row.judge else 0 if row.name == TOGETHER else 2


def _named(row: KnownRow, judges: Sequence[str]) -> NamedRow:
    if row.judge is None:
        return NamedRow(row.name, row.estimate, style(0, baseline=True), hollow=row.name != TOGETHER, missing=row.missing)
    alone = row.name == row.judge
    return NamedRow(row.name, row.estimate, style(list(judges).index(row.judge)), hollow=alone, missing=row.missing)


def _cells(row: KnownRow) -> tuple[str | float | int | None, ...]:
    estimate = row.estimate
    if estimate is None:
        return (row.name, row.judge, None, None, None, None, row.missing)
    interval = estimate.interval
    return (row.name, row.judge, estimate.value, interval.low, interval.high, estimate.items, interval.reason)
