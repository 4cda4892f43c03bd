"""The profile that a kept reader's question is asked with: which of the past entries, and in which order.

Nothing that is asked about is shown (DESIGN.md, promise 5): entries about the same text, or nearly, or the same item are left out.
Entries are kept oldest first, and shown so. `recent` takes the last; the other ways are those of `perse.data.profiles.selection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perse.data.profiles.selection import selection
from perse.identity import draw
from perse.records import Comparison, PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, Review
from perse.records.near import near_duplicate
from perse.serving.readers.store import Reader
from perse.serving.schemas import Pick


def shown(
    kept: Reader, example: PointwiseExample | PairwiseExample, *, k: int | None, pick: Pick, seed: int
) -> PointwiseExample | PairwiseExample:
    """The example with a profile of at most `k` of what is kept, by default all: what does not fit leaves it later, oldest first.

    Raises:
        BadInput: what `pick` needs is not installed.
    """
    entries: Sequence[Any] = kept.reviews if isinstance(example, PointwiseExample) else kept.comparisons
    others = [one for one in entries if not _with(example, (one,)).gives_away(near_duplicate)]
    if k is None or k >= len(others):
        return _with(example, tuple(others))
    if pick == "recent":
        return _with(example, tuple(others[len(others) - k :]))
    records = [_record(one, str(place)) for place, one in enumerate(others)]
    chosen = selection(pick).prepare(records)(_query(example), records, k, draw(seed, example.id, "profile"))
    return _with(example, tuple(others[place] for place in sorted(records.index(one) for one in chosen)))


def _with(example: PointwiseExample | PairwiseExample, profile: tuple[Any, ...]) -> PointwiseExample | PairwiseExample:
    return example.model_copy(update={"profile": profile})


def _record(entry: ProfileReview | ProfileComparison, name: str) -> Review | Comparison:
    if isinstance(entry, ProfileReview):
        return Review(
            review_id=name,
            reviewer_id="",
            item_id=entry.item_id or name,
            text=entry.text,
            review=entry.review or "",
            score=entry.score,
            original_score=entry.score,
            time=entry.time,
        )
    return Comparison(
        comparison_id=name,
        reviewer_id="",
        pair_id=name,
        text_a=entry.text_a,
        text_b=entry.text_b,
        premise=entry.premise,
        preference=entry.preference,
    )


def _query(example: PointwiseExample | PairwiseExample) -> Review | Comparison:
    if isinstance(example, PointwiseExample):
        return _record(ProfileReview.model_construct(text=example.query, score=1), "query")  # which may be blank
    return _record(ProfileComparison(text_a=example.query.text_a, text_b=example.query.text_b, preference={}), "query")
