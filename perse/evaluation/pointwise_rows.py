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
from perse.evaluation.baselines.factors import ANY, Factorization
from perse.evaluation.metrics import Scored, computed, metrics_of
from perse.evaluation.predictions import Prediction, gold_scores, score_predictions
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.p_values import p_values
from perse.evaluation.stats.results import Row
from perse.evaluation.stats.ties import fit_epsilon
from perse.models.vectors import Vectors
from perse.progress import OnProgress, counted, unseen
from perse.results.result import Estimate, Interval
from perse.scale import Scale

NOTHING_ANSWERED = "undefined (nothing was answered)"


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
        """Every metric of scores, over the items whose prediction is not NaN; and the epsilons of tied predictions."""
        chosen = ~np.isnan(predicted)
        if not chosen.any():
            nothing = Estimate(value=None, interval=Interval(reason=NOTHING_ANSWERED), items=0)
            return {metric.name: nothing for metric in metrics_of("scores")}, None
        sample = Scored(
            bootstrap=self.bootstrap.only(chosen),
            gold=self.gold[chosen],
            predicted=predicted[chosen],
            scale=self.scale,
            half=self.half,
            distributions=None if distributions is None else distributions[chosen],
            epsilon=epsilon,
        )
        found = {metric.name: computed(metric, sample) for metric in metrics_of("scores")}
        return {name: estimate for name, estimate in found.items() if estimate is not None}, sample.ties.epsilons


def pointwise_rows(
    items: Items,
    predictions: Sequence[Prediction],
    *,
    scores: Scores,
    ok: BoolArray,
    failed: BoolArray,
    mean: FloatArray,
    epsilons: Mapping[str, float | None],
    with_p: bool = False,
    on_progress: OnProgress = unseen,
) -> list[Row]:
    """One row a prediction.

    Args:
        ok: (n,), which items every judge answered that answered any.
        failed: (n,), which items some judge did not answer.
        mean: (n,), the training mean of each item's part, NaN where there is none.
        epsilons: by row, fitted on a validation run; a row without is calibrated across the halves of the reviewers.
        with_p: give p values of the pooled correlations, too.
        on_progress: told how many rows of how many are done.
    """
    imputable = failed.any() and not np.isnan(mean[failed]).any()
    rows = []
    for given in counted(predictions, on_progress):
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
        both = ok & ~np.isnan(given.values)
        answered = int(np.count_nonzero(~np.isnan(given.values))) if given.judge else asked  # some have nothing stacked
        rows.append(
            Row(
                name=given.name,
                judge=given.judge,
                asked=asked,
                ok=answered,
                columns=columns,
                imputed=imputed,
                epsilons=ties,
                p_values=p_values(scores.gold[both], given.values[both]) if with_p else {},
            )
        )
    return rows


def fitted_epsilons(
    items: Items,
    validation: Items,
    *,
    scale: Scale,
    seed: int,
    factorization: Factorization = ANY,
    vectors: Vectors | None = None,
) -> dict[str, float | None]:
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
    for given in score_predictions(validation, scale=scale, seed=seed, factorization=factorization, vectors=vectors):
        if given.values is not None:
            known = ~np.isnan(given.values)
            found[given.name] = fit_epsilon(gold[known], given.values[known], reviewer[known])
    return found
