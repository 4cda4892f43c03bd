"""The judge's server without vLLM: the same routes on the embedded engine, one request at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from transformers import AutoTokenizer

from perse import __version__
from perse.answering.base import JudgeSettings
from perse.engines.transformers import TransformersEngine
from perse.models import context_length, judge_digest
from perse.rendering import Renderer
from perse.serving.guard import KeyGuard
from perse.serving.problems import answer, body, not_a_route
from perse.serving.routes import judge_router
from perse.serving.service import JudgeService, Model


def embedded_models(name: str, path: Path, adapters: dict[str, Path], *, dtype: str, context: int | None) -> dict[str, Model]:
    """The model and its adapters, each in an engine of its own."""
    longest = context_length(path)
    renderer = Renderer(AutoTokenizer.from_pretrained(str(path)), min(context or longest, longest))

    def model(adapter: Path | None) -> Model:
        engine = TransformersEngine.load(path, adapter=adapter, dtype=dtype)
        return Model(lambda _: engine, renderer, judge_digest(path, adapter), adapter=adapter is not None)

    return {name: model(None)} | {own: model(adapter) for own, adapter in adapters.items()}


def embedded_app(models: dict[str, Model], settings: JudgeSettings, *, key: str | None) -> FastAPI:
    """The application that uvicorn runs."""
    service = JudgeService(models, settings, workers=1)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="perse judge", version=__version__, lifespan=lifespan)
    app.state.judge = service
    app.state.judge_alive = _alive
    app.include_router(judge_router())
    app.add_exception_handler(HTTPException, not_a_route)
    app.add_exception_handler(Exception, _bug)

    @app.get("/health", response_class=Response)
    async def health() -> Response:
        """Whether the server lives."""
        return Response()

    if key:
        app.add_middleware(KeyGuard, key=key)
    return app


async def _alive() -> None:
    """The embedded engine lives as long as its process."""


async def _bug(_: Request, error: Exception) -> Response:
    return answer(body(f"{type(error).__name__}; the server's log has more", HTTPStatus.INTERNAL_SERVER_ERROR))
