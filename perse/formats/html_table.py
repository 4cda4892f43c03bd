"""A small table of HTML for notebooks. All that stands in it is untrusted and escaped (DESIGN.md, promise 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from perse.secrets import printable

LONGEST = 200
"""Characters of a cell; of a longer text the beginning is shown."""


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, below: str = "") -> str:
    """The table, with a line below it. Numbers have three digits behind the point; nothing stands in the place of None."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (f"<p>{_cell(below)}</p>" if below else "")


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.3f}" if isinstance(value, float) else printable(str(value))
    return escape(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
