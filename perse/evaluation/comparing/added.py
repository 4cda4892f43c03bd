"""Comparing by metrics of other packages: the same differences, intervals and exchanges as by our own.

A mean over items is computed once for each side, of all that it said, distributions too, and its values are exchanged; any other
statistic is computed anew of what an exchange leaves, the predictions as they were given: whether it minds a judge's leniency is
not known, so they are not standardised as they are for our correlations. One that fails is undefined and says why, the others stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.comparing.results import NOTHING_ANSWERED, Contrast
from perse.evaluation.comparing.sides import Side, shared_reading
from perse.evaluation.metrics import Metric, Resampled, Scored, added, computed, failure, metrics_of
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import unless_alike
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.significance import paired_permutation
from perse.results.result import Estimate, Interval
from perse.scale import Scale


def comparable() -> dict[str, tuple[Metric, Resampled]]:
    """Metrics of scores of other packages whose value in every resample is known (`mean_of`, `of_sample`)."""
    brought = [one for one in metrics_of("scores") if added(one)]
    return {one.name: (one, one.function) for one in brought if isinstance(one.function, Resampled)}


@dataclass(frozen=True)
class Added:
    """Those of `names` that other packages brought, and what they are computed of; `gold` is (n,)."""

    names: Sequence[str]
    gold: FloatArray
    bootstrap: Bootstrap
    scale: Scale
    permutations: int
    seed: int

    def contrasts(self, sides: tuple[Side, Side]) -> list[Contrast]:
        """The differences of the two, of the items that both answered."""
        reading = shared_reading(*sides)
        both = ~np.isnan(sides[0].readings[reading]) & ~np.isnan(sides[1].readings[reading])
        found = []
        for metric, function in self._asked():
            if not both.any():
                found.append(_undefined(metric, NOTHING_ANSWERED, items=0))
                continue
            try:
                found.append(self._contrast(metric, function, sides, both))
            except Exception as error:  # noqa: BLE001  # whatever a stranger's function does
                found.append(_undefined(metric, Interval(reason=failure(metric, error)), items=int(both.sum())))
        return found

    def values(self, side: Side) -> dict[str, Estimate]:
        """Of all items of a baseline."""
        sample = self._sample(self.gold, side.readings["label"], self.bootstrap)
        found = {metric.name: computed(metric, sample) for metric, _ in self._asked()}
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def _asked(self) -> list[tuple[Metric, Resampled]]:
        return [one for name, one in comparable().items() if name in self.names]

    def _contrast(self, metric: Metric, function: Resampled, sides: tuple[Side, Side], both: BoolArray) -> Contrast:
        gold, again = self.gold[both], self.bootstrap.only(both)
        once = Bootstrap(Resamples(again.reviewer, np.ones((again.reviewers, 1), dtype=np.float32)))
        one, other = (self._given(function, side, sides, both) for side in sides)

        def resampled(bootstrap: Bootstrap, true: FloatArray, said: FloatArray) -> FloatArray:
            if function.per_item:
                return bootstrap.resampled_mean(said, ~np.isnan(said))
            return function.resampled(self._sample(true, said, bootstrap))

        first, second = (float(resampled(once, gold, side)[0]) for side in (one, other))
        difference = None if np.isnan(first) or np.isnan(second) else first - second
        spread = resampled(again, gold, one) - resampled(again, gold, other)
        [p] = paired_permutation(
            lambda *given: {metric.name: resampled(*given)},
            gold,
            one=one,
            other=other,
            reviewer=again.reviewer,
            permutations=self.permutations,
            seed=self.seed,
        ).values()
        behind = len(np.unique(again.reviewer[~np.isnan(one) & ~np.isnan(other)]))
        interval = again.interval(difference, spread, reviewers=behind)
        interval = unless_alike(interval, spread) if function.per_item else interval
        return Contrast(
            metric=metric.name,
            one=None if np.isnan(first) else first,
            other=None if np.isnan(second) else second,
            difference=difference,
            interval=again.unless_few_differ(interval, metric.name, gold, sides=((1.0, one), (-1.0, other))),
            items=len(gold),
            reviewers=behind,
            p=p.p,
            p_reason=p.reason,
            p_exact=p.exact,
        )

    def _given(self, function: Resampled, side: Side, sides: tuple[Side, Side], both: BoolArray) -> FloatArray:
        """What is exchanged: a mean's values, or the predictions."""
        reading = shared_reading(*sides)
        said = side.readings[reading][both]
        if not function.per_item:
            return said
        distributions = None if reading == "label" or side.distributions is None else side.distributions[both]
        return function.per_item(self._sample(self.gold[both], said, self.bootstrap.only(both), distributions))

    def _sample(
        self, gold: FloatArray, predicted: FloatArray, bootstrap: Bootstrap, distributions: FloatArray | None = None
    ) -> Scored:
        """Ties are not calibrated here: each half of the reviewers would need the other, and an exchange mixes them."""
        half = np.zeros(bootstrap.reviewers, dtype=np.int64)
        return Scored(
            bootstrap=bootstrap, gold=gold, predicted=predicted, scale=self.scale, half=half, distributions=distributions
        )


def _undefined(metric: Metric, why: Interval, *, items: int) -> Contrast:
    return Contrast(
        metric=metric.name,
        one=None,
        other=None,
        difference=None,
        interval=why,
        items=items,
        reviewers=0,
        p=None,
        p_reason=why.reason,
    )
