"""How different the roles of a document are, before and after clustering: the mean cosine distance of all pairs of invented roles.

Roles of one document vote together, so distances are within documents; static roles, which are the same everywhere, are left out. As many roles drawn at random
would have the distance of before, on average: what is above it is what the choice gains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perse.drpe.clustering import Clustering, Embed, Special, is_dynamic, mean_distance, thinned
from perse.drpe.inventing import Invented
from perse.drpe.over_documents import of_documents
from perse.drpe.roles import Role, static_roles
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Estimate


@dataclass(frozen=True)
class OfDocument:
    """One document's roles, with the static ones, and which of them vote."""

    id: str
    roles: tuple[Role, ...]
    kept: tuple[bool, ...]
    special: Special
    before: float | None
    """Mean distance of its invented roles; None of fewer than two, or where nothing was embedded."""
    after: float | None
    """... of those that vote."""

    @property
    def dynamic(self) -> tuple[tuple[Role, bool], ...]:
        """Invented roles, and whether they vote."""
        return tuple(pair for pair in zip(self.roles, self.kept, strict=True) if is_dynamic(pair[0]))


def thin(
    invented: Iterable[Invented], clustering: Clustering, *, embed: Embed | None, as_they_are: Collection[str] = ()
) -> list[OfDocument]:
    """Each document's roles, clustered.

    Args:
        embed: None only where nothing is clustered; then there are no distances.
        as_they_are: documents whose texts summarize no article, by id: their static roles are others.
    """
    return [_of_document(one, clustering, embed, summaries=one.id not in as_they_are) for one in invented]


def _of_document(one: Invented, clustering: Clustering, embed: Embed | None, *, summaries: bool) -> OfDocument:
    roles = (*static_roles(summaries=summaries), *one.roles)
    found = thinned(roles, clustering, embed=embed)
    kept, votes = [], list(found.kept)
    for role in roles:  # two roles may be equal; the kept ones stand in the order of all
        kept.append(bool(votes) and votes[0] == role)
        votes = votes[1:] if kept[-1] else votes
    before = [role.text for role in one.roles]
    after = [role.text for role, votes in zip(roles, kept, strict=True) if votes and is_dynamic(role)]
    distances = (mean_distance(embed(texts)) if embed and len(texts) > 1 else None for texts in (before, after))
    return OfDocument(one.id, roles, tuple(kept), found.special, *distances)


@dataclass(frozen=True)
class Diversity:
    """Means over documents of which both distances are known; intervals draw documents anew."""

    before: Estimate
    after: Estimate
    gained: Estimate


def diversity(found: Sequence[OfDocument], *, resamples: int, seed: int) -> Diversity:
    """Of all documents."""
    pairs = [(one.before, one.after) for one in found if one.before is not None and one.after is not None]
    before, after = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    rows = np.arange(max(1, len(pairs)))
    draws = Bootstrap.over(rows, resamples=resamples, seed=seed)

    def mean(values: np.ndarray) -> Estimate:
        if not len(values):
            return of_documents(draws.mean(np.zeros(1), np.zeros(1, dtype=bool)))
        return of_documents(draws.mean(values, np.ones(len(values), dtype=bool)))

    return Diversity(mean(before), mean(after), mean(after - before).model_copy(update={"difference": True}))
