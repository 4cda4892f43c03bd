"""What each record of any file says about reviewers, items, scores and lengths: what a description counts.

No text is kept, only how many words it has, so a file of any size can be gone through. Rows are looked at as the readers do,
but nothing is joined: whether an item has a text, or two rows fit together, shows when a data set is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from perse.data.sources.amazon import STARS, headerless, is_ratings_row, iso_date, joined_texts
from perse.data.sources.columns import FIELDS, Role
from perse.data.sources.doc import question_columns
from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.formats import Format
from perse.data.sources.lines import column_names, first_fields, is_csv, read_records
from perse.data.sources.rows import OUT_OF, Row, number_in, read_rows, read_score
from perse.formats.json_text import parsed

T = TypeVar("T")

ROLES: Mapping[Format, Role] = MappingProxyType(
    {
        Format.REVIEWS: Role.REVIEWS,
        Format.RATINGS: Role.REVIEWS,
        Format.MPST: Role.ITEMS,
        Format.ITEMS: Role.ITEMS,
        Format.PAIRS: Role.PAIRS,
        Format.DOC: Role.DOC,
        Format.AMAZON: Role.AMAZON,
        Format.PRODUCTS: Role.PRODUCTS,
    }
)
"""What the rows of a table are looked at as; formats that are not here are no tables."""

_SCORE = re.compile(r'"Score"\s*:\s*"?(\d+)')
_CHOICE = re.compile(r'"Choice"\s*:\s*"?Plot ([AB])')


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one record says; absent where it says nothing."""

    reviewer: str | None = None
    item: str | None = None
    score: str | None = None
    """As it stands there: "7", "4.5", "4/5"."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """aspect -> what was answered, as it stands there."""
    text_words: tuple[int, ...] = ()
    """Words of each text that is judged."""
    review_words: int | None = None
    time: str | None = None


def facts_of(path: Path, format: Format, faults: Faults, *, limit: int | None = None) -> Iterator[Facts]:
    """The facts of each record, at most `limit` of them; what is wrong with one goes to `faults`, and the rest of it is told.

    Raises:
        BadInput: the file as a whole cannot be read.
    """
    if format is Format.FOLDER:
        yield from islice(map(_record_facts, _folder_records(path)), limit)
    elif format in ROLES:
        tell = _teller(path, format, faults)
        yield from islice(map(tell, table_rows(path, format, faults)), limit)
    else:
        tell_record = _released_facts if format in (Format.RELEASED_MPST, Format.RELEASED_DOC) else _example_facts
        yield from islice((tell_record(values) for _, values in read_records(path, faults)), limit)


def table_rows(path: Path, format: Format, faults: Faults) -> Iterator[Row]:
    """The rows of a table, read as its format asks for. Raises as `rows.read_rows`."""
    header = headerless(path) if format is Format.AMAZON else None
    if format is Format.RATINGS and is_csv(path) and is_ratings_row(fields := first_fields(path)):
        # Without a header; the product's id, of ten characters, is the shorter one.
        user_first = len(fields[0]) >= len(fields[1])
        header = (*(("reviewer_id", "item_id") if user_first else ("item_id", "reviewer_id")), "score", "time")
    hints = {"item_id": "id"} if ROLES[format] is Role.ITEMS else {}
    literals = format is Format.PRODUCTS
    return read_rows(path, {}, faults, role=ROLES[format], hints=hints, header=header, literals=literals)


def _teller(path: Path, format: Format, faults: Faults) -> Callable[[Row], Facts]:
    """What makes facts of a row of this format."""

    def attempt(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except BadRow as error:
            faults.add(error)
            return None

    def of_review(row: Row) -> Facts:
        review = attempt(lambda: row.optional_text("review"))
        if review is None and format is Format.AMAZON:
            faults.left_out["no review text"] += 1
        elif review is None and format is Format.REVIEWS:
            attempt(lambda: row.text("review", reason="empty review"))
        text = attempt(lambda: row.optional_text("text")) if format is Format.REVIEWS else None
        time = iso_date(row.get("time")) if format is Format.AMAZON else attempt(lambda: row.optional_text("time"))
        return Facts(
            reviewer=attempt(lambda: row.text("reviewer_id", reason="no reviewer")),
            item=attempt(lambda: row.optional_text("item_id")),
            score=attempt(lambda: f"{read_score(row, STARS, fixed=True):g}" if format is Format.AMAZON else _score(row)),
            text_words=() if text is None else (_words(text),),
            review_words=None if review is None else _words(review),
            time=time,
        )

    def of_item(row: Row) -> Facts:
        if format is Format.PRODUCTS:
            text = attempt(lambda: "\n".join(joined_texts(row, name) for name in ("title", "description")).strip())
        else:
            text = attempt(lambda: row.text("text", reason="item without text"))
        item = attempt(lambda: row.text("item_id", reason="item without id"))
        return Facts(item=item, text_words=(_words(text),) if text else ())

    questions = question_columns(path, column_names(path), {}) if format is Format.DOC else {}

    def of_pair(row: Row) -> Facts:
        texts = [attempt(lambda name=name: row.optional_text(name)) for name in ("text_a", "text_b")]  # type: ignore[misc]
        if format is Format.DOC:
            answers = {aspect: row.values.get(column) for aspect, column in questions.items()}
        else:
            answers = {attempt(lambda: row.text("aspect", reason="no aspect")) or "": attempt(lambda: row.need("preference"))}
        return Facts(
            reviewer=attempt(lambda: row.text("reviewer_id", reason="no reviewer")),
            answers={aspect: _answer(value) for aspect, value in answers.items() if aspect},
            text_words=tuple(_words(text) for text in texts if text),
            time=attempt(lambda: row.optional_text("time")),
        )

    if "reviewer_id" not in FIELDS[ROLES[format]]:
        return of_item
    return of_pair if "text_a" in FIELDS[ROLES[format]] else of_review


def _score(row: Row) -> str:
    value = row.need("score")
    if isinstance(value, str) and OUT_OF.fullmatch(value):
        return "".join(value.split())
    number = number_in(value)
    if number is None:
        row.bad("score", "not a number", reason="score not a number")
    return f"{number:g}"


def _answer(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text[:20] or "nothing"


def _words(text: str) -> int:
    return len(text.split())


def _folder_records(path: Path) -> Iterator[dict[str, object]]:
    """The reviews or comparisons of a data set folder."""
    from perse.data.dataset.parquet import read_parquet

    reviews = path / "reviews.parquet"
    yield from read_parquet(reviews if reviews.exists() else path / "comparisons.parquet")


def _record_facts(record: Mapping[str, object]) -> Facts:
    """The facts of a review or comparison as a data set folder holds it."""
    preference = record.get("preference")
    score = record.get("original_score")
    return Facts(
        reviewer=_text(record.get("reviewer_id")),
        item=_text(record.get("item_id")),
        score=None if score is None else f"{score:g}",
        answers=_preferences(preference),
        text_words=tuple(_words(text) for name in ("text", "text_a", "text_b") if (text := _text(record.get(name)))),
        review_words=None if (review := _text(record.get("review"))) is None else _words(review),
        time=_text(record.get("time")),
    )


def _preferences(stored: object) -> dict[str, str]:
    """A comparison's preferences by aspect, from the JSON text that a data set folder keeps; none where that is damaged."""
    try:
        found = parsed(stored) if isinstance(stored, str) else None
    except ValueError:
        return {}
    return {aspect: _answer(value) for aspect, value in found.items()} if isinstance(found, dict) else {}


def _example_facts(values: Mapping[str, object]) -> Facts:
    """The facts of a line that `perse data export` or a person wrote, about its query."""
    query, reference = values.get("query", values.get("prompt")), values.get("reference")
    texts = [query.get("text_a"), query.get("text_b")] if isinstance(query, dict) else [query]
    said = reference if isinstance(reference, dict) else {}
    score, review, preference = said.get("score"), _text(said.get("review")), _text(said.get("preference"))
    return Facts(
        reviewer=_text(values.get("reviewer_id")),
        item=_text(values.get("item_id")),
        score=None if (number := number_in(score)) is None else f"{number:g}",
        answers={} if preference is None else {_text(values.get("aspect")) or "preference": preference},
        text_words=tuple(_words(text) for text in texts if isinstance(text, str)),
        review_words=None if review is None else _words(review),
    )


def _released_facts(values: Mapping[str, object]) -> Facts:
    """The facts of a row that the authors of PerSE released; their text is the whole prompt."""
    prompt, examples = values.get("prompt"), values.get("examples")
    completion = _text(values.get("completion")) or ""
    score, choice = _SCORE.search(completion), _CHOICE.search(completion)
    shown = examples[0] if isinstance(examples, list) and examples and isinstance(examples[0], dict) else {}
    prompts = prompt if isinstance(prompt, list) else [prompt]
    return Facts(
        reviewer=_text(shown.get("reviewer_name")) or _text(values.get("review_id")),
        score=None if score is None else score.group(1),
        answers={} if choice is None else {"preference": choice.group(1)},
        text_words=tuple(_words(text) for text in prompts if isinstance(text, str)),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
