"""Splits reviewers and items into training and validation (PerSE, section 4.1: 9:1 by reviewer).

`reviewer`: no reviewer on both sides. The default for reviews.

`reviewer_item`: no item (pair) on both sides either, not even in profiles. The default for pairs (PerSE, section 4.2).

- Reviews: the works are split at random, too; validation draws queries and profiles from the validation works only, training
  from the training works only. Choosing validation reviewers and dropping from training all that they reviewed would be
  simpler, but a tenth of the reviewers together know nearly every work. With the share of works at 0.3, movie_critics keeps
  6,394 of 7,361 examples (394 of 741 for validation); at 0.1 validation keeps 159, at 0.5 training loses 1,600.
- Pairs: few annotators judge the same pair, so splitting the pairs at random as well would lose most of the small side without
  need. The validation annotators are chosen and their examples drawn first; then training does without the pairs that
  these examples touch: 2 to 10 of some 230 examples of story_endings. What is kept apart is the pair (plot pairs of the
  validation set unseen, section 4.2): one of its texts may stand in training in another pair, and a build counts how many do.

Folds (cross-fitting) put every reviewer in exactly one fold. With `reviewer_item` the training side of a fold leaves out
those examples that touch a pair of its validation side; this is decided when a fold is asked for, by `sides`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from perse.data.profiles.profiles import ExampleRow
from perse.errors import BadInput
from perse.identity import shuffled
from perse.records import Comparison, Review

SplitBy = Literal["reviewer", "reviewer_item"]

Record = TypeVar("Record", Review, Comparison)


def valid_share(ids: Iterable[str], *, share: float, seed: int, what: str) -> frozenset[str]:
    """The ids drawn for validation: `share` of them, at least one, and at least one left for training.

    Raises:
        BadInput: fewer than two ids.
    """
    order = shuffled(ids, seed=seed, purpose=f"split by {what}")
    if len(order) < 2:
        raise BadInput(
            f"{len(order)} {what} left after the filters, expected at least 2: one to train on and one to validate on"
        )
    count = min(max(1, int(len(order) * share + 0.5)), len(order) - 1)
    return frozenset(order[:count])


def reviewer_folds(reviewers: Iterable[str], *, folds: int, seed: int) -> dict[str, int]:
    """reviewer_id -> fold, from 0; the folds' sizes differ by one at most.

    Raises:
        BadInput: fewer reviewers than folds.
    """
    order = shuffled(reviewers, seed=seed, purpose="folds")
    if len(order) < folds:
        raise BadInput(
            f"{len(order)} reviewers left after the filters, fewer than the {folds} folds; lower --folds or the filters"
        )
    return {reviewer: place % folds for place, reviewer in enumerate(order)}


def review_pools(
    reviews: Mapping[str, Sequence[Review]], works: Mapping[str, str], *, valid: frozenset[str], valid_works: frozenset[str]
) -> dict[str, list[Review]]:
    """For each reviewer the reviews of their own side's works: all that `reviewer_item` lets them be asked about or shown."""
    return {
        reviewer: [review for review in theirs if (works[review.review_id] in valid_works) == (reviewer in valid)]
        for reviewer, theirs in reviews.items()
    }


def touched(rows: Iterable[ExampleRow], comparisons: Mapping[str, Comparison]) -> frozenset[str]:
    """The pair ids of the queries and profiles of `rows`."""
    return frozenset(comparisons[one].pair_id for row in rows for one in (row.query_id, *row.profile_ids))


def sides(
    rows: Sequence[ExampleRow], fold: int | None, *, apart: Mapping[str, Comparison] | None
) -> tuple[list[ExampleRow], list[ExampleRow]]:
    """(training, validation) rows; with folds, `fold` is the validation side.

    Args:
        apart: the comparisons by id where the pairs of the two sides must differ; training rows that cross are left out.
    """
    if fold is None:
        return [row for row in rows if row.split == "train"], [row for row in rows if row.split == "valid"]
    train, valid = [row for row in rows if row.fold != fold], [row for row in rows if row.fold == fold]
    return train if apart is None else uncrossed(train, valid, apart), valid


def uncrossed(train: Sequence[ExampleRow], valid: Sequence[ExampleRow], apart: Mapping[str, Comparison]) -> list[ExampleRow]:
    """The rows of `train` that hold no pair that a row of `valid` holds."""
    theirs = touched(valid, apart)
    return [row for row in train if theirs.isdisjoint(touched([row], apart))]
