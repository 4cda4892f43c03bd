"""Is the highest of many correlations above 0, given that it is the highest? Of eight metrics that know nothing one is often far from 0 by chance.

Each correlation strays in the resamples of the documents about its own value, by some multiple of its standard error; the furthest above of all in one
resample is what the highest of as many that know nothing comes to (the max statistic of Westfall and Young, 1993, "Resampling-based multiple testing").
p: how often that is as many standard errors as a correlation is above 0, twice, for either side. One family: all methods, pooled and within documents. How often
the highest of methods that know nothing is said to agree: docs/results.md (benchmarks/drpe_worlds.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap

COLUMNS = {"pooled": "pearson", "within": "within_pearson"}
"""By level."""


def of_many(people: FloatArray, methods: Mapping[str, FloatArray], draws: Bootstrap) -> dict[tuple[str, str], float]:
    """p of each method at each level of `COLUMNS`, as the module says; left out where a correlation is undefined or never varies.

    Args:
        people: (n,), and each of `methods`, no NaN.
        draws: resamples of the documents.
    """
    documents = len(np.unique(draws.reviewer))
    known: dict[tuple[str, str], tuple[float, FloatArray]] = {}
    for method, scores in methods.items():
        for level, column in COLUMNS.items():
            value, drawn = draws.one(column, people, scores).value, draws.resampled(column, people, scores)
            spread = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else 0.0
            if value is not None and spread > 0:
                known[method, level] = (
                    _as_normal(value / spread, documents),
                    np.nan_to_num((drawn - value) / spread, nan=np.inf),
                )
    if not known:
        return {}
    furthest = np.max([strays for _, strays in known.values()], axis=0)  # (R,)
    return {key: min(1.0, 2 * float((1 + (furthest >= far).sum()) / (1 + len(furthest)))) for key, (far, _) in known.items()}


def _as_normal(far: float, documents: int) -> float:
    """So many standard errors, which are themselves of resamples of few documents, in normal ones: as `intervals.expanded_levels` has it."""
    t = far * np.sqrt((documents - 1) / documents)
    return float(stats.norm.isf(stats.t.sf(t, documents - 1))) if documents > 1 else 0.0
