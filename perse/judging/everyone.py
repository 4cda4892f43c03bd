"""Readers and texts, as examples: every reader is asked about every text that they have not reviewed, or about their candidates.

A text that a reader's own past shows, by its id, word for word or as a near-duplicate, is not asked about: the answer would stand in the
question (DESIGN.md, promise 5).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perse.errors import BadInput
from perse.identity import catalogue_id
from perse.records import PointwiseExample, ProfileReview, Review
from perse.records.dates import oldest_first
from perse.records.near import NearIndex
from perse.scale import OwnScale

log = logging.getLogger(__name__)
FEW, STARS = 10, 5


@dataclass(frozen=True)
class Everyone:
    """What is asked, in the order of the readers and their texts, or of the candidates; each id is `catalogue_id(reader, text)`."""

    examples: list[PointwiseExample]
    left_out: int
    """How many more were wanted and are not asked about, since the reader's own reviews have the text."""


def everyone(
    reviews: Iterable[Review],
    texts: Mapping[str, str],
    *,
    only: Sequence[tuple[str, str]] | None = None,
    k: int | None = None,
    scale: OwnScale | None = None,
) -> Everyone:
    """The examples of these readers and texts.

    Args:
        texts: item_id -> text.
        only: the candidates, (reviewer_id, item_id) of what is asked about; None for all.
        k: the latest reviews of each reader that are shown (by their times, where all are dates; else by their order); None for all.
        scale: of the readers, where it is another than 1 to 10; `Review.score` is on 1 to 10 whatever it is.
    Raises:
        BadInput: a candidate twice, of nobody, or of no text; nothing is left to ask.
    """
    past = _by_reader(reviews)
    if scale is None:
        _warn_of_stars([review.score for own in past.values() for review in own])
    seen = _seen(past, texts)
    profiles = {reader: _profile(own, k) for reader, own in past.items()}
    wanted = [*(_every(past, texts) if only is None else _checked(only, past, texts))]
    asked = [(reader, item) for reader, item in wanted if item not in seen[reader]]
    if not asked:
        raise BadInput(
            "nothing is left to judge: the readers' own reviews have every text that they would be asked about; give texts that are new to them"
        )
    examples = [
        PointwiseExample(
            id=catalogue_id(reader, item),
            reviewer_id=reader,
            item_id=item,
            profile=profiles[reader],
            query=texts[item],
            own_scale=scale,
        )
        for reader, item in asked
    ]
    return Everyone(examples, len(wanted) - len(asked))


def _warn_of_stars(scores: Sequence[int]) -> None:
    """Five stars are the scale of most reviews, and 5 of 10 is half of it."""
    if len(scores) >= FEW and max(scores) <= STARS:
        log.warning(
            "none of the %d scores is above %d, and they are taken to be of 1 to 10; if %d is the highest that there is, give the scale: --scale 1-%d, "
            "in Python scale=(1, %d)",
            *(len(scores), *[STARS] * 4),
        )


def _by_reader(reviews: Iterable[Review]) -> dict[str, list[Review]]:
    past: dict[str, list[Review]] = {}
    for review in reviews:
        past.setdefault(review.reviewer_id, []).append(review)
    return past


def _profile(own: Sequence[Review], k: int | None) -> tuple[ProfileReview, ...]:
    ordered = oldest_first(own)
    return tuple(
        ProfileReview(text=one.text, review=one.review, score=one.score, item_id=one.item_id, time=one.time)
        for one in (ordered if k is None else ordered[len(ordered) - min(k, len(ordered)) :])
    )


def _seen(past: Mapping[str, Sequence[Review]], texts: Mapping[str, str]) -> dict[str, set[str]]:
    """reader -> the items of `texts` that their reviews are about."""
    index = NearIndex(texts.values())
    same: list[list[str]] = [[] for _ in index.texts]
    for item, text in texts.items():
        same[index.place(text)].append(item)
    shown = {review.text for own in past.values() for review in own}
    near = {text: {item for place in places for item in same[place]} for text, places in index.near(shown)}
    return {reader: {item for one in own for item in (one.item_id, *near[one.text])} for reader, own in past.items()}


def _every(readers: Iterable[str], texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((reader, item) for reader in readers for item in texts)


def _checked(
    only: Sequence[tuple[str, str]], past: Mapping[str, object], texts: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    met: set[tuple[str, str]] = set()
    for reader, item in only:
        if reader not in past:
            raise BadInput(
                f"the candidates name the reader '{reader}', of whom there is no review; give some, or leave the row out"
            )
        if item not in texts:
            raise BadInput(f"the candidates name the text '{item}', which is none of the texts; give it, or leave the row out")
        if (reader, item) in met:
            raise BadInput(f"the candidates name reader '{reader}' and text '{item}' twice; keep one")
        met.add((reader, item))
        yield reader, item
