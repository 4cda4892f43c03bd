"""A study's result as Markdown and as tables in a terminal: the same cells in both, undefined ones with their reason."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from perse.evaluation.stats.results import Estimate
from perse.studies.frame.results import StudyResult, StudyTable


def study_markdown(result: StudyResult) -> str:
    """The whole result: question, answer, tables, notes."""
    parts = [f"# {result.study}", result.asks, f"**{result.answer}**"]
    for table in result.tables:
        parts.append(f"## {table.title}")
        lines = [table.header, ("---",) * len(table.header), *([cell_text(cell) for cell in row] for row in table.rows)]
        parts.append("\n".join("| " + " | ".join(map(_plain, line)) + " |" for line in lines))
        parts += [f"- {note}" for note in table.notes]
    if result.notes:
        parts.append("## Notes")
        parts.append("\n".join(f"- {note}" for note in result.notes))
    return "\n\n".join(parts) + "\n"


def print_study(result: StudyResult, *, as_json: bool, markdown: bool) -> None:
    """What a command prints on stdout: JSON, Markdown, or for a terminal."""
    if as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    elif markdown:
        sys.stdout.write(study_markdown(result))
    else:
        console = Console(width=max(120, Console().width))
        console.print(result.answer, style="bold", markup=False, highlight=False)
        for table in study_tables(result):
            console.print(table)
        for note in result.notes:
            console.print(f"- {note}", markup=False, highlight=False)


def study_tables(result: StudyResult) -> list[Table]:
    """The tables for a terminal."""
    return [_table(table) for table in result.tables]


def _table(table: StudyTable) -> Table:
    shown = Table(title=Text(table.title), title_justify="left", caption=Text("\n".join(table.notes)), caption_justify="left")
    for nth, name in enumerate(table.header):
        shown.add_column(Text(name), justify="left" if nth == 0 else "right")
    for row in table.rows:
        shown.add_row(*(Text(cell_text(cell)) for cell in row))
    return shown


def cell_text(cell: Estimate | str | None) -> str:
    """A value with its interval, "-" for none, and why what is undefined is undefined."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if cell.value is None:
        return cell.interval.reason or "undefined"
    value = f"{cell.value:.3f}"
    low, high = cell.interval.low, cell.interval.high
    return f"{value} ({cell.interval.reason})" if low is None or high is None else f"{value} [{low:.3f}, {high:.3f}]"


def _plain(text: str) -> str:
    """In one line and without what would end the cell."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
