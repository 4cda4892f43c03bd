"""What a difference is looked at beside, before a sentence calls it one: chance, constants, the baseline told as coarsely, ties, and whoever is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.comparing.results import Contrast
from perse.evaluation.comparing.sides import Side, shared_reading
from perse.evaluation.comparing.words import MAE
from perse.evaluation.differences import above_coin, as_labels, least_ahead
from perse.evaluation.metrics import METRICS
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.estimates import EVEN, SKIPPING, Bootstrap
from perse.evaluation.stats.intervals import unless_alike
from perse.evaluation.stats.significance import Columns
from perse.evaluation.stats.unseen import farthest, joined, none_of
from perse.results.result import Estimate
from perse.scale import Scale

PAIRWISE_METRICS = ("accuracy",)


def columns_of(names: Sequence[str]) -> Columns:
    """The statistics `names` of the bootstrap; several coefficients at once, since the ranks are then taken once."""

    def columns(bootstrap: Bootstrap, gold: FloatArray, predicted: FloatArray) -> dict[str, FloatArray]:
        if names == PAIRWISE_METRICS:
            return {"accuracy": bootstrap.resampled_mean(predicted, np.ones(len(predicted), dtype=bool))}
        if len(names) > 1:
            values = bootstrap.resampled_scores(gold, predicted)
            return {name: values[name] for name in names}
        return {name: bootstrap.resampled(name, gold, predicted) for name in names}

    return columns


def of_chance(contrast: Contrast, one: FloatArray, gold: FloatArray, both: BoolArray, bootstrap: Bootstrap) -> Contrast:
    """The contrast with a baseline, and beside it by how much the judge is better than chance, of MAE than the best constant answer."""
    again, truth = bootstrap.only(both), gold[both]
    # Beside a baseline that says one thing of all no reader is left on whom both vary; the judge has its own value all the same.
    alone = contrast.one is None and contrast.metric in SKIPPING and both.any()
    mine = again.one(contrast.metric, truth, one[both]).value if alone else contrast.one
    if mine is None:
        return contrast
    own = columns_of((contrast.metric,))(again, truth, one[both])[contrast.metric]
    chance = METRICS[contrast.metric].chance
    if chance is not None:
        value, apart = mine - chance, own - chance
    elif contrast.metric == MAE:
        constant = np.full_like(truth, np.median(truth))
        value = float(np.abs(truth - constant).mean()) - mine
        apart = columns_of((MAE,))(again, truth, constant)[MAE] - own
    else:
        return contrast
    if contrast.metric in PAIRWISE_METRICS:
        interval = above_coin(again.share(one[both], np.ones(len(truth), dtype=bool))).interval
    else:
        behind = again.standing_behind((contrast.metric,), truth, one[both])[contrast.metric]
        # A baseline that says one thing of all has no value, and nothing of the judge's rests on it.
        reviewers = behind.reviewers if contrast.other is None else min(contrast.reviewers, behind.reviewers)
        interval = again.interval(value, apart, reviewers=reviewers, texts=behind.texts)
        interval = again.unless_rare(interval, contrast.metric, truth, sides=((1.0, one[both]),))
        interval = unless_alike(interval, apart) if contrast.metric == MAE else interval
        sign, its = (-1.0, -value) if contrast.metric == MAE else (1.0, value)
        interval = again.with_unseen(interval, contrast.metric, truth, sides=((sign, one[both]),), values=(its,))
    return contrast.model_copy(update={"against_chance": interval})


def of_constant(contrast: Contrast, sides: tuple[Side, Side], rule: tuple[str, FloatArray], bootstrap: Bootstrap) -> Contrast:
    """The contrast of pairs with a baseline, and beside it by how much the judge is better than what needs neither: a constant has much more than
    a coin where most readers choose alike."""
    name, constant = rule
    apart = sides[0].readings[shared_reading(*sides)] - constant
    interval = bootstrap.shares_apart(apart, np.ones(len(apart), dtype=bool)).interval
    return contrast.model_copy(update={"against_constant": interval, "constant": name})


def of_rounded(contrast: Contrast, gold: FloatArray, given: tuple[FloatArray, FloatArray], bootstrap: Bootstrap) -> Contrast:
    """The contrast with the reader's own average, and beside it the same with that average told as coarsely; of errors, as a label."""
    one, average = given
    if contrast.metric == MAE:
        apart: Estimate | None = bootstrap.difference(MAE, gold, one, as_labels(average))
    else:
        apart = least_ahead(contrast.metric, gold, one, average, bootstrap)
    return contrast.model_copy(update={"against_rounded": None if apart is None else apart.interval})


def of_ties(contrast: Contrast, gold: FloatArray, given: tuple[FloatArray, FloatArray], bootstrap: Bootstrap) -> Contrast:
    """The contrast and, where Kendall is shown to differ, beside it what is left of that where ties count for neither side."""
    if contrast.metric != "kendall" or not (contrast.estimate.above_zero or contrast.estimate.below_zero):
        return contrast
    return contrast.model_copy(update={"ties_apart": bootstrap.difference(EVEN, gold, *given).interval})


def of_silence(
    contrast: Contrast, alike: int, gold: FloatArray, given: tuple[FloatArray, FloatArray], bootstrap: Bootstrap
) -> Contrast:
    """The contrast within readers with how many are left out, of these `alike` to whom one side alone says the same of everything, and,
    where it is shown to differ, beside it the same where these count 0: nobody gains by saying the same of all that a reader read."""
    found: dict[str, object] = {"constant_on_one": alike, "left_out": bootstrap.reviewers - contrast.reviewers}
    if alike and (contrast.estimate.above_zero or contrast.estimate.below_zero):
        found["of_all"] = bootstrap.difference(SKIPPING[contrast.metric], gold, *given).interval
    return contrast.model_copy(update=found)


def of_unlike(contrast: Contrast, gold: FloatArray, scale: Scale) -> Contrast:
    """The contrast and, where MAE is shown to differ, beside it what readers as rare as none of these may make of that (`unseen`)."""
    difference, shown = contrast.difference, contrast.estimate.above_zero or contrast.estimate.below_zero
    if contrast.metric != MAE or difference is None or not shown:
        return contrast
    ends = scale.values or tuple(gold)
    worst = farthest(gold, lowest=min(ends), highest=max(ends))
    turned = none_of(contrast.reviewers) * (worst + abs(difference))
    beyond = joined(difference, contrast.interval, **{"up" if difference < 0 else "down": turned})
    return contrast.model_copy(update={"unlike": beyond})
