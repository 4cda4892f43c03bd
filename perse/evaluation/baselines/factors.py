"""Matrix factorization (Koren, Bell and Volinsky, 2009), for readers never seen in training.

    score(u, i) = mu + b_u + b_i + p_u . q_i     with biases
    score(u, i) = mu + p_u . q_i                 plain

Alternating least squares: with the items fixed, each reader's (b_u, p_u) is a small ridge regression on their scores, and the
other way round. A new reader is folded in by the same regression on the few scores of their profile; an item that training
does not know has no bias and no factors, so that the reader's own bias remains. The well-kept libraries do not do this:
`implicit` weighs interactions instead of fitting scores, and `surprise` predicts a reader that training has not seen by the
item's bias alone; hence this one, in numpy.

Three profile scores say little about more than a bias, so factors help only where training knows the items well. Number of
factors and penalty are chosen on training readers held out and folded in, exactly as new readers will be: a factorization
that does not help ends with a penalty at which it is the user + item bias predictor, whose penalties it takes over. With biases it
so knows what most readers gave each text of training, and is in effect that predictor where there are few scores; plain, it must
find that by its factors.

Notation: n scores, U readers, I items, f factors; `shared` are the columns [1, factors] of a side, (U or I, 1 + f).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from perse.evaluation.baselines.bias import (
    BiasModel,
    TrainingReview,
    example_arrays,
    fit_bias_model,
    on_scale,
    training_reviews,
)
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.identity import draw, shuffled
from perse.records import PointwiseExample

FACTORS = (2, 8)
FACTOR_PENALTIES = (5.0, 20.0, 100.0)
NO_BIAS = 1e15
"""A penalty at which a bias is 0."""
SWEEPS = 10
FEWEST_READERS = 10
"""With fewer training readers nothing is held out (`Factorization.cautious`)."""
MOST_READERS = 1000
"""Most training readers used to choose the settings; the chosen model is fitted on all."""
_CHUNK = 20_000  # readers regressed at once


@dataclass(frozen=True)
class Factorization:
    """The settings that may be chosen; one of each is taken as it is."""

    factors: tuple[int, ...] = FACTORS
    penalties: tuple[float, ...] = FACTOR_PENALTIES

    @property
    def pairs(self) -> list[tuple[int, float]]:
        """Every number of factors with every penalty."""
        return [*product(self.factors, self.penalties)]

    @property
    def cautious(self) -> tuple[int, float]:
        """The fewest factors with the largest penalty: what is taken where nothing can be held out."""
        return min(self.factors), max(self.penalties)


ANY = Factorization()


@dataclass(frozen=True)
class FactorModel:
    """A fitted factorization. `items` (I, 1 + f): bias and factors of each item, rows by `row_of`."""

    mean: float
    row_of: Mapping[str, int]
    items: FloatArray
    reader_penalty: float
    factor_penalty: float

    @property
    def factors(self) -> int:
        """f."""
        return int(self.items.shape[1]) - 1

    def predict(self, examples: Sequence[PointwiseExample]) -> FloatArray:
        """Scores of the queries, (n,), each reader folded in from the profile of the example; kept on the scale."""
        chunks = [self._predict(examples[start : start + _CHUNK]) for start in range(0, len(examples), _CHUNK)]
        return on_scale(np.concatenate([np.empty(0), *chunks]))

    def _predict(self, examples: Sequence[PointwiseExample]) -> FloatArray:
        given = example_arrays(examples, self.row_of)
        items = np.vstack([self.items, np.zeros(self.items.shape[1])])  # the last row, -1, is of unknown items
        shown, query = items[given.shown], items[given.query]
        penalties = _penalties(self.reader_penalty, self.factor_penalty, self.factors)
        rest = given.score - self.mean - shown[:, 0]
        readers = _ridge(given.example, _with_one(shown), rest, size=len(examples), penalties=penalties)  # (n, 1 + f)
        scores: FloatArray = self.mean + query[:, 0] + (readers * _with_one(query)).sum(axis=1)
        return scores


def fit_factor_model(
    train: Sequence[PointwiseExample],
    *,
    settings: Factorization = ANY,
    plain: bool = False,
    seed: int = 0,
    biases: BiasModel | None = None,
    reviews: Sequence[TrainingReview] | None = None,
) -> FactorModel:
    """Biases, which are 0 where it is `plain`, and factors of the items of `train`.

    Args:
        train: examples; their references and profiles are the training scores.
        settings: numbers of factors and penalties; the pair with the least squared error on the examples of a fifth of the
            readers, of at most `MOST_READERS`, that is held out, is chosen.
        seed: of the held-out readers and of where the factors start.
        biases: the bias predictor of `train`, whose penalties are used; None fits it.
        reviews: the `training_reviews` of `train`, if they are at hand.
    Raises:
        BadInput: no training score.
    """
    reviews = training_reviews(train) if reviews is None else reviews
    biases = biases or fit_bias_model(train, reviews=reviews)
    penalties = (NO_BIAS, NO_BIAS) if plain else (biases.item_penalty, biases.reader_penalty)
    chosen = _choose(train, reviews, settings.pairs, penalties=penalties, seed=seed) or settings.cautious
    return _fit(reviews, chosen, penalties=penalties, seed=seed)


def _choose(
    train: Sequence[PointwiseExample],
    reviews: Sequence[TrainingReview],
    pairs: Sequence[tuple[int, float]],
    *,
    penalties: tuple[float, float],
    seed: int,
) -> tuple[int, float] | None:
    """The best of `pairs`; None where nothing can be held out."""
    if len(pairs) == 1:
        return pairs[0]
    readers = shuffled({example.reviewer_id for example in train}, seed=seed, purpose="factors held out")[:MOST_READERS]
    if len(readers) < FEWEST_READERS:
        return None
    held_out, fitted = set(readers[: len(readers) // 5]), set(readers[len(readers) // 5 :])
    queries = [example for example in train if example.reviewer_id in held_out and example.reference]
    gold = np.array([example.reference.score for example in queries if example.reference], dtype=np.float64)
    others = [review for review in reviews if review.reviewer_id in fitted]
    if not queries or not others:
        return None

    def error(settings: tuple[int, float]) -> float:
        predicted = _fit(others, settings, penalties=penalties, seed=seed).predict(queries)
        return float(((predicted - gold) ** 2).sum())

    return min(pairs, key=error)


def _fit(
    reviews: Sequence[TrainingReview], settings: tuple[int, float], *, penalties: tuple[float, float], seed: int
) -> FactorModel:
    factors, factor_penalty = settings
    item_penalty, reader_penalty = penalties
    reviews = sorted(reviews, key=lambda review: (review.reviewer_id, review.item_id or ""))
    mean = float(np.mean([review.score for review in reviews]))
    known = [review for review in reviews if review.item_id is not None]
    row_of = {item: row for row, item in enumerate(sorted({review.item_id for review in known if review.item_id is not None}))}
    place = {reader: row for row, reader in enumerate(sorted({review.reviewer_id for review in known}))}
    items = np.zeros((len(row_of), 1 + factors))
    for item, row in row_of.items():
        generator = draw(seed, item, "factors begin")
        items[row, 1:] = [generator.gauss(0, 0.1) for _ in range(factors)]
    if not known:
        return FactorModel(mean, row_of, items, reader_penalty, factor_penalty)
    what = np.array([row_of[review.item_id] for review in known if review.item_id is not None], dtype=np.int64)
    who = np.array([place[review.reviewer_id] for review in known], dtype=np.int64)
    deviation = np.array([review.score for review in known], dtype=np.float64) - mean
    of_readers = _penalties(reader_penalty, factor_penalty, factors)
    of_items = _penalties(item_penalty, factor_penalty, factors)
    for _ in range(SWEEPS):
        theirs = items[what]
        readers = _ridge(who, _with_one(theirs), deviation - theirs[:, 0], size=len(place), penalties=of_readers)
        theirs = readers[who]
        items = _ridge(what, _with_one(theirs), deviation - theirs[:, 0], size=len(row_of), penalties=of_items)
    return FactorModel(mean, row_of, items, reader_penalty, factor_penalty)


def _penalties(bias: float, factor: float, factors: int) -> FloatArray:
    return np.array([bias, *([factor] * factors)])


def _with_one(rows: FloatArray) -> FloatArray:
    """[bias, factors] -> [1, factors]: what the other side's bias and factors are multiplied by."""
    return np.hstack([np.ones((len(rows), 1)), rows[:, 1:]])


def _ridge(of: IntArray, columns: FloatArray, target: FloatArray, *, size: int, penalties: FloatArray) -> FloatArray:
    """Of each of `size` groups the weights w that make |target - columns w|^2 + penalties . w^2 least: (size, f + 1).

    A group without rows has zeros.
    """
    from scipy.sparse import csr_array

    rows = len(of)
    belongs = csr_array((np.ones(rows), (of, np.arange(rows))), shape=(size, rows))
    width = columns.shape[1]
    squares = (columns[:, :, None] * columns[:, None, :]).reshape(rows, width * width)  # (n, (1 + f)^2)
    gram = (belongs @ squares).reshape(size, width, width) + np.diag(penalties)
    moments = belongs @ (columns * target[:, None])  # (size, 1 + f)
    weights: FloatArray = np.linalg.solve(gram, moments[:, :, None])[:, :, 0]
    return weights
