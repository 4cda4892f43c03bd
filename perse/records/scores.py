"""A score as files and tables have it, read as a number: one place that says what counts as one.

"7", " 7 " and 7.0 are 7; "8/10" is 8 where the scale ends at 10. "7,5", "1_0", fullwidth digits, true, nothing, NaN and what no float holds are none.
"""

from __future__ import annotations

import re

from perse.errors import BadInput
from perse.formats.json_text import shortened

OUT_OF = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*", re.ASCII)
"""A score as a share of another number, such as 8/10."""


class NoScore(BadInput):
    """What is no score on the scale, without a remedy, which is another for an option than for an argument.

    `reason` is what such rows are counted as, `off` says that it is a number beside the scale, `out_of` that it is a share of another number.
    """

    def __init__(self, message: str, *, reason: str, off: bool = False, out_of: float | None = None) -> None:
        super().__init__(message)
        self.reason, self.off, self.out_of = reason, off, out_of


def score_in(value: object, scale: tuple[float, float]) -> float:
    """The score as a number on the scale, not yet rescaled: a number, its text, or "8/10" where the scale ends at 10.

    Raises:
        NoScore: anything else, a score off the scale, or one out of another number ("4/5" on 1-10).
    """
    low, high = scale
    expected = f"found {shortened(value)}, expected a number from {low:g} to {high:g}"
    score = number_in(value)
    if fraction := OUT_OF.fullmatch(value if isinstance(value, str) else ""):
        score, out_of = float(fraction.group(1)), float(fraction.group(2))
        if out_of != high:
            raise NoScore(expected, reason="score out of another number", out_of=out_of)
    if score is None:
        raise NoScore(expected + point_for(value), reason="score not a number")
    if not low <= score <= high:
        raise NoScore(expected, reason="score off the scale", off=True)
    return score


def number_in(value: object) -> float | None:
    """A number, or one written as text; None for anything else, and for one whose square no float holds."""
    # Python also reads "1_0", fullwidth digits and True as numbers, which a file does not mean.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (isinstance(value, str) and ("_" in value or not value.isascii()))
    ):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e150 else None


def point_for(value: object) -> str:
    """What to write for a number with a decimal comma, as the end of a message; nothing for anything else."""
    found = isinstance(value, str) and re.fullmatch(r"\s*-?\d+,\d+\s*", value, re.ASCII)
    return f"; write {found[0].strip().replace(',', '.')}" if found else ""
