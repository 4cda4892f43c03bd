"""How many words a prompt has, and how much of its profile the budget leaves: the rows of PerSE's Table 1.

Counted without rendering: the words of each text as it is shown are counted once, the words of the template around them are
taken from the template itself, and whole entries leave the profile, oldest first, until 2,500 words are kept (DESIGN.md,
promise 2). Equal to what `TextRenderer` makes, which the tests prove; a model's context in tokens may take more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from perse.data.profiles.profiles import ExampleRow
from perse.data.profiles.views import View
from perse.questions import QUESTIONS
from perse.records import Comparison, Pair, PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, Review
from perse.rendering.neutralising import EMPTY
from perse.rendering.prompt import MAX_WORDS, TextRenderer


class Cell(BaseModel):
    """One column of one side of Table 1."""

    model_config = ConfigDict(frozen=True)

    name: str
    """`k=3`, or an aspect."""
    reviewers: int
    examples: int
    words: float
    """Of the whole prompt (instruction, profile, query, ask), on average, after the budget."""
    shortened: int
    """Examples that lost profile entries."""
    too_long: int
    """Examples that do not fit even without a profile; not part of `words`."""


@dataclass(frozen=True)
class Length:
    """Of one prompt: its words and how many profile entries it keeps; `kept` is None where it does not fit at all."""

    words: int
    kept: int | None


class Lengths:
    """Counts prompts' words; each text is looked at once."""

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        self._max = max_words
        self._renderer = TextRenderer(max_words=max_words)
        self._words: dict[str, int] = {}
        self._frames: dict[object, int] = {}

    def pointwise(self, query: Review, shown: Sequence[Review]) -> Length:
        """Of the question about `query` with the profile `shown`, in the order shown."""
        entries = [
            self._frame("review entry") + self._of(one.text, lines=True) + self._of(one.review, lines=False) for one in shown
        ]
        return self._fitted(self._frame("review query") + self._of(query.text, lines=True), entries)

    def pairwise(self, query: Comparison, aspect: str, shown: Sequence[Comparison]) -> Length:
        """Of the question about `aspect` of `query` with the profile `shown`, in the order shown."""
        entries = [self._frame(tuple(sorted(one.preference))) + self._texts(one) for one in shown]
        return self._fitted(self._frame(aspect, asked=True) + self._texts(query), entries)

    def _fitted(self, query: int, entries: Sequence[int]) -> Length:
        words, kept = query + sum(entries), len(entries)
        for entry in entries:  # the oldest stands first
            if words <= self._max:
                break
            words, kept = words - entry, kept - 1
        return Length(words, kept if words <= self._max else None)

    def _texts(self, one: Comparison) -> int:
        premise = self._of(one.premise, lines=True) + 1 if one.premise else 0  # 1: the word [Premise]
        return self._of(one.text_a, lines=True) + self._of(one.text_b, lines=True) + premise

    def _of(self, text: str, *, lines: bool) -> int:
        if text not in self._words:
            # Neutralising can only move a word's bounds at a bracket or a character that is not printed.
            plain = "[" not in text and "<" not in text and text.replace("\n", " ").isprintable()
            shown = text if plain else self._renderer.neutralise(text, lines=lines)
            self._words[text] = len(shown.split()) or len(EMPTY.split())
        return self._words[text]

    def _frame(self, what: str | tuple[str, ...], *, asked: bool = False) -> int:
        """Words of the template around a part, its texts not counted."""
        key = (what, asked)
        if key not in self._frames:
            if asked:
                assert isinstance(what, str)
                self._frames[key] = _pair_words(what, None) - 2
            elif isinstance(what, tuple):
                self._frames[key] = _pair_words("Ending", what) - _pair_words("Ending", None) - 2
            else:
                self._frames[key] = {
                    "review query": _review_words(0) - 1,
                    "review entry": _review_words(1) - _review_words(0) - 2,
                }[what]
        return self._frames[key]


def pointwise_cells(
    rows: Sequence[ExampleRow], reviews: Mapping[str, Review], ks: Iterable[int], lengths: Lengths
) -> list[Cell]:
    """Table 1's columns for a side of reviews, one for each k."""
    cells = []
    for k in ks:
        view = View(k=k)
        found = [
            lengths.pointwise(
                reviews[row.query_id], view.shown([reviews[one] for one in row.profile_ids], k=k, example_id=row.example_id)
            )
            for row in rows
        ]
        cells.append(_cell(f"k={k}", rows, found, k=k))
    return cells


def pairwise_cells(rows: Sequence[ExampleRow], comparisons: Mapping[str, Comparison], k: int, lengths: Lengths) -> list[Cell]:
    """Table 1's columns for a side of pairs, one for each aspect."""
    cells = []
    view = View(k=k)
    for aspect in sorted({row.aspect for row in rows if row.aspect is not None}):
        mine = [row for row in rows if row.aspect == aspect]
        found = [
            lengths.pairwise(
                comparisons[row.query_id],
                aspect,
                view.shown([comparisons[one] for one in row.profile_ids], k=k, example_id=row.example_id),
            )
            for row in mine
        ]
        cells.append(_cell(aspect, mine, found, k=k))
    return cells


def _cell(name: str, rows: Sequence[ExampleRow], lengths: Sequence[Length], *, k: int) -> Cell:
    fitting = [one for one in lengths if one.kept is not None]
    return Cell(
        name=name,
        reviewers=len({row.reviewer_id for row in rows}),
        examples=len(rows),
        words=sum(one.words for one in fitting) / len(fitting) if fitting else 0.0,
        shortened=sum(
            one.kept is not None and one.kept < min(k, len(row.profile_ids)) for one, row in zip(lengths, rows, strict=True)
        ),
        too_long=len(lengths) - len(fitting),
    )


def _review_words(k: int) -> int:
    """Words of a whole prompt whose texts are one word each."""
    past = tuple(ProfileReview(text="w", review="w", score=5) for _ in range(k))
    example = PointwiseExample(id="", reviewer_id="", item_id="", profile=past, query="w")
    return len(QUESTIONS["pointwise"].asks(example, past)[0].text.split())


def _pair_words(aspect: str, shown: tuple[str, ...] | None) -> int:
    """As `_review_words` for the question on `aspect`, with one profile entry that shows the aspects `shown`, or none."""
    past = () if shown is None else (ProfileComparison(text_a="w", text_b="w", preference=dict.fromkeys(shown, "A")),)
    example = PairwiseExample(id="", reviewer_id="", aspect=aspect, profile=past, query=Pair(text_a="w", text_b="w"))
    return len(QUESTIONS["pairwise"].asks(example, past)[0].text.split())
