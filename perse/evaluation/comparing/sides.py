"""The sides of a comparison: what judges and baselines say of each item.

A judge with a distribution for every answer is read by it (expected score, likeliest choice), else by its labels, each one
random draw. Two sides are compared by the same reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from perse.evaluation.alignment import Items
from perse.evaluation.pairwise_rows import baseline_choices, true_choices
from perse.evaluation.predictions import (
    answer_scale,
    baseline_predictions,
    check_labels,
    expected_values,
    label_values,
)
from perse.evaluation.stats.accuracy import correct, likeliest_correct
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.ordinal import label_distributions
from perse.judgement import Judgement, Status
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import chooses

Reading = Literal["expected", "likeliest", "label"]


@dataclass(frozen=True)
class Side:
    """A judge or a baseline.

    `readings` (n,): scores, NaN where it was not answered; of pairs 1 where right, 0 where wrong or not answered.
    """

    name: str
    readings: Mapping[Reading, FloatArray]
    answered: BoolArray
    """(n,)"""
    baseline: bool = False
    distributions: FloatArray | None = None
    """(n, L) behind expected scores; None: sure of the label nearest to the value."""


def scorers(items: Items) -> dict[str, Side]:
    """Judges of scores.

    Raises:
        BadInput: a label that is not on the scale, or summaries that were asked different questions.
    """
    scale = answer_scale(items)
    check_labels(items.judgements, scale=scale)
    sides = {}
    for name, given in items.judgements.items():
        side = _judge(name, given, label_values(given), reading="expected", values=expected_values(given))
        sides[name] = replace(side, distributions=label_distributions(given, scale=scale))
    return sides


def choosers(items: Items) -> dict[str, Side]:
    """Judges of pairs: right or wrong; what was not answered is wrong.

    Raises:
        BadInput: a label that is not A or B, or a question whose answers are others.
    """
    check_labels(items.judgements, scale=answer_scale(items))
    gold = true_choices(items)
    sides = {}
    for name, given in items.judgements.items():
        likeliest = likeliest_correct(gold, given)
        # A label without a distribution is as likely as can be known, half a one where the other order gave the other.
        told = np.array([bool(judgement.distribution) for judgement in given])
        labels = np.where(told, correct(gold, [judgement.label for judgement in given]), likeliest)
        sides[name] = _judge(name, given, labels, reading="likeliest", values=likeliest)
    return sides


def _judge(name: str, given: Sequence[Judgement], labels: FloatArray, *, reading: Reading, values: FloatArray) -> Side:
    """Labels, and `values` of the distributions if every answer has one."""
    readings: dict[Reading, FloatArray] = {"label": labels}
    if all(judgement.distribution for judgement in given if judgement.status is Status.OK):
        readings[reading] = values
    return Side(name, readings, np.array([judgement.status is Status.OK for judgement in given], dtype=bool))


def needing_no_judge(
    items: Items, *, seed: int, vectors: Vectors | None = None, on_progress: OnProgress = unseen
) -> tuple[str, dict[str, Side], dict[str, str]]:
    """The baselines of `perse evaluate`: the name of the one that judges are compared with, those that there are, and why there
    are no others."""
    sides, missing = {}, {}
    found: list[tuple[str, FloatArray | None, FloatArray | None, str | None]]
    if chooses(items.examples):
        chosen = baseline_choices(items, seed=seed, vectors=vectors, on_progress=on_progress)
        found = [(one.name, one.hits, None, one.unavailable) for one in chosen]
        reading: Reading = "likeliest"
    else:
        predicted = baseline_predictions(items, scale=answer_scale(items), seed=seed, vectors=vectors, on_progress=on_progress)
        found = [(one.name, one.values, one.distributions, one.unavailable) for one in predicted]
        reading = "expected"
    for name, values, spread, reason in found:
        if values is None:
            missing[name] = reason or ""
        else:
            answered = np.ones(len(values), dtype=bool)
            sides[name] = Side(name, {"label": values, reading: values}, answered, baseline=True, distributions=spread)
    return found[0][0], sides, missing


def shared_reading(one: Side, other: Side) -> Reading:
    """The distributions if both sides have them, else the labels."""
    return next((name for name in one.readings if name != "label" and name in other.readings), "label")
