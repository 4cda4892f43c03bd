"""Means over samples, by method, with intervals over readers, and the paired differences between methods (Rehearsal, tables 1 and 2).

All methods are compared on the samples for which every one of them has a summary with all six scores; a sample that one of them failed at counts for
none, and is counted. A reader's samples are drawn together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from perse.data.persum.folder import GROUPS, Sample
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.significance import Permutation, holm, paired_permutation
from perse.rehearsal.judging import MEASURES, Measure
from perse.rehearsal.scoring.asking import Scored
from perse.results.result import Estimate

PERMUTATIONS = 10_000
AVERAGE = "average"
"""Of the six: the paper's AVG."""
USER = "user"
"""Of the two against the user's own review."""
MEANS = (AVERAGE, USER)


@dataclass(frozen=True)
class Difference:
    """One method minus another on the same samples, of `AVERAGE` or `USER`."""

    method: str
    minus: str
    of: str
    estimate: Estimate
    p: Permutation
    adjusted: float | None
    """Holm's, over all differences that are told."""

    @property
    def higher(self) -> bool:
        """Whether both the interval and the adjusted p-value say so."""
        return self.estimate.above_zero and self.adjusted is not None and self.adjusted < 0.05

    @property
    def lower(self) -> bool:
        return self.estimate.below_zero and self.adjusted is not None and self.adjusted < 0.05


@dataclass(frozen=True)
class Results:
    """`rows` and `parts`: method -> measure or mean -> estimate; `parts` by what the samples have in common ("High", a category)."""

    judge: str
    chose: bool
    wrote: bool
    """As in `Scored`."""
    samples: int
    compared: int
    """Samples that every method has a scored summary of."""
    readers: int
    """Of these."""
    two_way: bool
    """Whether products were drawn anew, too, since several samples are about one."""
    rows: Mapping[str, Mapping[Measure | str, Estimate]]
    parts: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    differences: tuple[Difference, ...]
    summaries: Mapping[str, int]
    """How many samples each method has a summary of ..."""
    scored: Mapping[str, int]
    """... and for how many of these the judge gave all scores."""
    resamples: int
    seed: int
    leniency: str | None = None
    supervised: bool = False
    """As in `Scored`, both."""


def results(samples: Sequence[Sample], scored: Scored, *, resamples: int, seed: int) -> Results:
    """Raises:
    BadInput: there is no sample that every method has scores for.
    """
    complete = {
        method: {name for name, values in of_one.items() if None not in values.values()}
        for method, of_one in scored.scores.items()
    }
    common = [sample for sample in samples if all(sample.id in of_one for of_one in complete.values())]
    if not common:
        worst = min(complete, key=lambda method: len(complete[method]))
        raise BadInput(
            f"no sample has scores under every method ({worst} has {len(complete[worst])}), so nothing can be compared; run again with other "
            "models or a longer --max-new-tokens, or score a run without that method"
        )
    tables = {
        method: np.array(
            [[scored.scores[method][sample.id][measure] for sample in common] for measure in MEASURES], dtype=np.float64
        )
        for method in scored.scores
    }
    columns: dict[str, dict[Measure | str, FloatArray]] = {
        method: {**dict(zip(MEASURES, table, strict=True)), AVERAGE: table.mean(axis=0), USER: table[-2:].mean(axis=0)}
        for method, table in tables.items()
    }
    draws = _drawn(common, resamples=resamples, seed=seed)
    return Results(
        judge=scored.judge,
        chose=scored.chose,
        wrote=scored.wrote,
        samples=len(samples),
        compared=len(common),
        readers=len({sample.own.reviewer_id for sample in common}),
        two_way=draws.two_way,
        rows={method: {name: _mean(values, draws) for name, values in of_one.items()} for method, of_one in columns.items()},
        parts=_parts(common, columns, resamples=resamples, seed=seed),
        differences=_differences(columns, draws, seed=seed),
        summaries={method: len(of_one) for method, of_one in scored.scores.items()},
        scored={method: len(of_one) for method, of_one in complete.items()},
        resamples=resamples,
        seed=seed,
        leniency=scored.leniency,
        supervised=scored.supervised,
    )


def _drawn(samples: Sequence[Sample], *, resamples: int, seed: int) -> Bootstrap:
    """Resamples of the readers and, where samples are about the same products, of these, too."""
    readers, products = (_numbered([getattr(one.own, name) for one in samples]) for name in ("reviewer_id", "item_id"))
    shared = len(np.unique(products)) < len(products)
    return Bootstrap.over(readers, resamples=resamples, seed=seed, item=products if shared else None)


def _numbered(names: Sequence[str]) -> IntArray:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _mean(values: FloatArray, draws: Bootstrap) -> Estimate:
    return draws.mean(values, np.ones(len(values), dtype=bool))


def _parts(
    samples: Sequence[Sample], columns: Mapping[str, Mapping[Measure | str, FloatArray]], *, resamples: int, seed: int
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Of each class and category, where there are several."""
    found: dict[str, dict[str, dict[str, Estimate]]] = {}
    classes = {group: [sample.group == group for sample in samples] for group in GROUPS}
    categories = {name: [sample.category == name for sample in samples] for name in sorted({one.category for one in samples})}
    for sets in (classes, categories):
        there = {name: np.array(inside) for name, inside in sets.items() if any(inside)}
        for name, inside in there.items() if len(there) > 1 else ():
            draws = _drawn([one for one, chosen in zip(samples, inside, strict=True) if chosen], resamples=resamples, seed=seed)
            found[name] = {
                method: {mean: _mean(of_one[mean][inside], draws) for mean in MEANS} for method, of_one in columns.items()
            }
    return found


def _differences(
    columns: Mapping[str, Mapping[Measure | str, FloatArray]], draws: Bootstrap, *, seed: int
) -> tuple[Difference, ...]:
    """Each method minus each that stands above it in the tables, Holm's adjustment over all of them."""
    found: list[tuple[str, str, str, Estimate, Permutation]] = []
    for of in MEANS:
        for above, below in combinations(columns, 2):
            one, other = columns[below][of], columns[above][of]
            estimate = _mean(one - other, draws).model_copy(update={"difference": True})
            found.append((below, above, of, estimate, _exchanged(one, other, draws.reviewer, seed=seed)))
    adjusted = holm([p.p for *_, p in found])
    return tuple(Difference(*one, adjusted=each) for one, each in zip(found, adjusted, strict=True))


def _exchanged(one: FloatArray, other: FloatArray, reader: IntArray, *, seed: int) -> Permutation:
    """How often the means differ as much when the two methods' scores are exchanged by reader."""

    def mean(drawn: Bootstrap, _: FloatArray, values: FloatArray) -> dict[str, FloatArray]:
        sums, ones = drawn.resamples.sums(np.stack([values, np.ones(len(values))]))
        return {AVERAGE: sums / ones}

    found = paired_permutation(
        mean, np.zeros(len(one)), one=one, other=other, reviewer=reader, permutations=PERMUTATIONS, seed=seed
    )
    return found[AVERAGE]
