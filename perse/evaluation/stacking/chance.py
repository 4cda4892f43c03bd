"""What chance makes of the calibration error of a stacking that was fitted here, were it right.

Its cuts are fitted to scores of the same kind as those that it is held against, so that errors of readers nearly cancel, and what chance makes of a
judge as it stands (`calibration.reliability`) would let most of what is wrong pass where readers are few. So the model of all readers is taken for the truth, and in each draw what each
reader strayed by changes its sign at random, as there, and with it what their rows made the models of the other parts promise: to first order, by the
influence of each row on a model (`ordinal.influences`; the wild score bootstrap, Kline and Santos, 2012), with what the penalty does to it. Promises
fall into the bins where they then belong. What a reader's answers have in common may be anything, leniency, a taste, or how far they spread: nothing
of it is modelled. Where readers share texts, signs of both are added, and brought to the variance of both.

Notation: n rows, m rows of one model, p features, L labels, K = L - 1 cuts, T draws.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from perse.evaluation.calibration.reliability import BINS, Promised, bin_of, gaps
from perse.evaluation.stacking.crossing import CrossFitted, Models, columns, subsets
from perse.evaluation.stacking.ordinal import influences
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.identity import draw
from perse.scale import SCORES

DRAWS = 299
_LABELS = np.array(SCORES.values or ())


def fitted_errors(
    cross: CrossFitted, sources: Collection[str], given: Promised, *, seed: int, draws: int = DRAWS
) -> FloatArray:
    """(T,) calibration errors that a right stacking of these sources may have, fitted to such readers and texts.

    Args:
        given: what the stacking says of every row, cross-fitted.
    """
    truth = replace(given, probability=Models(cross.rows).tell(cross.rows, sources)).at_most  # (n, K)
    steep, strayed = truth * (1 - truth), given.at_most - given.was_at_most
    pulls = list(_pulls(cross, sources, given))
    columns_of_bins = np.arange(truth.shape[1]) * BINS
    found = np.empty(draws)
    for nth, signs in enumerate(_signs(given, draws=draws, seed=seed)):
        moved = np.zeros_like(truth)
        for one in pulls:
            step = signs[one.learned] @ one.moved + one.held
            size = one.features.shape[1]
            moved[one.mine] = steep[one.mine] * (step[size:] - (one.features @ step[:size])[:, None])
        place = bin_of(np.clip(truth + moved, 0.0, 1.0)) + columns_of_bins
        gap = moved + signs[:, None] * strayed
        found[nth] = np.abs(np.bincount(place.ravel(), weights=gap.ravel())).sum() / gap.size
    return found


def _signs(given: Promised, *, draws: int, seed: int) -> Iterator[FloatArray]:
    """T times (n,): one sign for all rows of a reader; where texts are drawn, the sum of that and of the text's."""
    generator = np.random.default_rng(draw(seed, "signs", "fitted").getrandbits(128))
    groups, scale = [given.reviewer], 1.0
    if given.text is not None:
        groups.append(given.text)
        readers, texts, rows = ((gaps(given, one) ** 2).sum(axis=0) for one in (*groups, np.arange(len(given.truth))))
        both = np.maximum(readers + texts - rows, np.maximum(readers, texts)).sum()
        scale = float(np.sqrt(both / (readers + texts).sum()))
    for _ in range(draws):
        drawn = [2.0 * generator.integers(0, 2, size=int(one.max()) + 1)[one] - 1 for one in groups]
        yield scale * np.sum(drawn, axis=0)


@dataclass(frozen=True)
class _Pull:
    """What one model learned from, and whom it tells."""

    learned: BoolArray
    """(n,)."""
    moved: FloatArray
    """(m, p + K) how far each of those rows moved weights and cuts."""
    held: FloatArray
    """(p + K,) how far the penalty did."""
    mine: BoolArray
    """(n,) the rows that it tells, and their `features`."""
    features: FloatArray


def _pulls(cross: CrossFitted, sources: Collection[str], given: Promised) -> Iterator[_Pull]:
    """Of every model that tells some row (`Models.tell`)."""
    strayed, above = given.at_most - given.was_at_most, 1 - given.was_at_most  # (n, K)
    left = np.ones(len(given.truth), dtype=bool)
    for some in subsets(sources):
        have = cross.rows.have(some)
        features = np.nan_to_num(cross.rows.features[:, columns(some)])
        for part, models in enumerate(cross.models):
            mine = left & have & (cross.part == part)
            if mine.any() and (model := models.of(some)) is not None:
                learned = have & (cross.part != part)
                by = features[learned]
                moved = influences(by, strayed[learned], model, labels=_LABELS)
                # The penalty's slope is what all rows together balance.
                held = -influences(by, above[learned] - model.above(by), model, labels=_LABELS).sum(axis=0)
                yield _Pull(learned, moved, held, mine, features[mine])
                left &= ~mine
