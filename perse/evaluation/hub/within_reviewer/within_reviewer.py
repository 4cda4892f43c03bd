"""Within-reviewer correlation as a module of `evaluate`; see `perse.evaluation.stats.correlation`."""

from __future__ import annotations

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np

from perse.evaluation.hub.given import finite
from perse.evaluation.stats.correlation import COEFFICIENTS, Convention, within_reviewers

_DESCRIPTION = """
Does a judge order the texts of one reader as that reader does? Pearson, Spearman and Kendall (tau-b) of each reader's items
apart, averaged over readers. Unlike a pooled coefficient, it gives no credit for knowing how lenient a reader is.
"""

_INPUTS = """
Args:
    predictions: a score an item.
    references: the readers' true scores.
    reviewers: whose item it is, as a text.
Returns:
    within_pearson, within_spearman, within_kendall: readers whose scores or predictions are constant, or who have fewer than
        2 items, are left out; None if no reviewer is left.
    within_zero_...: the same, such readers counted as 0.
    skipped_reviewers: how many they are.
Example:
    >>> metric = evaluate.load(perse.evaluation.hub.path("within_reviewer"))
    >>> metric.compute(predictions=[4, 6, 7, 2], references=[3, 5, 9, 8], reviewers=["ann", "ann", "bob", "bob"])
"""


class WithinReviewer(evaluate.Metric):  # type: ignore[misc]
    """Mean over readers of each reader's own coefficient."""

    def _info(self) -> evaluate.MetricInfo:
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": number, "references": number, "reviewers": datasets.Value("string")}),
        )

    def _compute(
        self, predictions: Sequence[float], references: Sequence[float], reviewers: Sequence[str]
    ) -> dict[str, float | int | None]:
        gold, predicted = finite(references, "references"), finite(predictions, "predictions")
        _, reviewer = np.unique(np.array(reviewers, dtype=object), return_inverse=True)
        found: dict[str, float | int | None] = {}
        for name, coefficient in COEFFICIENTS.items():
            within = within_reviewers(coefficient, gold, predicted=predicted, reviewer=reviewer.astype(np.int64))
            found[f"within_{name}"] = within.mean(Convention.SKIP_CONSTANT)
            found[f"within_zero_{name}"] = within.mean(Convention.CONSTANT_AS_ZERO)
            found["skipped_reviewers"] = within.skipped
        return found
