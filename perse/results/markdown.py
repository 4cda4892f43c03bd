"""A Result as Markdown: question, answer, tables, notes. Texts come from files and are shown letter for letter, never as markup."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from perse.results.columns import is_number
from perse.results.result import Estimate, Result, Table
from perse.results.words import footnotes, one_line, shown, value_and_interval

_MEANS_SOMETHING = re.compile(r"[\\`*|\[\]~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def markdown(result: Result) -> str:
    """The whole result, details among it."""
    answers = [escaped(line) for line in result.answer.splitlines()]
    said = f"**{answers[0]}**" if len(answers) == 1 else "\n".join(f"- **{line}**" for line in answers)
    parts = [f"# {escaped(result.name)}", escaped(result.asks), said, *map(table_markdown, result.tables)]
    if result.notes:
        parts.append("## Notes\n\n" + _listed(result.notes))
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    """A table under its title, with its footnotes."""
    numbers = [is_number(row[at] for row in table.rows) for at in range(len(table.header))]
    rule = "".join("---:|" if number else "---|" for number in numbers)
    lines = [
        f"## {escaped(table.title)}",
        "",
        _line([escaped(name) for name in table.header]),
        f"|{rule}",
        *(_line([_cell(cell, table.digits) for cell in row]) for row in table.rows),
    ]
    notes = footnotes(table)
    return "\n".join(lines) + (f"\n\n{_listed(notes)}" if notes else "")


def escaped(text: str) -> str:
    """One line without any meaning to Markdown or HTML."""
    plain = html.escape(one_line(text), quote=False).replace("&gt;", ">")
    return _MEANS_SOMETHING.sub(lambda found: f"\\{found[0]}", plain)


def _cell(cell: Estimate | str | None, digits: int) -> str:
    if isinstance(cell, Estimate):
        return " ".join(filter(None, value_and_interval(cell, digits=digits))).replace("|", "\\|")
    return escaped(shown(cell)) if cell else shown(cell)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _listed(notes: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(note)}" for note in notes)
