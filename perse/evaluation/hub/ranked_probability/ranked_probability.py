"""The ranked probability score as a module of `evaluate`; see `perse.evaluation.stats.ordinal`."""

from __future__ import annotations

from collections.abc import Sequence

import datasets
import evaluate

from perse.errors import BadInput
from perse.evaluation.hub.given import distributions, finite, scale_of
from perse.evaluation.stats.ordinal import on_scale, rps_values
from perse.scale import SCORES

_DESCRIPTION = """
How far is a judge's distribution over ordered labels from the label that was given? Mean over items of the squared differences
of the cumulative probabilities, over the number of labels less one: 0 is certain and right, 1 is certain at the far end. Lower
is better, and on average it is least for who says what they believe.
"""

_CITATION = """
@article{epstein1969scoring, title={A Scoring System for Probability Forecasts of Ranked Categories}, author={Epstein, Edward S.},
journal={Journal of Applied Meteorology}, volume={8}, number={6}, pages={985--987}, year={1969}}
"""

_INPUTS = """
Args:
    predictions: of each item the probability of every label, in the order of `labels`.
    references: the label that was given, as a number.
    labels: the labels in ascending order; by default 1 to 10.
Returns:
    rps: the mean score; None without items.
"""


class RankedProbability(evaluate.Metric):  # type: ignore[misc]
    """Mean ranked probability score."""

    def _info(self) -> evaluate.MetricInfo:
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(
        self, predictions: Sequence[Sequence[float]], references: Sequence[float], labels: Sequence[float] | None = None
    ) -> dict[str, float | None]:
        scale = SCORES if labels is None else scale_of(labels)
        if not len(references):
            return {"rps": None}
        gold = finite(references, "references")
        if not on_scale(gold, scale=scale):
            raise BadInput(f"references has a number that is none of the labels {', '.join(scale.labels)}")
        values = rps_values(gold, distributions(predictions, scale, "predictions"), scale=scale)
        return {"rps": float(values.mean())}
