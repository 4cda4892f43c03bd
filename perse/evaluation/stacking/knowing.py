"""What knows what: how well each source alone orders the texts, all numbers together, and the same with each judge; of texts that training readers
scored and of others apart.

A judge that is worth asking stands above the row of the numbers, which cost nothing. Everything is of the examples to which every judge gave an exact
distribution (a judge that gave none is a row that says so), and cross-fitted, so that rows of several judges stand beside each other; which of two is
higher is for their difference to say (`adding`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.stacking.adding import NEW, NOT_SCORED, SEEN, Told
from perse.evaluation.stacking.crossing import CrossFitted
from perse.evaluation.stacking.making import Material, material
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Resample
from perse.judgement import Judgement, Status
from perse.progress import OnProgress, unseen
from perse.results.result import Estimate
from perse.stacking.sources import CONTENT, IN_WORDS, JUDGE, OTHERS, SOURCES

TOGETHER = "all of these together"
"""The row of the numbers without any judge."""
NOTHING_EXACT = "it gave no exact distributions to combine"


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
    notes: tuple[str, ...] = ()
    """Who and what is left out or absent."""


def what_knows_what(
    folds: Sequence[Fold],
    judges: Mapping[str, Sequence[Judgement]],
    *,
    seed: int,
    resamples: int,
    resample: Resample,
    on_progress: OnProgress = unseen,
) -> tuple[Knowledge, ...]:
    """Of each kind of texts that there is.

    Args:
        folds: what was judged, with its training side.
        judges: the answers of each judge.
        seed, resamples, resample: as in `fit`.
        on_progress: told how many rows are fitted.
    Raises:
        BadInput: as in `material`.
    """
    exact = {judge: {one.id for one in given if _is_exact(one)} for judge, given in judges.items()}
    whole = {one.id for fold in folds for one in fold.examples}
    common = set.intersection(whole, *(ids for ids in exact.values() if ids))
    kept = [Fold([one for one in fold.examples if one.id in common], fold.train) for fold in folds]
    left_out = len(whole) - len(common)
    numbers = _numbers(kept, left_out, len(whole))
    cross = CrossFitted.of(numbers.rows, seed=seed)
    rows: list[_Row] = []
    total = len(SOURCES) + 2 * len(judges)
    for one in SOURCES:
        on_progress(len(rows), total)
        if one != JUDGE:
            rows.append(_Row(IN_WORDS[one], None, one, _told(cross, [one])))
    rows.append(_Row(TOGETHER, None, None, _told(cross, cross.rows.sources)))
    for judge, given in judges.items():
        on_progress(len(rows), total)
        alone, stacked = _Row(judge, judge, None), _Row(f"{judge}, with these", judge, None)
        if exact[judge]:
            judged = CrossFitted.of(material(kept, given).rows, seed=seed)
            alone = replace(alone, told=_told(judged, [JUDGE]))
            stacked = replace(stacked, told=_told(judged, judged.rows.sources))
        rows += [alone, stacked]
    on_progress(total, total)
    notes = (
        *numbers.notes,
        *(
            [f"{left_out} examples to which not every judge that gives exact distributions gave one are left out"]
            if left_out
            else []
        ),
    )
    bootstrap = numbers.bootstrap(resamples=resamples, seed=seed, resample=resample)
    seen = numbers.rows.have([OTHERS])
    kinds = [(kind, chosen) for kind, chosen in ((SEEN, seen), (NEW, ~seen)) if chosen.any()]
    return tuple(_knowledge(kind, numbers, rows, chosen, bootstrap, notes) for kind, chosen in kinds)


def _numbers(kept: Sequence[Fold], left_out: int, whole: int) -> Material:
    """
    Raises:
        BadInput: as in `material`; it says whom judges left out, who may be all that is missing.
    """
    try:
        return material(kept, None)
    except BadInput as error:
        if not left_out:
            raise
        without = (
            f"{left_out} of {whole} examples, to which not every judge that gives exact distributions gave one, are left out"
        )
        raise BadInput(f"{error}; {without}") from error


@dataclass(frozen=True)
class _Row:
    """In which order one row has all examples, (n,) (`Told.order`); None: nothing."""

    name: str
    judge: str | None
    source: str | None
    told: FloatArray | None = None


def _is_exact(judgement: Judgement) -> bool:
    return judgement.status is Status.OK and bool(judgement.distribution) and judgement.exact is not False


def _told(cross: CrossFitted, sources: Collection[str]) -> FloatArray | None:
    """Their order by these sources; None where no example has one of them."""
    return Told.by(cross, sources).order if set(sources) <= set(cross.rows.sources) else None


def _knowledge(
    kind: str, numbers: Material, rows: Sequence[_Row], chosen: BoolArray, bootstrap: Bootstrap, notes: tuple[str, ...]
) -> Knowledge:
    part, gold = bootstrap.only(chosen), numbers.rows.gold[chosen]

    def known(row: _Row) -> KnownRow:
        if row.source == OTHERS and kind == NEW:
            return KnownRow(row.name, None, None, NOT_SCORED)
        if row.told is None:
            absent = "absent" + (" (perse data evidence makes it)" if row.source == CONTENT else "")
            return KnownRow(row.name, row.judge, None, NOTHING_EXACT if row.judge else absent)
        return KnownRow(row.name, row.judge, part.one("kendall", gold, row.told[chosen]))

    readers = len(np.unique(numbers.rows.reader[chosen]))
    return Knowledge(kind, tuple(map(known, rows)), int(chosen.sum()), readers, notes)
