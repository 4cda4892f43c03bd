"""How well methods that score candidates agree with people: pooled (as published), within documents, and by system.

All of it on the candidates that every method has a score for, so that no method is better for having left out what is hard; what each has of its own stands beside.
A document's candidates are drawn together, for they share what makes it hard. Differences of two methods are paired, and tested by exchanging the two document by
document; for that a method's scores are first brought to mean 0 and spread 1, since methods have scales of their own.

Coefficients keep their sign: of a method a higher score is meant to be a better one, and a metric that orders candidates the wrong way round does not agree with people.
Only the published one is absolute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from perse.drpe.correlation.of_many import of_many
from perse.drpe.correlation.systems import by_system
from perse.drpe.over_documents import of_documents
from perse.drpe.selection import Key, Selected
from perse.errors import BadInput
from perse.evaluation.comparing.paired import PairedDifference
from perse.evaluation.comparing.results import LEVEL as SIGNIFICANT
from perse.evaluation.stats.correlation import COEFFICIENTS, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.significance import Permutation, holm, paired_permutation, standardised
from perse.evaluation.stats.within import vary_in_all
from perse.results.result import Estimate

Level = Literal["pooled", "within", "systems"]
LEVELS: tuple[Level, ...] = ("pooled", "within", "systems")
COMPARED = ("pearson", "within_pearson")
"""What differences are of: pooled, as published, and within documents."""
PERMUTATIONS = 10_000
Scores = Mapping[str, Mapping[Key, float | None]]
"""Method -> candidate -> score."""
Coefficients = Mapping[Level, Mapping[str, Estimate]]
"""By level and name of `COEFFICIENTS`."""


@dataclass(frozen=True)
class Agreement:
    """One method's with people."""

    scored: int
    """Candidates that it has a score for."""
    own: Estimate
    """Pooled Pearson over all of these."""
    absolute: Estimate
    """Of the pooled Pearson, as published."""
    mean: Coefficients
    """With people's mean."""
    dimensions: Mapping[str, Coefficients]
    """With what they gave for each dimension."""


@dataclass(frozen=True)
class Correlations:
    """What all methods come to."""

    selected: Selected
    compared: int
    """Candidates that every method has a score for ..."""
    documents: int
    """... and their documents."""
    systems: int
    rows: Mapping[str, Agreement]
    differences: tuple[PairedDifference, ...]
    left_out: tuple[str, ...]
    """Methods without a score for any candidate."""
    of_many: Mapping[tuple[str, str], float]
    """By method and level (pooled, within): p of a Pearson above 0, given how many were looked at; of one below 0 it is 1 or nearly so (`of_many`)."""
    resamples: int
    seed: int

    def agrees(self, method: str, level: Level = "pooled") -> bool:
        """Whether its Pearson correlation is shown to be above 0, by its interval and as one of so many."""
        row = self.rows[method].mean
        return level in row and row[level]["pearson"].above_zero and self.of_many.get((method, level), 1.0) <= SIGNIFICANT


def correlate(selected: Selected, scores: Scores, *, resamples: int, seed: int, beside: str | None = None) -> Correlations:
    """Args:
        beside: the method that all others are held against; None: each against each.

    Raises:
        BadInput: no method has a score, or no candidate has one of every method.
    """
    columns = {name: _column(of_one, selected) for name, of_one in scores.items()}
    left_out = tuple(name for name, values in columns.items() if np.isnan(values).all())
    columns = {name: values for name, values in columns.items() if name not in left_out}
    if not columns:
        raise BadInput("no method has a score for any of the candidates; give a run over these documents, or --baselines")
    common = np.all([~np.isnan(values) for values in columns.values()], axis=0)
    if not common.any():
        fewest = min(columns, key=lambda name: int((~np.isnan(columns[name])).sum()))
        raise BadInput(
            f"no candidate has a score of every method, so they cannot be compared; the fewest are of {fewest}: leave it out"
        )
    document = numbered([item.document.id for item in selected.items])
    people = np.array([item.people for item in selected.items], dtype=np.float64)
    of_dimension = {
        name: np.array([(item.candidate.scores or {})[name] for item in selected.items], dtype=np.float64)
        for name in selected.dimensions
    }
    every = Bootstrap.over(document, resamples=resamples, seed=seed)
    draws = Bootstrap.over(_numbered_again(document[common]), resamples=resamples, seed=seed)
    system = numbered([item.candidate.system for item, there in zip(selected.items, common.tolist(), strict=True) if there])
    rows = {}
    for name, values in columns.items():
        mean = coefficients(people[common], values[common], system=system, draws=draws)
        rows[name] = Agreement(
            scored=int((~np.isnan(values)).sum()),
            own=of_documents(every.one("pearson", people, values)),
            absolute=absolute(mean["pooled"]["pearson"]),
            mean=mean,
            dimensions={
                dimension: coefficients(gold[common], values[common], system=system, draws=draws)
                for dimension, gold in of_dimension.items()
            },
        )
    compared = {name: values[common] for name, values in columns.items()}
    return Correlations(
        selected=selected,
        compared=int(common.sum()),
        documents=len(np.unique(document[common])),
        systems=len(np.unique(system)),
        rows=rows,
        differences=differences(people[common], compared, draws, seed=seed, beside=beside),
        left_out=left_out,
        of_many=of_many(people[common], compared, draws, seed=seed),
        resamples=resamples,
        seed=seed,
    )


def least_p(documents: int, number: int) -> float:
    """The smallest adjusted p-value that so many differences over so many documents can have: each document is exchanged or not."""
    return number * max(1 / (PERMUTATIONS + 1), 2.0 ** (1 - documents))


def absolute(estimate: Estimate) -> Estimate:
    """Without its sign. Where 0 is inside the interval, that of the absolute value begins there."""
    low, high = estimate.interval.low, estimate.interval.high
    if estimate.value is None:
        return estimate
    interval = estimate.interval
    if low is not None and high is not None:
        ends = sorted((abs(low), abs(high)))
        interval = interval.model_copy(update={"low": 0.0 if low <= 0 <= high else ends[0], "high": ends[1]})
    return estimate.model_copy(update={"value": abs(estimate.value), "interval": interval})


def differences(
    people: FloatArray, methods: Mapping[str, FloatArray], draws: Bootstrap, *, seed: int, beside: str | None = None
) -> tuple[PairedDifference, ...]:
    """Of all pairs of methods, or of those with `beside`, the later one minus the earlier one; arrays are (n,), no NaN."""
    found: list[tuple[str, str, str, Estimate, Permutation]] = []
    for of in COMPARED:
        for above, below in (pair for pair in combinations(methods, 2) if beside is None or beside in pair):
            one, other = methods[below], methods[above]
            estimate = of_documents(draws.difference(of, people, one, other))
            found.append((below, above, of, estimate, _exchanged(of, people, one, other, draws.reviewer, seed=seed)))
    adjusted = holm([each[4].p for each in found])
    return tuple(PairedDifference(*one, adjusted=p) for one, p in zip(found, adjusted, strict=True))


def _exchanged(
    of: str, people: FloatArray, one: FloatArray, other: FloatArray, document: IntArray, *, seed: int
) -> Permutation:
    """How often the two differ as much when they are exchanged document by document."""
    chosen = np.ones(len(people), dtype=bool)
    if of.startswith("within_"):  # a mean over other documents is another question
        chosen = vary_in_all(document, people, one, other)

    def column(drawn: Bootstrap, gold: FloatArray, predicted: FloatArray) -> dict[str, FloatArray]:
        return {of: drawn.resampled(of, gold, predicted)}

    if not chosen.any():
        return Permutation(reason="undefined (no document in which both vary)")
    found = paired_permutation(
        column,
        people[chosen],
        one=one[chosen],
        other=other[chosen],
        reviewer=document[chosen],
        permutations=PERMUTATIONS,
        seed=seed,
        scaled=standardised,
    )[of]
    return found if found.reason is None else Permutation(reason=found.reason.replace("reviewer", "document"))


def coefficients(people: FloatArray, scores: FloatArray, *, system: IntArray, draws: Bootstrap) -> Coefficients:
    """Of all levels.

    Args:
        people, scores: (n,), no NaN.
        system: (n,) whose candidate it is, as an integer.
        draws: resamples of the documents.
    """
    found = draws.scores(people, scores)
    return {
        "pooled": {name: of_documents(found[name]) for name in COEFFICIENTS},
        "within": {name: of_documents(found[f"within_{name}"]) for name in COEFFICIENTS},
        "systems": by_system(people, scores, system=system, resamples=draws.resamples),
    }


def _column(scores: Mapping[Key, float | None], selected: Selected) -> FloatArray:
    """(n,) NaN where there is none."""
    given = [scores.get(item.key) for item in selected.items]
    return np.array([np.nan if value is None else value for value in given], dtype=np.float64)


def numbered(names: Sequence[str]) -> IntArray:
    """Each name as a number, in the order in which they come first: (n,)."""
    places = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return np.array([places[name] for name in names], dtype=np.int64)


def _numbered_again(numbers: IntArray) -> IntArray:
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
