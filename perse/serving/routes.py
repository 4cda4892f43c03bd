"""The judge's routes, the same in vLLM's server and on the embedded engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request

from perse.judgement import Judgement
from perse.questions import Question
from perse.records import ClaimsExample
from perse.serving.described import OF_BODIES, keyed_router, operation_id
from perse.serving.front.keys import Scope
from perse.serving.problems import Busy, NotAllowed, NotThere, ProblemRoute
from perse.serving.readers.store import Reader, Readers
from perse.serving.requests import Route, judge_routes
from perse.serving.schemas import (
    EachClaim,
    ErrorBody,
    QuestionCard,
    Questions,
    Ready,
    Results,
    Version,
)
from perse.serving.service import JudgeService

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A body that is not JSON, or a field that does not fit."},
    404: {"model": ErrorBody, "description": "A model that is not served here."},
    422: {
        "model": ErrorBody,
        "description": "One item that is too long even with an empty profile; the numbers are in `details`.",
    },
    500: {"model": ErrorBody, "description": "The engine failed at this request."},
    503: {"model": ErrorBody, "description": "No room now, with Retry-After; or the engine is gone."},
    504: {"model": ErrorBody, "description": "Not answered within the server's time limit, and given up."},
}

POINTWISE = {
    "input": {
        "profile": [
            {"text": "A lighthouse keeper answers letters that were never sent.", "review": "Quiet and warm.", "score": 9},
            {"text": "Two racing drivers swap lives and cars.", "review": "All noise.", "score": 3},
        ],
        "query": "A retired postman walks his old round one last time.",
    }
}

_PAIRWISE = {
    "input": {
        "aspect": "Ending",
        "profile": [
            {"text_a": "They part for good.", "text_b": "They marry at sea.", "preference": {"Ending": "A"}},
        ],
        "query": {"text_a": "The bridge opens without her.", "text_b": "She cuts the ribbon, and everyone cheers."},
    }
}

_SHOWN = MappingProxyType({"pointwise": POINTWISE, "pairwise": _PAIRWISE})
"""A request of each kind, for the server's own pages."""


def judge_router() -> APIRouter:
    """All routes; they find the `JudgeService` at `app.state.judge`."""
    router = APIRouter(generate_unique_id_function=operation_id)
    keyed, free = (
        keyed_router("judge"),
        APIRouter(route_class=ProblemRoute, tags=["judge"], generate_unique_id_function=operation_id),
    )

    for route in judge_routes().values():
        keyed.add_api_route(
            route.path,
            _asked_at(route),
            methods=["POST"],
            name=f"judge_{route.kind.kind}",
            summary=route.kind.kind.capitalize(),
            description=_says(route),
            responses=OF_BODIES | _ERRORS,
        )

    @keyed.get("/v1/judge/questions")
    async def questions() -> Questions:
        """The questions, with JSON Schemas."""
        return Questions(
            questions=[_card(route, question) for route in judge_routes().values() for question in route.questions]
        )

    @free.head("/ready", include_in_schema=False)
    @free.get("/ready", responses={503: _ERRORS[503]})
    async def ready(request: Request) -> Ready:
        """Whether the judge is ready; not once the server is stopping."""
        if request.app.state.front.gate.draining:
            raise Busy("the server is stopping", 1)
        await request.app.state.judge_alive()
        return Ready()

    @keyed.get("/version")
    async def version(request: Request) -> Version:
        """The served programs and models, with digests of the weights."""
        return _service(request).version()

    router.include_router(keyed)
    router.include_router(free)
    return router


def _service(request: Request) -> JudgeService:
    service: JudgeService = request.app.state.judge
    return service


def kept_readers(request: Request) -> Callable[[str], Reader] | None:
    """Readers of this caller's by their names, where the server keeps some."""
    store: Readers | None = getattr(request.app.state, "readers", None)
    owner = request.state.visit.caller

    def kept(reader: str) -> Reader:
        if not owner.may(Scope.READERS):
            raise NotAllowed("this key may not use kept readers; it needs the scope 'readers'")
        found = store.get(owner.name, reader) if store else None
        if found is None:
            raise NotThere(f"there is no reader '{reader}' of yours here; PUT /v1/readers/ID makes one")
        return found.record

    return kept if store else None


def _asked_at(route: Route) -> Callable[..., Awaitable[Judgement | EachClaim | Results]]:
    async def answer(request: Request, asked: Any) -> Judgement | EachClaim | Results:
        return await _service(request).answer(asked, request.is_disconnected, kept_readers(request))

    shown = _SHOWN.get(route.kind.kind)
    answer.__annotations__["asked"] = Annotated[route.request, Body(examples=[shown] if shown else None)]
    return answer


def _says(route: Route) -> str:
    about = (route.kind.__doc__ or "").partition("\n")[0]
    one = "`results`, a judgement for each claim" if route.kind is ClaimsExample else "a judgement"
    return f"{about} One item gives {one}; a list gives `results`, one for each item."


def _card(route: Route, question: Question) -> QuestionCard:
    values = question.scale.values
    return QuestionCard(
        name=question.name,
        route=route.path,
        labels=list(question.scale.labels),
        values=list(values) if values else None,
        writes_text=question.layout.text_prefix is not None,
        request_schema=route.request.model_json_schema(),
        judgement_schema=Judgement.model_json_schema(mode="serialization"),
    )
