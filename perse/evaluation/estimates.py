"""Values with their bootstrap intervals: the same resamples of the reviewers for every value of a table."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from perse.evaluation.correlation import COEFFICIENTS, BoolArray, Convention, FloatArray, IntArray, within_reviewers
from perse.evaluation.intervals import (
    Interval,
    draw_reviewers,
    percentile_interval,
    resampled_kendall,
    resampled_pearson,
    resampled_ratio,
    resampled_spearman,
    times_drawn,
)
from perse.evaluation.results import Estimate

RESAMPLED = MappingProxyType({"pearson": resampled_pearson, "spearman": resampled_spearman, "kendall": resampled_kendall})
NO_COEFFICIENT = Interval(reason="undefined (constant or too few items)")


@dataclass(frozen=True)
class Bootstrap:
    """The resamples, the same for every value of a table: values can be compared resample by resample.

    `reviewer` (n,) is each item's reviewer; `counts` (R, C) how often each reviewer was drawn.
    """

    reviewer: IntArray
    counts: FloatArray

    @classmethod
    def over(cls, reviewer: IntArray, *, resamples: int, seed: int) -> Bootstrap:
        """Draw `resamples` of the reviewers named in `reviewer`."""
        drawn = draw_reviewers(int(reviewer.max()) + 1, resamples=resamples, seed=seed)
        return cls(reviewer, times_drawn(drawn))

    def mean(self, values: FloatArray, chosen: BoolArray) -> Estimate:
        """Mean of `values`, (n,), over the `chosen` items."""
        who, size = self.reviewer[chosen], self.counts.shape[1]
        total = np.bincount(who, weights=values[chosen], minlength=size).astype(np.float64)
        number = np.bincount(who, minlength=size).astype(np.float64)
        if not len(who):
            return Estimate(value=None, interval=Interval(reason="undefined (no items)"), items=0)
        interval = percentile_interval(resampled_ratio(total, number, counts=self.counts), reviewers=len(np.unique(who)))
        return Estimate(value=float(values[chosen].mean()), interval=interval, items=len(who))

    def correlations(self, gold: FloatArray, predicted: FloatArray, *, convention: Convention) -> dict[str, Estimate]:
        """Pooled and within-reviewer coefficients and MAE, over the items whose prediction is not NaN."""
        chosen = ~np.isnan(predicted)
        x, y, who = gold[chosen], predicted[chosen], self.reviewer[chosen]
        reviewers = len(np.unique(who))
        columns = {}
        for name, coefficient in COEFFICIENTS.items():
            value = coefficient(x, y)
            interval = NO_COEFFICIENT
            if value is not None:
                resampled = RESAMPLED[name](x, y, reviewer=who, counts=self.counts)
                interval = percentile_interval(resampled, reviewers=reviewers)
            columns[name] = Estimate(value=value, interval=interval, items=len(x))
        for name in COEFFICIENTS:
            columns[f"within_{name}"] = self._within(name, x, y, who, convention)
        columns["mae"] = self.mean(np.abs(gold - predicted), chosen)
        return columns

    def _within(self, name: str, gold: FloatArray, predicted: FloatArray, who: IntArray, convention: Convention) -> Estimate:
        within = within_reviewers(COEFFICIENTS[name], gold, predicted=predicted, reviewer=who)
        entering = np.isfinite(within.values) if convention is Convention.SKIP_CONSTANT else np.ones(len(within.values), bool)
        value = within.mean(convention)
        interval = NO_COEFFICIENT
        if value is not None:
            numerator, denominator = np.zeros((2, self.counts.shape[1]))
            numerator[within.reviewers] = np.nan_to_num(within.values)
            denominator[within.reviewers] = entering
            resampled = resampled_ratio(numerator, denominator, counts=self.counts)
            interval = percentile_interval(resampled, reviewers=int(entering.sum()))
        return Estimate(value=value, interval=interval, items=len(gold), skipped_reviewers=within.skipped)
