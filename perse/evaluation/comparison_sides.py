"""What two sides of a comparison say of each item: judges as they can be read, and the baseline that needs no judge.

A judge with a distribution for every answer is read by it (expected score, likeliest choice), else by its labels, each one
random draw. Two sides are compared by the same reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np

from perse.errors import BadInput
from perse.evaluation.agreement import correct, likeliest_correct
from perse.evaluation.alignment import Items
from perse.evaluation.baselines import NO_TRAINING_DATA, joined, pairwise_baselines
from perse.evaluation.correlation import BoolArray, FloatArray
from perse.evaluation.predictions import check_labels, expected_values, label_values, of_items, only, training_means
from perse.judgement import Judgement, Status
from perse.records import PairwiseExample, PointwiseExample, SummaryExample
from perse.scale import CHOICES, SCORES, Scale

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


def scorers(items: Items) -> dict[str, Side]:
    """Judges of scores.

    Raises:
        BadInput: a label that is not on the scale, or summaries that were asked different questions.
    """
    check_labels(items.judgements, scale=_scale(items))
    return {
        name: _judge(name, given, label_values(given), reading="expected", values=expected_values(given))
        for name, given in items.judgements.items()
    }


def choosers(items: Items) -> dict[str, Side]:
    """Judges of pairs: right or wrong; what was not answered is wrong.

    Raises:
        BadInput: a label that is not A or B.
    """
    check_labels(items.judgements, scale=CHOICES)
    gold = _preferences(items)
    sides = {}
    for name, given in items.judgements.items():
        labels = correct(gold, [judgement.label for judgement in given])
        sides[name] = _judge(name, given, labels, reading="likeliest", values=likeliest_correct(gold, given))
    return sides


def _preferences(items: Items) -> list[str]:
    return [example.reference.preference for example in only(PairwiseExample, items.examples) if example.reference]


def _judge(name: str, given: Sequence[Judgement], labels: FloatArray, *, reading: Reading, values: FloatArray) -> Side:
    """Labels, and `values` of the distributions if every answer has one."""
    readings: dict[Reading, FloatArray] = {"label": labels}
    if all(judgement.distribution for judgement in given if judgement.status is Status.OK):
        readings[reading] = values
    return Side(name, readings, np.array([judgement.status is Status.OK for judgement in given], dtype=bool))


def average(items: Items) -> tuple[Side | None, tuple[str, str] | None]:
    """The mean of the scores shown, or of the training side where none are; or None, its name, and why there is none."""
    name = "training mean" if isinstance(items.examples[0], SummaryExample) else "profile average"
    values = of_items(items, training_means(items))
    for place, example in enumerate(items.examples):
        if isinstance(example, PointwiseExample) and example.profile:
            values[place] = fsum(past.score for past in example.profile) / len(example.profile)
    if np.isnan(values).any():
        return None, (name, f"{NO_TRAINING_DATA} for {int(np.isnan(values).sum())} examples with nothing shown")
    return Side(name, {"label": values, "expected": values}, np.ones(len(values), dtype=bool), baseline=True), None


def copying(items: Items, *, seed: int) -> tuple[Side | None, tuple[str, str] | None]:
    """The answer of the pair shown; or None, its name, and why there is none."""
    copied, *_ = joined([pairwise_baselines(only(PairwiseExample, part.examples), None, seed=seed) for part in items.parts])
    if copied.predictions is None:
        return None, (copied.name, copied.unavailable or "")
    hits = correct(_preferences(items), copied.predictions)
    return Side(copied.name, {"label": hits, "likeliest": hits}, np.ones(len(hits), dtype=bool), baseline=True), None


def shared_reading(one: Side, other: Side) -> Reading:
    """What uses all that was said, if both sides have it."""
    return next((name for name in one.readings if name != "label" and name in other.readings), "label")


def _scale(items: Items) -> Scale:
    if not isinstance(items.examples[0], SummaryExample):
        return SCORES
    from perse.questions import QUESTIONS

    asked = sorted({judgement.question for given in items.judgements.values() for judgement in given})
    if len(asked) > 1:
        raise BadInput(f"the runs were asked different questions ({', '.join(asked)}); compare runs of one")
    if asked[0] not in QUESTIONS:
        raise BadInput(f"summaries were asked '{asked[0]}', which is no question of perse; score them again")
    return QUESTIONS[asked[0]].scale
