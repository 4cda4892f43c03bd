"""Judgements as rows of a table: who was asked about what, and what was answered, flat, for a data frame, a CSV file or a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, SupportsIndex, overload

from perse.files.exports import Fields
from perse.formats.html_table import html_table
from perse.judgement import Judgement

ASKED = ("reviewer_id", "item_id", "aspect", "truth")
"""What a row says of the example, where the example has it; `truth` is what the reader said."""
_TOLD = "id question status expected likeliest label stacked not_stacked own_low own_high own_expected own_label own_stacked mass exact k_effective text error p_*"
JUDGED = Fields(needed=("id", "question", "status"), known=(*ASKED, *_TOLD.split()))
"""The columns of such rows."""
SHOWN = 20
"""Rows of a notebook's table."""


class Judgements(list[Judgement]):
    """Judgements, and what each was asked about; a notebook shows them as a table."""

    def __init__(self, judgements: Iterable[Judgement] = (), asked: Iterable[Any] = ()) -> None:
        """`asked` are the examples, found by id; there may be none."""
        super().__init__(judgements)
        self._asked = {example.id: example for example in asked}

    @overload
    def __getitem__(self, at: SupportsIndex) -> Judgement: ...
    @overload
    def __getitem__(self, at: slice) -> Judgements: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Judgement | Judgements:
        return Judgements(super().__getitem__(at), self._asked.values()) if isinstance(at, slice) else super().__getitem__(at)

    def __add__(self, other: list[Any]) -> Judgements:  # type: ignore[override]
        more = other._asked if isinstance(other, Judgements) else {}
        return Judgements([*self, *other], (self._asked | more).values())

    def __iadd__(self, other: Iterable[Judgement]) -> Self:  # type: ignore[override, misc]
        self.extend(other)
        self._asked |= other._asked if isinstance(other, Judgements) else {}
        return self

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a judgement (`Judgement.row`), behind reader, text, aspect and what the reader said; every row has the same columns, in one order."""
        return flat_rows(self, self._asked.values())

    def _repr_html_(self) -> str:
        shown = self[:SHOWN].rows()
        header = [*shown[0]] if shown else []
        told = {"question", "id"} if "reviewer_id" in header else {"question"}  # an id says no more than reader and text
        few = [
            name
            for name in header
            if name not in told and not name.startswith("p_") and any(row[name] not in (None, "") for row in shown)
        ]
        more = f"and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return html_table(few, [[row[name] for name in few] for row in shown], below=more)


def flat_rows(judgements: Sequence[Judgement], asked: Iterable[Any]) -> list[dict[str, Any]]:
    """As `Judgements.rows`."""
    known = {example.id: example for example in asked}
    told = [{**_who(known.get(one.id)), **one.row()} for one in judgements]
    names = {name: None for row in told for name in row}
    ordered = sorted(names, key=lambda name: (name.startswith("p_"), name in ("text", "error")))
    return [{name: row.get(name) for name in ordered} for row in told]


def _who(example: Any) -> dict[str, Any]:
    found = ((name, getattr(example, name, None)) for name in ASKED)
    return {name: value for name, value in found if value is not None}
