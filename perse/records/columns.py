"""Which of the user's columns holds which of our fields.

A field is found by the mapping the user gave (`field=column`, several columns joined by a newline: `text_a=story_a+ending_a`),
else by its own name, else by the names that such columns usually have (`ALIASES`). Names are compared without case, spaces and
punctuation and the `Input.` and `Answer.` of Mechanical Turk, so `reviewerID` is `reviewer_id`. Where several fit, the one listed
first is taken. Columns called just "story", "story_a" or "title" are never guessed to be the whole text: they often hold a part
of it. A source with fields or names of its own makes a `Role` of its own.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from perse.errors import BadInput

_MOST_NAMED = 30
"""Columns in a sentence."""

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reviewer_id": (
            "reviewer",
            "reviewer_name",
            "annotator_id",
            "annotator",
            "user_id",
            "user",
            "worker_id",
            "worker",
            "rater",
            "critic",
            "reader",
        ),
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
        "review": ("review_text", "review_body", "review_content", "comment", "content", "body"),
        "score": ("rating", "stars", "overall", "grade"),
        "time": ("date", "timestamp", "review_date", "created_at", "date_added"),
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


@dataclasses.dataclass(frozen=True, eq=False)
class Role:
    """How the rows of a file are read: their fields, and the other names of these."""

    fields: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: ALIASES)
    """field -> other names, best first."""
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """field -> a column that is taken for it, before any guess, where there is one of that name."""


REVIEWS = Role(("reviewer_id", "item_id", "score", "review", "time", "text"))
ITEMS = Role(("item_id", "text"), hints={"item_id": "id"})
PAIRS = Role(("reviewer_id", "aspect", "preference", "text_a", "text_b", "item_a", "item_b", "premise", "time"))


def check_fields(columns: Mapping[str, str], main: Role, *, with_items: bool) -> None:
    """Check that every field the user mapped exists.

    Raises:
        BadInput: one does not; the message names the nearest field and lists all.
    """
    known = [*main.fields]
    if with_items:
        known += [*(["text"] if main is PAIRS else []), *(f"items.{field}" for field in ITEMS.fields)]
    for field, column in columns.items():
        if field not in known:
            raise BadInput(f"--map {field}={column}: no field '{field}'{nearest(field, known)}; fields: {', '.join(known)}")


def mapping_for(role: Role, columns: Mapping[str, str], *, with_items: bool) -> dict[str, str]:
    """The part of the user's mapping that is about a file of this role.

    `items.FIELD=COLUMN` is about the items file alone. A plain `text` is about the items file where there is one, since the
    texts are read from it; every other plain field is about the reviews or pairs.
    """
    if role is ITEMS:
        text = {"text": columns["text"]} if "text" in columns else {}
        return text | {field.removeprefix("items."): name for field, name in columns.items() if field.startswith("items.")}
    mine = [field for field in role.fields if not (with_items and field == "text")]
    return {field: columns[field] for field in mine if field in columns}


def nearest(name: str, names: Iterable[str]) -> str:
    """ " (nearest: 'x')" for the name most like `name`, or nothing where none is like it."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (nearest: '{found[0]}')" if found else ""


def named_columns(names: Sequence[str]) -> str:
    """The columns of a file in a sentence; of very many the first; of one alone, whether it was several."""
    more = len(names) - _MOST_NAMED
    found = ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "") if names else "none"
    joint = next((sign for sign in (";", "\t", "|") if sign in names[0]), None) if len(names) == 1 else None
    return (
        found
        if joint is None
        else f"{found} (one alone: a table whose columns {joint!r} divides, read as if another sign did?)"
    )


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
        role: Role = REVIEWS,
        hints: Mapping[str, str] | None = None,
    ) -> None:
        """`mapping` is binding; `hints` are those of the role if none are given."""
        self._aliases = role.aliases
        self.names = tuple(names)
        self._mapping = mapping
        self._hints = role.hints if hints is None else hints
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
        # The column of the reviews is never the text reviewed, too: the answer would be the question.
        taken = self._mapping.get("review", "") if field == "text" else ""
        for name in (self._hints.get(field), field):
            if name in self._present and name != taken:
                return (name,)
        for name in (field, *self._aliases.get(field, ())):
            if (found := self._by_plain.get(plain_name(name))) not in (None, taken):
                return (found,)
        return None

    def is_mapped(self, field: str) -> bool:
        """Whether the user said which column holds `field`."""
        return field in self._mapping

    def explain_missing(self, field: str, *, option: str) -> str:
        """Why `field` was not found: the columns there are, the nearest one and the option that maps it."""
        join = "; join several with +" if field.startswith("text") else ""
        return f"{self.lacking(field)}; give --map {option}=COLUMN{join}"

    def lacking(self, field: str) -> str:
        """That `field` was not found, the nearest column, and the columns that there are."""
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
        return f"{what}; columns found: {named_columns(self.names)}"
