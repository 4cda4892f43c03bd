"""Documents with people's scores, as small as a test needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perse.drpe.documents import Candidate, Document, Documents


def candidate(system: str, text: str = "A text.", **scores: float) -> Candidate:
    return Candidate(system=system, text=text, scores=scores or None)


def document(name: str, *candidates: Candidate, references: Sequence[str] = ("A reference.",)) -> Document:
    return Document(id=name, references=tuple(references), candidates=tuple(candidates))


def graded(name: str, grades: Mapping[str, float], references: Sequence[str] = ("A reference.",)) -> Document:
    """A document whose candidates have one score each, of relevance."""
    made = [candidate(system, f"Summary of {name} by {system}.", relevance=grade) for system, grade in grades.items()]
    return document(name, *made, references=references)


def documents(*given: Document) -> Documents:
    return Documents(tuple(given))
