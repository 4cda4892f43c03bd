"""What other readers gave a text: number, mean and spread, with the scores of the reader who is asked about taken out.

Two texts are one where their items are. A reader who scored an item several times counts once, by the mean. The numbers are differences of
sums, so that a popular text costs no more than a rare one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import fsum, sqrt

from perse.records import Review

DIGITS = 6
"""Decimals that are kept."""

Of = tuple[int, float | None, float | None]
"""Number, mean and spread."""

NOBODY: Of = (0, None, None)


class Others:
    """The scores of the training readers, by item."""

    def __init__(self, reviews: Sequence[Review], readers: Collection[str]) -> None:
        given: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for one in reviews:
            if one.reviewer_id in readers:
                given[one.item_id, one.reviewer_id].append(one.score)
        self._own = {key: fsum(scores) / len(scores) for key, scores in given.items()}
        self._sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for (item, _), score in self._own.items():
            sums = self._sums[item]
            sums[0], sums[1], sums[2] = sums[0] + 1, sums[1] + score, sums[2] + score * score

    def of(self, item: str, reader: str) -> Of:
        """What readers other than `reader` gave `item`."""
        if item not in self._sums:
            return NOBODY
        number, total, squares = self._sums[item]
        if (own := self._own.get((item, reader))) is not None:
            number, total, squares = number - 1, total - own, squares - own * own
        if number < 0.5:
            return NOBODY
        mean = total / number
        spread = sqrt(max(0.0, squares / number - mean * mean)) if number > 1.5 else None
        return round(number), round(mean, DIGITS), None if spread is None else round(spread, DIGITS)
