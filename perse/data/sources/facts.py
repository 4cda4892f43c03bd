"""The facts of one record of any file, which a description counts: reviewers, items, scores and lengths.

No text is kept, only how many words it has, so a file of any size can be gone through. Rows are looked at as the readers do,
but nothing is joined: whether an item has a text, or two rows fit together, shows when a data set is built. Each source says
with the functions here what its records tell; a bad field goes to the faults, and the rest of the record is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from perse.data.sources.faults import Faults
from perse.data.sources.rows import Row
from perse.formats.json_text import parsed, shortened
from perse.identity import item_of, normalised
from perse.records.scores import OUT_OF, number_in, point_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one record; absent ones are None."""

    reviewer: str | None = None
    item: str | None = None
    score: str | None = None
    """As in the file: "7", "4.5", "4/5"."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """aspect -> the answer as in the file."""
    chosen: bool = False
    """Whether a row of a table says which of two texts is preferred, and in which aspect."""
    pair: int | None = None
    """Equal for the same two texts, in whatever order."""
    text_words: tuple[int, ...] = ()
    """Words of each text that is judged."""
    review_words: int | None = None
    said: int | None = None
    """Equal for equal reviews."""
    time: str | None = None


def raw_score(row: Row) -> str:
    """The score of a row as in the file. Raises `BadRow` if it is not a number."""
    value = row.need("score")
    if isinstance(value, str) and OUT_OF.fullmatch(value):
        return "".join(value.split())
    number = number_in(value)
    if number is None:
        row.bad("score", f"found {shortened(value)}, expected a number{point_for(value)}", reason="score not a number")
    return f"{number:g}"


def raw_time(row: Row) -> str | None:
    """The time of a row as in the file."""
    return row.optional_text("time")


def review_facts(
    row: Row,
    faults: Faults,
    *,
    review: Callable[[Row], str | None],
    text: Callable[[Row], str | None] = lambda row: None,
    score: Callable[[Row], str] = raw_score,
    time: Callable[[Row], str | None] = raw_time,
) -> Facts:
    """The facts of a row that holds a review; each argument reads one of them from the row. Without an item id equal texts are one item,
    as in a build."""
    reviewer = faults.attempt(lambda: row.text("reviewer_id", reason="no reviewer"))
    item = faults.attempt(lambda: row.optional_text("item_id"))
    found = faults.attempt(lambda: text(row))
    said = faults.attempt(lambda: review(row))
    return Facts(
        reviewer=reviewer,
        item=item if item or not found else item_of(found),
        score=faults.attempt(lambda: score(row)),
        text_words=_words(found),
        review_words=next(iter(_words(said)), None),
        said=None if said is None else hash(normalised(said)),
        time=faults.attempt(lambda: time(row)),
    )


def item_facts(row: Row, faults: Faults, *, text: Callable[[Row], str | None]) -> Facts:
    """The facts of a row that holds the text of an item, which `text` reads."""
    return Facts(
        item=faults.attempt(lambda: row.text("item_id", reason="item without id")),
        text_words=_words(faults.attempt(lambda: text(row)) or None),
    )


def pair_facts(row: Row, faults: Faults, answers: Mapping[str, object]) -> Facts:
    """The facts of a row that compares two texts, with its `answers` by aspect."""
    texts = [faults.attempt(lambda name=name: row.optional_text(name)) for name in ("text_a", "text_b")]  # type: ignore[misc]
    items = [faults.attempt(lambda name=name: row.optional_text(name)) for name in ("item_a", "item_b")]  # type: ignore[misc]
    two = [text or item for text, item in zip(texts, items, strict=True)]
    return Facts(
        reviewer=faults.attempt(lambda: row.text("reviewer_id", reason="no reviewer")),
        answers={aspect: _answer(value) for aspect, value in answers.items() if aspect},
        pair=hash(frozenset(normalised(one) for one in two if one)) if all(two) else None,
        text_words=_words(*texts),
        time=faults.attempt(lambda: raw_time(row)),
    )


def record_facts(record: Mapping[str, object]) -> Facts:
    """The facts of a `records.Review` or `records.Comparison`, field by field; `preference` may be JSON, as in a data set folder."""
    preference, score = record.get("preference"), record.get("original_score")
    return Facts(
        reviewer=text_in(record.get("reviewer_id")),
        item=text_in(record.get("item_id")),
        score=None if score is None else f"{score:g}",
        answers=_preferences(preference),
        text_words=_words(*(text_in(record.get(name)) for name in ("text", "text_a", "text_b"))),
        review_words=next(iter(_words(text_in(record.get("review")))), None),
        time=text_in(record.get("time")),
    )


def _preferences(stored: object) -> dict[str, str]:
    """A comparison's preferences by aspect, also from the JSON text that a data set folder keeps; none where that is damaged."""
    try:
        found = parsed(stored) if isinstance(stored, str) else stored
    except ValueError:
        return {}
    return {aspect: _answer(value) for aspect, value in found.items()} if isinstance(found, dict) else {}


def example_facts(values: Mapping[str, object]) -> Facts:
    """The facts of a line that `perse data export` or a person wrote, about its query."""
    query, reference = values.get("query", values.get("prompt")), values.get("reference")
    texts = [query.get("text_a"), query.get("text_b")] if isinstance(query, dict) else [query]
    said = reference if isinstance(reference, dict) else {}
    preference = text_in(said.get("preference"))
    return Facts(
        reviewer=text_in(values.get("reviewer_id")),
        item=text_in(values.get("item_id")),
        score=None if (number := number_in(said.get("score"))) is None else f"{number:g}",
        answers={} if preference is None else {text_in(values.get("aspect")) or "preference": preference},
        text_words=_words(*map(text_in, texts)),
        review_words=next(iter(_words(text_in(said.get("review")))), None),
    )


def text_in(value: object) -> str | None:
    """A value if it is a text."""
    return value if isinstance(value, str) else None


def _answer(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text[:20] or "nothing"


def _words(*texts: str | None) -> tuple[int, ...]:
    """The number of words of each text that is not None."""
    return tuple(len(text.split()) for text in texts if text is not None)
