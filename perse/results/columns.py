"""Which columns hold numbers, and which name the row: derived from the cells, the same in every medium."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perse.results.result import Cell, Estimate, Table
from perse.results.words import ABSENT, UNDEFINED

_NUMBER = re.compile(r"[-+<±↑↓ ]*[\d.,]+([eE]-?\d+)?( ?[%/] ?[\d,]*| of [\d,]+)?( / [\d.,-]+)?")


def is_number(cells: Iterable[Cell]) -> bool:
    """Whether a column of these cells holds numbers, which are set to the right."""
    given = [cell for cell in cells if cell is not None]
    return bool(given) and all(
        isinstance(cell, Estimate) or cell in (ABSENT, UNDEFINED, "") or bool(_NUMBER.fullmatch(cell)) for cell in given
    )


def naming(table: Table) -> int:
    """How many of the first columns name the row: at least one, and all texts that follow it without a gap."""
    for at in range(1, len(table.header)):
        if is_number(row[at] for row in table.rows) or all(row[at] is None for row in table.rows):
            return at
    return min(1, len(table.header))
