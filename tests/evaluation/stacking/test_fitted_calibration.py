"""Whether the probabilities of a stacking are right is judged against right ones that were fitted in the same way."""

from __future__ import annotations

import numpy as np
import pytest

from perse.evaluation.calibration.reliability import Promised, calibration_error, off_by_chance
from perse.evaluation.stacking import chance
from perse.evaluation.stacking.chance import refitted_errors
from perse.evaluation.stacking.crossing import CrossFitted, Rows
from perse.evaluation.stacking.ordinal import fit_ordinal, refits
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


@pytest.mark.numeric
@pytest.mark.parametrize("size", [2_000, 8_000])
def test_a_refit_in_one_step_is_the_whole_fit_but_for_a_tenth_of_what_it_moves_and_less_of_more_rows(size: int) -> None:
    generator = np.random.default_rng(size)
    features = generator.normal(size=(size, 3)) * [1, 2, 0.5] + [0, 3, 0]

    def drawn() -> np.ndarray:
        return ((features @ [0.8, 0.3, 0.0] - 0.9 + generator.logistic(size=size))[:, None] > CUTS).sum(axis=1)

    start = fit_ordinal(features, LABELS[drawn()], labels=LABELS)
    places = np.stack([drawn() for _ in range(3)], axis=1)
    refit = refits(features, places, start, labels=LABELS)
    for nth in range(3):
        whole = fit_ordinal(features, LABELS[places[:, nth]], labels=LABELS).distributions(features)
        apart = np.abs(refit(nth).distributions(features) - whole).max()
        moved = np.abs(start.distributions(features) - whole).max()
        assert apart < (0.12 if size == 2_000 else 0.06) * moved


@pytest.mark.slow
@pytest.mark.numeric
def test_errors_of_drawn_worlds_are_those_of_whole_fits_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow twin: each draw's scores put into the rows, and all models fitted from the beginning."""
    of = rows(150, seed=1)
    cross, given = told(of)
    kept: list[np.ndarray] = []
    draw = chance._drawn
    monkeypatch.setattr(chance, "_drawn", lambda *a, **k: kept.append(draw(*a, **k)) or kept[-1])
    quick = refitted_errors(cross, of.sources, given, seed=0, draws=6)
    whole = [calibration_error(told(Rows(of.features, LABELS[places], of.reader))[1]) for places in kept[0].T]
    assert quick == pytest.approx(whole, rel=0.15) and quick.mean() == pytest.approx(np.mean(whole), rel=0.05)


@pytest.mark.parametrize("strays", [0.0, 1.5])
def test_drawn_scores_are_as_often_given_as_the_model_says_and_stray_together_as_the_readers_do(strays: float) -> None:
    of = rows(200, seed=2, strays=strays)
    _, given = told(of)
    alike = chance._alike(given)
    assert alike[1] == 0.0 and (alike[0] < 0.04 if strays == 0 else 0.3 < alike[0] < 0.5)  # 1.5² / (1.5² + π² / 3) = 0.41
    places = chance._drawn(given.probability, alike, given, draws=200, seed=0)
    shares = np.stack([(places == label).mean() for label in range(10)])
    assert shares == pytest.approx(given.probability.mean(axis=0), abs=0.01)
    again = [chance._alike(Promised(given.labels, given.probability, places[:, nth], given.reviewer))[0] for nth in range(40)]
    assert np.mean(again) == pytest.approx(alike[0], abs=0.05)


@pytest.mark.slow
def test_right_ones_are_called_wrong_by_chance_alone_and_a_model_that_does_not_hold_is_found_out() -> None:
    """The counts over many worlds: `benchmarks/fitted_calibration.py`."""
    bent = np.where(CUTS > 0, 1.5, -1.0)  # the number decides among high scores, and says nothing of low ones
    found = dict.fromkeys(("right", "wrong"), 0)
    for seed in range(10):
        for name, slopes in (("right", 0.0), ("wrong", bent)):
            of = rows(100, seed=seed, slopes=slopes)
            cross, given = told(of, seed=seed)
            found[name] += not off_by_chance(given, refitted_errors(cross, of.sources, given, seed=seed, draws=59))
    assert found["right"] <= 3 and found["wrong"] >= 8, found  # of 10 at 5 in 100: 4 or more by chance in 1 of 1000
