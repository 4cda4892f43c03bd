"""A row of `evidence.parquet`: what the training side says of the text of one review, without its reader; and what the manifest says of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from perse.strict import Strict


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


_Penalty = Annotated[float, Field(gt=0)]


class EvidenceMade(Strict):
    """`evidence` in the manifest of a data set."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha256: str
    """Of `evidence.parquet`."""
    made_of: str
    """sha256 over the reviews and examples."""
    model: str
    model_sha256: str
    """Of the embeddings."""
    seed: int = Field(ge=0)
    """Of the parts that are left out in turn."""
    penalties: tuple[tuple[_Penalty, _Penalty], ...]
    """Of the weights and of readers' offsets, for each fold."""
