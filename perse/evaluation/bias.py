"""The user + item bias predictor of Koren (2010, "Factor in the Neighbors", section 2.2), for readers never seen in training.

    score(u, i) = mu + b_u + b_i
    b_i = sum over training reviews of item i of (r - mu)          / (item_penalty + their number)
    b_u = sum over the profile of reader u    of (r - mu - b_i(r)) / (reader_penalty + their number)

The penalties are chosen on the training examples, each predicted as if its reader were unseen (their own reviews are taken
out of the item biases), so that the baseline is as strong as so simple a model can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum

from perse.errors import BadInput
from perse.records import PointwiseExample
from perse.scale import SCORES

ITEM_PENALTIES = (1.0, 5.0, 25.0, 100.0)
READER_PENALTIES = (0.5, 2.0, 10.0)

ReviewKey = tuple[str, str]
"""Reviewer, and the item's id or, where a profile does not give it, its text."""


@dataclass(frozen=True)
class TrainingReview:
    """A score given in training; `item_id` is None where a profile does not tell it."""

    reviewer_id: str
    item_id: str | None
    score: int


def training_reviews(train: Iterable[PointwiseExample]) -> list[TrainingReview]:
    """The references and profile reviews of `train`, each review once, however many examples show it."""
    found: dict[ReviewKey, TrainingReview] = {}
    for example in train:
        for past in example.profile:
            key = (example.reviewer_id, past.item_id or past.text)
            found[key] = TrainingReview(example.reviewer_id, past.item_id, past.score)
        if example.reference:
            key = (example.reviewer_id, example.item_id)
            found[key] = TrainingReview(example.reviewer_id, example.item_id, example.reference.score)
    return list(found.values())


@dataclass(frozen=True)
class BiasModel:
    """A fitted predictor: `totals` holds of each item the sum and number of its training scores, `own` who gave which."""

    mean: float
    totals: Mapping[str, tuple[int, int]]
    own: Mapping[ReviewKey, int]
    item_penalty: float
    reader_penalty: float

    def item_bias(self, item_id: str | None, *, without: str | None = None) -> float:
        """b_i; 0 for an item that training does not know. `without` leaves that reviewer's own score out."""
        if item_id is None:
            return 0.0
        total, number = self.totals.get(item_id, (0, 0))
        if without is not None and (without, item_id) in self.own:
            total, number = total - self.own[without, item_id], number - 1
        return (total - number * self.mean) / (self.item_penalty + number)

    def predict(self, example: PointwiseExample, *, unseen: bool = False) -> float:
        """mu + b_u + b_i, kept on the scale. `unseen` takes the reader's own training reviews out of the item biases."""
        without = example.reviewer_id if unseen else None
        deviations = [past.score - self.mean - self.item_bias(past.item_id, without=without) for past in example.profile]
        reader_bias = fsum(deviations) / (self.reader_penalty + len(deviations))
        score = self.mean + reader_bias + self.item_bias(example.item_id, without=without)
        lowest, *_, highest = SCORES.values or ()
        return min(max(score, lowest), highest)


def fit_bias_model(train: Sequence[PointwiseExample], *, penalties: tuple[float, float] | None = None) -> BiasModel:
    """Means and biases from `train`.

    Args:
        train: examples; their references and profiles are the training reviews.
        penalties: item and reader penalty; None chooses the pair with the least squared error on `train`.
    Raises:
        BadInput: no training review.
    """
    reviews = training_reviews(train)
    if not reviews:
        raise BadInput("the training examples hold no score; give examples with references")
    own = {(review.reviewer_id, review.item_id): review.score for review in reviews if review.item_id}
    totals: dict[str, tuple[int, int]] = {}
    for (_, item_id), score in own.items():
        total, number = totals.get(item_id, (0, 0))
        totals[item_id] = total + score, number + 1
    mean = fsum(review.score for review in reviews) / len(reviews)
    choices = [penalties] if penalties else product(ITEM_PENALTIES, READER_PENALTIES)
    models = [BiasModel(mean, totals, own, item_penalty, reader_penalty) for item_penalty, reader_penalty in choices]
    if len(models) == 1:
        return models[0]
    return min(models, key=lambda model: _squared_error(model, train))


def _squared_error(model: BiasModel, train: Sequence[PointwiseExample]) -> float:
    known = ((example, example.reference) for example in train)
    return fsum((model.predict(example, unseen=True) - gold.score) ** 2 for example, gold in known if gold)
