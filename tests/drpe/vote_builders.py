"""Documents by hand, roles, and a voter that says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from perse.drpe.documents import Candidate, Document, Documents
from perse.drpe.roles import Role
from perse.drpe.votes.ballots import Voting
from perse.drpe.votes.readers import Reader
from perse.drpe.votes.voting import vote
from perse.engines.base import Failure, Reply
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.rendering.prompt import TextRenderer

Said = str | Reply | Failure

SAILOR = Role(type="Sailor", description="Asks whether the ferry sails.", source="coarse")
CLERK = Role(type="Clerk", description="Wants every date.", source="fine")
ROLES = (SAILOR, CLERK)


def document(number: int = 1, candidates: Sequence[str] = ("It sails.", "It sank."), **fields: object) -> Document:
    """About ferry n, with one reference; systems are M1, M2 and so on."""
    return Document(
        id=f"d{number}",
        article=f"Ferry {number} sails again, says the harbour.",
        references=(f"Ferry {number} sails again.",),
        candidates=tuple(
            Candidate(system=f"M{n}", text=text, scores={"coherence": float(n)}) for n, text in enumerate(candidates, start=1)
        ),
    ).model_copy(update=fields)


def texts_of(message: str) -> tuple[str, str]:
    """Texts A and B of a prompt."""
    found = re.search(r"\[Text A\]\n(.*?)\n\[Text B\]\n(.*?)\n(?:\[User|Which)", message, flags=re.DOTALL)
    assert found is not None, message
    return found[1], found[2]


def usual(message: str, seed: int = 0) -> Said:
    """Everybody votes for whatever does not say "sank", and for A if neither does."""
    return all_for("B" if "sank" in texts_of(message)[0] else "A", message)


def all_for(side: str, message: str) -> str:
    """Everybody who is asked votes for that text."""
    numbers = re.findall(r"(?m)^\[User (\d+)\]", message)
    if not numbers:
        return f"Reason: so it is.\nVote: Text {side}"
    return "\n".join(f"Reason {n}: so it is for {n}.\nVote {n}: Text {side}" for n in numbers)


class Poll:
    """A scripted judge, and what it was asked."""

    def __init__(self, reply: Callable[[str, int], Said] = usual) -> None:
        self.asked: list[str] = []

        def say(message: str, seed: int) -> Said:
            self.asked.append(message)
            return reply(message, seed)

        self.judge = Judge(ScriptedEngine(say), TextRenderer(), name="scripted")

    def vote(
        self,
        out: Path,
        documents: Sequence[Document],
        roles: Sequence[Role] = ROLES,
        *,
        readers: Sequence[Reader] = (),
        left_out: int = 0,
        roles_left_out: int = 0,
        **settings: object,
    ) -> Path:
        return vote(
            self.judge,
            Documents(tuple(documents), left_out),
            {one.id: roles for one in documents},
            out,
            Voting(**settings),  # type: ignore[arg-type]
            readers=readers,
            roles_left_out=roles_left_out,
        )
