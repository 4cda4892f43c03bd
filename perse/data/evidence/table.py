"""A row of `evidence.parquet`: what the training side says of the text of one review, without its reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """Of one review and, where the data set has folds, one of them."""

    fold: int | None
    review_id: str
    part: int | None
    """Of the training readers: which tenth of them, the review's own reader among it, the estimate leaves out. None: all of them made it."""
    others: int
    mean: float | None
    spread: float | None
    estimate: float
    shrinkage: float
    """As in `perse.records.Evidence`, which is made of a row."""
