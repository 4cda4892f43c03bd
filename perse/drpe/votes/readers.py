"""Real readers as roles: some reviewers of a data set, each known by the reviews or the comparisons of their profile, chosen so that their tastes differ.

A reader's taste is where their liking points among the texts they know: the mean embedding of the texts that they reviewed, each weighed by how far its score
lies above or below the middle of the scale; of pairs the mean of what they chose minus what they did not. k-means over tastes; the reader nearest to each centre
votes, and stands for the readers of that cluster.
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
from perse.data.profiles.views import ProfileAspects, asked_alone
from perse.drpe.roles import Role
from perse.errors import BadInput
from perse.installing import needing
from perse.records import PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, Split

PREFIX = "readers:"
"""What stands before the data set's name."""

MIDDLE = 5.5
"""Of a scale from 1 to 10; no score is there, so every review weighs something."""

Vectors = npt.NDArray[np.float64]
Past = ProfileReview | ProfileComparison
Embed = Callable[[Sequence[str]], Any]
"""Texts to vectors of length 1, (n, d)."""

_STARTS, _SEED = 10, 0


@dataclass(frozen=True)
class Reader:
    """A reader who votes. `stands_for`: readers of the data set whose taste is nearest to theirs, themselves among them."""

    id: str
    profile: tuple[Past, ...]
    """Reviews, or comparisons; never both."""
    stands_for: int
    aspect: str | None = None
    """Of comparisons: what the reader votes on."""

    @property
    def role(self) -> Role:
        """As a ballot names them."""
        count = len(self.profile)
        known = f"known by {count} {'review' if self.aspect is None else 'comparison'}{'s' if count > 1 else ''}"
        return Role(type=self.id, description=known if self.aspect is None else f"{known}, on {self.aspect}", source="reader")

    @property
    def shows_others(self) -> bool:
        """Whether some comparison shows an answer on another aspect than the one that is voted on."""
        return any(past.preference.keys() - {self.aspect} for past in self.profile if isinstance(past, ProfileComparison))

    @property
    def digest(self) -> str:
        """Of all that the judge is shown of them."""
        shown = "\0".join(past.model_dump_json() for past in self.profile)
        return hashlib.sha256(f"{self.id}\0{self.aspect or ''}\0{shown}".encode()).hexdigest()[:16]


def choose_readers(
    path: Path,
    k: int,
    embed: Embed,
    *,
    aspect: str | None = None,
    split: Split = "valid",
    profile_aspects: ProfileAspects = "all",
) -> tuple[Reader, ...]:
    """`k` readers of a data set, or all where it has no more, in the order of their ids.

    Args:
        aspect: of a data set of pairs: what readers vote on; by default its first by name.
        profile_aspects: which answers of a comparison the judge is shown; "asked": the one on `aspect` alone.
    Raises:
        BadInput: no such data set, one that is neither of reviews nor of pairs, one without this aspect, or none of whose readers has a profile.
    """
    if k < 1:
        raise BadInput(f"{k} readers are to vote, expected 1 or more")
    aspect, profiles = _profiles(path, aspect, split=split, profile_aspects=profile_aspects)
    if not profiles:
        raise BadInput(f"no reader of {path} has a profile; build the data set with --k 1 or more")
    names = sorted(profiles)
    if k >= len(names):
        return tuple(Reader(name, profiles[name], 1, aspect) for name in names)
    tastes = np.stack([taste(profiles[name], embed, aspect=aspect) for name in names])
    places, sizes = _clustered(tastes, k)
    return tuple(Reader(names[at], profiles[names[at]], size, aspect) for at, size in zip(places, sizes, strict=True))


def _profiles(
    path: Path, aspect: str | None, *, split: Split, profile_aspects: ProfileAspects
) -> tuple[str | None, dict[str, tuple[Past, ...]]]:
    """What readers are known by, and the aspect of pairs."""
    examples = load_examples(path, split=split).examples
    pairs = [one for one in examples if isinstance(one, PairwiseExample)]
    reviews = [one for one in examples if isinstance(one, PointwiseExample)]
    if strange := next((one for one in examples if not isinstance(one, PairwiseExample | PointwiseExample)), None):
        raise BadInput(
            f"{path} holds {type(strange).plural}; readers vote by the reviews that they wrote, or the pairs that they compared: give a data set of these"
        )
    found: dict[str, tuple[Past, ...]] = {}
    if not pairs:
        if aspect is not None:
            raise BadInput(f"--aspect is of data sets of pairs, and {path} holds reviews; leave it out")
        for review in reviews:
            if review.profile:
                found.setdefault(review.reviewer_id, review.profile)
        return None, found
    there = sorted({one.aspect for one in pairs})
    if aspect is not None and aspect not in there:
        raise BadInput(f"{path} has no aspect '{aspect}'; there are {', '.join(there)}")
    chosen = aspect or there[0]
    for pair in pairs:
        seen = asked_alone(pair) if profile_aspects == "asked" else pair
        if seen.profile and pair.aspect == chosen:
            found.setdefault(pair.reviewer_id, seen.profile)
    return chosen, found


def taste(profile: Sequence[Past], embed: Embed, *, aspect: str | None = None) -> Vectors:
    """(d,), of length 1: the texts of a profile, reviewed ones weighed by (score - MIDDLE), of two compared ones the chosen one by 1, the other by -1.

    Args:
        aspect: which choice of a comparison counts; one that lacks it has no weight.
    """
    weighed: list[tuple[str, float]] = []
    for past in profile:
        if isinstance(past, ProfileReview):
            weighed.append((past.text, past.score - MIDDLE))
        elif choice := past.preference.get(aspect or ""):
            sign = 1.0 if choice == "A" else -1.0
            weighed += [(past.text_a, sign), (past.text_b, -sign)]
    vectors: Vectors = np.asarray(embed([text for text, _ in weighed] or [""]), dtype=np.float64)
    summed: Vectors = np.array([weight for _, weight in weighed] or [0.0]) @ vectors
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
