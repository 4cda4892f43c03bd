"""Routes that keep, show and delete readers: a caller's own, at `app.state.readers`.

Deleting also empties the engine's caches of prompts, which hold what was computed from the reader's words.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel

from perse.errors import BadInput
from perse.serving.described import OF_BODIES, keyed_router
from perse.serving.problems import NotThere
from perse.serving.readers.store import Kept, Reader, Readers
from perse.serving.requests import LONGEST_ID
from perse.serving.schemas import ErrorBody
from perse.strict import name_problem

Id = Annotated[str, Path(description=f"The caller's own name for the reader, at most {LONGEST_ID} characters.")]

_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorBody, "description": "No such reader of this caller, or a server that keeps none."},
    503: {"model": ErrorBody, "description": "The store cannot be used now; what it acknowledged is there."},
}


class KeptReader(BaseModel):
    """How much is kept of a reader, and since when."""

    reader: str
    reviews: int
    comparisons: int
    updated: datetime


class WholeReader(KeptReader):
    """All of it."""

    record: Reader


class Gone(BaseModel):
    """A reader who was deleted, from the store and the engine's caches."""

    reader: str
    deleted: bool = True


class ReaderNames(BaseModel):
    """Readers of this caller; if there may be more, ask again with `after`."""

    readers: list[str]


def reader_router() -> APIRouter:
    """The routes under /v1/readers."""
    router = keyed_router("readers", _ERRORS)
    path = "/v1/readers/{reader:path}"  # a name may hold a slash

    @router.put(path, status_code=200, responses=OF_BODIES)
    async def put_reader(request: Request, record: Reader, reader: Id) -> KeptReader:
        """Keep a reader's past reviews and comparisons, oldest first, in the place of what was kept before."""
        store, owner = _own(request, reader)
        await asyncio.to_thread(store.put, owner, reader, record)
        return await _about(store, owner, reader)

    @router.get(path)
    async def get_reader(request: Request, reader: Id) -> WholeReader:
        """All that is kept of a reader."""
        store, owner = _own(request, reader)
        kept = await _kept(store, owner, reader)
        return WholeReader(**_summary(reader, kept), record=kept.record)

    @router.delete(path)
    async def delete_reader(request: Request, reader: Id) -> Gone:
        """Remove a reader from the store, and from what the engine has computed."""
        store, owner = _own(request, reader)
        there = await asyncio.to_thread(store.delete, owner, reader)
        await request.app.state.judge.forget()  # also where there was none: an earlier try may have come this far only
        if not there:
            raise _nobody(reader)
        return Gone(reader=reader)

    @router.get("/v1/readers")
    async def list_readers(
        request: Request, after: str = "", count: Annotated[int, Query(ge=1, le=1000)] = 1000
    ) -> ReaderNames:
        """Names of this caller's readers in their order."""
        store, owner = _own(request, after) if after else _store(request)
        return ReaderNames(readers=await asyncio.to_thread(lambda: store.names(owner, after=after, count=count)))

    return router


async def _about(store: Readers, owner: str, reader: str) -> KeptReader:
    return KeptReader(**_summary(reader, await _kept(store, owner, reader)))


async def _kept(store: Readers, owner: str, reader: str) -> Kept:
    kept = await asyncio.to_thread(store.get, owner, reader)
    if kept is None:
        raise _nobody(reader)
    return kept


def _summary(reader: str, kept: Kept) -> dict[str, Any]:
    return {
        "reader": reader,
        "reviews": len(kept.record.reviews),
        "comparisons": len(kept.record.comparisons),
        "updated": datetime.fromtimestamp(kept.updated, UTC),
    }


def _own(request: Request, reader: str) -> tuple[Readers, str]:
    """The store, and whose reader is asked for.

    Raises:
        NotThere: this server keeps none.
        BadInput: a name that no reader can have.
    """
    if not reader:
        raise BadInput("a reader's name is missing; write /v1/readers/NAME")
    if len(reader) > LONGEST_ID:
        raise BadInput(f"a reader's name of {len(reader):,} characters; expected at most {LONGEST_ID}")
    if why := name_problem(reader):
        raise BadInput(f"a reader's name: {why}")
    return _store(request)


def _store(request: Request) -> tuple[Readers, str]:
    """The store, and whose readers are asked for.

    Raises:
        NotThere: this server keeps none.
    """
    store: Readers | None = request.app.state.readers
    if store is None:
        raise NotThere("this server keeps no readers; start it with readers=FILE")
    return store, request.state.visit.caller.name


def _nobody(reader: str) -> NotThere:
    return NotThere(f"there is no reader '{reader[:LONGEST_ID]}' of yours here; PUT /v1/readers/ID makes one")
