"""Win rates of the experts' selection over several models (KGDS, figure 3): each model's, and their mean.

The mean weighs each model the same. Its interval resamples samples, all models together, because they are about the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.evaluation.stats.intervals import bootstrap_interval, unless_alike
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.scoring.results import MeanWinRate, WinRate
from perse.results.result import Estimate

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
        )
        for one in found
    )


def mean_win_rates(found: Sequence[FeedbackResult], *, resamples: int, seed: int) -> tuple[MeanWinRate, ...]:
    """Over the models that have a win rate, of each way of asking; none over fewer than two."""
    ways = [(way, [one for one in found if one.second_turn == way and one.share.value is not None]) for way in (True, False)]
    return tuple(
        MeanWinRate(second_turn=way, models=len(known), share=_mean(known, resamples=resamples, seed=seed))
        for way, known in ways
        if len(known) > 1
    )


def _mean(known: Sequence[FeedbackResult], *, resamples: int, seed: int) -> Estimate:
    samples = sorted({preference.sample for one in known for preference in one.samples if preference.won is not None})
    places = {sample: place for place, sample in enumerate(samples)}
    won, asked = np.zeros((len(known), len(samples))), np.zeros((len(known), len(samples)))
    for row, one in enumerate(known):
        for preference in one.samples:
            if preference.won is not None:
                won[row, places[preference.sample]] = preference.won
                asked[row, places[preference.sample]] = 1
    draws = Resamples(np.arange(len(samples)), times_drawn(len(samples), resamples=resamples, seed=seed))
    with np.errstate(invalid="ignore"):  # a resample without any sample of a model: undefined
        means = 100 * (draws.sums(won) / draws.sums(asked)).mean(axis=0)
    interval = unless_alike(bootstrap_interval(means, reviewers=len(samples), of="sample"), means)
    ends = {end: round(at, 2) for end, at in (("low", interval.low), ("high", interval.high)) if at is not None}
    value = round(sum(one.share.value or 0.0 for one in known) / len(known), 2)
    return Estimate(value=value, interval=interval.model_copy(update=ends), items=len(samples))
