"""A stacking applied to judgements: the one place where it is, whoever asks (score, ask, servers, studies)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, fsum
from typing import Any

from perse.judgement import Judgement, Stacked, Status
from perse.records import PointwiseExample
from perse.scale import SCORES
from perse.stacking.file import OrdinalModel, Stacking
from perse.stacking.sources import SOURCES, features, present

OF_TRAINING = "the reader is one of the training side, whose own scores are among the numbers and in the judge: what they say together is not known to hold"
"""`Judgement.not_stacked`."""


def with_stacked(stacking: Stacking | None, example: Any, judgement: Judgement) -> Judgement:
    """The judgement with what the stacking makes of it, or why that is nothing; as it is without a stacking, of another question, or where it
    is not ok."""
    if stacking is None or judgement.question != stacking.question or judgement.status is not Status.OK:
        return judgement
    if not isinstance(example, PointwiseExample):
        return judgement
    if stacking.known.holds(example.reviewer_id):
        return judgement.model_copy(update={"not_stacked": OF_TRAINING})
    return judgement.model_copy(update={"stacked": stacked(stacking, example, judgement)})


def stacked(stacking: Stacking, example: PointwiseExample, judgement: Judgement) -> Stacked:
    """Of the sources that are there: by the model that knows most of them and no other."""
    found = features(example, judgement, stacking.known)
    model = chosen(stacking.models, found)
    probabilities = distribution(model, found)
    expected = SCORES.expected(probabilities)
    assert expected is not None
    return Stacked(
        expected=expected,
        distribution=dict(zip(SCORES.labels, probabilities, strict=True)),
        without=tuple(source for source in SOURCES if source in stacking.sources and source not in model.sources),
    )


def chosen(models: Sequence[OrdinalModel], found: Mapping[str, float]) -> OrdinalModel:
    """Of the models whose sources are all there the first: they stand in the order of what they know."""
    there = present(found)
    return next(model for model in models if there.issuperset(model.sources))


def distribution(model: OrdinalModel, found: Mapping[str, float]) -> tuple[float, ...]:
    """The probability of every label; sums to 1."""
    score = fsum(weight * found[name] for name, weight in model.weights.items())
    above = [1.0, *(_logistic(score - cut) for cut in model.cuts), 0.0]
    return tuple(high - low for high, low in pairwise(above))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))
