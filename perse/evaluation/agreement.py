"""Accuracy of choices between two texts. An item that was not answered is wrong, not absent (DESIGN.md, promise 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.correlation import FloatArray


def correct(gold: Sequence[str], answers: Sequence[str | None]) -> FloatArray:
    """1 where the answer is the gold one, 0 where it is another or None (not ok)."""
    return np.array([float(answer == truth) for truth, answer in zip(gold, answers, strict=True)], dtype=np.float64)


def accuracy(gold: Sequence[str], answers: Sequence[str | None]) -> float | None:
    """Right answers / items asked; None without items."""
    hits = correct(gold, answers)
    return float(hits.mean()) if len(hits) else None


def accuracy_by_aspect(gold: Sequence[str], answers: Sequence[str | None], *, aspects: Sequence[str]) -> dict[str, float]:
    """`accuracy` of the items of each aspect, aspects in order of first appearance."""
    hits = correct(gold, answers)
    asked = np.array(aspects, dtype=object)
    if len(asked) != len(hits):
        raise ValueError(f"{len(hits)} answers and {len(asked)} aspects: must be as many")
    return {aspect: float(hits[asked == aspect].mean()) for aspect in dict.fromkeys(aspects)}
