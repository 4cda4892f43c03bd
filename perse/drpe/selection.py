"""Which candidates are looked at: the two best and the two worst of each document, as in the paper, or all.

The paper takes from each of SummEval's documents those of the highest and lowest mean of the four dimensions that experts gave. What it does with ties it does
not say, and there are many, since few experts give few grades. Here the order of the file decides: of equal candidates the earlier one is taken, the best first,
then the worst of those that are left. A candidate that lacks a dimension has another mean than the others, so it is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perse.drpe.documents import Candidate, Document, Documents
from perse.errors import BadInput

Which = Literal["extremes", "all"]
References = Literal["first", "best"]
"""That a candidate is compared with: a document's first, or all, of which the best value counts."""
Key = tuple[str, str]
"""A candidate: its document's id and its system."""

BEST = WORST = 2
"""As published."""
_ROUNDED = 12
"""Decimals of a mean: means of the same grades in another order are ties."""


@dataclass(frozen=True)
class Item:
    """A candidate that is looked at."""

    document: Document
    candidate: Candidate
    people: float
    """The mean of people's scores over the dimensions."""

    @property
    def key(self) -> Key:
        return self.document.id, self.candidate.system


@dataclass(frozen=True)
class Selected:
    """The candidates in the order of the file, and what was left out."""

    items: tuple[Item, ...]
    which: Which
    dimensions: tuple[str, ...]
    """Of which people's mean is the mean."""
    documents: int
    """All that were given."""
    unscored: int
    """Candidates that lack people's score in some dimension."""
    too_few: int
    """Documents with too few candidates for two best and two worst ones; none of theirs is looked at."""
    tied: int
    """Documents of which the order of the file decided who is in."""
    between: int
    """Candidates of the documents looked at that are neither among the best nor among the worst."""


def select(documents: Documents, *, which: Which = "extremes", dimensions: Sequence[str] = ()) -> Selected:
    """Args:
        dimensions: those that people's mean is of; by default all that the file has.

    Raises:
        BadInput: people scored nothing, a dimension that the file does not have, or no document has enough candidates.
    """
    there = dimensions_of(documents)
    if not there:
        raise BadInput(
            "no candidate has people's scores, so there is nothing to correlate with; give SummEval's lines, or candidates with "
            '"scores": {"coherence": 4.3}'
        )
    if unknown := [name for name in dimensions if name not in there]:
        raise BadInput(f"no candidate has a score for '{unknown[0]}'; there are {', '.join(there)}")
    chosen = tuple(name for name in there if name in dimensions) if dimensions else there
    scored = [(document, _scored(document, chosen)) for document in documents.documents]
    enough = [of_one for _, of_one in scored if which == "all" or len(of_one) >= BEST + WORST]
    items = [item for of_one in enough for item in (of_one if which == "all" else extremes(of_one))]
    if not items:
        raise BadInput(
            f"none of the {len(scored)} documents has {BEST + WORST} candidates with people's scores of {', '.join(chosen)}; give documents with more (or correlate them with --candidates all)"
        )
    return Selected(
        items=tuple(items),
        which=which,
        dimensions=chosen,
        documents=len(scored),
        unscored=sum(len(document.candidates) - len(of_one) for document, of_one in scored),
        too_few=len(scored) - len(enough),
        tied=0 if which == "all" else sum(map(tied, enough)),
        between=sum(map(len, enough)) - len(items),
    )


def dimensions_of(documents: Documents) -> tuple[str, ...]:
    """Every dimension that people gave some candidate, in the order of the file."""
    candidates = (one for document in documents.documents for one in document.candidates)
    return tuple(dict.fromkeys(name for one in candidates for name in one.scores or ()))


def extremes(items: Sequence[Item]) -> list[Item]:
    """The two best and the two worst of one document's, at least four, in the order of the file."""
    best = sorted(range(len(items)), key=lambda at: -items[at].people)[:BEST]  # sorting keeps the order of equal ones
    left = [at for at in range(len(items)) if at not in best]
    worst = sorted(left, key=lambda at: items[at].people)[:WORST]
    return [items[at] for at in sorted(best + worst)]


def tied(items: Sequence[Item]) -> bool:
    """Whether another order of the file would take others: someone who is out has the mean of someone who is in."""
    inside = extremes(items)
    means = {one.people for one in inside}
    return any(one.people in means for one in items if one not in inside)


def _scored(document: Document, dimensions: Sequence[str]) -> list[Item]:
    return [
        Item(document, one, round(_mean(one.scores, dimensions), _ROUNDED))
        for one in document.candidates
        if one.scores and all(name in one.scores for name in dimensions)
    ]


def _mean(scores: Mapping[str, float], dimensions: Sequence[str]) -> float:
    return sum(scores[name] for name in dimensions) / len(dimensions)
