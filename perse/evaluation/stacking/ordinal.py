"""Fits proportional odds: P(y > k) = 1 / (1 + exp(cut_k - w . x)), the same weights at every cut.

As one logistic regression of scikit-learn over every (row, cut), whether y lies above the cut: the sum of the log losses of all cumulative
probabilities (the all-threshold loss of Rennie and Srebro, 2005, "Loss functions for preference levels"), which is a proper score of the whole
distribution and puts the cuts in order. Where the model holds it finds the same as maximum likelihood does, up to noise.

Features are standardised, and their weights have a ridge penalty. A row of usual features for every label, which together weigh as one, keep the
cuts finite where a label was never given.

Notation: n rows, p features, L labels, K = L - 1 cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import FloatArray
from perse.installing import needing

RIDGE = 1.0
"""The penalty of a standardised weight's square, halved: that of a standard normal prior."""
_FREE = 100.0
"""By which the columns of cuts are scaled, so that the penalty hardly touches them: it divides it by the square."""


@dataclass(frozen=True)
class Ordinal:
    """A fitted model; `weights` (p,) are of the features as they are, `cuts` (K,) rise."""

    weights: FloatArray
    cuts: FloatArray

    def distributions(self, features: FloatArray) -> FloatArray:
        """The probability of every label, (n, L) of (n, p)."""
        size = len(features)
        return -np.diff(np.hstack([np.ones((size, 1)), self.above(features), np.zeros((size, 1))]), axis=1)

    def above(self, features: FloatArray) -> FloatArray:
        """The probability of a score above each cut, (n, K) of (n, p)."""
        reach = (features @ self.weights)[:, None] - self.cuts  # (n, K)
        found: FloatArray = np.exp(-np.logaddexp(0.0, -reach))
        return found


def fit_ordinal(features: FloatArray, gold: FloatArray, *, labels: FloatArray, ridge: float = RIDGE) -> Ordinal:
    """The model of rows.

    Args:
        features: (n, p) without NaN; p may be 0, which leaves the cuts alone.
        gold: (n,) one of `labels`, (L,), each.
    Raises:
        BadInput: scikit-learn is not installed.
    """
    with needing("data"):
        from sklearn.linear_model import LogisticRegression

    cuts = len(labels) - 1
    centre, spread, x, weight = _standardised(features, labels)
    y = np.concatenate([gold, labels])
    of_cut = np.tile(-_FREE * np.eye(cuts), (len(x), 1))  # ((n + L) K, K)
    design = np.hstack([np.repeat(x, cuts, axis=0), of_cut])
    above = (y[:, None] > labels[:-1]).ravel()
    model = LogisticRegression(C=1 / ridge, fit_intercept=False, solver="newton-cholesky", max_iter=100, tol=1e-8)
    model.fit(design, above, sample_weight=np.repeat(weight, cuts))
    found = model.coef_[0]
    weights = found[: features.shape[1]] / spread
    return Ordinal(weights, np.maximum.accumulate(_FREE * found[features.shape[1] :] + centre @ weights))


def influences(
    features: FloatArray, surprise: FloatArray, model: Ordinal, *, labels: FloatArray, ridge: float = RIDGE
) -> FloatArray:
    """How far each row moved the model that was fitted to it: one Newton step from its score alone, (n, p + K), weights first.

    Args:
        features: (n, p) as in `fit_ordinal`.
        surprise: (n, K) 1 where the row's score lies above the cut, else 0, less the probability of that.
    """
    size, count = len(model.weights), len(model.cuts)
    centre, spread, x, weight = _standardised(features, labels)
    above = model.above(np.vstack([features, np.tile(centre, (len(labels), 1))]))  # (n + L, K)
    flat = weight[:, None] * above * (1 - above)
    crossed = -x.T @ flat
    hessian = np.block([[(x.T * flat.sum(axis=1)) @ x, crossed], [crossed.T, np.diag(flat.sum(axis=0))]])
    hessian += ridge * np.diag([1.0] * size + [1 / _FREE**2] * count)
    slope = np.hstack([x[: len(features)] * surprise.sum(axis=1, keepdims=True), -surprise])  # (n, p + K)
    moved: FloatArray = np.linalg.solve(hessian, slope.T).T
    moved[:, :size] /= spread
    moved[:, size:] += (moved[:, :size] @ centre)[:, None]
    return moved


def _standardised(features: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Centre and spread of features (p,), and the standardised rows (n + L, p), those of usual features last, with their weights."""
    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 1e-9, spread, np.inf)  # what never varies says nothing
    x = np.vstack([(features - centre) / spread, np.zeros((len(labels), features.shape[1]))])
    weight = np.concatenate([np.ones(len(features)), np.full(len(labels), 1 / len(labels))])
    return centre, spread, x, weight
