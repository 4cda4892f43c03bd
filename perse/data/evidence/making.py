"""Evidence for every review of a data set, each as if its reader were unknown (see `content` and `others`).

A validation reader's reviews are estimated by the model of the whole training side, those of a training reader by a model that left out a tenth
of the training readers, this one among them: so training sees estimates of the same kind as validation, and none is made with its target. (Within one text what is left out shows: the
numbers are lower where the score is higher, which whoever knows the text by heart can learn, and new readers have not. docs/results.md, benchmarks/content_worlds.py.) Where
validation asks about texts that training does not know (`new_texts`), training must meet texts so, too: their part of the texts is left out as
well, and nothing is said of other readers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from perse.data.evidence.arrays import TextRows, asked_of
from perse.data.evidence.content import (
    READER_PARTS,
    TEXT_PARTS,
    IntArray,
    Ratings,
    choose,
    cross_fitted,
    fit_content,
    parts,
)
from perse.data.evidence.others import NOBODY, Others
from perse.data.evidence.table import EvidenceRow
from perse.errors import BadInput
from perse.identity import text_key
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import Evidence, PointwiseExample, Review

DIGITS = 4
"""Decimals of an estimate that are kept: more depend on the machine."""

Penalties = tuple[float, float]


def evidence_rows(
    reviews: Sequence[Review],
    readers: Collection[str],
    examples: Sequence[PointwiseExample],
    works: Mapping[str, str],
    vectors: Vectors,
    *,
    fold: int | None = None,
    new_texts: bool = False,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> tuple[list[EvidenceRow], Penalties]:
    """A row for each of `reviews`, in their order, and the penalties that were chosen.

    Args:
        readers: those of the training side.
        examples: of the training side, which choose the penalties.
        works: review_id -> the work reviewed (`perse.data.works`): what is left out of the texts is left out with its like.
        new_texts: validation asks about texts of which training knows none.
        seed: of the parts.
        on_progress: told how many models are fitted.
    Raises:
        BadInput: no training review; or as `vectors`.
    """
    place = TextRows()
    rows = np.array([place(one.text) for one in reviews], dtype=np.int64)
    asked = asked_of([one for one in examples if one.reference], place)
    embedded = vectors(list(place.row_of))
    numbers = {reader: number for number, reader in enumerate(sorted(readers))}
    mine = np.array([numbers.get(one.reviewer_id, -1) for one in reviews], dtype=np.int64)
    score = np.array([one.score for one in reviews], dtype=np.float64)
    known = mine >= 0
    if not known.any():
        raise BadInput("the training side holds no review, so that it says nothing of any text; build with more readers")
    ratings = Ratings(mine, rows, score).only(known)
    of_text = _parts_of_texts(reviews, rows, works, len(embedded), seed=seed) if new_texts else None
    gold = np.array([one.reference.score for one in examples if one.reference], dtype=np.float64)
    whose = np.array([numbers[one.reviewer_id] for one in examples if one.reference], dtype=np.int64)
    pair = choose(embedded, ratings, asked, gold, whose, of_text=of_text, seed=seed, on_progress=on_progress).pair
    of_reader = _parts_of_readers(len(numbers), seed=seed)
    left_out = cross_fitted(embedded, ratings, [pair], of_reader=of_reader, of_text=of_text)[0]  # (P, T)
    whole = fit_content(embedded, ratings, pair).of_texts(embedded)
    others = Others(reviews, readers)
    found = []
    for one, text, reader in zip(reviews, rows.tolist(), mine.tolist(), strict=True):
        part = int(of_reader[reader]) if reader >= 0 else None
        number, mean, spread = NOBODY if new_texts else others.of(one.item_id, one.reviewer_id)
        found.append(
            EvidenceRow(
                fold=fold,
                review_id=one.review_id,
                part=part,
                others=number,
                mean=mean,
                spread=spread,
                estimate=round(float(whole[text] if part is None else left_out[part, text]), DIGITS),
                shrinkage=pair[1],
            )
        )
    return found, pair


def with_evidence(
    examples: Sequence[PointwiseExample],
    reviews: Sequence[Review],
    readers: Collection[str],
    works: Mapping[str, str],
    vectors: Vectors,
    *,
    penalties: Penalties,
    names: Mapping[str, str],
    new_texts: bool = False,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> list[PointwiseExample]:
    """Examples that are in no data set, such as of new readers and new texts, with the evidence that they would have in this one.

    A text is known by itself: an item id that means another text there says nothing.

    Args:
        reviews, readers, works, new_texts, seed: as they were given to `evidence_rows`.
        penalties: that it chose.
        names: name in `examples` -> name in the data set, of readers who are called otherwise there.
        on_progress: told how many models are fitted that leave readers out; none where no example is of a training reader.
    Raises:
        BadInput: as `evidence_rows`.
    """
    place = TextRows()
    rows = np.array([place(one.text) for one in reviews], dtype=np.int64)
    of_set = len(place.row_of)
    asked = asked_of(examples, place)
    embedded = vectors(list(place.row_of))
    numbers = {reader: number for number, reader in enumerate(sorted(readers))}
    mine = np.array([numbers.get(one.reviewer_id, -1) for one in reviews], dtype=np.int64)
    ratings = Ratings(mine, rows, np.array([one.score for one in reviews], dtype=np.float64)).only(mine >= 0)
    whole = fit_content(embedded, ratings, penalties).of_texts(embedded)
    called = [names.get(example.reviewer_id, example.reviewer_id) for example in examples]
    of_reader, left_out = _parts_of_readers(len(numbers), seed=seed), np.empty((0, 0))
    if not numbers.keys().isdisjoint(called):
        of_text = None
        if new_texts:  # texts that the set has not are a part of their own: leaving it out leaves nothing out
            of_known = _parts_of_texts(reviews, rows, works, of_set, seed=seed)
            of_text = np.concatenate([of_known, np.full(len(embedded) - of_set, of_known.max() + 1)])
        [left_out] = cross_fitted(embedded, ratings, [penalties], of_reader=of_reader, of_text=of_text, on_progress=on_progress)
    others, items = Others(reviews, readers), _items_of_texts(reviews)

    def told(example: PointwiseExample, reader: str, query: int, shown: Sequence[int]) -> PointwiseExample:
        values = left_out[of_reader[numbers[reader]]] if reader in numbers else whole
        there = items.get(text_key(example.query), ())
        item = example.item_id if example.item_id in there else next(iter(there), None)
        number, mean, spread = NOBODY if new_texts or item is None else others.of(item, reader)
        estimate, *estimates = (round(float(values[text]), DIGITS) for text in (query, *shown))
        past = zip(example.profile, estimates, strict=True)
        return example.model_copy(
            update={
                "profile": tuple(one.model_copy(update={"estimate": value}) for one, value in past),
                "evidence": Evidence(others=number, mean=mean, spread=spread, estimate=estimate, shrinkage=penalties[1]),
            }
        )

    ends = np.cumsum(np.bincount(asked.example, minlength=len(examples)))
    shown = [part.tolist() for part in np.split(asked.shown, ends)[:-1]]
    return [told(*each) for each in zip(examples, called, asked.query.tolist(), shown, strict=True)]


def _items_of_texts(reviews: Sequence[Review]) -> dict[str, dict[str, None]]:
    """text key -> the ids of its items, in order."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in reviews:
        found[text_key(one.text)][one.item_id] = None
    return found


def _parts_of_readers(count: int, *, seed: int) -> IntArray:
    return parts(count, min(READER_PARTS, count), np.random.default_rng([seed, 2]))


def _parts_of_texts(
    reviews: Sequence[Review], rows: np.ndarray, works: Mapping[str, str], texts: int, *, seed: int
) -> np.ndarray:
    """The part of each text, (T,): texts of one work are in one."""
    names = {work: number for number, work in enumerate(sorted(set(works.values())))}
    of_work = parts(len(names), TEXT_PARTS, np.random.default_rng([seed, 3]))
    found = np.zeros(texts, dtype=np.int64)
    for one, row in zip(reviews, rows.tolist(), strict=True):
        found[row] = of_work[names[works[one.review_id]]]
    return found
