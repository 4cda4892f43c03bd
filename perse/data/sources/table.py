"""Any table of reviews or comparisons: JSON lines, CSV or TSV, plain or gzipped.

Two kinds of trouble are told apart. A file that cannot be used as a whole (absent, empty, no gzip, no header) is always an
error. What is wrong with one *row* (not UTF-8, a score off the scale, a review given twice, ...) goes to `faults`, which stops
the reading or notes the row. Space around a text is not part of it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from perse.data.identity import pair_key, text_key
from perse.data.sources.columns import Header, Role, check_fields, mapping_for
from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.lines import read_json_lines, read_records, shown
from perse.errors import BadInput
from perse.records import Choice, Comparison, Review
from perse.scale import rescale

__all__ = ["BadRow", "Faults", "Row", "read_comparisons", "read_json_lines", "read_reviews", "read_rows"]

T = TypeVar("T")

_NO_COLUMN = "column missing"
_UNDECIDED = {"both": "preference 'both'", "neither": "preference 'neither'", "tie": "preference 'tie'", "": "no preference"}


@dataclass(frozen=True)
class Row:
    """One row with the place it came from; fields are looked up by our names."""

    path: Path
    line: int
    values: Mapping[str, object]
    header: Header
    role: Role = Role.REVIEWS

    def bad(self, field: str, message: str, *, reason: str) -> NoReturn:
        """Raises `BadRow` that says where `field` stands."""
        raise BadRow(self.path, self.line, message, reason=reason, field=field)

    def get(self, field: str) -> object:
        """The value of `field`; several columns are joined by newlines; None where it is absent and was not mapped.

        Raises:
            BadRow: the user mapped the field to a column that this row lacks.
        """
        columns = self.header.columns_for(field)
        if columns is None:
            if self.header.is_mapped(field):
                self.missing(field)
            return None
        if len(columns) == 1:
            return self.values[columns[0]]
        parts = [self._as_text(field, self.values[column]) for column in columns]
        return "\n".join(part for part in parts if part)

    def need(self, field: str) -> object:
        """The value of a field that must have a column. Raises `BadRow` where it has none."""
        if self.header.columns_for(field) is None:
            self.missing(field)
        return self.get(field)

    def text(self, field: str, *, reason: str) -> str:
        """The text of a field that must not be empty; `reason` is what a row without it is counted as."""
        found = self._as_text(field, self.need(field)).strip()
        if not found:
            self.bad(field, "found nothing, expected a text", reason=reason)
        return found

    def optional_text(self, field: str) -> str | None:
        """The text of a field that may be absent or empty; then None."""
        return self._as_text(field, self.get(field)).strip() or None

    def missing(self, field: str) -> NoReturn:
        """Raises `BadRow`: the row has no column for `field`."""
        option = f"items.{field}" if self.role is Role.ITEMS and field == "item_id" else field
        raise BadRow(self.path, self.line, self.header.explain_missing(field, option=option), reason=_NO_COLUMN)

    def _as_text(self, field: str, value: object) -> str:
        if isinstance(value, str):
            return value
        if value is None:
            return ""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)  # ids are often numbers
        self.bad(field, f"found {shown(value)}, expected a text", reason="not a text")


def read_rows(
    path: Path,
    columns: Mapping[str, str],
    faults: Faults | None = None,
    *,
    role: Role = Role.REVIEWS,
    hints: Mapping[str, str] | None = None,
    header: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Rows of a `.jsonl`, `.json` (one object a line), `.csv` or `.tsv` file, each also as `.gz`.

    Args:
        columns: our field -> the user's column, binding; several columns are joined by newlines (`story_a+ending_a`).
        faults: takes what is wrong with a single row; without it such a row is an error.
        role: what the rows are, for messages.
        hints: field -> a column to take for it where there is one of that name, before guessing.
        header: the columns of a CSV file that has no header line.
    Raises:
        BadInput: the file as a whole cannot be used. Fields are checked when they are looked up (see `Row`).
    """
    headers: dict[tuple[str, ...], Header] = {}
    for line, values in read_records(path, faults, header=header):
        names = tuple(values)
        known = headers.get(names)
        if known is None:
            known = headers[names] = Header(names, columns, hints=hints or {})
        yield Row(path, line, values, known, role)


def read_reviews(
    reviews_path: Path, items_path: Path | None, faults: Faults, *, columns: Mapping[str, str], scale: tuple[float, float]
) -> list[Review]:
    """Reviews joined with the texts they are about, in the order of the file, scores rescaled to 1-10.

    Texts come from the items file, or from the reviews themselves where there is none (then an item id may be missing too:
    equal texts are one item). `reviewer_id` is the name as the file has it; `review_id` is that name and the count of that
    reviewer's usable rows.

    Raises:
        BadInput: a file that cannot be used; the first bad row, if those are to stop the reading; no row left.
    """
    check_fields(columns, Role.REVIEWS, with_items=items_path is not None)
    items = None if items_path is None else read_items(items_path, columns, faults)
    mapping = mapping_for(Role.REVIEWS, columns, with_items=items is not None)
    lines: dict[tuple[str, str], int] = {}
    counts: Counter[str] = Counter()

    def read(row: Row) -> Review:
        reviewer = row.text("reviewer_id", reason="no reviewer")
        item_id, text = _item(row, items, items_path)
        original = _score(row, scale)
        review = row.text("review", reason="empty review")
        time = row.optional_text("time")
        if (first := lines.setdefault((reviewer, item_id), row.line)) != row.line:
            row.bad("item_id", f"'{reviewer}' already reviewed '{item_id}' on line {first}; keep one", reason="reviewed twice")
        counts[reviewer] += 1
        return Review(
            review_id=f"{reviewer}-r{counts[reviewer]:03d}",
            reviewer_id=reviewer,
            item_id=item_id,
            text=text,
            review=review,
            score=rescale(original, *scale),
            original_score=original,
            time=time,
        )

    return usable(read_rows(reviews_path, mapping, faults), read, faults)


def read_comparisons(
    pairs_path: Path, items_path: Path | None, faults: Faults, *, columns: Mapping[str, str]
) -> list[Comparison]:
    """Comparisons, one for each annotator and pair of texts, with all aspects that the annotator judged.

    A row is one judgement: annotator, aspect, two texts (or two item ids of the items file) and the preference. The same two
    texts in swapped order are the same pair; a comparison keeps the order of its first row, and a later row that has the texts
    the other way round has its preference turned. 'both', 'neither', 'tie' and nothing are left out and counted (PerSE,
    section 4.1).

    Raises:
        BadInput: as in `read_reviews`.
    """
    check_fields(columns, Role.PAIRS, with_items=items_path is not None)
    items = None if items_path is None else read_items(items_path, columns, faults)
    mapping = mapping_for(Role.PAIRS, columns, with_items=items is not None)
    lines: dict[tuple[str, str, str], int] = {}
    counts: Counter[str] = Counter()
    merged: dict[tuple[str, str], Comparison] = {}
    preferences: dict[tuple[str, str], dict[str, Choice]] = {}

    def read(row: Row) -> bool:
        reviewer = row.text("reviewer_id", reason="no reviewer")
        aspect = row.text("aspect", reason="no aspect")
        text_a, text_b = _pair_texts(row, items, items_path)
        choice = _preference(row)
        if choice in _UNDECIDED:
            faults.left_out[_UNDECIDED[choice]] += 1
            return False
        pair_id = pair_key(text_a, text_b)
        if text_key(text_a) == text_key(text_b):
            row.bad("text_b", "the same text as text_a; expected two different texts", reason="the same text twice")
        premise, time = row.optional_text("premise"), row.optional_text("time")
        if (first := lines.setdefault((reviewer, pair_id, aspect), row.line)) != row.line:
            what = f"'{reviewer}' already judged '{aspect}' of this pair on line {first}; keep one"
            row.bad("preference", what, reason="judged twice")
        pair = (reviewer, pair_id)
        if pair not in merged:
            counts[reviewer] += 1
            merged[pair] = Comparison(
                comparison_id=f"{reviewer}-c{counts[reviewer]:03d}",
                reviewer_id=reviewer,
                pair_id=pair_id,
                text_a=text_a,
                text_b=text_b,
                premise=premise,
                preference={},
                time=time,
            )
        turned = text_key(text_a) != text_key(merged[pair].text_a)
        preferences.setdefault(pair, {})[aspect] = "A" if (choice == "A") != turned else "B"
        return True

    usable(read_rows(pairs_path, mapping, faults, role=Role.PAIRS), read, faults)
    return [merged[pair].model_copy(update={"preference": preferences[pair]}) for pair in merged]


def usable(rows: Iterator[Row], read: Callable[[Row], T], faults: Faults) -> list[T]:
    """What `read` makes of each row; a `BadRow` that it raises goes to `faults`. If no row is left, the first is an error."""
    made: list[T] = []
    before = len(faults.rows)
    for row in rows:
        try:
            made.append(read(row))
        except BadRow as error:
            faults.add(error)
    if not made and len(faults.rows) > before:
        # Skipping all rows would hide a column that was not mapped or a scale that was not given.
        raise BadInput(f"no usable row; the first: {faults.rows[before]}")
    return made


def read_items(path: Path, columns: Mapping[str, str], faults: Faults) -> dict[str, str]:
    """item_id -> text. A column mapped to the reviews' `item_id` is taken here too where the items file has it."""
    items: dict[str, str] = {}
    lines: dict[str, int] = {}

    def read(row: Row) -> None:
        item_id = row.text("item_id", reason="item without id")
        text = row.text("text", reason="item without text")
        if (first := lines.setdefault(item_id, row.line)) != row.line:
            row.bad("item_id", f"'{item_id}' already stands on line {first}; keep one", reason="item listed twice")
        items[item_id] = text

    hints = {"item_id": columns["item_id"]} if "item_id" in columns else {"item_id": "id"}
    mapping = mapping_for(Role.ITEMS, columns, with_items=True)
    usable(read_rows(path, mapping, faults, role=Role.ITEMS, hints=hints), read, faults)
    return items


def _item(row: Row, items: Mapping[str, str] | None, items_path: Path | None) -> tuple[str, str]:
    """The id and the text of what a row of reviews is about."""
    if items is not None:
        item_id = row.text("item_id", reason="no item")
        return item_id, _looked_up(row, "item_id", item_id, items, items_path)
    if row.header.columns_for("text") is None and not row.header.is_mapped("text"):
        message = row.header.explain_missing("text", option="text") + ", or the file of texts as --items"
        raise BadRow(row.path, row.line, message, reason=_NO_COLUMN)
    text = row.text("text", reason="empty text")
    return row.optional_text("item_id") or "t" + text_key(text), text


def _pair_texts(row: Row, items: Mapping[str, str] | None, items_path: Path | None) -> tuple[str, str]:
    if items is None:
        return row.text("text_a", reason="empty text"), row.text("text_b", reason="empty text")
    item_a, item_b = row.text("item_a", reason="no item"), row.text("item_b", reason="no item")
    return _looked_up(row, "item_a", item_a, items, items_path), _looked_up(row, "item_b", item_b, items, items_path)


def _looked_up(row: Row, field: str, item_id: str, items: Mapping[str, str], items_path: Path | None) -> str:
    if item_id not in items:
        what = f"found '{item_id}', which {items_path} lacks; expected one of its item ids"
        row.bad(field, what, reason="item not in the items file")
    return items[item_id]


def _score(row: Row, scale: tuple[float, float]) -> float:
    """The score as a number on the scale, not yet rescaled."""
    low, high = scale
    value = row.need("score")
    expected = f"expected a number from {low:g} to {high:g}"
    try:
        # Python reads "1_0" as 10 and True as 1; a person who wrote that meant something else.
        score = math.nan if isinstance(value, bool) or "_" in str(value) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        row.bad("score", f"found {shown(value)}, {expected}", reason="score not a number")
    if not low <= score <= high:
        what = f"found {shown(value)}, {expected}; give --scale LOW-HIGH if the scores run on another scale"
        row.bad("score", what, reason="score off the scale")
    return score


def _preference(row: Row) -> str:
    """ "A" or "B", or a key of `_UNDECIDED`."""
    value = row.need("preference")
    plain = " ".join(value.split()).casefold() if isinstance(value, str) else "" if value is None else None
    if plain in _UNDECIDED:
        return plain
    if plain is not None and (found := re.fullmatch(r"(?:plot )?([ab])", plain)):
        return found.group(1).upper()
    row.bad("preference", f"found {shown(value)}, expected A or B (or both, neither, tie)", reason="preference not A or B")
