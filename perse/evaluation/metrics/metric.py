"""Metric: one column of an evaluation. What it is called, which way is better, where it stands, how it is computed.

    def close(scored: Scored) -> FloatArray:  # (n,)
        return np.abs(scored.gold - scored.predicted) <= 1

    CLOSE = Metric("close", "within a point", "higher", "share of predictions within one point", ERRORS, mean_of(close))

This is all that a new one takes, with a line in `METRICS` or an entry point. Tables, figures, comparisons and cards ask here for
titles and directions. A function is given the sample of a row (`samples`) and gives an `Estimate`, or None in rows that have no such
value; `mean_of` and `of_sample` (`shapes`) make one from a plain function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from perse.results.result import Estimate

Kind = Literal["scores", "choices", "texts"]
"""What a metric is of: `Scored`, `Chosen` or `Written` of `perse.evaluation.metrics.samples`."""
Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Sheet:
    """A table of columns that are read together."""

    title: str
    kind: Kind
    said: str = ""
    """What a column's title is followed by where no sheet stands above it."""
    notes: tuple[str, ...] = ()
    explained: bool = True
    """Whether notes say what each column is; of well-known ones only those of other packages are explained."""
    detail: bool = False
    """Shown on a terminal only when asked for."""


POOLED = Sheet("Pooled", "scores", explained=False)
WITHIN = Sheet(
    "Within reviewer (constant skipped)",
    "scores",
    " within reviewer",
    ("skipped: reviewers with constant gold or prediction, or fewer than 2 items",),
    explained=False,
)
WITHIN_ZERO = Sheet(
    "Within reviewer (constant count 0)",
    "scores",
    " within reviewer (constant 0)",
    ("constant: reviewers with constant gold or prediction, or fewer than 2 items; each counts 0",),
    explained=False,
    detail=True,
)
BETWEEN = Sheet("Between reviewers (of their mean scores)", "scores", " between reviewers", explained=False, detail=True)
ERRORS = Sheet("Errors", "scores")
CHOICES = Sheet("Choices", "choices")
TEXTS = Sheet("Review text", "texts", explained=False)


@dataclass(frozen=True)
class Metric:
    """See the module."""

    name: str
    """In JSON and after `--metric`."""
    title: str
    """Heads its column, under the sheet's title."""
    direction: Direction
    """Which values are better."""
    about: str
    """What it is, in a sentence without capital and full stop."""
    sheet: Sheet
    function: Callable[[Any], Estimate | None]
    chance: float | None = None
    """What who knows nothing reaches; None: it depends."""
    drawn: str | None = None
    """The title of its picture in the report; None: there is none."""
    range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the most that it can be; an interval, which is as wide as resamples and few readers make it, ends there."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"metric name {self.name!r} is no identifier")
        if self.direction not in get_args(Direction):
            raise ValueError(f"metric {self.name}: direction is {self.direction!r}, expected higher or lower")
        if not isinstance(self.sheet, Sheet) or self.sheet.kind not in get_args(Kind):
            raise ValueError(f"metric {self.name}: sheet is no Sheet of {', '.join(get_args(Kind))}")

    @property
    def kind(self) -> Kind:
        """What it is of."""
        return self.sheet.kind

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return self.direction == "lower"

    @property
    def alone(self) -> str:
        """Its title where no sheet's stands above it."""
        return self.title + self.sheet.said
