"""No leaks in evidence: what is stated of a text knows nothing of the scores that are to be predicted (DESIGN.md, promise 5).

Looks at the finished rows and the scores, and shares no code with what made them. Other readers' numbers are computed again, exactly. An
estimate cannot be computed again without the embeddings, but it may depend on nothing of a reader except which part of the readers it left
out: all reviews of one text by one part have the same. And where it left out the right ones it cannot rise with their scores: over the texts
that several parts scored, the part that likes a text better has rather the lower estimate, since its scores are what is missing there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from statistics import fmean, pstdev

import numpy as np

from perse.data.evidence.table import EvidenceRow
from perse.errors import BadInput
from perse.records import Review
from perse.records.pointwise import LARGEST

SURELY = 6.0
"""Standard errors by which estimates must rise with the scores that they should not know before it is called a leak."""
_SHOWN = 3
_TOLERANCE = 2e-6
_FEWEST = 5


def check_evidence(
    rows: Sequence[EvidenceRow], reviews: Mapping[str, Review], readers: Collection[str], *, new_texts: bool
) -> None:
    """That the rows of one fold hold nothing of the scores of the readers that they are about, nor of validation readers.

    Args:
        reviews: all reviews of the data set, by id.
        readers: those of the training side.
        new_texts: nothing may be said of other readers.
    Raises:
        BadInput: a leak, or reviews without a row; the first few are named.
    """
    by_review = {row.review_id: row for row in rows}
    if by_review.keys() != reviews.keys() or len(by_review) != len(rows):
        raise BadInput(
            f"the evidence is of {len(by_review):,} reviews in {len(rows):,} rows, the data set has {len(reviews):,}; make it again "
            "with perse data evidence"
        )
    if unusable := [row.review_id for row in rows if not (abs(row.estimate) <= LARGEST and 0 < row.shrinkage < inf)]:
        raise BadInput(
            f"estimates or shrinkages in the evidence are no numbers that can be used, the first of review {unusable[0]}; make it again with perse data "
            "evidence"
        )
    _refuse("the evidence of a training reader is made with their own scores", _wrong_part(rows, reviews, readers))
    _refuse("other readers' scores in the evidence are not theirs alone", _wrong_others(rows, reviews, readers, new_texts))
    _refuse("estimates of one text differ with the reader", _unequal(rows, reviews))
    if (beyond := rises_with_scores(rows, reviews)) > SURELY:
        raise BadInput(
            f"leak: the estimates in the evidence rise with the very scores that they must not know, by {beyond:.0f} standard errors; "
            "make it again with perse data evidence"
        )


def _wrong_part(rows: Iterable[EvidenceRow], reviews: Mapping[str, Review], readers: Collection[str]) -> list[str]:
    """Training readers are in one part each, all others in none."""
    part_of: dict[str, int | None] = {}
    found = []
    for row in rows:
        reader = reviews[row.review_id].reviewer_id
        if (row.part is None) == (reader in readers) or part_of.setdefault(reader, row.part) != row.part:
            found.append(row.review_id)
    return found


def _wrong_others(
    rows: Iterable[EvidenceRow], reviews: Mapping[str, Review], readers: Collection[str], new_texts: bool
) -> list[str]:
    given: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in reviews.values():
        if one.reviewer_id in readers and not new_texts:
            given[one.item_id][one.reviewer_id].append(one.score)
    known: dict[tuple[str, str | None], tuple[int, float | None, float | None]] = {}
    found = []
    for row in rows:
        one = reviews[row.review_id]
        theirs: Mapping[str, Sequence[int]] = given.get(one.item_id, {})
        without = one.reviewer_id if one.reviewer_id in theirs else None
        key = one.item_id, without
        if key not in known:
            scores = [fmean(each) for reader, each in theirs.items() if reader != without]
            spread = pstdev(scores) if len(scores) > 1 else None
            known[key] = len(scores), fmean(scores) if scores else None, spread
        if not all(map(_same, (row.others, row.mean, row.spread), known[key])):
            found.append(row.review_id)
    return found


def _same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= _TOLERANCE * 100  # a spread of nearly equal scores is a small difference of large sums


def _unequal(rows: Iterable[EvidenceRow], reviews: Mapping[str, Review]) -> list[str]:
    first: dict[tuple[int | None, str], tuple[float, float]] = {}
    return [
        row.review_id
        for row in rows
        if first.setdefault((row.part, reviews[row.review_id].text), (row.estimate, row.shrinkage))
        != (row.estimate, row.shrinkage)
    ]


def rises_with_scores(rows: Iterable[EvidenceRow], reviews: Mapping[str, Review]) -> float:
    """By how many standard errors estimates of one text are higher where the scores are, over the texts that several parts scored."""
    by_text: defaultdict[str, defaultdict[int, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.part is not None:
            one = reviews[row.review_id]
            by_text[one.text][row.part].append((row.estimate, one.score))
    estimates, scores, freedom = [], [], 0
    for of_parts in by_text.values():
        if len(of_parts) < 2:
            continue
        means = np.array([(given[0][0], fmean(score for _, score in given)) for given in of_parts.values()])
        means -= means.mean(axis=0)
        estimates += means[:, 0].tolist()
        scores += means[:, 1].tolist()
        freedom += len(means) - 1
    x, y = np.array(estimates), np.array(scores)
    if freedom < _FEWEST or not x.any() or not y.any():
        return 0.0
    together = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    return float(together * ((freedom - 1) / max(1e-12, 1 - together**2)) ** 0.5)


def _refuse(what: str, found: Sequence[str]) -> None:
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise BadInput(
            f"leak: {what}, in {len(found)} reviews: {', '.join(found[:_SHOWN])}{more}; make it again with perse data evidence"
        )
