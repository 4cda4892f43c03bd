"""Proportional odds: what is fitted is what was simulated, and what maximum likelihood finds."""

import numpy as np
import pytest
from scipy import optimize
from stacking_worlds import LABELS

from perse.evaluation.stacking.ordinal import fit_ordinal
from perse.stacking.applying import distribution
from perse.stacking.file import OrdinalModel

WEIGHTS = np.array([1.0, 0.5, -1.0, 0.0])
CUTS = np.linspace(-4, 4, 9)


def simulated(size: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(size, 4)) * [1, 2, 0.5, 1] + 3
    latent = features @ WEIGHTS + generator.logistic(size=size) - 3 * WEIGHTS.sum()
    return features, 1.0 + (latent[:, None] > CUTS).sum(axis=1)


def by_maximum_likelihood(features: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Weights of McCullagh's likelihood itself, without a penalty, by a general optimizer."""

    def negative(theta: np.ndarray) -> float:
        reach = (features - 3) @ theta[:4]
        cuts = np.concatenate([[-np.inf], theta[4] + np.concatenate([[0.0], np.cumsum(np.exp(theta[5:]))]), [np.inf]])
        at = gold.astype(int)
        above, below = (1 / (1 + np.exp(np.clip(cuts[k] - reach, -500, 500))) for k in (at - 1, at))
        return -float(np.log(np.maximum(above - below, 1e-300)).sum())

    start = np.concatenate([np.zeros(4), [-3.0], np.zeros(8)])
    return np.asarray(optimize.minimize(negative, start, method="L-BFGS-B", options={"maxiter": 2000}).x[:4])


@pytest.mark.slow
@pytest.mark.numeric
def test_weights_and_cuts_are_those_of_the_world() -> None:
    features, gold = simulated(20_000)
    found = fit_ordinal(features, gold, labels=LABELS)
    assert found.weights == pytest.approx(WEIGHTS, abs=0.06)
    assert found.cuts - 3 * found.weights.sum() == pytest.approx(CUTS, abs=0.15)


@pytest.mark.slow
@pytest.mark.numeric
def test_maximum_likelihood_finds_the_same_up_to_noise() -> None:
    features, gold = simulated(4_000, seed=1)
    found = fit_ordinal(features, gold, labels=LABELS, ridge=1e-6)
    assert found.weights == pytest.approx(by_maximum_likelihood(features, gold), abs=0.06)


def test_predicted_shares_are_those_that_happen() -> None:
    features, gold = simulated(20_000)
    fresh, happened = simulated(20_000, seed=2)
    told = fit_ordinal(features, gold, labels=LABELS).distributions(fresh)
    assert told.sum(axis=1) == pytest.approx(np.ones(len(fresh)))
    shares = np.array([(happened == label).mean() for label in LABELS])
    assert told.mean(axis=0) == pytest.approx(shares, abs=0.01)


def test_a_label_that_was_never_given_stays_possible_and_cuts_rise() -> None:
    generator = np.random.default_rng(3)
    gold = np.where(generator.random(300) < 0.5, 5.0, 7.0)
    found = fit_ordinal(generator.normal(size=(300, 2)), gold, labels=LABELS)
    told = found.distributions(np.zeros((1, 2)))[0]
    assert np.isfinite(found.cuts).all() and (np.diff(found.cuts) >= 0).all()
    assert told.min() > 0 and told[4] + told[6] > 0.98


def test_a_feature_that_never_varies_weighs_nothing() -> None:
    features, gold = simulated(500)
    features[:, 1] = 4.0
    found = fit_ordinal(features, gold, labels=LABELS)
    assert found.weights[1] == 0 and np.isfinite(found.distributions(features)).all()


def test_what_is_applied_to_one_is_what_is_told_of_many() -> None:
    features, gold = simulated(500)
    found = fit_ordinal(features[:, :1], gold, labels=LABELS)
    model = OrdinalModel(sources=("reader",), cuts=tuple(found.cuts.tolist()), weights={"reader": float(found.weights[0])})
    told = found.distributions(features[:, :1])
    for row in range(5):
        assert distribution(model, {"reader": float(features[row, 0])}) == pytest.approx(told[row].tolist(), abs=1e-12)
