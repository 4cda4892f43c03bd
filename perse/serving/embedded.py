"""The judge's server without vLLM: the same routes on the embedded engine, one request at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from perse import __version__
from perse.answering.base import JudgeSettings
from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.calls import Calls
from perse.engines.transformers import TransformersEngine
from perse.models.finding import context_length, judge_digest
from perse.models.opening import tokenizer
from perse.rendering.prompt import Ids, LabelTokens, Renderer
from perse.serving.guard import Guard
from perse.serving.problems import answer, body, not_a_route
from perse.serving.routes import judge_router
from perse.serving.service import JudgeService, Model


def embedded_models(
    name: str,
    path: Path,
    adapters: dict[str, Path],
    *,
    dtype: str,
    context: int | None,
    trust_remote_code: bool = False,
) -> dict[str, Model]:
    """The model and its adapters, each in an engine of its own."""
    longest = context_length(path)
    renderer = Renderer(tokenizer(path, trust_remote_code=trust_remote_code), min(context or longest, longest))

    def model(adapter: Path | None) -> Model:
        engine = TransformersEngine.load(path, adapter=adapter, dtype=dtype, trust_remote_code=trust_remote_code)
        return Model(lambda calls: Stoppable(engine, calls), renderer, judge_digest(path, adapter), adapter=adapter is not None)

    return {name: model(None)} | {own: model(adapter) for own, adapter in adapters.items()}


def embedded_app(models: dict[str, Model], settings: JudgeSettings) -> FastAPI:
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

    app.add_middleware(Guard)
    return app


class Stoppable:
    """The embedded engine for one request: it looks between prompts whether anyone still waits."""

    def __init__(self, engine: TransformersEngine, calls: Calls) -> None:
        self._engine = engine
        self._calls = calls
        self.capabilities = engine.capabilities
        self.settings = engine.settings

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        done: list[Generation | Failure] = []
        for start in range(0, len(prompts), self._engine.max_rows):
            self._calls.check()
            some = slice(start, start + self._engine.max_rows)
            done += self._engine.generate(prompts[some], sampling, seeds=seeds[some])
        return done

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        done: list[LabelDistribution | Failure] = []
        for prefix in prefixes:
            self._calls.check()
            done += self._engine.label_distributions([prefix], support)
        return done


async def _alive() -> None:
    """The embedded engine lives as long as its process."""


async def _bug(_: Request, error: Exception) -> Response:
    return answer(body(f"{type(error).__name__}; the server's log has more", HTTPStatus.INTERNAL_SERVER_ERROR))
