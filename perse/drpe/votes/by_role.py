"""How often each kind of voter votes for the candidates: the same role on all documents, invented roles together by the prompt that they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.drpe.over_documents import of_documents
from perse.drpe.votes.ballots import Ballot, Prompting
from perse.evaluation.stats.estimates import NO_ITEMS, Bootstrap
from perse.judgement import Judgement
from perse.results.result import Estimate

INVENTED = {"coarse": "invented, by occupation and intent", "fine": "invented, by what they know"}
NOBODY = "nobody in particular"


@dataclass(frozen=True)
class ByRole:
    """One kind of voter. `source` as of roles, "" for nobody in particular; `votes`: the share for the candidate, with an interval over documents."""

    name: str
    source: str
    votes: Estimate
    asked: int


def by_role(
    ballots: Sequence[Ballot],
    answers: Mapping[Prompting, Mapping[str, Judgement]],
    prompting: Prompting,
    *,
    resamples: int,
    seed: int,
) -> tuple[ByRole, ...]:
    """In the order in which the roles vote; a vote that did not come back counts in `asked` alone."""
    groups: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
    for ballot in ballots:
        if ballot.prompting != prompting or ballot.judgement is None:
            continue
        answer = answers[prompting].get(ballot.judgement)
        label = None if answer is None else answer.label
        groups.setdefault(_group(ballot), []).append(
            (ballot.document, None if label is None else float(label == ballot.candidate))
        )
    return tuple(
        ByRole(name, source, _share(votes, resamples=resamples, seed=seed), len(votes))
        for (name, source), votes in groups.items()
    )


def _group(ballot: Ballot) -> tuple[str, str]:
    role = ballot.role
    if role is None:
        return NOBODY, ""
    return INVENTED.get(role.source, role.type), role.source


def _share(votes: Sequence[tuple[str, float | None]], *, resamples: int, seed: int) -> Estimate:
    known = [(document, vote) for document, vote in votes if vote is not None]
    if not known:
        return Estimate(value=None, interval=NO_ITEMS, items=0)
    documents = np.unique([document for document, _ in known], return_inverse=True)[1].astype(np.int64)
    draws = Bootstrap.over(documents, resamples=resamples, seed=seed)
    values = np.array([vote for _, vote in known], dtype=np.float64)
    return of_documents(draws.share(values, np.ones(len(values), dtype=bool)))
