"""Whether the probabilities of a stacking are right is judged against right ones that were fitted in the same way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit, ndtr

from perse.evaluation.calibration.reliability import Promised, off_by_chance
from perse.evaluation.stacking.chance import _pulls, fitted_errors
from perse.evaluation.stacking.crossing import CrossFitted, Rows
from perse.evaluation.stacking.ordinal import fit_ordinal, influences
from perse.scale import SCORES

LABELS = np.array(SCORES.values or ())
CUTS = np.linspace(-4, 4, 9)


def rows(readers: int, *, seed: int, strays: float = 0.8, slopes: np.ndarray | float = 0.0) -> Rows:
    """Texts ordered by a number and readers by another; readers stray beside. `slopes`: what the first is worth at each cut more than 1."""
    generator = np.random.default_rng([seed, 3])
    reader = np.repeat(np.arange(readers), 12)
    one, own = generator.normal(size=len(reader)), generator.normal(0, 0.8, readers)[reader]
    reach = one + own + generator.normal(0, strays, readers)[reader] + generator.logistic(size=len(reader))
    gold = 1.0 + (reach[:, None] + one[:, None] * slopes > CUTS).sum(axis=1)
    absent = np.full(len(reader), np.nan)
    content = np.where(generator.random(len(reader)) < 0.5, 6 + one, np.nan)
    return Rows(np.stack([one, one + own, own, absent, 6 + own, content], axis=1), gold, reader)


def told(of: Rows, *, seed: int = 0) -> tuple[CrossFitted, Promised]:
    cross = CrossFitted.of(of, seed=seed)
    return cross, Promised(SCORES.labels, cross.tell(of.sources), of.gold.astype(np.int64) - 1, of.reader)


@pytest.mark.slow
@pytest.mark.numeric
def test_rows_move_a_model_by_their_influence() -> None:
    generator = np.random.default_rng(1)
    size = 4_000
    features = generator.normal(size=(size, 3)) * [1, 2, 0.5] + [0, 3, 0]
    places = ((features @ [0.8, 0.3, 0.0] - 0.9 + generator.logistic(size=size))[:, None] > CUTS).sum(axis=1)
    others = np.where(np.arange(size) < 60, np.minimum(places + 2, 9), places)  # 60 rows have other scores
    start, whole = (fit_ordinal(features, LABELS[one], labels=LABELS) for one in (places, others))
    above = np.stack([one[:, None] > np.arange(9) for one in (others, places)]).astype(float)
    by = influences(features, above[0] - above[1], start, labels=LABELS).sum(axis=0)
    moved = np.concatenate([whole.weights - start.weights, whole.cuts - start.cuts])
    assert np.abs(by - moved).max() < 0.1 * np.abs(moved).max()


@pytest.mark.slow
@pytest.mark.numeric
def test_other_scores_of_some_readers_move_what_others_are_promised_as_whole_fits_to_them_do() -> None:
    """The slow twin: all models fitted from the beginning."""
    of = rows(150, seed=1)
    cross, given = told(of)
    again = Rows(of.features, np.where(of.reader < 6, np.clip(of.gold + 3, 1, 10), of.gold), of.reader)
    anew = replace(given, probability=CrossFitted.of(again, seed=0).tell(again.sources)).at_most
    others = replace(given, truth=again.gold.astype(np.int64) - 1)
    by = np.full_like(anew, np.nan)
    for one, other in zip(_pulls(cross, of.sources, given), _pulls(cross, of.sources, others), strict=True):
        step, size = other.moved.sum(axis=0) - one.moved.sum(axis=0), one.features.shape[1]
        by[one.mine] = step[size:] - (one.features @ step[:size])[:, None]
    by *= given.at_most * (1 - given.at_most)
    moved = anew - given.at_most
    assert np.abs(moved).max() > 0.02 and np.abs(by - moved).max() < 0.15 * np.abs(moved).max()


@pytest.mark.slow
def test_right_ones_are_called_wrong_by_chance_alone_and_a_model_that_does_not_hold_is_found_out() -> None:
    """The counts over many worlds: `benchmarks/fitted_calibration.py`."""
    bent = np.where(CUTS > 0, 1.5, -1.0)  # the number decides among high scores, and says nothing of low ones
    found = dict.fromkeys(("right", "wrong"), 0)
    for seed in range(10):
        for name, slopes in (("right", 0.0), ("wrong", bent)):
            found[name] += not not_wrong(rows(100, seed=seed, slopes=slopes), seed=seed)
    assert found["right"] <= 3 and found["wrong"] >= 8, found  # of 10 at 5 in 100: 4 or more by chance in 1 of 1000


@pytest.mark.slow
def test_right_ones_are_seldom_called_wrong_where_a_number_says_more_to_some_readers_than_to_others() -> None:
    """Whoever takes a reader's answers to stray one way alone finds them to be independent here, for what strays up above 0 strays down below."""
    found = 0
    for seed in range(12):
        generator = np.random.default_rng([seed, 77])
        reader = np.repeat(np.arange(20), 40)
        one, own = generator.normal(size=len(reader)), generator.normal(0, 0.8, 20)[reader]
        share = 0.8 * one**2 / (1 + one**2)
        taste = np.sign(one) * generator.normal(size=20)[reader]
        noise = logit(ndtr(np.sqrt(1 - share) * generator.normal(size=len(one)) + np.sqrt(share) * taste))
        found += not not_wrong(
            told_by_two(one, own, 1.0 + ((one + own + noise)[:, None] > CUTS).sum(axis=1), reader), seed=seed
        )
    assert found <= 3, found  # of 12 at 5 in 100: 4 or more by chance in 1 of 500


def test_what_chance_makes_of_rare_scores_is_no_more_than_there_are() -> None:
    """One low score more or less moves its cut far, and a whole step from it moved all probabilities."""
    generator = np.random.default_rng(8)
    reader = np.repeat(np.arange(40), 12)
    one, own = generator.normal(size=len(reader)), generator.normal(0, 0.8, 40)[reader]
    gold = 1.0 + ((one + own + generator.logistic(size=len(reader)))[:, None] > np.linspace(-9, 1, 9)).sum(axis=1)
    of = told_by_two(one, own, gold, reader)
    cross, given = told(of)
    errors = fitted_errors(cross, of.sources, given, seed=0)
    assert (gold <= 3).mean() < 0.03 and np.quantile(errors, 0.95) < 0.1


def told_by_two(one: np.ndarray, own: np.ndarray, gold: np.ndarray, reader: np.ndarray) -> Rows:
    absent = np.full(len(reader), np.nan)
    return Rows(np.stack([one, one**3 / 9, own, absent, 6 + own, absent], axis=1), gold, reader)


def not_wrong(of: Rows, *, seed: int) -> bool:
    cross, given = told(of, seed=seed)
    return off_by_chance(given, fitted_errors(cross, of.sources, given, seed=seed))
