"""An Evaluation as tables for a terminal of 120 columns, and as Markdown. What they show is made in `sheets`."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from perse.evaluation.sheets import ABSENT, Cell, Sheet, is_marked, sheets
from perse.evaluation.stats.results import Estimate, Evaluation
from perse.evaluation.verdict import verdict


def evaluation_tables(evaluation: Evaluation, *, everything: bool = False) -> list[Table]:
    """What became of the questions, then the values that matter, several tables where one would be too wide.

    Args:
        everything: also the finer ones (see `Sheet.detail`).
    """
    return [_rich(sheet) for sheet in sheets(evaluation) if everything or not sheet.detail]


def hidden_sheets(evaluation: Evaluation) -> list[str]:
    """Titles of the sheets that only `everything` shows."""
    return list(dict.fromkeys(sheet.title.partition(":")[0] for sheet in sheets(evaluation) if sheet.detail))


def markdown(evaluation: Evaluation) -> str:
    """The verdict and all tables as Markdown. Names from files are escaped."""
    said = "\n".join(f"- {_escaped(line)}" for line in verdict(evaluation).splitlines())
    return "\n".join([*([said, ""] if said else []), *(_markdown(sheet) for sheet in sheets(evaluation))])


def _isprintable(position: int, header: str) -> bool:
    return position == 0 or header == "model"


def _show(cell: Cell, *, full: bool) -> str:
    """A cell as text; `full` spells out why an interval is undefined, which would be too wide for a terminal."""
    if not isinstance(cell, Estimate):
        return ABSENT if cell is None else cell
    if cell.value is None:
        return f"{cell.interval.reason or 'undefined'}" if full else "undefined"
    interval = cell.interval
    if interval.low is None or interval.high is None:
        return f"{cell.value:z.2f} [{interval.reason if full else 'undefined'}]"
    return f"{cell.value:z.2f} [{interval.low:z.2f}, {interval.high:z.2f}]" + ("*" if is_marked(cell) else "")


def _rich(sheet: Sheet) -> Table:
    caption = printable("\n".join(sheet.all_footnotes()))
    table = Table(
        title=printable("\n" + sheet.title),
        title_style="bold",
        title_justify="left",
        caption=caption,
        caption_style="dim",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for position, name in enumerate(sheet.header):
        is_text = _isprintable(position, name)
        table.add_column(printable(name), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for lines in (sheet.judged, sheet.baselines):
        for line in lines:
            table.add_row(*(printable(_show(cell, full=False)) for cell in line))
        table.add_section()
    return table


def printable(shown: str) -> Text:
    """Names and aspects come from files: no markup, no control characters."""
    return Text("".join(letter for letter in shown if letter.isprintable() or letter == "\n"))


def _markdown(sheet: Sheet) -> str:
    rule = "".join("---|" if _isprintable(position, name) else "---:|" for position, name in enumerate(sheet.header))
    lines = [f"### {_escaped(sheet.title)}", "", _line(sheet.header), f"|{rule}"]
    lines += [_line([_show(cell, full=True) for cell in cells]) for cells in (*sheet.judged, *sheet.baselines)]
    notes = [f"- {_escaped(note)}" for note in sheet.all_footnotes()]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return html.escape(plain, quote=False).replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
