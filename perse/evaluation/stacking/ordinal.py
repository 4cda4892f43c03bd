"""Fits proportional odds: P(y > k) = 1 / (1 + exp(cut_k - w . x)), the same weights at every cut.

As one logistic regression of scikit-learn over every (row, cut), whether y lies above the cut: the sum of the log losses of all cumulative
probabilities (the all-threshold loss of Rennie and Srebro, 2005, "Loss functions for preference levels"), which is a proper score of the whole
distribution and puts the cuts in order. Where the model holds it finds the same as maximum likelihood does, up to noise.

Features are standardised, and their weights have a ridge penalty. A row of usual features for every label, which together weigh as one, keep the
cuts finite where a label was never given.

Notation: n rows, p features, L labels, K = L - 1 cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
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
        reach = (features @ self.weights)[:, None] - self.cuts  # (n, K)
        above = np.exp(-np.logaddexp(0.0, -reach))
        size = len(features)
        return -np.diff(np.hstack([np.ones((size, 1)), above, np.zeros((size, 1))]), axis=1)


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


def refits(
    features: FloatArray, places: IntArray, start: Ordinal, *, labels: FloatArray, ridge: float = RIDGE
) -> Callable[[int], Ordinal]:
    """The models of the same rows with other scores, by one Newton step each from `start`; called with the number of the scores.

    Args:
        features: (n, p) as in `fit_ordinal`.
        places: (n, T) places among the `labels` of T times n scores.
    """
    size = features.shape[1]
    centre, spread, x, weight = _standardised(features, labels)
    known = np.isfinite(spread)
    weights = np.where(known, start.weights * np.where(known, spread, 0.0), 0.0)
    cuts = start.cuts - centre @ start.weights
    above = 1 / (1 + np.exp(cuts - (x @ weights)[:, None]))  # (n + L, K)
    flat = weight[:, None] * above * (1 - above)
    crossed = -_FREE * (x.T @ flat)
    hessian = np.block(
        [[(x.T * flat.sum(axis=1)) @ x, crossed], [crossed.T, _FREE**2 * np.diag(flat.sum(axis=0))]]
    ) + ridge * np.eye(size + len(cuts))
    usual = np.tile(np.arange(len(labels))[:, None], (1, places.shape[1]))
    placed = np.vstack([places, usual])  # (n + L, T); a score in place m lies above m cuts
    slope = x.T @ (weight[:, None] * (placed - above.sum(axis=1, keepdims=True)))  # (p, T)
    over = np.stack([weight @ (placed > k) for k in range(len(cuts))]) - (weight @ above)[:, None]  # (K, T)
    found = np.concatenate([weights, cuts / _FREE])
    moved = found[:, None] + np.linalg.solve(hessian, np.vstack([slope, -_FREE * over]) - ridge * found[:, None])
    all_weights = moved[:size] / spread[:, None]
    all_cuts = np.maximum.accumulate(_FREE * moved[size:] + centre @ all_weights, axis=0)
    return lambda nth: Ordinal(all_weights[:, nth], all_cuts[:, nth])


def _standardised(features: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Centre and spread of features (p,), and the standardised rows (n + L, p), those of usual features last, with their weights."""
    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 1e-9, spread, np.inf)  # what never varies says nothing
    x = np.vstack([(features - centre) / spread, np.zeros((len(labels), features.shape[1]))])
    weight = np.concatenate([np.ones(len(features)), np.full(len(labels), 1 / len(labels))])
    return centre, spread, x, weight
