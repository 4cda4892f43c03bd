"""Judged readers who are of the training side under another name, as where one of the two is pseudonymised: known by their scores.

Somebody is one of the training side if they gave every text that the two have in common the same score, and chance would hardly do that: a
stranger gives a text the score s as often as its other training readers did. Scores that the reader gives most often say nothing, since
whole readers agree in them (all tens).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log

from perse.evaluation.baselines.bias import training_reviews
from perse.evaluation.stacking.known import by_text
from perse.records import PointwiseExample

BY_CHANCE = 0.01
"""Of all judged readers together: how many may be taken for somebody of the training side by chance."""

Scores = dict[str, dict[str, int]]
"""By reader, by text."""


def under_other_names(train: Sequence[PointwiseExample], judged: Iterable[PointwiseExample]) -> set[str]:
    """The readers of `judged`, none of whom the training side holds by name, whose scores are those of somebody whom it holds."""
    trained, others = _scores(train), _scores(judged)
    of_text: dict[str, dict[str, int]] = defaultdict(dict)
    for reader, given in trained.items():
        for text, score in given.items():
            of_text[text][reader] = score
    counts = {text: Counter(given.values()) for text, given in of_text.items()}
    usual = Counter(score for given in trained.values() for score in given.values())
    return {reader for reader, mine in others.items() if _is_one(mine, of_text, counts, usual, BY_CHANCE / len(others))}


def _is_one(
    mine: Mapping[str, int],
    of_text: Mapping[str, Mapping[str, int]],
    counts: Mapping[str, Counter[int]],
    usual: Counter[int],
    chance: float,
) -> bool:
    common: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for text, score in mine.items():
        for reader, theirs in of_text.get(text, {}).items():
            common[reader] += 1
            same[reader] += theirs == score
    [(most_often, _)] = Counter(mine.values()).most_common(1)

    def by_chance(reader: str) -> float:
        """log P of what a stranger would have to give to agree with `mine` as this reader does."""
        return sum(
            log((counts[text][score] - 1 + usual[score] / usual.total()) / counts[text].total())
            for text, score in mine.items()
            if score != most_often and reader in of_text.get(text, {})
        )

    agreeing = [reader for reader, number in common.items() if same[reader] == number]
    return any(
        by_chance(reader) + log(sum(number >= common[reader] for number in common.values())) < log(chance)
        for reader in agreeing
    )


def _scores(examples: Iterable[PointwiseExample]) -> Scores:
    found: Scores = defaultdict(dict)
    for review in training_reviews(map(by_text, examples)):
        found[review.reviewer_id][review.item_id or ""] = review.score
    return found
