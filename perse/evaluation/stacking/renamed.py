"""Judged readers who are of the training side under another name, as where one of the two is pseudonymised: known by their scores.

Somebody is one of the training side if they gave every text that the two have in common the same score, and chance would hardly do that: a
stranger gives a text the score s as often as its other training readers did. Scores that the reader gives most often say nothing, since
whole readers agree in them (all tens).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from scipy import stats

from perse.evaluation.baselines.bias import training_reviews
from perse.evaluation.stacking.known import by_text
from perse.records import PointwiseExample
from perse.scale import SCORES

BY_CHANCE = 0.02
"""Of those who are taken for somebody of the training side, how many may be so by chance (false discovery rate: Benjamini and Hochberg, 1995): where
many are, fewer scores are enough."""

LABELS = len(SCORES.labels)

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
    if not others:
        return set()
    chances = stats.false_discovery_control([_by_chance(mine, of_text, counts, usual) for mine in others.values()])
    return {reader for reader, chance in zip(others, chances, strict=True) if chance < BY_CHANCE}


def _by_chance(
    mine: Mapping[str, int], of_text: Mapping[str, Mapping[str, int]], counts: Mapping[str, Counter[int]], usual: Counter[int]
) -> float:
    """How many training readers a stranger would agree with as with the best that `mine` agrees with; at most 1, also without any."""
    common: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for text, score in mine.items():
        for reader, theirs in of_text.get(text, {}).items():
            common[reader] += 1
            same[reader] += theirs == score
    [(most_often, _)] = Counter(mine.values()).most_common(1)

    def share(text: str, score: int) -> float:
        """Of the text's other training readers those who gave it this score, with as many more as there are scores, who score as all do."""
        return (counts[text][score] - 1 + LABELS * usual[score] / usual.total()) / (counts[text].total() - 1 + LABELS)

    def of_one(reader: str) -> float:
        informative = [text for text, score in mine.items() if score != most_often and reader in of_text.get(text, {})]
        return prod(share(text, mine[text]) for text in informative) * sum(
            number >= common[reader] for number in common.values()
        )

    return min([1.0, *(of_one(reader) for reader, number in common.items() if same[reader] == number)])


def _scores(examples: Iterable[PointwiseExample]) -> Scores:
    found: Scores = defaultdict(dict)
    for review in training_reviews(map(by_text, examples)):
        found[review.reviewer_id][review.item_id or ""] = review.score
    return found
