"""What knows what: how well each source alone orders the texts, all numbers together, and the same with each judge; of texts that training readers
scored and of others apart.

A judge that is worth asking stands above the row of the numbers, which cost nothing. Everything is of the examples that every judge answered, and
cross-fitted, so that rows of several judges stand beside each other; which of two is higher is for their difference to say (`adding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.stacking.adding import NEW, SEEN, Told
from perse.evaluation.stacking.crossing import CrossFitted
from perse.evaluation.stacking.making import Material, material
from perse.evaluation.stats.results import Resample
from perse.judgement import Judgement, Status
from perse.results.result import Estimate
from perse.stacking.sources import IN_WORDS, JUDGE, OTHERS

TOGETHER = "all of these together"
"""The row of the numbers without any judge."""
NOTHING_EXACT = "it gives no exact distributions to combine"


@dataclass(frozen=True)
class KnownRow:
    """One row of a kind of texts."""

    name: str
    judge: str | None
    """Whose distribution is in it; None: none."""
    estimate: Estimate | None
    """Kendall's tau-b of expected and true scores."""
    missing: str = ""
    """Why there is none."""


@dataclass(frozen=True)
class Knowledge:
    """The rows of one kind of texts."""

    kind: str
    """`SEEN` or `NEW`."""
    rows: tuple[KnownRow, ...]
    examples: int
    readers: int


def what_knows_what(
    folds: Sequence[Fold],
    judges: Mapping[str, Sequence[Judgement]],
    *,
    seed: int,
    resamples: int,
    resample: Resample,
) -> tuple[Knowledge, ...]:
    """Of each kind of texts that there is.

    Args:
        folds: what was judged, with its training side.
        judges: the answers of each judge.
        seed, resamples, resample: as in `fit`.
    Raises:
        BadInput: as in `material`; a judge without exact distributions is a row that says so.
    """
    ok = [{one.id for one in given if one.status is Status.OK} for given in judges.values()]
    answered = set.intersection(*ok) if ok else set()
    common = [Fold([one for one in fold.examples if one.id in answered], fold.train) for fold in folds]
    numbers = material(common, None)
    rows: list[tuple[str, str | None, Told | str]] = []
    cross = CrossFitted.of(numbers.rows, seed=seed)
    for source in cross.rows.sources:
        rows.append((IN_WORDS[source], None, Told.of(source, cross.tell([source]))))
    rows.append((TOGETHER, None, Told.of(TOGETHER, cross.tell(cross.rows.sources))))
    for judge, given in judges.items():
        alone, stacked = judge, f"{judge}, with these"
        try:
            judged = CrossFitted.of(material(common, given).rows, seed=seed)
        except BadInput:  # the numbers of the same examples were good enough, so it is the judge's distributions
            rows += [(alone, judge, NOTHING_EXACT), (stacked, judge, NOTHING_EXACT)]
            continue
        rows.append((alone, judge, Told.of(alone, judged.tell([JUDGE]))))
        rows.append((stacked, judge, Told.of(stacked, judged.tell(judged.rows.sources))))
    return _by_kind(numbers, rows, seed=seed, resamples=resamples, resample=resample)


def _by_kind(
    numbers: Material, rows: Sequence[tuple[str, str | None, Told | str]], *, seed: int, resamples: int, resample: Resample
) -> tuple[Knowledge, ...]:
    bootstrap = numbers.bootstrap(resamples=resamples, seed=seed, resample=resample)
    seen = numbers.rows.have([OTHERS])
    found = []
    for kind, chosen in ((SEEN, seen), (NEW, ~seen)):
        if not chosen.any():
            continue
        part, gold = bootstrap.only(chosen), numbers.rows.gold[chosen]
        told = []
        for name, judge, said in rows:
            if isinstance(said, str):
                told.append(KnownRow(name, judge, None, said))
            elif name == IN_WORDS[OTHERS] and kind == NEW:
                told.append(KnownRow(name, judge, None, "training readers scored none of these texts"))
            else:
                told.append(KnownRow(name, judge, part.one("kendall", gold, said.values[chosen])))
        readers = len(set(numbers.rows.reader[chosen].tolist()))
        found.append(Knowledge(kind, tuple(told), int(chosen.sum()), readers))
    return tuple(found)
