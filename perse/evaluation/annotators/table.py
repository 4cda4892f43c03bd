"""Agreement among annotators as tables for a terminal and as Markdown, made from the same sheets."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from perse.evaluation.annotators.measuring import AnnotatorAgreement, Dimension
from perse.evaluation.stats.results import Estimate


def agreement_view(found: AnnotatorAgreement) -> Group:
    """For a terminal."""
    tables = []
    for title, header, lines in _sheets(found):
        table = Table(title=Text("\n" + title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for at, name in enumerate(header):
            table.add_column(Text(name), justify="left" if at == 0 else "right")
        for line in lines:
            table.add_row(*map(Text, line))
        tables.append(table)
    return Group(*tables, Text(_note(found), style="dim"))


def agreement_markdown(found: AnnotatorAgreement) -> str:
    """The tables as Markdown. Names from files are escaped."""
    parts = []
    for title, header, lines in _sheets(found):
        rule = "|---|" + "---:|" * (len(header) - 1)
        parts.append("\n".join([f"### {title}", "", _line(header), rule, *map(_line, lines), ""]))
    return "\n".join([*parts, _note(found), ""])


def _sheets(found: AnnotatorAgreement) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """(title, header, lines) of each table."""
    header = ("dimension", "items", "alpha", "Pearson", "Spearman", "Kendall tau-b")
    pooled = ("pearson", "spearman", "kendall")
    lines = [
        (one.name, str(one.items), _full(one.alpha), *(_full(one.mean[name]) for name in pooled)) for one in found.dimensions
    ]
    sheets: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("Agreement: Krippendorff's alpha (ordinal), mean correlation of two annotators", header, lines)
    ]
    if any(one.groups < one.items for one in found.dimensions):
        within = tuple(f"within_{name}" for name in pooled)
        lines = [(one.name, str(one.groups), *(_full(one.mean[name]) for name in within)) for one in found.dimensions]
        title = "Within groups: mean over groups of a group's own correlation (constant groups skipped)"
        sheets.append((title, ("dimension", "groups", *header[3:]), lines))
    columns = _who(found.dimensions[0])
    if columns and all(_who(one) == columns for one in found.dimensions) and len(columns) <= 8:
        lines = [
            (one.name, *(_short(pair.columns["spearman"]) for pair in (*one.pairs, *one.rest))) for one in found.dimensions
        ]
        sheets.append(
            ("Spearman of each two annotators, and of each with the mean of the others", ("dimension", *columns), lines)
        )
    return sheets


def _who(dimension: Dimension) -> tuple[str, ...]:
    return tuple(f"{pair.annotator} ~ {pair.other or 'others'}" for pair in (*dimension.pairs, *dimension.rest))


def _note(found: AnnotatorAgreement) -> str:
    groups = sorted({one.groups for one in found.dimensions})
    how_many = str(groups[0]) if len(groups) == 1 else f"{groups[0]} to {groups[-1]}"
    return (
        f"{len(found.annotators)} annotators; [ ]: 95% intervals, bootstrap over {how_many} groups of items, "
        f"{found.resamples} resamples, seed {found.seed}; undefined: a constant annotator, or fewer than 2 items"
    )


def _full(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined"
    interval = estimate.interval
    if interval.low is None or interval.high is None:
        return f"{estimate.value:z.2f} [{(interval.reason or 'undefined').replace('reviewer', 'group')}]"
    return f"{estimate.value:z.2f} [{interval.low:z.2f}, {interval.high:z.2f}]"


def _short(estimate: Estimate) -> str:
    return "undefined" if estimate.value is None else f"{estimate.value:z.2f}"


def _line(cells: Iterable[str]) -> str:
    shown_cells = ("".join(c if c.isprintable() else " " for c in cell) for cell in cells)
    escaped = (cell.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "\\`") for cell in shown_cells)
    return "| " + " | ".join(escaped) + " |"
