"""An Evaluation as tables for a terminal of 120 columns, and as Markdown for docs/results.

Both are made from the same sheets, so that they cannot tell different things.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from perse.evaluation.correlation import Convention
from perse.evaluation.estimates import NO_COEFFICIENT
from perse.evaluation.intervals import FEW_REVIEWERS, FEWEST_REVIEWERS
from perse.evaluation.results import Estimate, Evaluation, Row
from perse.judgement import Status

POOLED = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall tau-b", "mae": "MAE"}
WITHIN = {"within_pearson": "Pearson", "within_spearman": "Spearman", "within_kendall": "Kendall tau-b"}
CHOICE = {"accuracy": "accuracy", "order_gap": "order gap"}
ABSENT = "-"
_VALUES_A_SHEET = 4  # values with their intervals that fit 120 columns beside a name

Cell = Estimate | str | None
"""A value with its interval; a text as it is; or None where a row has no such value."""


@dataclass(frozen=True)
class _Sheet:
    title: str
    header: tuple[str, ...]
    judged: tuple[tuple[Cell, ...], ...]
    baselines: tuple[tuple[Cell, ...], ...] = ()
    footnotes: tuple[str, ...] = ()

    def estimates(self) -> Iterator[Estimate]:
        for line in (*self.judged, *self.baselines):
            yield from (cell for cell in line if isinstance(cell, Estimate))

    def all_footnotes(self) -> list[str]:
        """The sheet's own, and what its cells' marks mean."""
        notes = list(self.footnotes)
        reasons = dict.fromkeys(cell.interval.reason for cell in self.estimates() if cell.interval.reason)
        if FEW_REVIEWERS in reasons:
            notes.append(f"intervals {FEW_REVIEWERS}: fewer than {FEWEST_REVIEWERS} stand behind the value")
        notes += [f"intervals {reason}" for reason in reasons if reason not in (FEW_REVIEWERS, NO_COEFFICIENT.reason)]
        if NO_COEFFICIENT.reason in reasons:
            notes.append("undefined: gold or prediction is constant, or there are fewer than 2 items")
        most = max((cell.interval.undefined_resamples for cell in self.estimates() if _is_marked(cell)), default=0)
        if most:
            notes.append(f"*: the value is undefined in some resamples (at most {most}); the interval is that of the others")
        return notes


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """What became of the questions; then the values of judges and baselines, several tables where one would be too wide."""
    return [_rich(sheet) for sheet in _sheets(evaluation)]


def markdown(evaluation: Evaluation) -> str:
    """The same tables as Markdown. Names from files are escaped."""
    return "\n".join(_markdown(sheet) for sheet in _sheets(evaluation))


def _sheets(evaluation: Evaluation) -> list[_Sheet]:
    sheets = [_statuses(evaluation)]
    if evaluation.kind == "pairwise":
        sheets.append(_values(evaluation, f"Choices: {evaluation.items} pairs, not answered = wrong", CHOICE))
        return sheets + _aspects(evaluation)
    for imputed in (False, True):
        if imputed and not any(row.imputed for row in evaluation.rows):
            continue
        if imputed:
            where = f"all {evaluation.items} items, {_imputed_by(evaluation)}"
        else:
            where = f"{evaluation.ok_items} items answered" + (" by every judge" if len(evaluation.judges) > 1 else "")
        sheets.append(_values(evaluation, f"Pooled: {where}", POOLED, imputed=imputed))
        constant = "count 0" if evaluation.convention is Convention.CONSTANT_AS_ZERO else "skipped"
        sheets.append(_values(evaluation, f"Within reviewer (constant {constant}): {where}", WITHIN, imputed=imputed))
    return sheets


def _imputed_by(evaluation: Evaluation) -> str:
    """A fold without a mean has no failure here, or nothing would be imputed."""
    means = [mean for mean in evaluation.training_means if mean is not None]
    if len(means) == 1:
        return f"failures = training mean {means[0]:.2f}"
    return f"failures = their fold's training mean ({min(means):.2f} to {max(means):.2f})"


def _statuses(evaluation: Evaluation) -> _Sheet:
    header = ("judge", "model", "asked", *(str(status) for status in Status), "coverage")
    lines = []
    for name, summary in evaluation.judges.items():
        model = ", ".join(summary.models) + "".join(f" + {adapter}" for adapter in summary.adapters)
        counts = [str(summary.statuses[status]) for status in Status]
        coverage = 1000 * summary.ok // summary.asked / 10  # rounded down: 100% means that nothing failed
        lines.append((name, model, str(summary.asked), *counts, f"{coverage:.1f}%"))
    notes = [f"intervals: 95%, bootstrap over the reviewers, {evaluation.resamples} resamples, seed {evaluation.seed}"]
    if evaluation.without_reference:
        notes.append(f"{evaluation.without_reference} of {evaluation.examples} examples have no reference and are left out")
    title = f"Judgements: {evaluation.items} items of {evaluation.reviewers} reviewers"
    return _Sheet(title, header, tuple(lines), footnotes=(*notes, *evaluation.notes))


def _values(evaluation: Evaluation, title: str, columns: Mapping[str, str], *, imputed: bool = False) -> _Sheet:
    within = "within_pearson" in columns
    last = "skipped" if within else "ok/asked"

    def line(row: Row) -> tuple[Cell, ...]:
        values = (row.imputed or {}) if imputed else row.columns
        if row.unavailable:
            return (row.name, *(ABSENT for _ in columns), ABSENT)
        if within:
            first = values.get("within_pearson")
            beside = ABSENT if first is None else str(first.skipped_reviewers)
        else:
            beside = f"{row.ok}/{row.asked}"
        return (row.name, *(values.get(column) for column in columns), beside)

    notes = [f"{row.name}: unavailable: {row.unavailable}" for row in evaluation.rows if row.unavailable]
    if within:
        notes.append("skipped: reviewers with constant gold or prediction, or fewer than 2 items")
    judged = tuple(line(row) for row in evaluation.rows if row.judge)
    baselines = tuple(line(row) for row in evaluation.rows if not row.judge)
    return _Sheet(title, ("", *columns.values(), last), judged, baselines, tuple(notes))


def _aspects(evaluation: Evaluation) -> list[_Sheet]:
    """Aspects down, judges and baselines across: there may be any number of aspects."""
    rows = [row for row in evaluation.rows if not row.unavailable]
    aspects = list(dict.fromkeys(aspect for row in rows for aspect in row.aspects))
    sheets = []
    width = math.ceil(len(rows) / math.ceil(len(rows) / _VALUES_A_SHEET))  # five rows are 3 + 2, not 4 + 1
    for start in range(0, len(rows), width):
        part = rows[start : start + width]
        lines = tuple(
            (aspect, str(part[0].aspects[aspect].items), *(row.aspects.get(aspect) for row in part)) for aspect in aspects
        )
        names = ("\n(".join(row.name.rsplit(" (", 1)) for row in part)  # two lines: "NAME (likeliest)" is wider than a value
        sheets.append(_Sheet("Accuracy by aspect", ("", "pairs", *names), lines))
    return sheets


def _is_text(position: int, header: str) -> bool:
    return position == 0 or header == "model"


def _is_marked(cell: Estimate) -> bool:
    return cell.interval.low is not None and cell.interval.undefined_resamples > 0


def _show(cell: Cell, *, full: bool) -> str:
    """A cell as text; `full` spells out why an interval is undefined, which would be too wide for a terminal."""
    if not isinstance(cell, Estimate):
        return ABSENT if cell is None else cell
    if cell.value is None:
        return "undefined"
    interval = cell.interval
    if interval.low is None or interval.high is None:
        return f"{cell.value:z.2f} [{interval.reason if full else 'undefined'}]"
    return f"{cell.value:z.2f} [{interval.low:z.2f}, {interval.high:z.2f}]" + ("*" if _is_marked(cell) else "")


def _rich(sheet: _Sheet) -> Table:
    caption = _text("\n".join(sheet.all_footnotes()))
    table = Table(
        title=_text("\n" + sheet.title),
        title_style="bold",
        title_justify="left",
        caption=caption,
        caption_style="dim",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for position, name in enumerate(sheet.header):
        is_text = _is_text(position, name)
        table.add_column(_text(name), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for lines in (sheet.judged, sheet.baselines):
        for line in lines:
            table.add_row(*(_text(_show(cell, full=False)) for cell in line))
        table.add_section()
    return table


def _text(shown: str) -> Text:
    """Names and aspects come from files: no markup, no control characters."""
    return Text("".join(letter for letter in shown if letter.isprintable() or letter == "\n"))


def _markdown(sheet: _Sheet) -> str:
    rule = "".join("---|" if _is_text(position, name) else "---:|" for position, name in enumerate(sheet.header))
    lines = [f"### {_escaped(sheet.title)}", "", _line(sheet.header), f"|{rule}"]
    lines += [_line([_show(cell, full=True) for cell in cells]) for cells in (*sheet.judged, *sheet.baselines)]
    notes = [f"- {_escaped(note)}" for note in sheet.all_footnotes()]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return html.escape(plain, quote=False).replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
