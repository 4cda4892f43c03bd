"""DRPE's published numbers: tables 1 and 2 of the later version, table 1 of the first.

Absolute Pearson correlations with people. The role curve (figure 6, figure 7 of the first version) is a picture without numbers: of k = 0, 2, 4 and 6 it says in
words that 4 is best.
"""

from __future__ import annotations

from collections.abc import Mapping

DATASETS = ("CNN2022", "SummEval", "BBC2022")
"""Columns of tables 1 and 2, which end with their mean."""
FIRST_DATASETS = ("CNN", "XSum")
"""Columns of the first version's table 1."""
DOCUMENTS = 100
"""Of SummEval, as published; 400 candidates."""
ROLES = (0, 2, 4, 6)
"""Of figure 6."""

TABLE_1: Mapping[str, tuple[float, ...]] = {
    "ROUGE-1": (0.466, 0.431, 0.469, 0.461),
    "ROUGE-2": (0.437, 0.354, 0.443, 0.411),
    "ROUGE-L": (0.422, 0.322, 0.436, 0.393),
    "BLEU": (0.475, 0.372, 0.502, 0.450),
    "METEOR": (0.514, 0.473, 0.561, 0.516),
    "BERTScore": (0.554, 0.455, 0.568, 0.526),
    "MoverScore": (0.456, 0.385, 0.442, 0.428),
    "GPT-D3": (0.713, 0.503, 0.692, 0.636),
    "DRPE": (0.816, 0.683, 0.784, 0.761),
}
"""ROUGE-1's mean is 0.455 of the three that are printed beside it."""
TABLE_2: Mapping[str, tuple[float, ...]] = {
    "DRPE": (0.816, 0.683, 0.784, 0.761),
    "w/o Batch Inferring": (0.822, 0.672, 0.766, 0.753),
    "w/o Clustering": (0.782, 0.665, 0.751, 0.733),
    "w/o Dynamic Roles": (0.742, 0.669, 0.703, 0.705),
    "w/o Static Roles": (0.734, 0.604, 0.711, 0.683),
}
FIRST: Mapping[str, tuple[float, ...]] = {
    "BERTScore": (0.55, 0.57),
    "LLM": (0.58, 0.62),
    "ManualDRPEScore": (0.75, 0.73),
    "DRPEScore": (0.90, 0.87),
}


def of_summeval(method: str) -> float | None:
    """What the later version has for a method on SummEval."""
    row = TABLE_1.get(method)
    return row[DATASETS.index("SummEval")] if row else None
