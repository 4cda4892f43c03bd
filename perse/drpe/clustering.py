"""Roles that are alike are thinned out: of each cluster of roles one is kept (DRPE, section 3.1).

A role is embedded as "type: description" by Sentence-BERT; vectors have length 1. The later version of the paper has k-means, and keeps the role nearest to each
centre; the first one has DBSCAN, and keeps the one nearest to each cluster's mean. Roles that DBSCAN calls noise are like no other, so each of them is kept. Ties go
to the earlier role: of a cluster of two, both are equally near to the centre, and the first is kept.

Notation: n roles, d numbers a vector.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from perse.drpe.roles import Role
from perse.errors import BadInput
from perse.installing import needing
from perse.models.embeddings import EMBEDDING_MODEL, Embeddings

Method = Literal["kmeans", "dbscan", "none"]
Among = Literal["dynamic", "all"]

Special = Literal["", "few", "alike", "noise"]
"""few: there are fewer roles than k, and all are kept. alike: fewer different roles than k, and one of each kind is kept. noise: DBSCAN found no cluster,
and all are kept."""

Vectors = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Vectors]
"""Texts to vectors of length 1, (n, d)."""

PUBLISHED_K = (0, 2, 4, 6)
"""Of figure 6."""
PUBLISHED_BEST = 4
"""The best there, and the one of table 2."""

_STARTS, _SEED = 10, 0
_DIGITS = 5
"""Decimals in which distances are compared, so that the last bits of a sum decide nothing on another machine."""


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """How roles are thinned out."""

    method: Method = "kmeans"
    k: int = 4
    """k-means: dynamic roles to keep; 0: none."""
    eps: float = 0.5
    """DBSCAN: two roles are alike up to this cosine distance. The paper gives none."""
    min_samples: int = 2
    """DBSCAN: so many roles that are alike, itself among them, make a cluster around a role."""
    among: Among = "dynamic"
    """What is clustered. dynamic: the roles that were invented; static and manual ones stay in any case. all: both together, into k clusters more than there
    are static ones; then a static one can go."""
    model: str = EMBEDDING_MODEL
    """Of the embedding: a folder or a hub name."""

    def __post_init__(self) -> None:
        for name, allowed in (("method", Method), ("among", Among)):
            if getattr(self, name) not in get_args(allowed):
                raise BadInput(f"{name} is '{getattr(self, name)}', expected one of {', '.join(get_args(allowed))}")
        for name, fits, wanted in (
            ("k", self.k >= 0, "0 or more"),
            ("min_samples", self.min_samples >= 1, "1 or more"),
            ("eps", 0 < self.eps <= 2, "above 0 and up to 2"),
        ):
            if not fits:
                raise BadInput(f"{name} is {getattr(self, name):g}, expected {wanted}")


def is_dynamic(role: Role) -> bool:
    """Whether it was invented for a text."""
    return role.source in ("coarse", "fine")


@dataclass(frozen=True)
class Thinned:
    """The roles of one document that vote, in the order given, and what was special about it."""

    kept: tuple[Role, ...]
    special: Special = ""


def kept_roles(roles: Sequence[Role], clustering: Clustering, *, embed: Embed | None = None) -> tuple[Role, ...]:
    """Those of one document's roles that vote, in the order given: see `thinned`."""
    return thinned(roles, clustering, embed=embed).kept


def thinned(roles: Sequence[Role], clustering: Clustering, *, embed: Embed | None = None) -> Thinned:
    """One role of each cluster.

    Args:
        roles: all that were invented for the document, and static or manual ones if they vote.
        embed: by default by `clustering.model`, which is loaded once.
    Raises:
        BadInput: a library or the model is absent.
    """
    standing = {at for at, role in enumerate(roles) if not is_dynamic(role)}
    if clustering.method == "kmeans" and clustering.k == 0:
        return Thinned(tuple(roles[at] for at in sorted(standing)))
    among = [at for at in range(len(roles)) if clustering.among == "all" or at not in standing]
    if clustering.method == "none":
        return Thinned(tuple(roles))
    wanted = clustering.k + (len(standing) if clustering.among == "all" else 0)
    if clustering.method == "kmeans" and wanted >= len(among):
        return Thinned(tuple(roles), "few" if wanted > len(among) else "")
    if not among:
        return Thinned(tuple(roles))
    vectors = (embed or embedding(clustering.model))([roles[at].text for at in among])
    special: Special
    if clustering.method == "kmeans":
        chosen = nearest_to_centres(vectors, wanted)
        special = "alike" if len(chosen) < wanted else ""
    else:
        chosen = nearest_to_means(vectors, eps=clustering.eps, min_samples=clustering.min_samples)
        special = "noise" if 1 < len(chosen) == len(among) and clustering.min_samples > 1 else ""
    kept = {among[at] for at in chosen} | (standing - set(among))
    return Thinned(tuple(roles[at] for at in sorted(kept)), special)


def nearest_to_centres(vectors: Vectors, k: int) -> list[int]:
    """k-means: the place of the member nearest to each centre (Euclidean), in ascending order; fewer than k where fewer vectors differ.

    Args:
        vectors: (n, d), n > k >= 1.
    """
    with needing("data"):
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer different vectors than clusters
        found = KMeans(n_clusters=k, n_init=_STARTS, random_state=_SEED).fit(vectors)
    distances = np.linalg.norm(vectors - found.cluster_centers_[found.labels_], axis=1)  # (n,)
    return _nearest(found.labels_.tolist(), distances)


def nearest_to_means(vectors: Vectors, *, eps: float, min_samples: int) -> list[int]:
    """DBSCAN by cosine distance: the place of the member nearest to each cluster's mean, and of every vector that is noise, in ascending order."""
    with needing("data"):
        from sklearn.cluster import DBSCAN

    labels = DBSCAN(eps=eps, min_samples=min_samples, metric="cosine").fit(vectors).labels_  # (n,), -1 is noise
    distances = np.zeros(len(vectors))
    for label in set(labels.tolist()) - {-1}:
        mean = vectors[labels == label].mean(axis=0)
        distances[labels == label] = 1 - vectors[labels == label] @ mean / (float(np.linalg.norm(mean)) or 1.0)
    alone = (label if label >= 0 else -1 - at for at, label in enumerate(labels.tolist()))  # each noise a cluster of its own
    return _nearest(list(alone), distances)


def mean_distance(vectors: Vectors) -> float | None:
    """The mean cosine distance of all pairs of (n, d) vectors of length 1; None of fewer than two."""
    n = len(vectors)
    return float((1 - vectors @ vectors.T)[np.triu_indices(n, 1)].mean()) if n > 1 else None


@lru_cache(maxsize=1)
def embedding(model: str) -> Embed:
    """What embeds roles; the last one that was asked for stays loaded.

    Raises:
        BadInput: a library or the model is absent.
    """
    with needing("data"):
        return Embeddings(model)


def _nearest(labels: Sequence[int], distances: Vectors) -> list[int]:
    """The place of the member with the least distance of each label, the first of equal ones, in ascending order."""
    rounded = np.round(distances, _DIGITS)
    best: dict[int, int] = {}
    for at, label in enumerate(labels):
        if label not in best or rounded[at] < rounded[best[label]]:
            best[label] = at
    return sorted(best.values())
