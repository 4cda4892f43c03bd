"""Unpersonalized few-shot: other readers' answers in place of a profile, the same for every query.

An instruct model that sees the form of answers but nothing of the reader: the judge that a
personalized one must beat. The shots are training examples of as many readers, drawn by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from perse.data.examples_file import shown_query
from perse.errors import BadInput
from perse.identity import shuffled
from perse.records import PersonalExample

Shown = TypeVar("Shown", bound=PersonalExample)


def with_shots(examples: Sequence[Shown], train: Sequence[Shown], *, shots: int, seed: int) -> list[Shown]:
    """Each example with the answers of `shots` readers of `train` as its profile; of pairs, answers on the asked aspect.

    A shot that shows the query gives its place to the next one.

    Raises:
        BadInput: too few readers with an answer, for some example.
    """
    order = shuffled((example.id for example in train if example.reference), seed=seed, purpose="shots")
    by_id = {example.id: example for example in train}
    readers: dict[tuple[str, str | None], Shown] = {}
    for drawn in map(by_id.__getitem__, order):  # one answer a reader, and of pairs one for each aspect
        readers.setdefault((drawn.reviewer_id, drawn.aspect), drawn)
    return [_shot(example, list(readers.values()), shots) for example in examples]


def _shot(example: Shown, drawn: Sequence[Shown], shots: int) -> Shown:
    kept: list[object] = []
    for donor in drawn:
        if len(kept) == shots:
            break
        if donor.reviewer_id == example.reviewer_id or donor.aspect != example.aspect:
            continue
        entry = donor.as_entry()
        if not shown_query(example.model_copy(update={"profile": (entry,)})):
            kept.append(entry)
    if len(kept) < shots:
        raise BadInput(
            f"example '{example.id}' can be shown {len(kept)} answers of other readers, not {shots}; ask for fewer shots"
        )
    return example.model_copy(update={"profile": tuple(kept)})
