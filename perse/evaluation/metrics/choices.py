"""The metrics of choices between two texts. Order gap and consistency are of distributions: a judge's likeliest row has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perse.evaluation.metrics.metric import CHOICES, Metric
from perse.evaluation.metrics.samples import Chosen
from perse.evaluation.metrics.shapes import mean_of
from perse.evaluation.stats.accuracy import order_consistency
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.shares import counted_alike
from perse.judgement import Judgement, Status
from perse.results.result import Estimate

NO_DISTRIBUTIONS = "undefined (no answer has probabilities of both orders)"


def _of_judgements(
    per_item: Callable[[Sequence[Judgement]], FloatArray], *, share: bool = False
) -> Callable[[Chosen], Estimate | None]:
    """A mean of what is known of judgements; None in rows that stand on none."""
    mean = mean_of(lambda chosen: per_item(chosen.judgements), otherwise=NO_DISTRIBUTIONS, share=share)
    return lambda chosen: None if chosen.judgements is None else mean(chosen)


def _mean_of_aspects(chosen: Chosen) -> Estimate | None:
    """PerSE's average (table 4): each aspect counts alike. None of one aspect, of which the accuracy says it."""
    asked = np.array(chosen.aspects, dtype=object)
    names = list(dict.fromkeys(chosen.aspects))
    return chosen.bootstrap.share(chosen.hits, counted_alike([asked == name for name in names])) if len(names) > 1 else None


def _order_gaps(judgements: Sequence[Judgement]) -> FloatArray:
    return np.array([_order_gap(judgement) for judgement in judgements], dtype=np.float64)


def _order_gap(judgement: Judgement) -> float:
    ok = judgement.status is Status.OK and judgement.order_gap is not None
    return float(judgement.order_gap or 0) if ok else np.nan


PAIRS = (
    Metric(
        "accuracy",
        "accuracy",
        "higher",
        "share of right choices, half a one where both texts are exactly as likely, or without probabilities each was chosen in one order",
        CHOICES,
        mean_of(lambda chosen: chosen.hits, share=True),
        chance=0.5,
        drawn="Right choices, over all pairs",
    ),
    Metric(
        "macro_accuracy",
        "mean of aspects",
        "higher",
        "mean of the accuracy of each aspect, however many pairs it has (PerSE, table 4)",
        CHOICES,
        _mean_of_aspects,
        chance=0.5,
    ),
    Metric(
        "order_gap",
        "order gap",
        "lower",
        "how far P(A) moves when the two are swapped; of labels alone how often another is chosen then, sampling at a temperature above 0 included",
        CHOICES,
        _of_judgements(_order_gaps),
    ),
    Metric(
        "order_consistency",
        "order consistency",
        "higher",
        "how often it is still the same choice then",
        CHOICES,
        _of_judgements(order_consistency, share=True),
    ),
)
