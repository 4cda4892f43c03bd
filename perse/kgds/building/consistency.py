"""Agreement of two annotators who answer yes or no, raw and corrected for chance (KGDS, sections 4.3 and 4.4).

Agreement alone looks good where nearly all answers are "no"; Cohen's kappa subtracts the agreement that is expected
from the rates of yes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict


class Consistency(BaseModel):
    """Of questions that two annotators answered with yes or no."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    asked: int
    agreed: int
    both_yes: int
    percent: float | None
    """`agreed` of `asked`; None without questions."""
    kappa: float | None
    """Cohen's: 1 is perfect, 0 is chance. None (undefined) if both always gave the same answer."""


def consistency(answers: Sequence[tuple[bool, bool]]) -> Consistency:
    """Of the answers of one and the other to each question.

    The quadratic weighted kappa of two labels is Cohen's: both count each disagreement once.
    """
    import numpy as np

    from perse.evaluation.stats.ordinal import qwk_of_tables

    cells = [sum(given == cell for given in answers) for cell in ((True, True), (True, False), (False, True), (False, False))]
    agreed = cells[0] + cells[3]
    kappa = float(qwk_of_tables(np.array([cells], dtype=np.float64))[0]) if answers else float("nan")
    return Consistency(
        asked=len(answers),
        agreed=agreed,
        both_yes=cells[0],
        percent=round(100 * agreed / len(answers), 2) if answers else None,
        kappa=None if kappa != kappa else round(kappa, 4),
    )
