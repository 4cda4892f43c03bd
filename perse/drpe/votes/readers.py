"""Real readers as roles: some reviewers of a data set, each known by the reviews of their profile, chosen so that their tastes differ.

A reader's taste is where their liking points among the texts they reviewed: the mean embedding of these texts, each weighed by how far its score lies above or
below the middle of the scale. k-means over tastes; the reader nearest to each centre votes, and stands for the readers of that cluster.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perse.data.load import load_examples
from perse.drpe.roles import Role
from perse.errors import BadInput
from perse.installing import needing
from perse.records import PointwiseExample, ProfileReview, Split

PREFIX = "readers:"
"""What stands before the data set's name."""

MIDDLE = 5.5
"""Of a scale from 1 to 10; no score is there, so every review weighs something."""

Vectors = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Any]
"""Texts to vectors of length 1, (n, d)."""

_STARTS, _SEED = 10, 0


@dataclass(frozen=True)
class Reader:
    """A reader who votes. `stands_for`: readers of the data set whose taste is nearest to theirs, themselves among them."""

    id: str
    profile: tuple[ProfileReview, ...]
    stands_for: int

    @property
    def role(self) -> Role:
        """As a ballot names them."""
        count = len(self.profile)
        return Role(type=self.id, description=f"known by {count} review{'s' if count > 1 else ''}", source="reader")

    @property
    def digest(self) -> str:
        """Of all that the judge is shown of them."""
        shown = "\0".join(past.model_dump_json() for past in self.profile)
        return hashlib.sha256(f"{self.id}\0{shown}".encode()).hexdigest()[:16]


def choose_readers(path: Path, k: int, embed: Embed, *, split: Split = "valid") -> tuple[Reader, ...]:
    """`k` readers of a data set, or all where it has no more, in the order of their ids.

    Raises:
        BadInput: no such data set, one that is not of reviews, or none of whose readers has a profile.
    """
    profiles: dict[str, tuple[ProfileReview, ...]] = {}
    for example in load_examples(path, split=split).examples:
        if not isinstance(example, PointwiseExample):
            raise BadInput(
                f"{path} holds {type(example).plural}; readers vote by the reviews that they wrote: give a data set of these"
            )
        if example.profile:
            profiles.setdefault(example.reviewer_id, example.profile)
    if not profiles:
        raise BadInput(f"no reader of {path} has a profile; build the data set with --k 1 or more")
    if k < 1:
        raise BadInput(f"{k} readers are to vote, expected 1 or more")
    names = sorted(profiles)
    if k >= len(names):
        return tuple(Reader(name, profiles[name], 1) for name in names)
    tastes = np.stack([taste(profiles[name], embed) for name in names])
    places, sizes = _clustered(tastes, k)
    return tuple(Reader(names[at], profiles[names[at]], size) for at, size in zip(places, sizes, strict=True))


def taste(profile: Sequence[ProfileReview], embed: Embed) -> Vectors:
    """(d,), of length 1: the texts of a profile, weighed by (score - MIDDLE)."""
    vectors: Vectors = np.asarray(embed([past.text for past in profile]), dtype=np.float64)
    weights = np.array([past.score - MIDDLE for past in profile])
    summed: Vectors = weights @ vectors
    length = float(np.linalg.norm(summed))
    return summed / length if length > 0 else summed


def _clustered(tastes: Vectors, k: int) -> tuple[list[int], list[int]]:
    """The place of the reader nearest to each centre, the first of equal ones, in ascending order, and the size of its cluster."""
    with needing("data"):
        from sklearn.cluster import KMeans

    found = KMeans(n_clusters=k, n_init=_STARTS, random_state=_SEED).fit(tastes)
    distances = np.round(np.linalg.norm(tastes - found.cluster_centers_[found.labels_], axis=1), 5)
    sizes = Counter(found.labels_.tolist())
    nearest = {label: min(np.flatnonzero(found.labels_ == label), key=lambda at: (distances[at], at)) for label in sizes}
    ordered = sorted((int(at), sizes[label]) for label, at in nearest.items())
    return [at for at, _ in ordered], [size for _, size in ordered]
