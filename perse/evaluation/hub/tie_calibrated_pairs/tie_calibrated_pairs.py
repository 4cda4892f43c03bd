"""Pairwise accuracy with calibrated ties as a module of `evaluate`; see `perse.evaluation.stats.ties`."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import datasets
import evaluate
import numpy as np

from perse.errors import BadInput
from perse.evaluation.hub.given import finite
from perse.evaluation.stats.ties import calibrated_pairs, reviewer_halves

_DESCRIPTION = """
Of two texts that one reader scored, which did the reader like better, or did they tie? Share of such pairs that a judge gets
right, its scores counting as tied when they differ by no more than epsilon. Epsilon is fitted on one half of the readers and
applied to the other, so that no reviewer calibrates themselves, unless one is given from a validation run.
"""

_CITATION = """
@inproceedings{deutsch2023ties, title={Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy and Tie Calibration},
author={Deutsch, Daniel and Foster, George and Freitag, Markus}, booktitle={EMNLP}, year={2023}}
"""

_INPUTS = """
Args:
    predictions: a score an item.
    references: the readers' true scores.
    reviewers: whose item it is, as a text.
    epsilon: fitted on a validation run; by default cross-fitted.
    seed: of the two halves of readers.
Returns:
    pair_accuracy: share of pairs that are right; None without pairs.
    pairs: how many there are.
    epsilons: of the two halves, None for a half without pairs; or the one given.
"""


class TieCalibratedPairs(evaluate.Metric):  # type: ignore[misc]
    """Right pairs over all pairs within a reader."""

    def _info(self) -> evaluate.MetricInfo:
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": number, "references": number, "reviewers": datasets.Value("string")}),
        )

    def _compute(
        self,
        predictions: Sequence[float],
        references: Sequence[float],
        reviewers: Sequence[str],
        epsilon: float | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        if epsilon is not None and not (isinstance(epsilon, int | float) and 0 <= epsilon < inf):
            raise BadInput(f"epsilon is {epsilon!r:.50}, expected a finite number of 0 or more")
        names, reviewer = np.unique(np.array(reviewers, dtype=object), return_inverse=True)
        found = calibrated_pairs(
            finite(references, "references"),
            finite(predictions, "predictions"),
            reviewer.astype(np.int64),
            fold_of_reviewer=reviewer_halves(names.tolist(), seed=seed),
            epsilon=epsilon,
        )
        return {"pair_accuracy": found.accuracy, "pairs": int(found.pairs.sum()), "epsilons": list(found.epsilons)}
