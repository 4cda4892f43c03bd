"""Who is asked about what: one ballot for each candidate, reference, order and role (DRPE, section 3.2, figure 5).

A ballot knows the id of the judgement that answers it, which depends on the texts, the role and the wording alone: two systems that wrote the same summary
are asked about once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from pydantic import ConfigDict, Field

from perse.drpe.documents import Document
from perse.drpe.roles import Role
from perse.drpe.votes.readers import Past, Reader
from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.identity import text_key
from perse.questions import QUESTIONS
from perse.records import (
    Choice,
    Pair,
    PairwiseExample,
    ProfileComparison,
    ProfileReview,
    ReaderVoteExample,
    VoteExample,
    Voter,
    VotesExample,
)
from perse.records.near import near_duplicate
from perse.strict import Name, Strict, name_problem

Prompting = Literal["single", "batch"]
"""A role a prompt, or all roles in one."""
Question = VoteExample | VotesExample | ReaderVoteExample | PairwiseExample
"""A reader who is known by comparisons is asked as judges of pairs are."""
PAIRS = QUESTIONS["pairwise_once"]
"""What readers who are known by comparisons are asked: in the given order alone, since each order has its own ballot."""
PROMPTINGS: tuple[Prompting, ...] = get_args(Prompting)
NAMES: Mapping[Prompting, str] = {"single": "a role a prompt", "batch": "all roles in one prompt"}
"""In words."""

WORDINGS = (0, 1, 2, 3, 4)
"""Of the task; the paper averages over five."""
ORDERS: tuple[Choice, ...] = ("B", "A")
"""Which text the candidate is: the second one, as published, and then the first."""


@dataclass(frozen=True, kw_only=True)
class Voting:
    """How votes are asked for."""

    prompting: tuple[Prompting, ...] = ("single",)
    orders: int = 2
    """1: as published, with the reference first. 2: in both orders, so that a lean towards a place can be seen."""
    references: int = 1
    """Of each document, the first so many; a candidate's score is the mean over them."""
    wordings: tuple[int, ...] = (0,)
    """Which of five wordings of the prompt; a candidate's score is the mean over them."""
    max_new_tokens: int = 64
    """Of one reason."""
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.prompting or set(self.prompting) - set(PROMPTINGS):
            raise BadInput(f"prompting is {', '.join(self.prompting) or 'none'}, expected {' or '.join(PROMPTINGS)}, or both")
        if not self.wordings or set(self.wordings) - set(WORDINGS) or len(set(self.wordings)) < len(self.wordings):
            found = ", ".join(map(str, self.wordings)) or "none"
            raise BadInput(f"wordings are {found}, expected different ones of {WORDINGS[0]} to {WORDINGS[-1]}")
        for name, low, high in (("orders", 1, 2), ("references", 1, 1000), ("max_new_tokens", 4, 100_000)):
            if not low <= getattr(self, name) <= high:
                raise BadInput(f"{name} is {getattr(self, name)}, expected from {low} to {high}")


class Ballot(Strict):
    """One vote that is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document: Name
    system: Name
    reference: int = Field(ge=1)
    """Which of the document's, from 1."""
    candidate: Choice
    """Which text the candidate is."""
    prompting: Prompting
    wording: int = Field(default=0, ge=0, le=4)
    role: Role | None
    """None: nobody in particular."""
    judgement: Name | None
    """The id of its answer; None: the candidate is the reference, and nobody is asked."""


@dataclass(frozen=True)
class Ballots:
    """All ballots, and what to ask by prompting, each thing once."""

    ballots: tuple[Ballot, ...]
    examples: Mapping[Prompting, Sequence[Question]]
    unreferenced: tuple[str, ...]
    """Documents without a reference, which are left out."""


def make_ballots(
    documents: Sequence[Document], roles: Mapping[str, Sequence[Role]], voting: Voting, readers: Sequence[Reader] = ()
) -> Ballots:
    """The ballots of all documents; those about one article stand side by side, so that they share the work on it.

    Args:
        roles: who votes on each document, by its id; an empty sequence, and no readers: nobody in particular, which is the plain comparison.
        readers: who votes on all documents beside them, each in a prompt of their own.
    Raises:
        BadInput: no document has a reference, or an id or a system cannot be a name.
    """
    _refuse_odd_names(documents, readers)
    whole = [one for one in documents if one.references]
    if not whole:
        raise BadInput(
            "no document has a reference, with which candidates are compared; give documents with 'references' ('refs' in SummEval)"
        )
    ballots: list[Ballot] = []
    examples: dict[Prompting, dict[str, Question]] = {prompting: {} for prompting in voting.prompting}
    for document, prompting, wording in product(whole, voting.prompting, voting.wordings):
        who = tuple(roles[document.id]) or (() if readers else (None,))
        pairs = product(
            document.candidates, enumerate(document.references[: voting.references], start=1), ORDERS[: voting.orders]
        )
        for candidate, (number, reference), side in pairs:
            same = text_key(candidate.text) == text_key(reference)
            texts = (candidate.text, reference) if side == "A" else (reference, candidate.text)
            pair = Pair(text_a=texts[0], text_b=texts[1])
            asked = (*_asked(document, pair, who, prompting, wording), *_of_readers(document, pair, readers))
            for role, judgement, example in asked:
                ballots.append(
                    Ballot(
                        document=document.id, system=candidate.system, reference=number, candidate=side,
                        prompting=prompting, wording=wording, role=role, judgement=None if same else judgement,
                    )
                )  # fmt: skip
                if not same:
                    examples[prompting].setdefault(example.id, example)
    return Ballots(
        tuple(ballots),
        {prompting: tuple(of_one.values()) for prompting, of_one in examples.items()},
        tuple(one.id for one in documents if not one.references),
    )


def _refuse_odd_names(documents: Sequence[Document], readers: Sequence[Reader]) -> None:
    """Of what was read from a file all are names; Python may have made others."""
    names = [
        *(("document", one.id) for one in documents),
        *(("system", candidate.system) for one in documents for candidate in one.candidates),
        *(("reader", one.id) for one in readers),
    ]
    for what, name in names:
        if problem := name_problem(name):
            raise BadInput(f"{what} {shortened(name)}: {problem}; give it another name")


def _asked(
    document: Document, pair: Pair, who: Sequence[Role | None], prompting: Prompting, wording: int
) -> Iterator[tuple[Role | None, str, VoteExample | VotesExample]]:
    """Each role with the id of its judgement, and the question that it is asked in."""
    name = f"{document.id}/{_digest(document.article or '', pair.text_a, pair.text_b, str(wording))}"
    roles = [role for role in who if role is not None]
    if prompting == "batch" and roles:
        together = VotesExample(
            id=f"{name}/{_digest(*(role.text for role in roles))}",
            reviewer_id=document.id,
            article=document.article,
            query=pair,
            voters=tuple(map(_voter, roles)),
            wording=wording,
        )
        yield from ((role, one.id, together) for role, one in zip(roles, together.each(), strict=True))
        return
    for role in who:
        alone = VoteExample(
            id=f"{name}/{'plain' if role is None else _digest(role.text)}",
            reviewer_id=document.id,
            article=document.article,
            query=pair,
            voter=None if role is None else _voter(role),
            wording=wording,
        )
        yield role, alone.id, alone


def _of_readers(
    document: Document, pair: Pair, readers: Sequence[Reader]
) -> Iterator[tuple[Role, str, ReaderVoteExample | PairwiseExample]]:
    """Votes of real readers, who are asked in one wording, and whose answer counts in each.

    What a reader has said of one of the two texts is not shown; a reader who is then left with nothing does not vote on them.
    """
    for reader in readers:
        name = f"{document.id}/{_digest(document.article or '', pair.text_a, pair.text_b)}/{reader.digest}"
        shown = [
            past for past in reader.profile if not any(near_duplicate(a, b) for a, b in product(_texts(past), _texts(pair)))
        ]
        example = _of_reader(name, reader, shown, document, pair) if shown else None
        if example is not None:
            yield reader.role, example.id, example


def _of_reader(
    name: str, reader: Reader, shown: Sequence[Past], document: Document, pair: Pair
) -> ReaderVoteExample | PairwiseExample:
    """The article, if there is one, is the premise of two texts that a judge of pairs chooses between."""
    if reader.aspect is None:
        reviews = tuple(past for past in shown if isinstance(past, ProfileReview))
        return ReaderVoteExample(id=name, reviewer_id=reader.id, profile=reviews, article=document.article, query=pair)
    return PairwiseExample(
        id=name,
        reviewer_id=reader.id,
        aspect=reader.aspect,
        profile=tuple(past for past in shown if isinstance(past, ProfileComparison)),
        query=pair.model_copy(update={"premise": document.article}),
    )


def _texts(of: Past | Pair) -> tuple[str, ...]:
    return (of.text,) if isinstance(of, ProfileReview) else (of.text_a, of.text_b)


def _voter(role: Role) -> Voter:
    return Voter(type=role.type, description=role.description)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
