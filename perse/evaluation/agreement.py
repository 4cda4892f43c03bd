"""Right choices between two texts. An item that was not answered is wrong, not absent (DESIGN.md, promise 3).

At a temperature above 0 a judge's label is one random draw; its distribution is exact. So both are counted, apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.evaluation.correlation import FloatArray
from perse.judgement import Judgement, Status


def correct(gold: Sequence[str], answers: Sequence[str | None]) -> FloatArray:
    """1 where the answer is the gold one, 0 where it is another or None (not ok)."""
    return np.array([float(answer == truth) for truth, answer in zip(gold, answers, strict=True)], dtype=np.float64)


def likeliest_correct(gold: Sequence[str], judgements: Sequence[Judgement]) -> FloatArray:
    """1 where the gold label is the likelier one, 1/2 where another is exactly as likely, 0 where not or not ok.

    A judgement without distribution is counted by its label.
    """
    return np.array([_likeliest(truth, given) for truth, given in zip(gold, judgements, strict=True)], dtype=np.float64)


def _likeliest(gold: str, judgement: Judgement) -> float:
    if judgement.status is not Status.OK:
        return 0.0
    if not judgement.distribution:
        return float(judgement.label == gold)
    ours = judgement.distribution.get(gold, 0.0)
    other = max((probability for label, probability in judgement.distribution.items() if label != gold), default=0.0)
    return 0.5 if ours == other else float(ours > other)
