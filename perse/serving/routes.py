"""The judge's routes, the same in vLLM's server and on the embedded engine."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request

from perse.judgement import Judgement
from perse.questions import QUESTIONS
from perse.questions.pointwise import Pointwise
from perse.serving.problems import ProblemRoute
from perse.serving.schemas import (
    ErrorBody,
    PairwiseRequest,
    PointwiseRequest,
    QuestionCard,
    Questions,
    Ready,
    Results,
    Version,
)
from perse.serving.service import JudgeService

REQUESTS: dict[str, tuple[str, type[PointwiseRequest] | type[PairwiseRequest]]] = {
    **{
        name: ("/v1/judge/pointwise", PointwiseRequest)
        for name, question in QUESTIONS.items()
        if isinstance(question, Pointwise)
    },
    "pairwise": ("/v1/judge/pairwise", PairwiseRequest),
}
"""Where each question is asked, and with what."""

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A body that is not JSON, or a field that does not fit."},
    404: {"model": ErrorBody, "description": "A model that is not served here."},
    422: {
        "model": ErrorBody,
        "description": "One item that is too long even with an empty profile; the numbers are in `details`.",
    },
    500: {"model": ErrorBody, "description": "The engine failed at this request."},
    503: {"model": ErrorBody, "description": "The engine is gone."},
}

POINTWISE_EXAMPLE = {
    "input": {
        "profile": [
            {"text": "A lighthouse keeper answers letters that were never sent.", "review": "Quiet and warm.", "score": 9},
            {"text": "Two racing drivers swap lives and cars.", "review": "All noise.", "score": 3},
        ],
        "query": "A retired postman walks his old round one last time.",
    }
}

PAIRWISE_EXAMPLE = {
    "input": {
        "aspect": "Ending",
        "profile": [
            {"text_a": "They part for good.", "text_b": "They marry at sea.", "preference": {"Ending": "A"}},
        ],
        "query": {"text_a": "The bridge opens without her.", "text_b": "She cuts the ribbon, and everyone cheers."},
    }
}


def judge_router() -> APIRouter:
    """All routes; they find the `JudgeService` at `app.state.judge`."""
    router = APIRouter(route_class=ProblemRoute, tags=["judge"])

    @router.post("/v1/judge/pointwise", responses=_ERRORS)
    async def pointwise(
        request: Request, asked: Annotated[PointwiseRequest, Body(examples=[POINTWISE_EXAMPLE])]
    ) -> Judgement | Results:
        """Would this reader like this text, and what would they say? One item gives a judgement, a list gives `results`."""
        return await _service(request).answer(asked, request.is_disconnected)

    @router.post("/v1/judge/pairwise", responses=_ERRORS)
    async def pairwise(
        request: Request, asked: Annotated[PairwiseRequest, Body(examples=[PAIRWISE_EXAMPLE])]
    ) -> Judgement | Results:
        """Which of two texts would this reader prefer, on one aspect? One item gives a judgement, a list gives `results`."""
        return await _service(request).answer(asked, request.is_disconnected)

    @router.get("/v1/judge/questions")
    async def questions() -> Questions:
        """What can be asked, with JSON Schemas."""
        return Questions(questions=[_card(name) for name in REQUESTS])

    @router.get("/ready", responses={503: _ERRORS[503]})
    async def ready(request: Request) -> Ready:
        """Whether judgements can be had now."""
        await request.app.state.judge_alive()
        return Ready()

    @router.get("/version")
    async def version(request: Request) -> Version:
        """What is served: programs, models, digests of the weights."""
        return _service(request).version()

    return router


def _service(request: Request) -> JudgeService:
    service: JudgeService = request.app.state.judge
    return service


def _card(name: str) -> QuestionCard:
    question = QUESTIONS[name]
    route, request = REQUESTS[name]
    values = question.scale.values
    return QuestionCard(
        name=name,
        route=route,
        labels=list(question.scale.labels),
        values=list(values) if values else None,
        writes_text=question.layout.free_stem is not None,
        request_schema=request.model_json_schema(),
        judgement_schema=Judgement.model_json_schema(mode="serialization"),
    )
