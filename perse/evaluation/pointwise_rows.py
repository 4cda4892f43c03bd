"""Rows of scores: every column of one prediction, on the same items and the same resamples as all other rows.

Correlations and errors are of the items that every judge answered; where some were not, the same values stand beside them
with failures imputed by the training mean (DESIGN.md, promise 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Items
from perse.evaluation.predictions import Prediction, gold_scores, score_predictions
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.ordinal import on_scale, point_masses, qwk_of_tables, rps_values, table_cells
from perse.evaluation.stats.results import POINTWISE_COLUMNS, Row
from perse.evaluation.stats.ties import calibrated_pairs, fit_epsilon
from perse.results.result import Estimate, Interval
from perse.scale import Scale

NOTHING_ANSWERED = "undefined (nothing was answered)"
OFF_SCALE = "undefined (true scores lie between labels)"
NO_PAIRS = "undefined (no two items of one reviewer)"


@dataclass(frozen=True)
class Scores:
    """What all rows share: `gold` (n,), each item's reviewer (n,), each reviewer's half (C,), and the resamples."""

    gold: FloatArray
    reviewer: IntArray
    half: IntArray
    bootstrap: Bootstrap
    scale: Scale

    def columns(
        self, predicted: FloatArray, distributions: FloatArray | None, *, epsilon: float | None = None
    ) -> tuple[dict[str, Estimate], tuple[float | None, ...] | None]:
        """All of `POINTWISE_COLUMNS`, over the items whose prediction is not NaN; and the epsilons of tied predictions."""
        chosen = ~np.isnan(predicted)
        if not chosen.any():
            nothing = Estimate(value=None, interval=Interval(reason=NOTHING_ANSWERED), items=0)
            return dict.fromkeys(POINTWISE_COLUMNS, nothing), None
        columns = self.bootstrap.scores(self.gold, predicted)
        if on_scale(self.gold, scale=self.scale):
            columns |= self._of_labels(predicted, distributions, chosen)
        else:
            undefined = Estimate(value=None, interval=Interval(reason=OFF_SCALE), items=int(chosen.sum()))
            columns |= {"qwk": undefined, "rps": undefined}
        ties = calibrated_pairs(
            self.gold[chosen], predicted[chosen], self.reviewer[chosen], fold_of_reviewer=self.half, epsilon=epsilon
        )
        if ties.pairs.sum():
            pairs = self.bootstrap.ratio(ties.right, ties.pairs)
        else:
            pairs = Estimate(value=None, interval=Interval(reason=NO_PAIRS), items=int(chosen.sum()))
        columns["pair_accuracy"] = pairs
        return {name: columns[name] for name in POINTWISE_COLUMNS}, ties.epsilons

    def _of_labels(self, predicted: FloatArray, distributions: FloatArray | None, chosen: BoolArray) -> dict[str, Estimate]:
        filled = np.where(chosen, predicted, self.gold)  # what is not chosen is not looked at
        cells = table_cells(self.gold, filled, scale=self.scale)
        masses = point_masses(filled, scale=self.scale)
        if distributions is not None:
            masses = np.where(np.isnan(distributions), masses, distributions)
        return {
            "qwk": self.bootstrap.of_tables(cells, len(self.scale.labels) ** 2, qwk_of_tables, chosen),
            "rps": self.bootstrap.mean(rps_values(self.gold, masses, scale=self.scale), chosen),
        }


def pointwise_rows(
    items: Items,
    predictions: Sequence[Prediction],
    *,
    scores: Scores,
    ok: BoolArray,
    failed: BoolArray,
    mean: FloatArray,
    epsilons: Mapping[str, float | None],
) -> list[Row]:
    """One row a prediction.

    Args:
        ok: (n,), which items every judge answered that answered any.
        failed: (n,), which items some judge did not answer.
        mean: (n,), the training mean of each item's part, NaN where there is none.
        epsilons: by row, fitted on a validation run; a row without is calibrated across the halves of the reviewers.
    """
    imputable = failed.any() and not np.isnan(mean[failed]).any()
    summaries = items.summaries()
    rows = []
    for given in predictions:
        asked = len(scores.gold)
        if given.values is None:
            rows.append(Row(name=given.name, judge=None, unavailable=given.unavailable, asked=asked, ok=0))
            continue
        epsilon = epsilons.get(given.name)
        columns, ties = scores.columns(np.where(ok, given.values, np.nan), given.distributions, epsilon=epsilon)
        imputed = None
        if imputable:
            filled = np.where(np.isnan(given.values), mean, given.values)
            imputed, _ = scores.columns(filled, given.distributions, epsilon=epsilon)
        answered = summaries[given.judge].ok if given.judge else asked
        rows.append(
            Row(
                name=given.name,
                judge=given.judge,
                asked=asked,
                ok=answered,
                columns=columns,
                imputed=imputed,
                epsilons=ties,
            )
        )
    return rows


def fitted_epsilons(items: Items, validation: Items, *, scale: Scale, seed: int) -> dict[str, float | None]:
    """The epsilon of each row, fitted on the judges' and baselines' predictions for other reviewers. None: they have no pairs.

    Raises:
        BadInput: a reviewer is in both, and would calibrate themselves.
    """
    both = set(items.reviewer_ids()) & set(validation.reviewer_ids())
    if both:
        raise BadInput(
            f"{len(both)} reviewers are in the evaluated run and in the validation run, the first '{min(both)}'; "
            "give a validation run of other reviewers"
        )
    gold, reviewer = gold_scores(validation), validation.reviewer()
    found = {}
    for given in score_predictions(validation, scale=scale, seed=seed):
        if given.values is not None:
            known = ~np.isnan(given.values)
            found[given.name] = fit_epsilon(gold[known], given.values[known], reviewer[known])
    return found
