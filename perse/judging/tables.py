"""Tables of a Python program, read as reviews, texts and candidates: data frames, dicts and tuples.

Columns are found by their names, as in files (`perse.records.columns`), and what counts as a score is what counts as one there
(`perse.records.scores`); nothing is guessed from values, since nobody is there to say that it is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from perse.errors import BadInput
from perse.formats.json_text import json_kind, shortened
from perse.identity import item_of
from perse.judging.everyone import Everyone, everyone
from perse.judging.rows import Table, TableRow, rows_of
from perse.records import Review
from perse.records.columns import ITEMS, REVIEWS, Role, nearest
from perse.scale import OwnScale, rescale

REVIEW_PARTS, TEXT_PARTS, CANDIDATE_PARTS = (
    ("reviewer_id", "text", "review", "score"),
    ("item_id", "text"),
    ("reviewer_id", "item_id"),
)
"""The fields of a tuple, in their order."""
CANDIDATES = Role(("reviewer_id", "item_id"))
OF_TEXTS = "items."
"""Begins the name of a field of the texts, as for `--map`."""


@dataclass(frozen=True)
class Read:
    """What tables ask, and in which of the columns `reviewer_id` and `item_id` all ids were whole numbers."""

    asked: Everyone
    numbered: frozenset[str]


def read_tables(
    reviews: Table,
    texts: Table,
    candidates: Table | None,
    *,
    columns: Mapping[str, str],
    scale: OwnScale | None,
    k: int | None,
) -> Read:
    """The examples that the tables ask about; arguments are those of `perse.judging.judge.Judge.score`.

    Raises:
        BadInput: as there.
    """
    _check(columns, k)
    new = texts_in(texts, columns)
    past = reviews_in(reviews, new, columns, scale=scale or (1, 10))
    only = None if candidates is None else candidates_in(candidates, columns)
    ids = {"reviewer_id": past.numbered, "item_id": new.numbered}
    asked = everyone(past.reviews, new.by_id, only=only, k=None if k is None else int(k), scale=scale)
    return Read(asked, frozenset(name for name, numbered in ids.items() if numbered))


@dataclass(frozen=True)
class Past:
    """Past reviews, their scores on 1-10; `numbered` says that the readers' ids were whole numbers."""

    reviews: list[Review]
    numbered: bool


@dataclass(frozen=True)
class Texts:
    """item_id -> text, the columns of the table, and whether the ids were whole numbers."""

    by_id: dict[str, str]
    columns: frozenset[str]
    numbered: bool


def reviews_in(table: Table, texts: Texts, columns: Mapping[str, str], *, scale: OwnScale) -> Past:
    """Past reviews. The text that one is about stands in a column of its own (`text`) or, by `item_id`, among `texts`. A column called text is what
    the reader wrote where none is called review, as `perse quickstart` has it.

    Args:
        columns: our field -> column; what begins with `items.` is of the texts, and so may `text` and `item_id` be.
        scale: lowest and highest score.
    Raises:
        BadInput: no table, a field without a column, or what is wrong with a row; a text twice of one reader.
    """
    mine = {field: column for field, column in columns.items() if not field.startswith(OF_TEXTS)}
    seen: dict[tuple[str, str], int] = {}
    found, numbered = [], True
    for row in rows_of(table, "reviews", REVIEWS, mine, REVIEW_PARTS, elsewhere=texts.columns):
        reader, numbered = row.name("reviewer_id"), numbered and row.numbered("reviewer_id")
        said = "text" if row.has("text") and not row.has("review") and not row.header.is_mapped("text") else "review"
        item, text = _own_text(row) if row.has("text") and said == "review" else _text_among(row, texts.by_id)
        if (before := seen.setdefault((reader, item), row.number)) != row.number:
            row.bad("item_id", f"'{reader}' already reviewed '{item}' in row {before}; keep one")
        review, original = row.text(said), row.score(scale)
        found.append(
            Review(
                review_id=str(row.number),
                reviewer_id=reader,
                item_id=item,
                text=text,
                review=review,
                score=rescale(original, *scale),
                original_score=original,
                time=row.time(),
            )
        )
    if not found:
        raise BadInput("the reviews are empty; give past reviews of the readers who are asked")
    return Past(found, numbered)


def _own_text(row: TableRow) -> tuple[str, str]:
    text = row.text("text")
    named = row.has("item_id") and row.value("item_id") is not None
    return row.name("item_id") if named else item_of(text), text


def _text_among(row: TableRow, texts: Mapping[str, str]) -> tuple[str, str]:
    item = row.name("item_id", else_give=", or the text that each review is about in a column text")
    if item not in texts:
        row.bad(
            "item_id",
            f"found '{item}', which is none of the texts; give its text with them, or in a column text of the reviews",
        )
    return item, texts[item]


def texts_in(table: Table, columns: Mapping[str, str]) -> Texts:
    """The texts to judge; one without an id is known by its words.

    Raises:
        BadInput: no table, no text, or what is wrong with a row; an id twice.
    """
    mine = {field.removeprefix(OF_TEXTS): column for field, column in columns.items() if field.startswith(OF_TEXTS)}
    hints = {field: column for field, column in columns.items() if field in ITEMS.fields}
    texts: dict[str, str] = {}
    names, numbered = set[str](), True
    for row in rows_of(table, "texts", ITEMS, mine, TEXT_PARTS, option=OF_TEXTS, bare="text", hints=hints):
        names.update(row.header.names)
        text = row.text("text")
        item = row.name("item_id") if row.has("item_id") else item_of(text)
        if item in texts:
            row.bad("item_id", f"found '{item}', which another text has, too; keep one of them, or give each an id of its own")
        texts[item], numbered = text, numbered and row.numbered("item_id")
    if not texts:
        raise BadInput("the texts are empty; give the texts to judge")
    return Texts(texts, frozenset(names), numbered)


def candidates_in(table: Table, columns: Mapping[str, str]) -> list[tuple[str, str]]:
    """(reviewer_id, item_id) of each row.

    Raises:
        BadInput: no table, or what is wrong with a row.
    """
    mine = {field: column for field, column in columns.items() if field in CANDIDATES.fields}
    rows = rows_of(table, "candidates", CANDIDATES, {}, CANDIDATE_PARTS, hints=mine)
    return [(row.name("reviewer_id"), row.name("item_id")) for row in rows]


def _check(columns: Mapping[str, str], k: int | None) -> None:
    """
    Raises:
        BadInput: a field that is none, or a column that is no name; no number of reviews.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 0):
        raise BadInput(
            f"k is {shortened(k)}, expected how many reviews of each reader are shown, from 0 up; None shows as many as fit"
        )
    if not isinstance(columns, Mapping):
        raise BadInput(f"columns is {json_kind(columns)}, expected field -> column, such as {{'review': 'comment'}}")
    known = (*REVIEWS.fields, *(f"{OF_TEXTS}{field}" for field in ITEMS.fields))
    for field, column in columns.items():
        if field not in known:
            raise BadInput(f"columns: there is no field '{field}'{nearest(str(field), known)}; fields: {', '.join(known)}")
        if not isinstance(column, str):
            raise BadInput(f"columns: '{field}' is {json_kind(column)}, expected the name of a column")


def is_pandas(table: object) -> bool:
    """Whether it is a data frame of pandas, or of a class made from it; pandas is installed then."""
    return any(made.__name__ == "DataFrame" and made.__module__.partition(".")[0] == "pandas" for made in type(table).__mro__)


def as_frame(rows: Sequence[Mapping[str, Any]], *, numbered: Collection[str]) -> Any:
    """A data frame of pandas, in which the ids of the columns `numbered` are whole numbers again, so that it can be joined with what was given."""
    import pandas

    return pandas.DataFrame([{name: int(value) if name in numbered else value for name, value in row.items()} for row in rows])
