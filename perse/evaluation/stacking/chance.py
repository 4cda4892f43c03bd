"""What chance makes of the calibration error of a stacking that was fitted here, were it right.

Its cuts are fitted to scores of the same kind as those that it is held against, so that errors of readers nearly cancel, and what chance makes of a
judge as it stands (`calibration.reliability`) would let anything pass. So the world that the stacking describes is drawn, fitted and measured as the
real one was. In each draw every row's score comes from the model of all readers; those of one reader, and of one text, stray together as much as
they do here (a Gaussian copula, whose correlations are those of the residuals). The models of the parts are fitted to the drawn scores by one Newton
step from the model of all readers, which is the fit but for terms of second order, and the Hessian is the same in all draws.

Notation: n rows, p features, L labels, K = L - 1 cuts, T draws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from perse.evaluation.calibration.reliability import Promised, calibration_error
from perse.evaluation.stacking.crossing import CrossFitted, Models, columns, subsets
from perse.evaluation.stacking.ordinal import Ordinal, refits
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.identity import draw
from perse.scale import SCORES

DRAWS = 299
_LABELS = np.array(SCORES.values or ())
_EDGE = 1e-6
"""How near to 0 and 1 a rank may come: what a model holds for impossible has no normal score."""


def refitted_errors(
    cross: CrossFitted, sources: Collection[str], given: Promised, *, seed: int, draws: int = DRAWS
) -> FloatArray:
    """(T,) calibration errors that a right stacking of these sources may have, fitted to such readers and texts.

    Args:
        given: what the stacking says of every row, cross-fitted.
    """
    whole = Models(cross.rows)
    truth = whole.tell(cross.rows, sources)
    places = _drawn(truth, _alike(given), given, draws=draws, seed=seed)
    told = _refitted(cross, whole, sources, places)
    return np.array([calibration_error(replace(given, probability=told(nth), truth=places[:, nth])) for nth in range(draws)])


def _alike(given: Promised) -> tuple[float, float]:
    """The correlation of normal scores of residuals of one reader, and of one text; of texts 0 where these are not drawn."""
    at_most = given.probability.cumsum(axis=1)
    row = np.arange(len(given.truth))
    rank = at_most[row, given.truth] - given.probability[row, given.truth] / 2
    score = ndtri(np.clip(rank, _EDGE, 1 - _EDGE))
    score = (score - score.mean()) / max(float(score.std()), _EDGE)

    def within(group: IntArray) -> float:
        sums, squares, sizes = (np.bincount(group, weights=one) for one in (score, score**2, np.ones(len(score))))
        pairs = float((sizes * (sizes - 1)).sum())
        return float(np.clip((sums**2 - squares).sum() / pairs, 0.0, 0.9)) if pairs else 0.0

    of_readers = within(given.reviewer)
    return of_readers, 0.0 if given.text is None else min(within(given.text), 0.95 - of_readers)


def _drawn(truth: FloatArray, alike: tuple[float, float], given: Promised, *, draws: int, seed: int) -> IntArray:
    """(n, T) the places of labels drawn from `truth` (n, L)."""
    generator = np.random.default_rng(draw(seed, "scores", "refitted").getrandbits(128))
    at_most = truth.cumsum(axis=1)[:, :-1]
    found = np.empty((len(truth), draws), dtype=np.int64)
    for nth in range(draws):
        score = np.sqrt(1 - sum(alike)) * generator.standard_normal(len(truth))
        for share, group in zip(alike, (given.reviewer, given.text), strict=True):
            if group is not None and share:
                score += np.sqrt(share) * generator.standard_normal(int(group.max()) + 1)[group]
        found[:, nth] = (ndtr(score)[:, None] > at_most).sum(axis=1)
    return found


@dataclass(frozen=True)
class _Cell:
    """The rows of one part that one model tells: which, their features, and the model's refits, of one draw each."""

    mine: BoolArray
    features: FloatArray
    models: Callable[[int], Ordinal]


def _refitted(cross: CrossFitted, whole: Models, sources: Collection[str], places: IntArray) -> Callable[[int], FloatArray]:
    """What is told of every row, (n, L), by the models of a draw: of the parts and sources that tell it really (`Models.tell`)."""
    cells = []
    left = np.ones(len(places), dtype=bool)
    for some in subsets(sources):
        have = cross.rows.have(some)
        features = np.nan_to_num(cross.rows.features[:, columns(some)])
        for part, models in enumerate(cross.models):
            mine = left & have & (cross.part == part)
            if mine.any() and models.of(some) is not None and (start := whole.of(some)) is not None:
                learned = have & (cross.part != part)
                cells.append(_Cell(mine, features[mine], refits(features[learned], places[learned], start, labels=_LABELS)))
                left &= ~mine

    def told(nth: int) -> FloatArray:
        found = np.full((len(places), len(_LABELS)), np.nan)
        for cell in cells:
            found[cell.mine] = cell.models(nth).distributions(cell.features)
        return found

    return told
