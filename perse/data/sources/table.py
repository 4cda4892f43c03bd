"""Any table of reviews or comparisons: JSON lines, CSV or TSV, plain or gzipped.

What is wrong with a file as a whole is always an error. What is wrong with one row stops the reading, or with `skip` is counted
and listed with file, line, field and reason (`faults`); what is listed as "left out" is never an error and only counted. Space
around a text is not part of it.

Rows that do not fit:

| what | what happens |
|---|---|
| file absent, empty, damaged `.gz`, CSV without header | the file is refused |
| a header that names a column twice, a field with no column in any row | the file is refused |
| a line that is not UTF-8, not JSON, no object, a CSV record with more or fewer fields, a quote left open | bad row |
| the header again, in the midst of a CSV file | bad row |
| no reviewer, no item, empty text, empty review | bad row; NaN and null count as empty |
| another type than a text, such as a list or true | bad row; whole numbers pass as ids and texts |
| an item that the items file lacks; an item listed twice or without text | bad row |
| score "7", " 7 ", 7.0 | read |
| score "8/10" | read where the scale ends at 10; "4/5" there is a bad row |
| a control character, other than a line break, in a reviewer, item or aspect | bad row; texts may hold some |
| a NUL character in a text | bad row |
| score "7,5", "1_0", "good", fullwidth digits, true, NaN, null, infinite | bad row |
| score off the scale | bad row |
| a second review of the item by the reviewer, a second answer on the pair and aspect | bad row (Amazon: left out) |
| preference both, neither, tie, nothing | left out |
| preference that is none of A, B, Plot A, Plot B, Plot 1, Plot 2 | bad row |
| the same text twice in a pair | bad row |
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from perse.data.pseudonyms import numbered
from perse.data.sources.facts import Facts, pair_facts, review_facts
from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.lines import read_json_lines
from perse.data.sources.merging import JUDGED_TWICE, SAME_TEXT, Merging
from perse.data.sources.mpst import plot_texts, read_mpst
from perse.data.sources.rows import NO_COLUMN, Row, read_choice, read_rows, read_score, usable
from perse.data.sources.source import Columns, Head, Seen, Source, table_columns
from perse.errors import BadInput
from perse.identity import item_of, text_key
from perse.records import Comparison, Review
from perse.records.columns import PAIRS, REVIEWS, Role, check_fields, mapping_for, named_columns
from perse.scale import rescale

__all__ = ["BadRow", "Faults", "Row", "read_comparisons", "read_json_lines", "read_reviews", "read_rows"]

TAKEN = "the scale is taken for"
"""In a reason that leaves no row out."""
USUAL_ENDS = (20, 50, 100)
"""Above 10, highest scores that scales have: another may be only the highest that was given."""
TELLING = 100
"""So many scores do not leave the upper quarter of their scale empty by chance."""

_NO_REVIEWS = "no column is recognised as what the reviewers wrote; name it by --map review=COLUMN, or take the file of the same reviews that has one"

Items = Path | Mapping[str, str] | None
"""Where the texts by item id come from: a file, what another reader read, or nowhere (the rows carry them)."""


def read_reviews(
    reviews_path: Path,
    items: Items,
    faults: Faults,
    *,
    columns: Mapping[str, str],
    scale: tuple[float, float],
    limit: int | None = None,
) -> list[Review]:
    """Reviews joined with the texts they are about, in the order of the file, scores rescaled to 1-10.

    Texts come from the items file, or without one from the reviews themselves (then an item id may be missing too:
    equal texts are one item). `reviewer_id` is the name as the file has it; `review_id` is that name and the count of that
    reviewer's usable rows. At most `limit` rows are read.

    Raises:
        BadInput: a file that cannot be used; the first bad row, if those are to stop the reading; no row left.
    """
    check_fields(columns, REVIEWS, with_items=items is not None)
    known = _Texts.of(items, columns, faults)
    mapping = mapping_for(REVIEWS, columns, with_items=items is not None)
    lines: dict[tuple[str, str], int] = {}
    one_of: dict[str, str] = {}  # a name, an id, a text: one string for all rows that have it

    def read(row: Row) -> Review:
        reviewer = row.text("reviewer_id", reason="no reviewer")
        item_id, text = _item(row, known)
        reviewer, item_id, text = (one_of.setdefault(each, each) for each in (reviewer, item_id, text))
        original = read_score(row, scale)
        review = row.text("review", reason="empty review")
        time = row.optional_text("time")
        if (first := lines.setdefault((reviewer, item_id), row.line)) != row.line:
            field, item = ("text", "this text") if item_id == item_of(text) else ("item_id", f"'{item_id}'")
            row.bad(field, f"'{reviewer}' already reviewed {item} on line {first}; keep one", reason="reviewed twice")
        return Review(
            review_id="",
            reviewer_id=reviewer,
            item_id=item_id,
            text=text,
            review=review,
            score=rescale(original, *scale),
            original_score=original,
            time=time,
        )

    return numbered(usable(islice(read_rows(reviews_path, mapping, faults), limit), read, faults))


def read_comparisons(
    pairs_path: Path,
    items: Items,
    faults: Faults,
    *,
    columns: Mapping[str, str],
    limit: int | None = None,
) -> list[Comparison]:
    """Comparisons, one for each annotator and pair of texts, with all aspects that the annotator judged.

    A row is one judgement: annotator, aspect, two texts (or two item ids of the items file) and the preference. The same two
    texts in swapped order are the same pair; a comparison keeps the order of its first row, and a later row that has the texts
    swapped has its preference swapped. 'both', 'neither', 'tie' and nothing are left out and counted (PerSE,
    section 4.1).

    Raises:
        BadInput: as in `read_reviews`.
    """
    check_fields(columns, PAIRS, with_items=items is not None)
    known = _Texts.of(items, columns, faults)
    mapping = mapping_for(PAIRS, columns, with_items=items is not None)
    merging = Merging()

    def read(row: Row) -> None:
        row.text("reviewer_id", reason="no reviewer")
        aspect = row.text("aspect", reason="no aspect")
        texts = _pair_texts(row, known)
        if choice := read_choice(row, row.need("preference"), faults):
            merging.add(row, texts, {aspect: choice})

    usable(islice(read_rows(pairs_path, mapping, faults, role=PAIRS), limit), read, faults)
    return merging.comparisons()


def read_items(path: Path, columns: Mapping[str, str], faults: Faults, *, by_words: bool = False) -> dict[str, str]:
    """item_id -> text. A column mapped to the reviews' `item_id` is taken here too where the items file has it; `by_words` as in `read_mpst`."""
    hints = {"item_id": columns["item_id"]} if "item_id" in columns else None
    return plot_texts(read_mpst(path, faults, columns=columns, hints=hints, by_words=by_words))


@dataclass(frozen=True)
class _Texts:
    """Texts by item id, and what messages call the place they are from."""

    by_id: Mapping[str, str]
    place: str

    @staticmethod
    def of(items: Items, columns: Mapping[str, str], faults: Faults) -> _Texts | None:
        if isinstance(items, Path):
            return _Texts(read_items(items, columns, faults), str(items))
        return None if items is None else _Texts(items, "the file of texts")

    def look_up(self, row: Row, field: str) -> tuple[str, str]:
        """The item id that the row has in `field`, and its text."""
        item_id = row.text(field, reason="no item")
        if item_id not in self.by_id:
            what = f"found '{item_id}', which {self.place} lacks, or has no text for; expected one of its item ids"
            row.bad(field, what, reason="item without text in the items file")
        return item_id, self.by_id[item_id]


def _item(row: Row, texts: _Texts | None) -> tuple[str, str]:
    """The id and the text of what a row of reviews is about."""
    if texts is not None:
        return texts.look_up(row, "item_id")
    if row.header.columns_for("text") is None and not row.header.is_mapped("text"):
        message = row.header.explain_missing("text", option="text") + ", or the file of texts as --items"
        raise BadRow(row.path, row.line, message, reason=NO_COLUMN)
    text = row.text("text", reason="empty text")
    return row.optional_text("item_id") or item_of(text), text


def _pair_texts(row: Row, texts: _Texts | None) -> tuple[str, str]:
    if texts is None:
        return row.text("text_a", reason="empty text"), row.text("text_b", reason="empty text")
    return texts.look_up(row, "item_a")[1], texts.look_up(row, "item_b")[1]


def _columns(role: Role, columns: Mapping[str, str]) -> Callable[[Path], Columns]:
    return lambda path: table_columns(read_rows(path, columns, Faults("skip", keep=1), role=role), role)


def _review_facts(path: Path, faults: Faults, columns: Mapping[str, str]) -> Iterator[Facts]:
    for row in read_rows(path, columns, faults):
        yield review_facts(
            row,
            faults,
            review=lambda row: row.text("review", reason="empty review"),
            text=lambda row: row.optional_text("text"),
        )


def _rating_facts(path: Path, faults: Faults) -> Iterator[Facts]:
    for row in read_rows(path, {}, faults):
        yield review_facts(row, faults, review=lambda row: row.optional_text("review"))


def _pair_facts(path: Path, faults: Faults, columns: Mapping[str, str]) -> Iterator[Facts]:
    judged: set[int] = set()
    for row in read_rows(path, columns, faults, role=PAIRS):
        aspect = faults.attempt(lambda row=row: row.text("aspect", reason="no aspect"))  # type: ignore[misc]
        told = faults.attempt(lambda row=row: (row.need("preference"),))  # type: ignore[misc]
        found = pair_facts(row, faults, {aspect or "": told[0] if told else None})
        chosen = told and faults.attempt(lambda row=row, told=told: read_choice(row, told[0], Faults("skip", keep=1)))  # type: ignore[misc]
        usable = aspect and chosen and faults.attempt(lambda row=row, aspect=aspect: _judged_once(row, aspect, judged))  # type: ignore[misc]
        yield replace(found, chosen=bool(usable))


def _judged_once(row: Row, aspect: str, judged: set[int]) -> bool:
    """Whether nothing else stands in the way of the answer; adds it to those `judged`. Raises `BadRow` as `Merging` does."""
    reviewer = row.text("reviewer_id", reason="no reviewer")
    texts = [row.optional_text(f"text_{side}") or row.optional_text(f"item_{side}") for side in "ab"]
    two = frozenset(text_key(text) for text in texts if text)
    if None in texts:
        return False
    if len(two) < 2:
        row.bad("text_b", "the same text as text_a; expected two different texts", reason=SAME_TEXT)
    answer = hash((reviewer, two, aspect))
    if answer in judged:
        row.bad("preference", f"'{reviewer}' already judged '{aspect}' of this pair; keep one", reason=JUDGED_TWICE)
    judged.add(answer)
    return True


def _build_reviews(seen: Seen, columns: Mapping[str, str]) -> str:
    items = "" if "text" in seen.fields else f" --items {seen.items}"
    item = "" if not seen.fields or {"item_id", "text"} & seen.fields.keys() else " --map item_id=COLUMN"
    return f"perse data pointwise --reviews {seen.file}{items}{_maps(columns)}{item}{_scale(seen.scores)}{seen.needed} --out {seen.out}"


def _build_pairs(seen: Seen, columns: Mapping[str, str]) -> str:
    texts = "" if {"text_a", "item_a"} & seen.fields.keys() else " --map text_a=COLUMN --map text_b=COLUMN"
    items = f" --items {seen.items}" if "text_a" not in seen.fields and "item_a" in seen.fields else ""
    return f"perse data pairwise --pairs {seen.file}{items}{_maps(columns)}{texts}{seen.split}{seen.skip} --out {seen.out}"


def _maps(columns: Mapping[str, str]) -> str:
    return "".join(f" --map {shlex.quote(f'{field}={column}')}" for field, column in columns.items())


def _build_ratings(seen: Seen) -> str:
    """What is called `text` is taken for the text reviewed, but may be what the reviewer wrote."""
    if "text" not in seen.fields:
        return f"nothing: {_NO_REVIEWS}"
    others = replace(seen, fields={field: column for field, column in seen.fields.items() if field != "text"})
    return _build_reviews(others, {"review": seen.fields["text"]})


def _about_ratings(seen: Seen) -> str | None:
    column = seen.fields.get("text")
    return f"the command below is right if '{column}' is what the reviewers wrote; else {_NO_REVIEWS}" if column else None


def _scale(scores: Mapping[str, int]) -> str:
    """The option for the scale, where it is not that of a build without it."""
    low, high = meant_scale(scores) or (1, 10)
    return "" if (low, high) == (1, 10) else f" --scale {low:g}-{high:g}"


def meant_scale(scores: Mapping[str, int]) -> tuple[float, float] | None:
    """Lowest and highest score that seem to be meant; None without scores.

    | scores | highest | lowest |
    |---|---|---|
    | shares of a number, as 4/5 | that number, or the commonest | 0 if one is below 1, else 1 |
    | one below 0 | the highest there is | the lowest there is |
    | all from 0 to 1, not all of them 1 | 1 | 0 |
    | others up to 5, up to 10, above 10 | 5, 10, the highest there is | 0 if one is below 1 and not taken for "not rated", else 1 |
    | up to 5 in steps of a half, none of them 0 | 5 | 0.5 if one is so, else 1 |
    """
    if not (values := _values(scores)):
        return None
    least, most = min(values), max(values)
    if out_of := _out_of(scores):
        high = max(out_of, key=lambda one: (out_of[one], one))
    elif least < 0:
        return least, most if most > least else 0
    elif most <= 1 and least < 1:
        high = 1
    else:
        high = 5 if most <= 5 else max(most, 10)
    if least == 0.5 and high == 5 and all(value % 0.5 == 0 for value in values):
        return 0.5, high
    return (0 if least < 1 and not unrated(scores) else 1), high


def odd_scores(scores: Mapping[str, int]) -> dict[str, int]:
    """What a person must know of the scores before a build: reason -> how many. `stopping_scores` are those at which one stops."""
    found = stopping_scores(scores)
    low, high = meant_scale(scores) or (0, 0)
    unused = (most := max(_values(scores), default=0)) <= low + 0.75 * (high - low) and not _out_of(scores)
    if high > 10 and high not in USUAL_ENDS and not _out_of(scores) and low >= 0:
        found[f"scores up to {high:g}: {TAKEN} {low:g} to {high:g} (if it is another, give --scale LOW-HIGH)"] = sum(
            scores.values()
        )
    if unused and sum(scores.values()) >= TELLING:
        found[f"scores, none of them above {most:g}: {TAKEN} {low:g} to {high:g} (if it is another, give --scale LOW-HIGH)"] = (
            sum(scores.values())
        )
    below = sum(count for label, count in scores.items() if "/" not in label and float(label) < 0)
    if below and low < 0:
        found[f"score below 0: {TAKEN} {low:g} to {high:g} (if it is another, give --scale LOW-HIGH)"] = below
    return found


def stopping_scores(scores: Mapping[str, int]) -> dict[str, int]:
    """Scores that are not on the scale that seems to be meant: reason -> how many."""
    found = {}
    if zeros := unrated(scores):
        found["score 0, taken for not rated (if it is the lowest score, give --scale 0-...)"] = zeros
    if out_of := _out_of(scores):
        low, high = meant_scale(scores) or (0, 0)
        found[f"score out of another number than {high:g}"] = sum(out_of.values()) - out_of[high]
        off = [
            count for label, count in scores.items() if "/" not in label and not (low <= float(label) <= high or label == "0")
        ]
        found[f"score off the scale {low:g} to {high:g}"] = sum(off)
    return {reason: count for reason, count in found.items() if count}


def unrated(scores: Mapping[str, int]) -> int:
    """How many scores are 0 and seem to mean "not rated": there are higher ones, none lies between 0 and 1 or below, and none is above 10."""
    values = _values(scores)
    between = any(value < 0 or 0 < value < 1 for value in values)
    return scores.get("0", 0) if values and 1 < max(values) <= 10 and not between else 0


def _values(scores: Mapping[str, int]) -> list[float]:
    return [float(label.partition("/")[0]) for label in scores]


def _out_of(scores: Mapping[str, int]) -> dict[float, int]:
    """Of the scores that are shares: of which number -> how many."""
    found: Counter[float] = Counter()
    for label, count in scores.items():
        if "/" in label:
            found[float(label.partition("/")[2])] += count
    return dict(found)


def _review_table(columns: Mapping[str, str]) -> Source:
    return Source(
        name="reviews",
        title="table of reviews",
        recognise=lambda head: head.has(REVIEWS, "reviewer_id", "score", "review", columns=columns),
        columns=_columns(REVIEWS, columns),
        kind="pointwise",
        read=lambda wanted, faults: read_reviews(
            wanted.file, wanted.items, faults, columns=wanted.columns, scale=wanted.scale, limit=wanted.limit
        ),
        files=("reviews", "items"),
        facts=lambda path, faults: _review_facts(path, faults, columns),
        once="review",
        next=lambda seen: _build_reviews(seen, columns),
    )


def _pair_table(columns: Mapping[str, str]) -> Source:
    return Source(
        name="pairs",
        title="table of comparisons",
        recognise=lambda head: head.has(PAIRS, "reviewer_id", "aspect", "preference", columns=columns),
        columns=_columns(PAIRS, columns),
        kind="pairwise",
        read=lambda wanted, faults: read_comparisons(
            wanted.file, wanted.items, faults, columns=wanted.columns, limit=wanted.limit
        ),
        files=("pairs", "items"),
        facts=lambda path, faults: _pair_facts(path, faults, columns),
        next=lambda seen: _build_pairs(seen, columns),
    )


def mapped_table(head: Head, columns: Mapping[str, str]) -> Source:
    """The table of reviews or comparisons that a file is with the user's mapping.

    Raises:
        BadInput: it is neither, or a field does not exist.
    """
    for role, made in ((PAIRS, _pair_table), (REVIEWS, _review_table)):
        if columns.keys() <= {*role.fields} and (source := made(columns)).recognise(head):
            return source
    check_fields(columns, REVIEWS if columns.keys() & {*REVIEWS.fields} else PAIRS, with_items=False)
    raise BadInput(
        f"{head.path}: with this --map it is no table of reviews (reviewer_id, score, review) or comparisons (reviewer_id, aspect, "
        f"preference); columns found: {named_columns(head.names)}"
    )


REVIEW_TABLE = _review_table({})
PAIR_TABLE = _pair_table({})

RATINGS = Source(
    name="ratings",
    title="ratings without review texts",
    recognise=lambda head: head.has(REVIEWS, "reviewer_id", "score"),
    columns=_columns(REVIEWS, {}),
    facts=_rating_facts,
    once="review",
    next=_build_ratings,
    note=_about_ratings,
)


def _is_of_pairs(head: Head) -> bool:
    return any(head.has(PAIRS, "preference", *two) for two in (("text_a", "text_b"), ("item_a", "item_b")))


def _facts_without_aspect(path: Path, faults: Faults) -> Iterator[Facts]:
    for row in read_rows(path, {}, faults, role=PAIRS):
        yield pair_facts(row, faults, {"": None})


def _build_without_aspect(seen: Seen) -> str:
    reader = "" if "reviewer_id" in seen.fields or not seen.fields else " --map reviewer_id=COLUMN"
    items = f" --items {seen.items}" if "text_a" not in seen.fields and "item_a" in seen.fields else ""
    return f"perse data pairwise --pairs {seen.file}{items}{reader} --map aspect=COLUMN --out {seen.out}"


NO_ASPECT = Source(
    name="comparisons",
    title="comparisons without an aspect",
    recognise=_is_of_pairs,
    columns=_columns(PAIRS, {}),
    facts=_facts_without_aspect,
    next=_build_without_aspect,
    note=lambda seen: (
        "a build asks in which aspect two texts are compared: COLUMN is the one that says it; where none does, add one that says the same in each row, such as Overall"
    ),
)
"""Tables that say which of two texts is preferred, and in no column that is recognised in which aspect, or who prefers it."""
