"""No leaks: proven on every build and every load, not assumed (DESIGN.md, promise 5).

The check looks at the finished rows and at the texts themselves. It shares with the code that drew them only what counts as the
same text (`identity.normalised`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from perse.data.identity import pair_key, text_key
from perse.data.profiles import ExampleRow
from perse.data.splits import sides
from perse.errors import BadInput
from perse.records import Comparison, Review

_SHOWN = 3

Record = Review | Comparison


def check_leaks(
    rows: Sequence[ExampleRow],
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
    *,
    disjoint_items: bool,
) -> None:
    """That no query is in its own profile, no reviewer on two sides, and, if promised, no item or pair on two sides.

    The same item is the same id or the same normalised text; the same pair the same id or the same two texts in any order. In
    the profile of a pair not even one of its two texts may stand; on the two sides of a split a text may, in other pairs.

    Args:
        reviews, comparisons: the records by id; those of the other kind are empty.
        disjoint_items: whether the split promises that training and validation share no item, through queries or profiles.
    Raises:
        BadInput: a leak, or a row that refers to an unknown record or to another reviewer's; the first few rows are named.
    """
    records: Mapping[str, Record] = {**reviews, **comparisons}
    _check_references(rows, records)
    marks = _Marks(records)
    _refuse("the query is in its own profile", _own_query(rows, marks.of), rows="examples")
    _refuse("a text of the query is in its own profile", _own_query(rows, marks.texts), rows="examples")
    _refuse("a reviewer is on two sides of the split", _reviewers_on_two_sides(rows), rows="reviewers")
    if disjoint_items:
        folds: list[int | None] = [*sorted({row.fold for row in rows if row.fold is not None})]
        for fold in folds or [None]:
            train, valid = sides(rows, fold, apart=comparisons)
            _refuse("an item is in training and in validation", _shared_items(train, valid, marks), rows="validation examples")


class _Marks:
    """By which marks two records are known to be about the same: an id and a text, hashed once for each text."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records
        self._keys: dict[str, str] = {}
        self._marks: dict[str, tuple[str, ...]] = {}

    def of(self, record_id: str) -> tuple[str, ...]:
        if record_id not in self._marks:
            record = self._records[record_id]
            if isinstance(record, Review):
                self._marks[record_id] = ("item " + record.item_id, *self.texts(record_id))
            else:
                self._marks[record_id] = ("pair " + record.pair_id, "texts " + pair_key(record.text_a, record.text_b))
        return self._marks[record_id]

    def texts(self, record_id: str) -> tuple[str, ...]:
        """A mark for each text that the record is about: one of a review, two of a comparison."""
        record = self._records[record_id]
        return tuple(
            "text " + self._key(text)
            for text in ((record.text,) if isinstance(record, Review) else (record.text_a, record.text_b))
        )

    def _key(self, text: str) -> str:
        if text not in self._keys:
            self._keys[text] = text_key(text)
        return self._keys[text]


def _check_references(rows: Sequence[ExampleRow], records: Mapping[str, Record]) -> None:
    known = [[one for one in (row.query_id, *row.profile_ids) if one not in records] for row in rows]
    unknown = (f"{row.example_id} ('{missing[0]}')" for row, missing in zip(rows, known, strict=True) if missing)
    _refuse("the query or a profile entry is not among the records", unknown, rows="examples")
    foreign = (
        f"{row.example_id} ('{one}' is by '{records[one].reviewer_id}')"
        for row in rows
        for one in (row.query_id, *row.profile_ids)
        if records[one].reviewer_id != row.reviewer_id
    )
    _refuse("the query or a profile entry is another reviewer's", foreign, rows="examples")


def _own_query(rows: Iterable[ExampleRow], marks_of: Callable[[str], tuple[str, ...]]) -> Iterator[str]:
    for row in rows:
        query = set(marks_of(row.query_id))
        for one in row.profile_ids:
            if one == row.query_id or not query.isdisjoint(marks_of(one)):
                yield f"{row.example_id} (query '{row.query_id}', profile '{one}')"
                break


def _reviewers_on_two_sides(rows: Iterable[ExampleRow]) -> Iterator[str]:
    seen: dict[str, set[str]] = {}
    for row in rows:
        seen.setdefault(row.reviewer_id, set()).add(row.split if row.split is not None else f"fold {row.fold}")
    for reviewer, on in sorted(seen.items()):
        if len(on) > 1:
            yield f"{reviewer} ({' and '.join(sorted(on))})"


def _shared_items(train: Iterable[ExampleRow], valid: Iterable[ExampleRow], marks: _Marks) -> Iterator[str]:
    first: dict[str, str] = {}
    for row in train:
        for one in (row.query_id, *row.profile_ids):
            for mark in marks.of(one):
                first.setdefault(mark, row.example_id)
    for row in valid:
        for mark in (mark for one in (row.query_id, *row.profile_ids) for mark in marks.of(one)):
            if mark in first:
                yield f"{row.example_id} (shares {mark} with {first[mark]})"
                break


def _refuse(what: str, found: Iterable[str], *, rows: str) -> None:
    names = list(found)
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise BadInput(f"leak: {what} in {len(names)} {rows}: {', '.join(names[:_SHOWN])}{more}; build the data set again")
