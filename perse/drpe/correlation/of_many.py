"""Is the highest of many correlations above 0, given that it is the highest? Of eight metrics that know nothing one is often far from 0 by chance.

Each correlation strays in the resamples of the documents about its own value, by some multiple of its standard error; the furthest above of all in one
resample is what the highest of as many that know nothing comes to (the max statistic of Westfall and Young, 1993, "Resampling-based multiple testing").
p: how often that is as many standard errors as a correlation is above 0, twice, for either side. One family: all methods, pooled and within documents.

Where people mostly give one grade and a method is far higher now and then, resamples show too seldom what it would be to meet otherwise, and stray too little. So people's grades
are dealt anew, too, within documents and between those of as many candidates, and the larger p counts: of a method that has nothing to do with people every deal is as likely.
How often the highest of methods that know nothing is said to agree: docs/results.md (benchmarks/drpe_worlds.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.identity import draw

COLUMNS = {"pooled": "pearson", "within": "within_pearson"}
"""By level."""
DEALS = 1000

Key = tuple[str, str]
"""A method and a level."""


def of_many(
    people: FloatArray, methods: Mapping[str, FloatArray], draws: Bootstrap, *, seed: int = 0, deals: int = DEALS
) -> dict[Key, float]:
    """p of each method at each level of `COLUMNS`, as the module says; left out where a correlation is undefined or never varies.

    Args:
        people: (n,), and each of `methods`, no NaN.
        draws: resamples of the documents.
        seed: of the deals.
    """
    dealt = _of_deals(people, methods, draws.reviewer, seed=seed, deals=deals)
    return {key: max(p, dealt.get(key, p)) for key, p in _of_resamples(people, methods, draws).items()}


def _of_deals(
    people: FloatArray, methods: Mapping[str, FloatArray], document: IntArray, *, seed: int, deals: int
) -> dict[Key, float]:
    """How often the furthest correlation of people's grades dealt anew is as high, in its spread over the deals; twice."""
    places = np.vstack([np.arange(len(people)), _dealt(document, seed=seed, deals=deals)])  # (1 + deals, n), first as they are
    _, first, index = np.unique(document, return_index=True, return_inverse=True)
    own, varies = _within_documents(people, index)
    grades = (people - people.mean())[places]
    got = varies[index[places[:, first]]]  # (1 + deals, documents) whether the grades that a document got differ
    furthest: dict[Key, FloatArray] = {}
    for method, scores in methods.items():
        theirs, vary = _within_documents(scores, index)
        both = (got & vary).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            furthest[method, "pooled"] = grades @ (scores - scores.mean())
            furthest[method, "within"] = (own[places] @ theirs) / both
    known = {
        key: values / values[1:].std() for key, values in furthest.items() if np.isfinite(values).all() and values[1:].std() > 0
    }
    if not known:
        return {}
    highest = np.max([values[1:] for values in known.values()], axis=0)
    return {key: min(1.0, 2 * float((1 + (highest >= values[0] - 1e-9).sum()) / (1 + deals))) for key, values in known.items()}


def _within_documents(values: FloatArray, index: IntArray) -> tuple[FloatArray, BoolArray]:
    """(n,) values less their document's mean, of length 1 a document, 0 where all of one are the same; (documents,) whether they differ."""
    size = np.bincount(index)
    apart = values - (np.bincount(index, weights=values) / size)[index]
    length = np.sqrt(np.bincount(index, weights=apart**2))
    varies = length > 1e-12 * (1 + np.abs(values).max())
    return np.where(varies[index], apart / np.where(varies, length, 1.0)[index], 0.0), varies


def _dealt(document: IntArray, *, seed: int, deals: int) -> IntArray:
    """(deals, n) whose grade each candidate gets: documents of as many candidates change places, and candidates within each."""
    generator = np.random.default_rng(draw(seed, "documents", "deals").getrandbits(128))
    found = np.empty((deals, len(document)), dtype=np.int64)
    numbers, size = np.unique(document, return_counts=True)
    for count in np.unique(size):
        rows = np.stack([np.flatnonzero(document == one) for one in numbers[size == count]])  # (documents, candidates)
        for deal in range(deals):
            orders = generator.random(rows.shape).argsort(axis=1)
            found[deal, rows] = np.take_along_axis(rows[generator.permutation(len(rows))], orders, axis=1)
    return found


def _of_resamples(people: FloatArray, methods: Mapping[str, FloatArray], draws: Bootstrap) -> dict[Key, float]:
    """How often the furthest that a correlation strays in a resample is as far as one is above 0, in standard errors; twice."""
    documents = len(np.unique(draws.reviewer))
    known: dict[Key, tuple[float, FloatArray]] = {}
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
