"""Documents and roles by hand, and a scripted model that invents roles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from perse.drpe.documents import Candidate, Document
from perse.drpe.roles import Role, Source
from perse.engines.base import Failure, Reply
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.rendering.prompt import TextRenderer
from perse.writing.writer import Writer

Said = str | Reply | Failure


def role(kind: str, description: str = "Wants to know.", source: Source = "coarse") -> Role:
    return Role(type=kind, description=description, source=source)


def document(number: int = 1, *, article: str | None = "", references: tuple[str, ...] = ("What happened.",)) -> Document:
    """Number n; an empty article stands for a usual one."""
    text = f"Story {number}: a bridge was closed." if article == "" else article
    candidate = Candidate(system="M1", text=f"A bridge closed, {number}.", scores={"coherence": 3.0})
    return Document(id=f"d{number}", article=text, references=references, candidates=(candidate,))


def readers(*pairs: tuple[str, str]) -> str:
    """An answer in the form that is asked for."""
    return json.dumps({"Readers": [{"Who": kind, "About": description} for kind, description in pairs]})


def is_fine(message: str) -> bool:
    return "How much do different people know" in message


KINDS = (("Drivers", "They want another way."), ("Builders", "They ask why it broke."), ("Nurses", "They must get to work."))


def usual(message: str) -> str:
    """A good answer of four; it says what it was made of, so that different prompts get different answers."""
    mark = sum(map(ord, message)) % 10_000
    own = ("Neighbours", f"They saw it, {mark}.") if is_fine(message) else ("Teachers", f"They tell of it, {mark}.")
    return readers(*KINDS, own)


class Inventor:
    """A scripted model, and what it was asked, in order."""

    def __init__(self, reply: Callable[[str], Said] = usual, *, name: str = "scripted") -> None:
        self.asked: list[str] = []
        self._reply, self._name = reply, name

    @property
    def writer(self) -> Writer:
        def reply(message: str, seed: int) -> Said:
            self.asked.append(message)
            return self._reply(message)

        return Writer(Judge(ScriptedEngine(reply, batch=1, name=self._name), TextRenderer(), name=self._name))


def documents_file(folder: Path, *documents: Document) -> Path:
    """A file as the commands read it."""
    path = folder / "documents.jsonl"
    path.write_text("".join(one.model_dump_json() + "\n" for one in documents), "utf-8")
    return path
