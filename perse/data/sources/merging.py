"""Answers about pairs of texts, put together into one comparison for each annotator and pair.

The same two texts in swapped order are the same pair: a comparison keeps the order of its first row, and the preference of a
later row that has them swapped is swapped, too. So a pair shown twice in swapped order, which annotation tools do to
even out a liking for the first, cannot end up on both sides of a split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perse.data.pseudonyms import numbered
from perse.data.sources.rows import Row
from perse.identity import pair_key, text_key
from perse.records import Choice, Comparison

SAME_TEXT, JUDGED_TWICE = "the same text twice", "judged twice"


@dataclass
class Merging:
    """Comparisons in the making, in the order of their first rows."""

    _lines: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _merged: dict[tuple[str, str], Comparison] = field(default_factory=dict)

    def add(self, row: Row, texts: tuple[str, str], choices: Mapping[str, Choice]) -> None:
        """Adds what the row's annotator prefers, aspect by aspect.

        Raises:
            BadRow: no annotator, the same text twice, or an aspect of this pair that the annotator already judged; then
                nothing of the row is added.
        """
        reviewer = row.text("reviewer_id", reason="no reviewer")
        text_a, text_b = texts
        if text_key(text_a) == text_key(text_b):
            row.bad("text_b", "the same text as text_a; expected two different texts", reason=SAME_TEXT)
        premise, time = row.optional_text("premise"), row.optional_text("time")
        pair_id = pair_key(text_a, text_b)
        for aspect in choices:
            if (first := self._lines.get((reviewer, pair_id, aspect))) is not None:
                what = f"'{reviewer}' already judged '{aspect}' of this pair on line {first}; keep one"
                row.bad("preference", what, reason=JUDGED_TWICE)
        self._lines |= {(reviewer, pair_id, aspect): row.line for aspect in choices}
        pair = (reviewer, pair_id)
        if pair not in self._merged:
            self._merged[pair] = Comparison(
                comparison_id="",
                reviewer_id=reviewer,
                pair_id=pair_id,
                text_a=text_a,
                text_b=text_b,
                premise=premise,
                preference={},
                time=time,
            )
        known = self._merged[pair]
        turned = text_key(text_a) != text_key(known.text_a)
        known.preference.update({aspect: _turn(choice) if turned else choice for aspect, choice in choices.items()})

    def comparisons(self) -> list[Comparison]:
        """The comparisons."""
        return numbered(self._merged.values())


def _turn(choice: Choice) -> Choice:
    return "B" if choice == "A" else "A"
