"""Means over samples, by method, with intervals over readers, and the paired differences between methods (Rehearsal, tables 1 and 2).

A sample that a method has no summary of scores 0 under it: left out, a method that fails at what is hard would look better. A sample of which the judge
could not score some summary is left out of all methods, and counted. A reader's samples are drawn together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from perse.data.persum.folder import GROUPS, Sample
from perse.errors import BadInput
from perse.evaluation.comparing.paired import PairedDifference
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.failures import Failing, where_alike, with_failures
from perse.evaluation.stats.significance import Permutation, holm, paired_permutation
from perse.rehearsal.judging import MEASURES, Measure
from perse.rehearsal.methods import told_of
from perse.rehearsal.scoring.asking import Scored
from perse.rehearsal.settings import Labels
from perse.results.result import Estimate

PERMUTATIONS = 10_000
AVERAGE = "average"
"""Of the six: the paper's AVG."""
HIGHEST = 100.0
"""Score of a summary."""
USER = "user"
"""Of the two against the user's own review."""
MEANS = (AVERAGE, USER)


@dataclass(frozen=True)
class Results:
    """`rows` and `parts`: method -> measure or mean -> estimate; `parts` by what the samples have in common ("High", a category)."""

    judge: str
    labels: Labels
    chose: bool
    saw_user: bool
    wrote: bool
    """As in `Scored`."""
    samples: int
    compared: int
    """Samples of which the judge scored every summary that there is."""
    readers: int
    """Of these."""
    two_way: bool
    """Whether products were drawn anew, too, since several samples are about one."""
    rows: Mapping[str, Mapping[Measure | str, Estimate]]
    parts: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    differences: tuple[PairedDifference, ...]
    summaries: Mapping[str, int]
    """How many samples each method has a summary of ..."""
    scored: Mapping[str, int]
    """... and for how many of these the judge gave all scores."""
    there: Mapping[str, float | None]
    """The average over the compared samples that the method has a summary of; those of two methods may be others."""
    lacking: Mapping[str, int]
    """How many of the compared samples it has no summary of, which score 0."""
    resamples: int
    seed: int
    leniency: str | None = None
    supervised: bool = False
    """As in `Scored`, both."""


def results(samples: Sequence[Sample], scored: Scored, *, resamples: int, seed: int) -> Results:
    """Raises:
    BadInput: no method has a summary, or there is no sample that every method has scores for.
    """
    if not any(scored.scores.values()):
        raise BadInput(
            f"no method has a summary of any of {len(samples)} samples, so there is nothing to score: `perse rehearsal run` says in its line at which step they failed"
        )
    unread = {
        method: {name for name, values in of_one.items() if None in values.values()} for method, of_one in scored.scores.items()
    }
    common = [sample for sample in samples if not any(sample.id in of_one for of_one in unread.values())]
    if not common or not any(sample.id in of_one for sample in common for of_one in scored.scores.values()):
        worst = max(unread, key=lambda method: len(unread[method]))
        raise BadInput(
            f"no sample has scores under every method: the judge gave some of {len(unread[worst])} of {len(scored.scores[worst])} summaries of {worst} none, "
            "so nothing can be compared; score with another judge, which answers in numbers"
        )
    tables = {
        method: np.array(
            [[of_one[sample.id][measure] if sample.id in of_one else 0.0 for sample in common] for measure in MEASURES],
            dtype=np.float64,
        )
        for method, of_one in scored.scores.items()
    }
    columns: dict[str, dict[Measure | str, FloatArray]] = {
        method: {**dict(zip(MEASURES, table, strict=True)), AVERAGE: table.mean(axis=0), USER: table[-2:].mean(axis=0)}
        for method, table in tables.items()
    }
    draws = _drawn(common, resamples=resamples, seed=seed)
    failed = _failed(common, scored)
    return Results(
        judge=scored.judge,
        labels=scored.labels,
        chose=scored.chose,
        saw_user=scored.saw_user,
        wrote=scored.wrote,
        samples=len(samples),
        compared=len(common),
        readers=len({sample.own.reviewer_id for sample in common}),
        two_way=draws.two_way,
        rows={method: {name: _mean(values, draws) for name, values in of_one.items()} for method, of_one in columns.items()},
        parts=_parts(common, columns, resamples=resamples, seed=seed),
        differences=_differences(common, columns, failed, draws, seed=seed),
        summaries={method: len(of_one) for method, of_one in scored.scores.items()},
        scored={method: len(of_one) - len(unread[method]) for method, of_one in scored.scores.items()},
        there={method: _where_there(common, of_one, columns[method][AVERAGE]) for method, of_one in scored.scores.items()},
        lacking={method: int(of_one.sum()) for method, of_one in failed.items()},
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


def _where_there(samples: Sequence[Sample], of_one: Mapping[str, object], average: FloatArray) -> float | None:
    inside = np.array([sample.id in of_one for sample in samples])
    return float(average[inside].mean()) if inside.any() else None


def _differences(
    samples: Sequence[Sample],
    columns: Mapping[str, Mapping[Measure | str, FloatArray]],
    failed: Mapping[str, BoolArray],
    draws: Bootstrap,
    *,
    seed: int,
) -> tuple[PairedDifference, ...]:
    """Each method minus each that stands above it in the tables. Those of the methods that are told of are one family for Holm's adjustment, the others
    another."""
    first = told_of(columns)
    found: list[tuple[str, str, str, Estimate, Permutation]] = []
    for of in MEANS:
        for above, below in combinations(columns, 2):
            one, other = (Failing(columns[method][of], failed[method]) for method in (below, above))
            found.append(
                (below, above, of, _apart(one, other, draws), _exchanged(samples, one.values, other.values, seed=seed))
            )
    adjusted: dict[int, float | None] = {}
    for told_first in (True, False):
        family = [n for n, (below, *_) in enumerate(found) if (below in first) is told_first]
        adjusted |= dict(zip(family, holm([found[n][4].p for n in family]), strict=True))
    return tuple(PairedDifference(*one, adjusted=adjusted[n]) for n, one in enumerate(found))


def _failed(samples: Sequence[Sample], scored: Scored) -> dict[str, BoolArray]:
    """By method, (n,): of which samples it has no summary, which score 0."""
    return {
        method: np.array([sample.id not in of_one for sample in samples], dtype=bool)
        for method, of_one in scored.scores.items()
    }


def _apart(one: Failing, other: Failing, draws: Bootstrap) -> Estimate:
    """The mean difference, whose interval knows that either may fail where no sample shows it."""
    found = _mean(one.values - other.values, draws)
    interval = with_failures(found.interval, one, other, rest=_mean(where_alike(one, other), draws).interval, most=HIGHEST)
    return found.model_copy(update={"interval": interval, "difference": True})


def _exchanged(samples: Sequence[Sample], one: FloatArray, other: FloatArray, *, seed: int) -> Permutation:
    """How often the means differ as much when the two methods' scores are exchanged by reader or, where that is more often, by product: a summary
    of a product that is better for one reader is better for the next, too."""

    def mean(drawn: Bootstrap, _: FloatArray, values: FloatArray) -> dict[str, FloatArray]:
        sums, ones = drawn.resamples.sums(np.stack([values, np.ones(len(values))]))
        return {AVERAGE: sums / ones}

    by = [
        paired_permutation(mean, np.zeros(len(one)), one=one, other=other, reviewer=who, permutations=PERMUTATIONS, seed=seed)[
            AVERAGE
        ]
        for who in (_numbered([getattr(each.own, name) for each in samples]) for name in ("reviewer_id", "item_id"))
    ]
    return next((each for each in by if each.p is None), max(by, key=lambda each: each.p or 0.0))
