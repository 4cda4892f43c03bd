"""Scale: the allowed labels of an answer, how they are worded, their values, and rescaling from other scales.

A Scale owns everything that depends on which answers are allowed, so that the prompt, the training completion, the
exact label distribution and the parser cannot drift apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import SupportsFloat

from perse.errors import BadInput


@dataclass(frozen=True)
class Scale:
    """Labels in order. `values` are their numbers, or None where labels have no order (A, B)."""

    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels):
            raise BadInput(f"scale {self.name} repeats a label: {', '.join(self.labels)}; labels must differ")
        if self.values is not None and len(self.values) != len(self.labels):
            raise BadInput(
                f"scale {self.name} has {len(self.labels)} labels and {len(self.values)} values; give one value a label"
            )

    @property
    def shown(self) -> str:
        """The labels in words: "1 to 10", or "yes, no"."""
        numbers = [int(label) for label in self.labels if label.isdecimal()]
        if len(numbers) > 2 and self.labels == tuple(map(str, range(numbers[0], numbers[-1] + 1))):
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(self.labels)

    def expected(self, probabilities: tuple[float, ...]) -> float | None:
        """Sum of value times probability over `labels`; None for labels without values."""
        if self.values is None:
            return None
        return math.fsum(value * p for value, p in zip(self.values, probabilities, strict=True))


SCORES = Scale("score", tuple(str(n) for n in range(1, 11)), tuple(float(n) for n in range(1, 11)))
"""1 (lowest) to 10 (highest): the scale of Per-MPST (PerSE, section 4.1)."""

CHOICES = Scale("choice", ("A", "B"))
"""Which of two texts is preferred (PerSE, section 4.1, Per-DOC)."""


YES_NO = Scale("yes_no", ("yes", "no"))
"""Whether a claim follows from a text (KGDS, sections 4.4 and 4.5)."""

ERRORS = Scale("error", ("1", "2", "3", "4", "5"))
"""Why a summary does not cover an opinion, numbered as in KGDS's released files."""

GRADES = Scale("grade", ("1", "2", "3", "4", "5"), (1.0, 2.0, 3.0, 4.0, 5.0))
"""1 (not at all) to 5 (fully): how well a text stands to reviews (Rehearsal, section 4.1)."""

HUNDREDS = Scale("hundred", ("0", "20", "40", "60", "80", "100"), (0.0, 20.0, 40.0, 60.0, 80.0, 100.0))
"""0 to 100 in steps of 20: wider than `GRADES`, since judges are lenient (Rehearsal, section 4.2)."""


OwnScale = tuple[float, float]
"""Lowest and highest score of a scale that is a reader's own, such as 1 to 5 or 0 to 100."""


def check_own(scale: OwnScale) -> OwnScale:
    """
    Raises:
        ValueError: it has no lowest and highest score.
    """
    low, high = map(float_of, scale)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError(f"found the scale {low:g} to {high:g}, expected the lowest score and a higher one")
    return low, high


def whole_scores(scale: OwnScale) -> tuple[float, ...]:
    """The scores from the lowest to the highest in steps of one, where these are no more than there are labels; else none."""
    low, high = scale
    scores = tuple(low + n for n in range(10) if low + n <= high)
    return (
        scores if scores[-1] == high and len(set(scores)) == len(scores) else ()
    )  # the largest floats are more than one apart


def on_own_scale(value: float, scale: OwnScale) -> float:
    """A label, or a value between labels, as a score on the reader's own scale: the inverse of `rescale`.

    A label that stands for a whole score of a scale of at most ten is that score: three of five stars stand as 6, and 6 is three stars. What is
    between two such labels is linear between their scores. On other scales all is linear: a label is the middle of the scores that stand as it.
    """
    low, high = scale
    known = [(rescale(score, low, high), score) for score in whole_scores(scale)] or [(1, low), (10, high)]
    (left, below), (right, above) = next(pair for pair in pairwise(known) if value <= pair[1][0] or pair[1] == known[-1])
    return round(below + (value - left) * (above - below) / (right - left), 6)


def expected_on_own_scale(distribution: Mapping[str, float], scale: OwnScale) -> float:
    """The mean of `on_own_scale` over labels: of stars it is not what the expected label stands for, since labels are not evenly apart in them."""
    return round(math.fsum(p * on_own_scale(float(label), scale) for label, p in distribution.items()), 6)


def rescale(score: float, low: float, high: float) -> int:
    """`score` on [low, high] moved linearly to 1-10 and rounded to the nearest label, halves up.

    Raises:
        BadInput: the score is not a number on [low, high].
    """
    value = float_of(score)
    if not low <= value <= high:
        raise BadInput(f"score {value:g} is off the scale {low:g}-{high:g}")
    return math.floor(1 + 9 * (value - low) / (high - low) + 0.5)


def stands_as(scale: OwnScale) -> str | None:
    """How a scale's whole scores stand on 1-10, for whoever reads errors in steps of these; None if it is 1-10.

    Raises:
        BadInput: it is no scale.
    """
    low, high = scale
    if (low, high) == (1, 10):
        return None
    each = ", ".join(f"{score:g} as {rescale(score, low, high)}" for score in whole_scores(scale))
    told = f": {each}" if each else ""
    return f"scores of {low:g} to {high:g} stand here as 1 to 10{told}; a step here is {(high - low) / 9:.2g} of theirs"


def float_of(number: SupportsFloat) -> float:
    """Endless where it is a whole number that no float holds."""
    try:
        return float(number)
    except ValueError:  # a signalling NaN
        return math.nan
    except OverflowError:
        return math.inf if number > 0 else -math.inf  # type: ignore[operator]
