"""What the training side already holds of what is judged: readers, and the very answers that are in question.

A judge that was trained on a reader is not tested on unseen ones; and a baseline that is fitted to the answers it is asked for knows them, so that it says nothing
about a judge. Both are said beside the numbers.
"""

from __future__ import annotations

from perse.evaluation.alignment import Items
from perse.evaluation.predictions import only
from perse.records import Example, PointwiseExample

NO_TEST = "this is no test on unseen readers"
"""How the note ends that says so."""


def seen_in_training(items: Items) -> list[str]:
    """Reviewers may be in the training side of another fold, but not of their own."""
    asked = {example.reviewer_id for example in items.examples}
    seen: set[str | None] = set()
    for fold in items.folds:
        trained = {example.reviewer_id for example in fold.train or ()}
        seen |= trained & {example.reviewer_id for example in fold.examples}
    if not seen:
        return []
    known = answered_in_training(items)
    also = (
        f", and the answers to {known} of {len(items.examples)} items: rows that are fitted to it know these" if known else ""
    )
    return [f"{len(seen)} of {len(asked)} reviewers are also in the training data{also}; {NO_TEST}"]


def answered_in_training(items: Items) -> int:
    """Items whose own answer is in the training side of their fold, be it as a reference or in a profile."""

    def key(example: Example) -> tuple[str | None, str | None, str]:
        about = example.item_id if isinstance(example, PointwiseExample) else getattr(example, "query", example.id)
        return example.reviewer_id, getattr(example, "aspect", None), str(about)

    count = 0
    for fold in items.folds:
        readers = {example.reviewer_id for example in fold.examples}
        theirs = [example for example in fold.train or () if example.reviewer_id in readers]
        known = {key(example) for example in theirs if example.reference}
        known |= {
            (one.reviewer_id, None, past.item_id or past.text) for one in only(PointwiseExample, theirs) for past in one.profile
        }
        count += sum(key(example) in known for example in fold.examples)
    return count
