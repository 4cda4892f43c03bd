"""Requests over HTTP: a route for each type of example that a served question is about, with a request of its own.

All of it is derived: a question that says what it asks for (`Question.served`) is asked at `/v1/judge/KIND`, the kind being that of
its examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field, SkipValidation, create_model

from perse.questions import QUESTIONS, Question
from perse.records import Served
from perse.serving.schemas import Asking, ClaimsItem, Item, PairwiseItem, PointwiseItem
from perse.strict import Name

IDEMPOTENCY_KEY = "Idempotency-Key"
"""The header by which what is sent again, because its answer was lost, is known."""
LONGEST_ID = 200
"""Characters of a reader's name."""


@dataclass(frozen=True)
class Route:
    """The route and the request of questions about one type of example."""

    kind: type[Served]
    questions: tuple[Question, ...]
    request: type[Asking]

    @property
    def path(self) -> str:
        return f"/v1/judge/{self.kind.kind}"

    @property
    def usual(self) -> str:
        """The question that is asked where a request names none."""
        return str(self.request.model_fields["question"].default)


@cache
def judge_routes() -> dict[str, Route]:
    """By the kind of their examples, in the order of the questions."""
    asked: dict[type[Served], list[Question]] = {}
    for question in QUESTIONS.values():
        if question.served is not None:
            asked.setdefault(question.example_type, []).append(question)
    return {kind.kind: Route(kind, tuple(some), _request(kind, some)) for kind, some in asked.items()}


def _request(kind: type[Served], questions: Sequence[Question]) -> type[Asking]:
    item: Any = _item(kind)
    names = tuple(question.name for question in questions)
    usual = next((question.name for question in questions if question.usual), names[0])
    told = ". ".join(f"`{question.name}`: {question.served}" for question in questions)
    request = create_model(
        f"{kind.kind.title()}Request",
        __base__=Asking,
        # Items are checked one by one, so that a bad one does not fail the rest.
        input=(SkipValidation[item | list[item]], Field(description="One item, or a list.")),  # type: ignore[misc]
        question=(Literal[names], Field(usual, description=f"{told}.")),  # type: ignore[arg-type]
    )
    request.item = item
    return request


def _item(kind: type[Served]) -> type[Item]:
    """The item type of a question, or by default its example without required id and reviewer."""
    own = next((item for item in (PointwiseItem, PairwiseItem, ClaimsItem) if item.example_type is kind), None)
    if own is not None:
        return own
    assert issubclass(kind, BaseModel), kind
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in kind.model_fields.items()}
    fields |= {"id": (Name | None, None), "reviewer_id": (Name, "reader")}
    item = create_model(f"{kind.kind.title()}Item", __base__=Item, **fields)
    item.example_type = kind
    return item
