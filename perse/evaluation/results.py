"""Evaluation: what a judge was found to be worth, as plain JSON. Every number stands with its interval and its reasons."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from perse.evaluation.correlation import Convention
from perse.evaluation.intervals import Interval
from perse.judgement import Status


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Estimate(_Result):
    """One value. None means undefined (constant input, too few items), never 0."""

    value: float | None
    interval: Interval
    items: int
    """Items behind the value."""
    skipped_reviewers: int | None = None
    """Within-reviewer values: reviewers with constant gold or prediction, or fewer than 2 items."""


class Row(_Result):
    """One judge or baseline. All rows of a table stand on the same items."""

    name: str
    judge: str | None
    """The judge's name; None for a baseline."""
    unavailable: str | None = None
    """Why there are no values."""
    asked: int
    ok: int
    columns: dict[str, Estimate] = {}
    """By `POINTWISE_COLUMNS` or `PAIRWISE_COLUMNS`; the order gap only in the likeliest row, whose distribution it is of."""
    imputed: dict[str, Estimate] | None = None
    """The same over all items, failures replaced by their fold's training mean; None if nothing failed or there is no mean."""
    aspects: dict[str, Estimate] = {}
    """Pairs: accuracy of each aspect."""


class JudgeSummary(_Result):
    """What became of the questions put to one judge, counted over the items of the table."""

    models: tuple[str, ...]
    adapters: tuple[str, ...]
    statuses: dict[Status, int]

    @property
    def asked(self) -> int:
        """All items of the table."""
        return sum(self.statuses.values())

    @property
    def ok(self) -> int:
        """Items answered."""
        return self.statuses[Status.OK]


class Evaluation(_Result):
    """Judges and baselines on the same items."""

    kind: Literal["pointwise", "pairwise"]
    examples: int
    """Examples given."""
    without_reference: int
    """Of these, left out because the reviewer's true answer is not known."""
    items: int
    """Items in the table: with a reference and judged by all judges."""
    ok_items: int
    """Items that every judge answered: the correlations and MAE of every row are of these."""
    reviewers: int
    judges: dict[str, JudgeSummary]
    rows: tuple[Row, ...]
    training_means: tuple[float | None, ...] = ()
    """Scores: the mean that a fold's failures are imputed by, one a fold; one if there are no folds. None: no training data."""
    convention: Convention
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know, one sentence each."""


POINTWISE_COLUMNS = ("pearson", "spearman", "kendall", "within_pearson", "within_spearman", "within_kendall", "mae")
PAIRWISE_COLUMNS = ("accuracy", "order_gap")
