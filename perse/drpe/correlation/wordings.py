"""The same votes asked for in several wordings: the mean of their correlations, as published, and the correlation of the mean score.

The paper averages its numbers over five runs with slightly changed prompts. A score that is itself the mean over wordings is steadier than each of them, so its
correlation may be higher than their mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perse.drpe.correlation.correlating import numbered
from perse.drpe.over_documents import of_documents
from perse.drpe.selection import Key, Selected
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.results.result import Estimate, Table


@dataclass(frozen=True)
class OverWordings:
    """Pooled Pearson correlations of one method with people's mean, on the candidates that have a score in every wording."""

    each: Mapping[int, Estimate]
    mean: Estimate
    """Of `each`."""
    together: Estimate
    """Of the score that is the mean over wordings."""


def over_wordings(
    selected: Selected, scores: Mapping[int, Mapping[Key, float | None]], *, resamples: int, seed: int
) -> OverWordings | None:
    """None if no candidate has a score in every wording.

    Args:
        scores: wording -> candidate -> score.
    """
    given = [(item, [of_one.get(item.key) for of_one in scores.values()]) for item in selected.items]
    whole = [(item, values) for item, values in given if None not in values]
    if not whole:
        return None
    documents = numbered([item.document.id for item, _ in whole])  # as `correlate`, so that equal scores have equal intervals
    people = np.array([item.people for item, _ in whole], dtype=np.float64)
    columns = np.array([values for _, values in whole], dtype=np.float64).T
    draws = Bootstrap.over(documents, resamples=resamples, seed=seed)
    each = {wording: of_documents(draws.one("pearson", people, one)) for wording, one in zip(scores, columns, strict=True)}
    resampled = np.mean([draws.resampled("pearson", people, one) for one in columns], axis=0)
    known = [one.value for one in each.values() if one.value is not None]
    withheld = next((one.interval for one in each.values() if one.interval.low is None), None)
    mean = Estimate(
        value=float(np.mean(known)) if len(known) == len(each) else None,
        interval=withheld or bootstrap_interval(resampled, reviewers=len(np.unique(documents)), of="document"),
        items=len(whole),
    )
    return OverWordings(each, mean, of_documents(draws.one("pearson", people, columns.mean(axis=0))))


def wordings_table(found: Mapping[str, OverWordings]) -> Table:
    """Each method's correlations by wording, their mean, and that of the mean score."""
    wordings = sorted({wording for one in found.values() for wording in one.each})
    return Table(
        title="By wording, pooled Pearson",
        header=("method", *(f"wording {wording}" for wording in wordings), "mean of these", "of the mean score"),
        rows=tuple(
            (name, *(one.each.get(wording) for wording in wordings), one.mean, one.together) for name, one in found.items()
        ),
        notes=("mean of these: as the paper averages over five runs; of the mean score: what all other tables have",),
    )
