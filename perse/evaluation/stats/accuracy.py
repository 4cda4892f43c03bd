"""Right choices between two texts. An item that was not answered is wrong, not absent (DESIGN.md, promise 3).

At a temperature above 0 a judge's label is one random draw; its distribution is exact. So both are counted, apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.stats.correlation import FloatArray
from perse.judgement import Judgement, Status
from perse.scale import CHOICES

NOT_ANSWERED = "N/A"
"""The class of failed judgements in `aspect_confusion`."""

_ROUNDING = 1e-12
"""Tolerance for equal probabilities, which averaging may move apart."""


def correct(gold: Sequence[str], answers: Sequence[str | None]) -> FloatArray:
    """1 where the answer equals the gold one, else 0; None (not ok) is wrong."""
    return np.array([float(answer == truth) for truth, answer in zip(gold, answers, strict=True)], dtype=np.float64)


def likeliest_correct(gold: Sequence[str], judgements: Sequence[Judgement]) -> FloatArray:
    """1 where the gold label is the likelier one, 1/2 where another is as likely, 0 otherwise or if not ok.

    A judgement without distribution is counted by its label, and as 1/2 where each label was given in one order: the one that it has is a lot's.
    """
    return np.array([_likeliest(truth, given) for truth, given in zip(gold, judgements, strict=True)], dtype=np.float64)


def chose_each(judgement: Judgement) -> bool:
    """Whether a judge without probabilities chose each text of the pair in one order, so that its label is a lot's."""
    return judgement.status is Status.OK and not judgement.distribution and judgement.order_gap == 1


def likelier(ours: FloatArray, others: FloatArray) -> FloatArray:
    """1 where `ours` is the greater probability, 1/2 where both are the same but for rounding, 0 elsewhere; of any one shape."""
    found: FloatArray = np.where(np.abs(ours - others) <= _ROUNDING, 0.5, (ours > others).astype(np.float64))
    return found


def likeliest_answers(judgements: Sequence[Judgement]) -> list[str | None]:
    """The likeliest label of each judgement, its own label where there is no distribution or a tie; None if it is not ok."""
    return [_likeliest_answer(judgement) for judgement in judgements]


def order_consistency(judgements: Sequence[Judgement]) -> FloatArray:
    """Whether the likelier text stays the same when the two are swapped: (n,) 1, 0, or NaN without gap or not ok.

    Let p and q be P(A) asked as given and asked swapped. The judgement keeps their mean P and their distance, the order gap g,
    so the two are P - g/2 and P + g/2. They name the same text if both are above 1/2 or both below, that is if
    |P - 1/2| > g/2, and different texts if |P - 1/2| < g/2. If equal, one of them is exactly 1/2 and names both: 1/2. Of labels alone g is 0 or 1.
    """
    return np.array([_consistent(judgement) for judgement in judgements], dtype=np.float64)


def aspect_confusion(
    gold: Sequence[str], answers: Sequence[str | None], *, aspects: Sequence[str]
) -> dict[str, dict[str, dict[str, int]]]:
    """How often each aspect's gold A and B were answered A, B and not at all: `[aspect][gold][answer]`, zeros included.

    An answer of None (a judgement that is not ok) is a class of its own, "N/A". Aspects in the order of their first item.
    """
    answered = (*CHOICES.labels, NOT_ANSWERED)
    counts = {aspect: {truth: dict.fromkeys(answered, 0) for truth in CHOICES.labels} for aspect in dict.fromkeys(aspects)}
    for truth, answer, aspect in zip(gold, answers, aspects, strict=True):
        counts[aspect][truth][NOT_ANSWERED if answer is None else answer] += 1
    return counts


def _likeliest(gold: str, judgement: Judgement) -> float:
    if judgement.status is not Status.OK:
        return 0.0
    if not judgement.distribution:
        return 0.5 if chose_each(judgement) else float(judgement.label == gold)
    ours = judgement.distribution.get(gold, 0.0)
    other = max((probability for label, probability in judgement.distribution.items() if label != gold), default=0.0)
    return float(likelier(np.array(ours), np.array(other)))


def _likeliest_answer(judgement: Judgement) -> str | None:
    if judgement.status is not Status.OK or not judgement.distribution:
        return judgement.label
    most = max(judgement.distribution.values())
    likeliest = [label for label, probability in judgement.distribution.items() if probability == most]
    return likeliest[0] if len(likeliest) == 1 else judgement.label


def _consistent(judgement: Judgement) -> float:
    if judgement.status is not Status.OK or judgement.order_gap is None:
        return np.nan
    if not judgement.distribution:
        return 1.0 - judgement.order_gap if judgement.order_gap in (0, 1) else np.nan
    lead = abs(judgement.distribution.get(CHOICES.labels[0], 0.0) - 0.5) - judgement.order_gap / 2
    return 0.5 if abs(lead) <= _ROUNDING else float(lead > 0)
