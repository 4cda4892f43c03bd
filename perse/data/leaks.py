"""No leaks: proven on every build and every load, not assumed (DESIGN.md, promise 5).

The check looks at the finished rows and at the texts themselves. It shares with the code that drew them only what "the same
text" means (`identity.normalised`, `near.near_duplicate` and what a shingle is): the drawing groups texts by MinHash, which may
miss a near-duplicate, the check compares them exactly. Its price is a pass over all profiles, some 20 seconds for a million
examples of five reviews.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from perse.data.profiles.profiles import ExampleRow
from perse.data.profiles.splits import sides
from perse.errors import BadInput
from perse.identity import normalised, pair_key, text_key
from perse.records import Comparison, Review
from perse.records.near import near_across, near_duplicate, prints

_SHOWN = 3
_BATCH = 100_000  # examples whose profiles are compared at once

Record = Review | Comparison


def check_leaks(
    rows: Sequence[ExampleRow],
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
    *,
    disjoint_items: bool,
    repeats: bool = False,
) -> None:
    """That no query is in its own profile, no reviewer on two sides, and, if promised, no item or pair on two sides.

    The same item is the same id, the same normalised text or a near-duplicate of it; the same pair the same id or the same two
    texts in any order. In the profile of a pair not even one of its two texts may stand, nor a near-duplicate of one; on the
    two sides of a split a text may, in other pairs.

    Args:
        reviews, comparisons: the records by id; those of the other kind are empty.
        repeats: whether a profile may show a review that says the same as the query's.
        disjoint_items: whether the split promises that training and validation share no item, through queries or profiles.
    Raises:
        BadInput: a leak, or a row that refers to an unknown record or to another reviewer's; the first few rows are named.
    """
    records: Mapping[str, Record] = reviews or comparisons
    _check_references(rows, records)
    marks = _Marks(records)
    _refuse("the query is in its own profile", _own_query(rows, marks.of), rows="examples")
    if comparisons:  # the marks of a review hold its text, those of a pair only both texts together
        _refuse("a text of the query is in its own profile", _own_query(rows, marks.texts), rows="examples")
    _refuse("a near-duplicate of the query is in its profile", _near_query(rows, records, _texts), rows="examples")
    if reviews and not repeats:
        _refuse("the review asked for is in the profile", _near_query(rows, records, _said), rows="examples")
    _refuse("a reviewer is on two sides of the split", _reviewers_on_two_sides(rows), rows="reviewers")
    if disjoint_items:
        folds: list[int | None] = [*sorted({row.fold for row in rows if row.fold is not None})]
        for fold in folds or [None]:
            train, valid = sides(rows, fold, apart=comparisons)
            _refuse("an item is in training and in validation", _shared_items(train, valid, marks), rows="validation examples")
            near = _near_items(train, valid, reviews)
            _refuse("near-duplicates are in training and in validation", near, rows="validation examples")


class _Marks:
    """Marks by which two records are about the same work: its id and its text, each hashed once."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records
        self._keys: dict[str, str] = {}
        self._marks: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, record_id: str) -> tuple[str, ...]:
        record = self._records[record_id]
        if isinstance(record, Review):
            about: tuple[str, ...] = (record.item_id, record.text)
            if about not in self._marks:
                self._marks[about] = ("item " + record.item_id, self._key(record.text))
        else:
            about = (record.pair_id, record.text_a, record.text_b)
            if about not in self._marks:
                self._marks[about] = ("pair " + record.pair_id, "texts " + pair_key(record.text_a, record.text_b))
        return self._marks[about]

    def texts(self, record_id: str) -> tuple[str, ...]:
        """A mark for each text that the record is about: one of a review, two of a comparison."""
        return tuple(map(self._key, _texts(self._records[record_id])))

    def _key(self, text: str) -> str:
        if text not in self._keys:
            self._keys[text] = "text " + text_key(text)
        return self._keys[text]


def _texts(record: Record) -> tuple[str, ...]:
    return (record.text,) if isinstance(record, Review) else (record.text_a, record.text_b)


def _said(record: Record) -> tuple[str, ...]:
    """The review, if it has a word."""
    return (record.review,) if isinstance(record, Review) and normalised(record.review) else ()


def _check_references(rows: Sequence[ExampleRow], records: Mapping[str, Record]) -> None:
    unknown = (
        f"{row.example_id} ('{next(one for one in (row.query_id, *row.profile_ids) if one not in records)}')"
        for row in rows
        if row.query_id not in records or not all(one in records for one in row.profile_ids)
    )
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
                yield _in_profile(row, one)
                break


def _near_query(
    rows: Sequence[ExampleRow], records: Mapping[str, Record], texts_of: Callable[[Record], tuple[str, ...]]
) -> Iterator[str]:
    used = dict.fromkeys(one for row in rows for one in (row.query_id, *row.profile_ids))
    numbers: dict[str, int] = {}
    for one in used:
        for text in texts_of(records[one]):
            numbers.setdefault(text, len(numbers))
    texts = list(numbers)
    pictures = prints(map(normalised, texts))
    for start in range(0, len(rows), _BATCH):
        pairs = [
            (numbers[asked], numbers[shown], place, one)
            for place, row in enumerate(rows[start : start + _BATCH], start)
            for one in row.profile_ids
            for shown in texts_of(records[one])
            for asked in texts_of(records[row.query_id])
        ]
        named = -1
        for pair in pictures.may_be_near([pair[0] for pair in pairs], [pair[1] for pair in pairs]).nonzero()[0]:
            asked, shown, place, one = pairs[pair]
            if place != named and near_duplicate(texts[asked], texts[shown]):
                named = place
                yield _in_profile(rows[place], one)


def _in_profile(row: ExampleRow, one: str) -> str:
    return f"{row.example_id} (query '{row.query_id}', profile '{one}')"


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


def _near_items(train: Iterable[ExampleRow], valid: Iterable[ExampleRow], reviews: Mapping[str, Review]) -> Iterator[str]:
    """For reviews only: two pairs may share texts."""
    known: dict[str, tuple[str, str]] = {}
    for row in train:
        for one in (row.query_id, *row.profile_ids):
            if one in reviews:
                known.setdefault(reviews[one].text, (one, row.example_id))
    asked = dict.fromkeys(reviews[one].text for row in valid for one in (row.query_id, *row.profile_ids) if one in reviews)
    near = near_across(list(known), list(asked))
    for row in valid if near else ():
        for one in (row.query_id, *row.profile_ids):
            if reviews[one].text in near:
                other, where = known[near[reviews[one].text]]
                yield f"{row.example_id} ('{one}' is near '{other}' in {where})"
                break


def check_names(
    texts: Mapping[str, str],
    originals: Mapping[str, Sequence[str]],
    titles: Mapping[str, str],
    *,
    warn: bool,
) -> list[str]:
    """That no anonymized text still holds a name that was to be replaced, or its item's title.

    Args:
        texts: item_id -> the anonymized text.
        originals: item_id -> the names that should be gone (the keys of the name mapping). Found as `names.Renamer` finds them.
        titles: item_id -> the title. See `title_in`.
        warn: return the findings instead of refusing them, for data that is used as it was released.
    Returns:
        A sentence for each kind of finding, the first items named; none if there is nothing to say.
    Raises:
        BadInput: the first of these sentences, unless `warn`.
    """
    from perse.data.names.names import Renamer

    named: list[str] = []
    titled: list[str] = []
    for item, text in texts.items():
        names = originals.get(item, ())
        found = Renamer({name: name for name in names}).spans(text) if names else []
        if found:
            named.append(f"{item} ('{' '.join(found[0].old.split())}')")
        title = title_in(text, titles.get(item, ""))
        if title is not None:
            titled.append(f"{item} ('{title}')")
    sentences = [
        _sentence(what, names, rows="items", remedy="anonymize these texts again, or leave the items out")
        for what, names in (
            ("the anonymized text holds an original name", named),
            ("the anonymized text holds the title", titled),
        )
        if names
    ]
    if sentences and not warn:
        raise BadInput(sentences[0])
    return sentences


def title_in(text: str, title: str) -> str | None:
    """`title` as it stands in `text` as whole words; None if it does not.

    Two words or more, a leading article not counted, are the title in any case. A single word ("Up", "The Ring") is only where
    it is capitalised and the text never has it in lower case, where it would be a common word; a number never is.
    """
    text, title = (unicodedata.normalize("NFC", one).replace("\u2019", "'") for one in (text, title))
    words = title.split()
    own = words[1:] if len(words) > 1 and words[0].casefold() in ("the", "a", "an") else words
    found = _whole(words, text)
    if found and len(own) == 1:
        alone = _whole(own, text)
        common = any(one.islower() for one in alone) or not any(char.isalpha() for char in own[0])
        return None if common else found[0]
    return found[0] if found else None


def _whole(words: Sequence[str], text: str) -> list[str]:
    """Where `words` stand in `text` one after the other as whole words, in any case."""
    if not words:
        return []
    pattern = r"\s+".join(map(re.escape, words))
    return [" ".join(found.split()) for found in re.findall(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)]


def _refuse(what: str, found: Iterable[str], *, rows: str) -> None:
    names = list(found)
    if names:
        raise BadInput(_sentence(what, names, rows=rows, remedy="build the data set again"))


def _sentence(what: str, names: Sequence[str], *, rows: str, remedy: str) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"leak: {what} in {len(names)} {rows}: {', '.join(names[:_SHOWN])}{more}; {remedy}"
