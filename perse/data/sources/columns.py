"""Which of the user's columns holds which of our fields.

A field is found by the mapping the user gave (`field=column`, several columns joined by a newline: `text_a=story_a+ending_a`),
else by its own name, else by the names that such columns usually have (`ALIASES`). Names are compared without case, spaces and
punctuation and the `Input.` and `Answer.` of Mechanical Turk, so `reviewerID` is `reviewer_id`. Where several fit, the one listed first is taken. Columns called just "story",
"story_a" or "title" are never guessed to be the whole text: they often hold a part of it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from perse.errors import BadInput

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reviewer_id": ("reviewer", "annotator_id", "annotator", "user_id", "user", "worker_id", "worker", "rater", "critic"),
        "item_id": (
            "item",
            "asin",
            "product_id",
            "movie_id",
            "film_id",
            "book_id",
            "story_id",
            "plot_id",
            "work_id",
            "imdb_id",
        ),
        "text": ("plot", "synopsis", "plot_synopsis", "document", "article"),
        "review": ("review_text", "review_body", "comment"),
        "score": ("rating", "stars", "overall", "grade"),
        "time": ("date", "timestamp", "review_date", "created_at"),
        "aspect": ("criterion", "dimension"),
        "text_a": ("plot_a",),
        "text_b": ("plot_b",),
        "item_a": ("item_id_a", "id_a"),
        "item_b": ("item_id_b", "id_b"),
        "preference": ("pref", "preferred", "choice", "label", "winner"),
        "premise": ("prompt",),
    }
)
"""Other names under which a field is found when it is not mapped, best first."""


DOC_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **ALIASES,
        "text_a": ("plot_a", "plot1", "story_a", "story1", "outline_a", "outline1"),
        "text_b": ("plot_b", "plot2", "story_b", "story2", "outline_b", "outline2"),
    }
)
"""The same for annotation tables of story plots."""

AMAZON_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reviewer_id": ("reviewerID", "user_id", "customer_id"),
        "item_id": ("parent_asin", "asin", "product_id"),
        "review": ("reviewText", "text", "review_body"),
        "score": ("overall", "rating", "star_rating"),
        "title": ("summary", "review_headline"),
        "time": ("unixReviewTime", "timestamp", "reviewTime", "review_date"),
        "category": ("main_category", "product_category"),
    }
)
"""The same for Amazon's files, where `text` is the review and `title` its headline or the product's name."""


class Role(StrEnum):
    """What a file is read as; its fields are `FIELDS[role]`."""

    REVIEWS = "reviews"
    ITEMS = "items"
    PAIRS = "pairs"
    DOC = "plot comparisons"
    AMAZON = "Amazon reviews"
    PRODUCTS = "Amazon products"


FIELDS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        Role.REVIEWS: ("reviewer_id", "item_id", "score", "review", "time", "text"),
        Role.ITEMS: ("item_id", "text"),
        Role.PAIRS: ("reviewer_id", "aspect", "preference", "text_a", "text_b", "item_a", "item_b", "premise", "time"),
        Role.DOC: ("reviewer_id", "text_a", "text_b", "premise", "time"),
        Role.AMAZON: ("reviewer_id", "item_id", "review", "score", "title", "time", "category"),
        Role.PRODUCTS: ("item_id", "title", "description", "features"),
    }
)


def check_fields(columns: Mapping[str, str], main: Role, *, with_items: bool) -> None:
    """That every field the user mapped is one of the files at hand.

    Raises:
        BadInput: it is not; the message names the nearest field and lists all.
    """
    known = [*FIELDS[main]]
    if with_items:
        known += [*(["text"] if main is Role.PAIRS else []), *(f"items.{field}" for field in FIELDS[Role.ITEMS])]
    for field, column in columns.items():
        if field not in known:
            raise BadInput(f"--map {field}={column}: no field '{field}'{nearest(field, known)}; fields: {', '.join(known)}")


def mapping_for(role: Role, columns: Mapping[str, str], *, with_items: bool) -> dict[str, str]:
    """The part of the user's mapping that is about a file of this role.

    `items.FIELD=COLUMN` is about the items file alone. A plain `text` is about the items file where there is one, since the
    texts are read from it; every other plain field is about the reviews or pairs.
    """
    if role is Role.ITEMS:
        text = {"text": columns["text"]} if "text" in columns else {}
        return text | {field.removeprefix("items."): name for field, name in columns.items() if field.startswith("items.")}
    mine = [field for field in FIELDS[role] if not (with_items and field == "text")]
    return {field: columns[field] for field in mine if field in columns}


def nearest(name: str, names: Iterable[str]) -> str:
    """ " (nearest: 'x')" for the name most like `name`, or nothing where none is like it."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (nearest: '{found[0]}')" if found else ""


def aliases_of(role: Role) -> Mapping[str, tuple[str, ...]]:
    """Other names under which the fields of such a file are found."""
    if role in (Role.AMAZON, Role.PRODUCTS):
        return AMAZON_ALIASES
    return DOC_ALIASES if role is Role.DOC else ALIASES


def plain_name(name: str) -> str:
    """A column's name without case, spaces, punctuation and what Amazon Mechanical Turk puts before it."""
    name = name.removeprefix("Input.").removeprefix("Answer.")
    return re.sub(r"[\W_]+", "", name).casefold()


class Header:
    """The columns of a row, and which of them hold a field. One object serves all rows with the same columns."""

    def __init__(
        self,
        names: Sequence[str],
        mapping: Mapping[str, str],
        *,
        hints: Mapping[str, str],
        role: Role = Role.REVIEWS,
    ) -> None:
        """`mapping` is binding; a column of `hints` is taken for its field where there is one of that name."""
        self._aliases = aliases_of(role)
        self.names = tuple(names)
        self._mapping = mapping
        self._hints = hints
        self._present = frozenset(names)
        self._by_plain = {plain_name(name): name for name in reversed(self.names)}
        self._found: dict[str, tuple[str, ...] | None] = {}

    def columns_for(self, field: str) -> tuple[str, ...] | None:
        """The columns that together hold `field`, or None where it has none here."""
        if field not in self._found:
            self._found[field] = self._mapped(field) if field in self._mapping else self._guessed(field)
        return self._found[field]

    def _mapped(self, field: str) -> tuple[str, ...] | None:
        column = self._mapping[field]
        # A column that is really called "a+b" comes before the sum of "a" and "b".
        parts = (column,) if column in self._present else tuple(part.strip() for part in column.split("+"))
        return parts if self._present.issuperset(parts) else None

    def _guessed(self, field: str) -> tuple[str, ...] | None:
        for name in (self._hints.get(field), field):
            if name in self._present:
                return (name,)
        for name in (field, *self._aliases.get(field, ())):
            if (found := self._by_plain.get(plain_name(name))) is not None:
                return (found,)
        return None

    def is_mapped(self, field: str) -> bool:
        """Whether the user said which column holds `field`."""
        return field in self._mapping

    def explain_missing(self, field: str, *, option: str) -> str:
        """Why `field` was not found: the columns there are, the nearest one and the option that maps it."""
        wanted = self._mapping.get(field)
        if wanted is not None:
            parts = [part.strip() for part in wanted.split("+")]
            missing = [part for part in parts if part not in self._present]
            what = f"no column '{missing[0]}', to which field '{field}' is mapped{nearest(missing[0], self.names)}"
        else:
            close = nearest(field, self.names)
            for name in self._aliases.get(field, ()):
                close = close or nearest(name, self.names)
            what = f"no column for field '{field}'{close}"
        join = "; join several with +" if field.startswith("text") else ""
        return f"{what}; columns found: {', '.join(self.names) or 'none'}; give --map {option}=COLUMN{join}"
