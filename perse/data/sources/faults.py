"""Rows that cannot be used: refused one by one, or left out, counted and listed (`--on-error stop | skip`).

A reader calls `Faults.add` with whatever is wrong with one row. With `stop` that raises, so the first bad row ends the build
with its file, line and field. With `skip` it is noted and the reader goes on; the data set folder tells the counts in its
manifest and lists every row in `skipped.jsonl`. What is wrong with a file as a whole (absent, empty, no gzip, no header) is
never skipped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeVar

from perse.errors import BadInput

T = TypeVar("T")

OnError = Literal["stop", "skip"]
_PLACES = 3
"""Rows of one reason whose lines are named where nothing lists them all."""


class BadRow(BadInput):
    """One row that cannot be used. `reason` is what it is counted as; `field` is None where the whole line is bad."""

    def __init__(self, path: Path, line: int, message: str, *, reason: str, field: str | None = None) -> None:
        where = f"{path}, line {line}: " + (f"field '{field}': " if field else "")
        super().__init__(where + message)
        self.path, self.line, self.field, self.reason = path, line, field, reason

    def listed(self) -> dict[str, str | int | None]:
        """As a line of `skipped.jsonl`: its place, not its content, which may be a person's name. The file by name
        only, so that the folder is the same wherever it was built."""
        return {"file": self.path.name, "line": self.line, "field": self.field, "reason": self.reason}


@dataclass
class Faults:
    """The bad rows of one build, in the order they were met."""

    on_error: OnError = "stop"
    keep: int | None = None
    """Most rows kept in `rows`; the others are only counted. None keeps all."""
    rows: list[BadRow] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    """How many bad rows there were, by reason."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Unwanted rows that are not bad, such as preference 'both', by reason."""
    answers: Counter[str] = field(default_factory=Counter)
    """Unwanted answers of rows that hold several, by reason: the row may be used for the others."""

    def add(self, bad: BadRow) -> None:
        """Notes a bad row. Raises it instead where bad rows are to stop the build."""
        if self.on_error == "stop":
            raise bad
        self.met[bad.reason] += 1
        if self.keep is None or len(self.rows) < self.keep:
            self.rows.append(bad)

    def attempt(self, read: Callable[[], T]) -> T | None:
        """The result of `read`; None if it raises `BadRow`, which is noted as in `add`."""
        try:
            return read()
        except BadRow as bad:
            self.add(bad)
            return None

    @property
    def counts(self) -> Counter[str]:
        """How many rows were left out, by reason."""
        return self.left_out + self.met

    def told(self) -> str:
        """How many rows were left out, commonest reason first, and where the first of each stand; of no row nothing."""
        ranked = sorted(self.counts.items(), key=lambda one: (-one[1], one[0]))
        return "; ".join(f"{count:,} {reason}{self._places(reason, count)}" for reason, count in ranked)

    def _places(self, reason: str, count: int) -> str:
        first = [bad for bad in self.rows if bad.reason == reason][:_PLACES]
        by_file = []
        for name, rows in groupby(first, key=lambda bad: bad.path.name):
            lines = [f"{bad.line}" for bad in rows]
            by_file.append(f"{name}, line{'s' * (len(lines) > 1)} {', '.join(lines)}")
        more = ", ..." if count > len(first) else ""
        return f" ({'; '.join(by_file)}{more})" if first else ""


def skipped_lines(bad: Iterable[BadRow]) -> str:
    """The rows that were left out, as the text of `skipped.jsonl`."""
    return "".join(json.dumps(one.listed(), ensure_ascii=False) + "\n" for one in bad)
