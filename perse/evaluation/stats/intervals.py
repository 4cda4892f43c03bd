"""95% bootstrap intervals that keep their coverage with few reviewers, or are undefined.

Expanded percentiles (Hesterberg, 2015, "What teachers should know about the bootstrap"): the resamples' quantiles at levels
further out than 2.5% and 97.5%, the more so the fewer reviewers. How often they cover the truth, least and most of seven
statistics (pooled and within-reviewer correlations, correlations of reviewer means, MAE, accuracy), and what else was tried, in
1,000 simulations each by benchmarks/interval_coverage.py, whose own error is +- 1.4 points:

    reviewers                10          20          50          200
    percentile               89.1-91.4   91.2-94.3   93.6-94.8   93.1-95.0
    expanded percentile      93.8-96.1   93.3-96.1   94.2-95.6   93.2-95.4
    expanded BCa             93.3-97.4   92.3-96.0   93.9-95.5   93.1-95.3
    cluster jackknife, t     89.8-95.2   91.6-96.1   93.5-95.8   94.1-95.3

In another 2,000 simulations of 200 reviewers the second line is 94.0-95.2, +- 1.0.
Of a judge that knows nothing of a reader's leniency it covers less where reviewers are few: MAE 92.6, 93.0, RPS 90.5, 92.8 at 10, 20.
Where readers share texts, two-way intervals (Cameron, Gelbach and Miller, 2011, "Robust inference with multiway clustering"): the
variance is that by reviewers plus that by items minus that by rows, and at least that by reviewers and by items alone (MacKinnon,
Nielsen and Webb, 2024, "Jackknife inference with two-way clustering"). A text that has many of the items pulls the value towards itself,
so that resamples of texts spread too little, and they know of one draw of it alone: see `two_way_interval`. Coverage by
benchmarks/shared_texts.py is in docs/results.md.

BCa and the jackknife also need each value without each reviewer, and the jackknife's intervals of correlations leave [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.results.result import Interval

FEWEST_REVIEWERS = 10
"""Fewest reviewers for an interval: with fewer its coverage is not reliable."""
FEW_REVIEWERS = "undefined (few reviewers)"
ONE_REVIEWER = "undefined (one reviewer)"
RESTS_ON_FEW = "undefined (rests on few reviewers)"
"""There are more, but fewer than 10 decide the value: the others have none, or the same answers throughout."""
FEWEST_TEXTS = FEWEST_REVIEWERS
"""Fewest texts for an interval that also speaks of other texts."""
FEW_TEXTS = "undefined (few texts)"
RESTS_ON_FEW_TEXTS = "undefined (rests on few texts)"
"""There are more, but fewer than 10 decide the value: of the others the same is said throughout, or on both sides of a difference."""
ALIKE = "undefined (the same in every resample)"
"""Of a mean or a table whose items, or readers, are all alike."""
LEVEL = 0.95
_ROUNDING = 1e-9
_LEAST = 0.1
"""Of the variance by texts that is seen where one text has nearly all of the items."""


@dataclass(frozen=True)
class Behind:
    """How many reviewers a value rests on, and where texts are drawn how many of them; None: all of them."""

    reviewers: int
    texts: int | None = None

    @classmethod
    def both(cls, *sides: Behind) -> Behind:
        """What a difference rests on: no more than either side."""
        texts = [one.texts for one in sides if one.texts is not None]
        return cls(min(one.reviewers for one in sides), min(texts, default=None))


def bootstrap_interval(resampled: FloatArray, *, reviewers: int, of: str = "reviewer", worth: float | None = None) -> Interval:
    """The interval of a value from its resamples: expanded percentiles (Hesterberg, 2015).

    Args:
        resampled: (R,), NaN where undefined.
        reviewers: how many are behind the value. There is no interval with fewer than 10, or when most resamples are
            undefined: the few defined ones would describe a luckier data set.
        of: what they are called in the reason, if something other than reviewers is resampled.
        worth: as how many of like weight they count; all by default.
    """
    undefined = int(np.isnan(resampled).sum())
    if none := too_few(reviewers, of=of):
        return none.model_copy(update={"resamples": len(resampled), "undefined_resamples": undefined})
    if 2 * undefined >= len(resampled):
        reason = f"undefined (in {undefined} of {len(resampled)} resamples)"
        return Interval(reason=reason, resamples=len(resampled), undefined_resamples=undefined)
    low, high = np.nanquantile(resampled, expanded_levels(reviewers if worth is None else worth))
    return Interval(low=float(low), high=float(high), resamples=len(resampled), undefined_resamples=undefined)


def logit_interval(value: float, resampled: FloatArray, *, reviewers: int, of: str = "reviewer") -> Interval:
    """The interval of a value between 0 and 1 that may be near an end, such as an AUROC: on the scale of logits, from the resamples' standard error and t.

    Percentiles end too high near 1 (benchmarks/kgds_agreement.py). At 0 or 1 all resamples are the same.

    Args:
        resampled, reviewers, of: as above.
    """
    found = bootstrap_interval(resampled, reviewers=reviewers, of=of)
    spread = np.sqrt(_variance(resampled) * reviewers / max(1, reviewers - 1))
    if found.low is None or not 0 < value < 1 or spread == 0:
        return unless_alike(found, resampled)
    middle = np.log(value / (1 - value))
    reach = stats.t.ppf((1 + LEVEL) / 2, reviewers - 1) * spread / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (middle - reach, middle + reach))
    return found.model_copy(update={"low": low, "high": high})


def too_few(reviewers: int, *, texts: int | None = None, of: str = "reviewer") -> Interval | None:
    """Why there is no interval, where fewer than 10 reviewers, or texts if these are drawn, are behind a value; None if there are enough."""
    if reviewers < FEWEST_REVIEWERS:
        return Interval(reason=(ONE_REVIEWER if reviewers == 1 else FEW_REVIEWERS).replace("reviewer", of))
    return Interval(reason=FEW_TEXTS) if texts is not None and texts < FEWEST_TEXTS else None


def unless_alike(interval: Interval, resampled: FloatArray) -> Interval:
    """The interval, or none where each resample has the same value: that these are alike says nothing of how much others may differ."""
    known = resampled[np.isfinite(resampled)]
    if interval.low is None or not len(known) or np.ptp(known) > _ROUNDING * max(1.0, float(np.abs(known).max())):
        return interval
    return Interval(reason=ALIKE, resamples=interval.resamples, undefined_resamples=interval.undefined_resamples)


def two_way_interval(
    value: float, resampled: FloatArray, *, both: int, reviewers: int, texts: int, sizes: IntArray
) -> Interval:
    """The interval of a value that another draw of readers and of texts would change.

    The resamples of both have its shape and are drawn together to the spread that it should have: they count the noise of single
    answers three times. They are moved to lie around the value: a reader has fewer different texts in them, so that a mean over readers whose
    texts differ is of other readers. Which levels to take is up to the fewer of reviewers and texts.

    A text with a share w of the items pulls the value towards itself, and only 1 - w of what it has of its own is seen: the variance by texts is
    divided by what that leaves of it (as HC3 does by leverage). It also counts as one of 1 / (sum of w^2) texts, which with the reviewers makes
    Satterthwaite's degrees of freedom. Where texts have about as many items, neither does much.

    Args:
        value: of all items.
        resampled: (R,), of `Resamples.two_way`: `both`, then a third each by reviewers, items and rows alone.
        reviewers, texts: behind the value.
        sizes: (I,) items of each text.
    """
    shape = resampled[:both]
    if reviewers >= FEWEST_REVIEWERS and texts < FEWEST_TEXTS:
        return Interval(reason=FEW_TEXTS, resamples=both, undefined_resamples=int(np.isnan(shape).sum()))
    spread, by_reviewers, by_items, by_rows = (_variance(part) for part in (shape, *np.split(resampled[both:], 3)))
    share = sizes / sizes.sum()
    alike = 1 / float((share**2).sum())
    by_items /= max(alike * float(((share * (1 - share)) ** 2).sum()), _LEAST)
    wanted, fewer = max(by_reviewers, by_items, by_reviewers + by_items - by_rows), float(min(reviewers, texts))
    if spread > 0:
        drawn = np.sqrt(wanted / spread) if wanted > 0 and by_items > 0 else 1.0
        highest = max(value, float(np.nanmax(shape)))  # no correlation is above 1
        shape = np.minimum(value + (shape - np.nanmean(shape)) * drawn, highest)
    if by_items > 0:
        uncertain = by_reviewers**2 / max(1, reviewers - 1) + by_items**2 / max(1.0, alike - 1)
        fewer = min(fewer, 1 + max(1.0, wanted**2 / uncertain))
    return bootstrap_interval(shape, reviewers=min(reviewers, texts), worth=fewer)


def _variance(resampled: FloatArray) -> float:
    """Of the defined ones; 0 if there are none."""
    known = resampled[np.isfinite(resampled)]
    return float(known.var()) if len(known) else 0.0


def expanded_levels(reviewers: float) -> tuple[float, float]:
    """The quantiles to take of the resamples instead of 2.5% and 97.5%.

    Resamples of C reviewers spread too little, by sqrt((C - 1) / C), and 1.96 standard errors are too few for an estimated
    standard error: t with C - 1 degrees of freedom instead.
    """
    reach = np.sqrt(reviewers / (reviewers - 1)) * stats.t.ppf((1 - LEVEL) / 2, reviewers - 1)
    low = float(stats.norm.cdf(reach))
    return low, 1 - low
