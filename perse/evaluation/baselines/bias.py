"""The user + item bias predictor of Koren (2010, "Factor in the Neighbors", section 2.2), for readers never seen in training.

    score(u, i) = mu + b_u + b_i
    b_i = sum over training reviews of item i of (r - mu)          / (item_penalty + their number)
    b_u = sum over the profile of reader u    of (r - mu - b_i(r)) / (reader_penalty + their number)

The penalties are chosen on the training examples, each predicted as if its reader were unseen (their own reviews are taken
out of the item biases), so that the baseline is as strong as so simple a model can be. All examples are predicted at once.

Notation: n examples, m profile entries of all of them, I items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum
from typing import NamedTuple

import numpy as np
from scipy import stats

from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.records import PointwiseExample
from perse.scale import SCORES

ITEM_PENALTIES = (1.0, 5.0, 25.0, 100.0)
READER_PENALTIES = (0.5, 2.0, 10.0)
UNKNOWN = -1
"""Row of an item that is not in the training data, or that a profile does not name."""
_DIGITS = 12
"""Decimals that predictions are rounded to, so that those that differ by floating-point error only are ties."""

ReviewKey = tuple[str, str]
"""Reviewer, and the item's id or, where a profile does not give it, its text."""


class TrainingReview(NamedTuple):
    """A training score; `item_id` is None if the profile does not give it."""

    reviewer_id: str
    item_id: str | None
    score: int


def training_reviews(train: Iterable[PointwiseExample]) -> list[TrainingReview]:
    """The references and profile reviews of `train`, each review once, however many examples show it."""
    found: dict[ReviewKey, tuple[str | None, int]] = {}
    for example in train:
        for past in example.profile:
            found[example.reviewer_id, past.item_id or past.text] = past.item_id, past.score
        if example.reference:
            found[example.reviewer_id, example.item_id] = example.item_id, example.reference.score
    return [TrainingReview(reviewer, item, score) for (reviewer, _), (item, score) in found.items()]


@dataclass(frozen=True)
class ExampleArrays:
    """Examples as arrays: `query` (n,) the row of each one's item; of each profile entry, (m,), whose example it is, the row
    of its item, and its score."""

    query: IntArray
    example: IntArray
    shown: IntArray
    score: FloatArray


def example_arrays(examples: Sequence[PointwiseExample], row_of: Mapping[str, int]) -> ExampleArrays:
    """Rows by `row_of`, `UNKNOWN` for other items."""
    shown = [(n, past) for n, example in enumerate(examples) for past in example.profile]
    return ExampleArrays(
        query=np.array([row_of.get(example.item_id, UNKNOWN) for example in examples], dtype=np.int64),
        example=np.array([n for n, _ in shown], dtype=np.int64),
        shown=np.array([row_of.get(past.item_id or "", UNKNOWN) for _, past in shown], dtype=np.int64),
        score=np.array([past.score for _, past in shown], dtype=np.float64),
    )


def on_scale(scores: FloatArray) -> FloatArray:
    """Scores clipped to the scale, and rounded so that equal ones compare equal."""
    lowest, *_, highest = SCORES.values or ()
    return np.asarray(np.round(np.clip(scores, lowest, highest), _DIGITS), dtype=np.float64)


def normal_distributions(predicted: FloatArray, spread: float) -> FloatArray:
    """The probability of every label, (n, L): a normal distribution of this spread around each prediction, (n,), cut between the labels."""
    labels = np.array(SCORES.values or ())
    between = (labels[1:] + labels[:-1]) / 2
    below = stats.norm.cdf((between - predicted[:, None]) / max(spread, 1e-9))
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


@dataclass(frozen=True)
class BiasModel:
    """A fitted predictor: of each item, rows by `row_of`, the sum and number of its training scores; `own` says who gave which.

    `total` and `number` are (I + 1,), the last for items that training does not know: 0.
    """

    mean: float
    row_of: Mapping[str, int]
    total: FloatArray
    number: FloatArray
    own: Mapping[ReviewKey, int]
    item_penalty: float
    reader_penalty: float
    spread: float = 0.0
    """Root mean squared error of the training scores, each predicted as if its reader were unseen."""

    def distributions(self, predicted: FloatArray) -> FloatArray:
        """The probability of every label, (n, L), with this spread around each prediction, (n,)."""
        return normal_distributions(predicted, self.spread)

    def predict(self, examples: Sequence[PointwiseExample], *, unseen: bool = False) -> FloatArray:
        """mu + b_u + b_i of each, (n,), clipped to the scale. `unseen` takes readers' own training reviews out of the item biases."""
        return self._predict(example_arrays(examples, self.row_of), self._own(examples) if unseen else None)

    def _own(self, examples: Sequence[PointwiseExample]) -> tuple[FloatArray, FloatArray]:
        """Sum and number of what the reader gave in training: (2, n) to the queries, (2, m) to the profile entries."""
        queries = [self.own.get((example.reviewer_id, example.item_id)) for example in examples]
        shown = [self.own.get((one.reviewer_id, past.item_id or "")) for one in examples for past in one.profile]
        return _sum_and_number(queries), _sum_and_number(shown)

    def _predict(self, given: ExampleArrays, own: tuple[FloatArray, FloatArray] | None) -> FloatArray:
        of_query, of_shown = own or (np.zeros((2, len(given.query))), np.zeros((2, len(given.shown))))
        deviations = given.score - self.mean - self._biases(given.shown, of_shown)
        size = len(given.query)
        summed = np.bincount(given.example, weights=deviations, minlength=size)
        readers = summed / (self.reader_penalty + np.bincount(given.example, minlength=size))
        return on_scale(self.mean + readers + self._biases(given.query, of_query))

    def _biases(self, rows: IntArray, own: FloatArray) -> FloatArray:
        total, number = self.total[rows] - own[0], self.number[rows] - own[1]
        biases: FloatArray = (total - number * self.mean) / (self.item_penalty + number)
        return biases


def fit_bias_model(
    train: Sequence[PointwiseExample],
    *,
    penalties: tuple[float, float] | None = None,
    reviews: Sequence[TrainingReview] | None = None,
) -> BiasModel:
    """Means and biases from `train`.

    Args:
        train: examples; their references and profiles are the training reviews.
        penalties: item and reader penalty; None chooses the pair with the least squared error on `train`.
        reviews: the `training_reviews` of `train`, if they are at hand.
    Raises:
        BadInput: no training review.
    """
    reviews = training_reviews(train) if reviews is None else reviews
    if not reviews:
        raise BadInput("the training examples hold no score; give examples with references")
    mean = fsum(review.score for review in reviews) / len(reviews)
    own = {(review.reviewer_id, review.item_id): review.score for review in reviews if review.item_id}
    row_of = {item: row for row, item in enumerate(sorted({item for _, item in own}))}
    rows = np.array([row_of[item] for _, item in own], dtype=np.int64)
    given = np.array([*own.values()], dtype=np.float64)
    total = np.bincount(rows, weights=given, minlength=len(row_of) + 1).astype(np.float64)
    number = np.bincount(rows, minlength=len(row_of) + 1).astype(np.float64)
    first = penalties or (ITEM_PENALTIES[0], READER_PENALTIES[0])
    model = BiasModel(mean, row_of, total, number, own, *first)
    known = [example for example in train if example.reference]
    gold = np.array([example.reference.score for example in known if example.reference], dtype=np.float64)
    queries, theirs = example_arrays(known, row_of), model._own(known)

    def squared_error(candidate: BiasModel) -> float:
        return float(((candidate._predict(queries, theirs) - gold) ** 2).sum())

    pairs = [penalties] if penalties else product(ITEM_PENALTIES, READER_PENALTIES)
    choices = (replace(model, item_penalty=item, reader_penalty=reader) for item, reader in pairs)
    best = min(choices, key=squared_error)
    return replace(best, spread=(squared_error(best) / len(gold)) ** 0.5 if len(gold) else 0.0)


def _sum_and_number(scores: Sequence[int | None]) -> FloatArray:
    return np.array([[score or 0 for score in scores], [score is not None for score in scores]], dtype=np.float64)
