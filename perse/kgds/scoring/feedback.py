"""Win rates of the experts' selection over several models (KGDS, figure 3): each model's, and their mean.

The mean weighs each model the same. Intervals are exact (`perse.evaluation.stats.shares`); that of the mean takes the answers of all models about one sample together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.intervals import too_few
from perse.evaluation.stats.shares import counted_alike, share_interval
from perse.kgds.scoring.results import MeanWinRate, WinRate
from perse.results.result import Estimate, Interval

if TYPE_CHECKING:
    from perse.kgds.preferences import FeedbackResult


def win_rates(found: Sequence[FeedbackResult]) -> tuple[WinRate, ...]:
    """Each model's."""
    return tuple(
        WinRate(
            model=one.model,
            judge=one.judge,
            second_turn=one.second_turn,
            differs=one.selections["differs"],
            answered=one.answered,
            share=one.share,
            order_gap=one.order_gap,
        )
        for one in found
    )


def mean_win_rates(found: Sequence[FeedbackResult]) -> tuple[MeanWinRate, ...]:
    """Over the models that have a win rate, of each way of asking; none over fewer than two."""
    ways = [(way, [one for one in found if one.second_turn == way and one.share.value is not None]) for way in (True, False)]
    return tuple(MeanWinRate(second_turn=way, models=len(known), share=_mean(known)) for way, known in ways if len(known) > 1)


def share_in_percent(won: FloatArray, weights: FloatArray, sample: IntArray) -> Interval:
    """The exact interval of a share of samples, in percent: Clopper and Pearson's, of fewer answers where several are about one sample.

    Args:
        won: (n,) 1 where it was won, 0 where not, 0.5 where neither.
        weights, sample: (n,) how much each answer counts, and which sample it is about.
    """
    if none := too_few(len(np.unique(sample)), of="sample"):
        return none
    interval = share_interval(won, weights, clusters=[sample])
    assert interval.low is not None and interval.high is not None
    return Interval(low=round(100 * interval.low, 2), high=round(100 * interval.high, 2))


def _mean(known: Sequence[FeedbackResult]) -> Estimate:
    answers = [
        (row, preference.sample, preference.won)
        for row, one in enumerate(known)
        for preference in one.samples
        if preference.won is not None
    ]
    model, sample = (np.array([answer[place] for answer in answers]) for place in (0, 1))
    weights = counted_alike([model == row for row in range(len(known))])
    interval = share_in_percent(np.array([won for *_, won in answers], dtype=np.float64), weights, sample)
    value = round(sum(one.share.value or 0.0 for one in known) / len(known), 2)
    return Estimate(value=value, interval=interval, items=len(np.unique(sample)))
