"""Examples as the arrays that `content` computes with: whose scores, of which texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perse.data.evidence.content import Asked, Ratings
from perse.records import PointwiseExample


class TextRows:
    """The row of each text, in the order in which they are met."""

    def __init__(self) -> None:
        self.row_of: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.row_of.setdefault(text, len(self.row_of))


def asked_of(examples: Sequence[PointwiseExample], place: TextRows) -> Asked:
    """The examples as arrays, their texts given rows of `place`."""
    shown = [(n, past) for n, example in enumerate(examples) for past in example.profile]
    return Asked(
        query=np.array([place(example.query) for example in examples], dtype=np.int64),
        example=np.array([n for n, _ in shown], dtype=np.int64),
        shown=np.array([place(past.text) for _, past in shown], dtype=np.int64),
        score=np.array([past.score for _, past in shown], dtype=np.float64),
    )


def ratings_of(train: Sequence[PointwiseExample], place: TextRows) -> tuple[dict[str, int], Ratings]:
    """The number of each reader, and the scores of references and profiles, each review once, however many examples show it."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for example in train:
        for past in example.profile:
            found[example.reviewer_id, past.item_id or past.text] = past.text, past.score
        if example.reference:
            found[example.reviewer_id, example.item_id] = example.query, example.reference.score
    readers = {reader: number for number, reader in enumerate(sorted({reader for reader, _ in found}))}
    for example in train:  # one who gave no score has a number, too
        readers.setdefault(example.reviewer_id, len(readers))
    return readers, Ratings(
        reader=np.array([readers[reader] for reader, _ in found], dtype=np.int64),
        text=np.array([place(text) for text, _ in found.values()], dtype=np.int64),
        score=np.array([score for _, score in found.values()], dtype=np.float64),
    )
