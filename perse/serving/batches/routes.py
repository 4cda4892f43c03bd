"""Routes of batches: a caller's own, at `app.state.batches`. What is asked is what /v1/judge/KIND takes, and so is what is answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Request, Response
from pydantic import BaseModel, Field, ValidationError

from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.records import explain
from perse.serving.batches.judging import Judging
from perse.serving.batches.kept import Batch, Once
from perse.serving.described import OF_BODIES, keyed_router
from perse.serving.problems import NotThere
from perse.serving.requests import IDEMPOTENCY_KEY, judge_routes
from perse.serving.routes import POINTWISE, kept_readers
from perse.serving.schemas import Asking, ErrorBody, Results

PATH = "/v1/judge/batches"


class BatchRequest(Asking):
    """A list of items to be judged in the server's own time."""

    kind: str = Field("pointwise", description="Of the items, as in /v1/judge/KIND.")
    question: str | None = Field(None, description="By default the usual one of this kind.")  # type: ignore[assignment]
    input: list[Any] = Field(description="Items, as /v1/judge/KIND takes them.")


class BatchStatus(BaseModel):
    """A batch, and how far it is."""

    batch: str
    status: Literal["waiting", "running", "done"]
    kind: str
    question: str
    model: str
    items: int
    answered: int
    failed: int
    """Of those, the ones without a judgement."""
    created: datetime
    done: datetime | None
    removed: datetime | None
    """When its answers will be gone, once it is done."""


class BatchList(BaseModel):
    """The caller's batches, the oldest first."""

    batches: list[BatchStatus]


class Deleted(BaseModel):
    """A batch whose items and answers are gone."""

    batch: str
    deleted: bool = True


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A body that is not JSON, or a field that does not fit."},
    404: {"model": ErrorBody, "description": "No such batch of this caller, or a server that keeps none."},
    409: {
        "model": ErrorBody,
        "description": "Results before the batch is done, more batches than may be kept, or a key that was sent with another batch.",
    },
    503: {"model": ErrorBody, "description": "Nothing can be written now."},
}


def batch_router() -> APIRouter:
    """The routes under /v1/judge/batches."""
    router = keyed_router("batches", _ERRORS)

    @router.post(PATH, responses=OF_BODIES)
    async def submit(
        request: Request, asked: Annotated[BatchRequest, Body(examples=[_EXAMPLE])], idempotency_key: _Key = None
    ) -> BatchStatus:
        """Keep a list of items, and judge them beside the requests of clients who wait."""
        judging, caller = _judging(request), request.state.visit.caller
        once = _once(request.headers.get(IDEMPOTENCY_KEY), asked)
        if known := judging.batches.known(caller.name, once):
            return _status(judging, known)
        service, readers = request.app.state.judge, kept_readers(request)
        wanted = _wanted(asked)
        settings = asdict(service.settings_of(wanted))
        read = await service.read(wanted, readers)
        model = wanted.model or service.base
        fields = {
            **wanted.model_dump(include={"question", "k", "pick"}, exclude_none=True),
            **settings,
            "model": model,
            "sha256": service.models[model].digest,
        }
        items = [
            None if isinstance(one, ErrorBody) else {**item, "id": one.id} for item, one in zip(wanted.input, read, strict=True)
        ]
        bad = [(n, one.model_dump(mode="json")) for n, one in enumerate(read) if isinstance(one, ErrorBody)]
        batch = await asyncio.to_thread(judging.batches.add, caller.name, asked.kind, fields, items, bad, once)
        judging.wake()
        return _status(judging, batch)

    @router.get(PATH)
    async def batches(request: Request) -> BatchList:
        """The caller's batches."""
        judging = _judging(request)
        own = judging.batches.of(request.state.visit.caller.name)
        return BatchList(batches=[_status(judging, one) for one in own])

    @router.get(f"{PATH}/{{batch}}")
    async def status(request: Request, batch: str) -> BatchStatus:
        """How far a batch is."""
        judging = _judging(request)
        return _status(judging, _own(request, judging, batch))

    @router.get(f"{PATH}/{{batch}}/results", response_model=Results)
    async def results(request: Request, batch: str) -> Response:
        """What was said of each item, in their order, once all are answered."""
        found = _own(request, _judging(request), batch)
        told = await asyncio.to_thread(found.results)
        return Response('{"results":[' + ",".join(told) + "]}", media_type="application/json")

    @router.delete(f"{PATH}/{{batch}}")
    async def delete(request: Request, batch: str) -> Deleted:
        """Remove a batch, its items and its answers; what is left of it is not judged any more."""
        judging = _judging(request)
        await asyncio.to_thread(judging.batches.remove, _own(request, judging, batch))
        judging.wake()
        return Deleted(batch=batch)

    return router


_Key = Annotated[
    str | None,
    Header(
        description="Chosen by the caller, another one for each batch: where an answer was lost, the same request with the same key is answered "
        "with the batch that is kept already."
    ),
]
_EXAMPLE = {"kind": "pointwise", "input": [POINTWISE["input"]]}


def _wanted(asked: BatchRequest) -> Asking:
    """As the live route would have it.

    Raises:
        BadInput: a kind that is none, or a field that does not fit.
    """
    route = judge_routes().get(asked.kind)
    if route is None:
        raise BadInput(f"field 'kind': expected one of {', '.join(judge_routes())}, found '{asked.kind[:100]}'")
    fields = {name: getattr(asked, name) for name in asked.model_fields_set if name != "kind"}
    try:
        return route.request.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise BadInput(f"of kind '{asked.kind}': {explain(error)}") from None


def _once(key: str | None, asked: BatchRequest) -> Once | None:
    """By what the same request is known when it is sent again; its fields may come in another order.

    Raises:
        BadInput: a key that is none.
    """
    if key is None:
        return None
    if not re.fullmatch("[!-~]{1,100}", key):
        raise BadInput(
            f"header '{IDEMPOTENCY_KEY}': found {shortened(key)}, expected 1 to 100 printable ASCII characters without spaces"
        )
    sent = json.dumps(asked.model_dump(exclude_unset=True), sort_keys=True)
    return Once(key=key, sha256=hashlib.sha256(sent.encode()).hexdigest())


def _judging(request: Request) -> Judging:
    """Raises:
    NotThere: this server keeps no batches.
    """
    judging: Judging | None = request.app.state.batches
    if judging is None:
        raise NotThere("this server keeps no batches; start it with batches=FOLDER")
    return judging


def _own(request: Request, judging: Judging, batch: str) -> Batch:
    return judging.batches.get(request.state.visit.caller.name, batch)


def _status(judging: Judging, batch: Batch) -> BatchStatus:
    state: Literal["waiting", "running", "done"] = "done" if batch.ended else "running" if batch.begun else "waiting"
    return BatchStatus(
        batch=batch.id,
        status=state,
        kind=batch.about.kind,
        question=str(batch.about.asked["question"]),
        model=str(batch.about.asked["model"]),
        items=batch.about.size,
        answered=len(batch.answered),
        failed=batch.failed,
        created=_when(batch.about.created),
        done=_when(batch.ended),
        removed=_when(judging.batches.expires(batch)),
    )


def _when(seconds: float | None) -> Any:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
