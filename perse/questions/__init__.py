"""The questions a judge can answer, by name. A new question is one new file and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from perse.errors import BadInput
from perse.questions.base import Ask, Question
from perse.questions.pairwise import Pairwise
from perse.questions.pointwise import Pointwise, PointwiseScore
from perse.records import Example, PairwiseExample

QUESTIONS: dict[str, Question] = {q.name: q for q in (Pointwise(), PointwiseScore(), Pairwise())}

__all__ = ["QUESTIONS", "Ask", "Question", "question_for"]


def question_for(examples: Sequence[Example], name: str | None = None) -> Question:
    """The question `name`, or the usual one for these examples, checked to fit them.

    Raises:
        BadInput: no such question, or one that asks for the other kind of example.
    """
    pairwise = bool(examples) and isinstance(examples[0], PairwiseExample)
    if name is None:
        name = "pairwise" if pairwise else "pointwise"
    if name not in QUESTIONS:
        raise BadInput(f"there is no question '{name}'; choose from {', '.join(QUESTIONS)}")
    question = QUESTIONS[name]
    if examples and not isinstance(examples[0], question.example_type):
        found = "pairs" if pairwise else "single texts"
        raise BadInput(f"question '{name}' does not fit: the examples are {found}; leave the question out to get the usual one")
    return question
