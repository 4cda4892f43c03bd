"""Every candidate with its votes, as the page's script reads them: numbers to filter and order by, and each vote with its reason as a reference to a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from perse.drpe.documents import Candidate, Document
from perse.drpe.votes.ballots import NAMES, Ballot, Prompting
from perse.drpe.votes.run_folder import Run
from perse.drpe.votes.scoring import Decision, confidence, decisions
from perse.reporting.packing import Numbered, Packed, kept, pack

Key = tuple[str, str]
"""Document and system."""


@dataclass(frozen=True)
class Candidates:
    """What the page shows of the candidates."""

    packed: Packed
    shown: int
    there: int
    """Candidates before some were left out."""


def pack_candidates(documents: Sequence[Document], run: Run, *, most: int, seed: int) -> Candidates:
    """Args:
    documents: of the run; those of their candidates that were voted on are shown.
    most: candidates to keep: those that lack a vote first, then a random draw of the others.
    seed: of the draw.
    """
    decided = _by_prompting(run.decisions, run)
    # Votes that are taken for granted, of a candidate that is a reference, are for scores alone: nobody gave them.
    asked = _by_prompting(decisions([one for one in run.ballots if one.judgement is not None], run.answers), run)
    there = [
        (document, candidate)
        for document in documents
        for candidate in document.candidates
        if any((document.id, candidate.system) in of_one for of_one in decided.values())
    ]
    names = [_name(document, candidate) for document, candidate in there]
    silent = {
        _name(document, candidate)
        for document, candidate in there
        for of_one in asked.values()
        if (one := of_one.get((document.id, candidate.system))) is not None and one.answered < one.asked
    }
    chosen = set(kept(names, silent, most=most, seed=seed))
    shown = [each for each, name in zip(there, names, strict=True) if name in chosen]
    ballots: dict[tuple[Key, Prompting], list[Ballot]] = {}
    for ballot in run.ballots:
        ballots.setdefault(((ballot.document, ballot.system), ballot.prompting), []).append(ballot)
    texts = Numbered()
    details = [_detail(document, candidate, run, ballots, texts) for document, candidate in shown]
    keys = [(document.id, candidate.system) for document, candidate in shown]
    head = {
        "id": [_name(document, candidate) for document, candidate in shown],
        "document": [document.id for document, _ in shown],
        "system": [candidate.system for _, candidate in shown],
        "people": [_people(candidate) for _, candidate in shown],
        "promptings": [NAMES[prompting] for prompting in decided],
        "runs": [
            {
                **_columns([asked[prompting].get(key) for key in keys]),
                "same": [key in of_one and of_one[key].same for key in keys],
            }
            for prompting, of_one in decided.items()
        ],
    }
    return Candidates(pack(head, texts, details), shown=len(shown), there=len(there))


def _by_prompting(found: Sequence[Decision], run: Run) -> dict[Prompting, dict[Key, Decision]]:
    by: dict[Prompting, dict[Key, Decision]] = {prompting: {} for prompting in run.answers}
    for one in found:
        by[one.prompting][one.key] = one
    return by


def _name(document: Document, candidate: Candidate) -> str:
    return f"{document.id} · {candidate.system}"


def _people(candidate: Candidate) -> float | None:
    """The mean of what people gave it."""
    return round(fmean(candidate.scores.values()), 3) if candidate.scores else None


def _columns(found: Sequence[Decision | None]) -> dict[str, list[Any]]:
    """None: nobody was asked."""
    return {
        **{
            name: [None if one is None else _rounded(getattr(one, name)) for one in found]
            for name in ("score", "expected", "votes", "order_gap", "turned")
        },
        "missing": [None if one is None else one.asked - one.answered for one in found],
    }


def _detail(
    document: Document,
    candidate: Candidate,
    run: Run,
    ballots: Mapping[tuple[Key, Prompting], Sequence[Ballot]],
    texts: Numbered,
) -> dict[str, Any]:
    key = document.id, candidate.system
    return {
        "article": None if document.article is None else texts.number(document.article),
        "text": texts.number(candidate.text),
        "references": [texts.number(one) for one in document.references[: int(run.settings.get("references", 1))]],
        "people": dict(candidate.scores or {}),
        "votes": [[_vote(one, run, texts) for one in ballots.get((key, prompting), ())] for prompting in run.answers],
    }


def _vote(ballot: Ballot, run: Run, texts: Numbered) -> dict[str, Any]:
    """One ballot and its answer. `vote`: whether it is for the candidate; None where there is none."""
    answer = run.answers[ballot.prompting].get(ballot.judgement) if ballot.judgement else None
    label = None if answer is None else answer.label
    role = ballot.role
    return {
        "role": None if role is None else texts.number(role.type),
        "description": None if role is None else texts.number(role.description),
        "source": None if role is None else role.source,
        "reference": ballot.reference,
        "wording": ballot.wording,
        "first": ballot.candidate == "A",
        "asked": ballot.judgement is not None,
        "vote": None if label is None else label == ballot.candidate,
        "chance": _rounded(answer.distribution[ballot.candidate]) if answer is not None and answer.distribution else None,
        "sure": None if answer is None else _rounded(confidence(answer)),
        "reason": texts.number(answer.text) if answer is not None and answer.text else None,
        "error": texts.number(answer.error) if answer is not None and answer.error else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
