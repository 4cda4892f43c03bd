"""The judge's server without vLLM: the same routes on the embedded engine, one part of a request at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence, Sized
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from perse import __version__
from perse.answering.base import JudgeSettings
from perse.batch.local import aspects_of
from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.calls import Calls
from perse.engines.prefix_cache import BUDGET
from perse.engines.transformers import TransformersEngine
from perse.models.finding import context_length, judge_digest
from perse.models.opening import tokenizer
from perse.rendering.prompt import Ids, LabelTokens, Renderer
from perse.serving.adapters import More, adapter_router
from perse.serving.batches.judging import Judging
from perse.serving.batches.kept import Batches
from perse.serving.batches.routes import batch_router
from perse.serving.chat import chat_router
from perse.serving.described import KEYED, OF_KEYS, operation_id
from perse.serving.front.front import Front
from perse.serving.front.guard import Guard
from perse.serving.front.stopping import UVICORN
from perse.serving.metrics import Metrics
from perse.serving.page.routes import page_router
from perse.serving.problems import answer, body, not_a_route
from perse.serving.readers.routes import reader_router
from perse.serving.readers.store import Readers
from perse.serving.routes import judge_router
from perse.serving.service import JudgeService, Model, stacking_served
from perse.serving.turns import Turns
from perse.settings.serving import Limits


def embedded_models(
    name: str,
    path: Path,
    adapters: dict[str, Path],
    *,
    dtype: str,
    context: int | None,
    cache_gb: float | None = None,
    trust_remote_code: bool = False,
    stacking: Path | bool = True,
) -> dict[str, Model]:
    """The model and its adapters, each in an engine of its own, whose prefix cache keeps `cache_share` of `cache_gb`.
    `stacking` as in `stacking_served`."""
    share = cache_share(cache_gb, adapters)
    load = embedded_loader(
        path, dtype=dtype, context=context, cache_bytes=share, trust_remote_code=trust_remote_code, stacking=stacking
    )
    return {name: load(None)} | {own: load(adapter) for own, adapter in adapters.items()}


def embedded_loader(
    path: Path,
    *,
    dtype: str,
    context: int | None,
    cache_bytes: int = BUDGET,
    trust_remote_code: bool = False,
    stacking: Path | bool = True,
) -> Callable[[Path | None], Model]:
    """What makes the model, alone or with an adapter, into one that can be asked."""
    longest = context_length(path)
    renderer = Renderer(tokenizer(path, trust_remote_code=trust_remote_code), min(context or longest, longest))

    def load(adapter: Path | None) -> Model:
        engine = TransformersEngine.load(
            path, adapter=adapter, dtype=dtype, cache_bytes=cache_bytes, trust_remote_code=trust_remote_code
        )
        digest = judge_digest(path, adapter)
        return Model(
            lambda calls: Stoppable(engine, calls),
            renderer,
            digest,
            adapter=adapter is not None,
            forget=engine.forget,
            stacking=stacking_served(path, adapter, digest, stacking),
            profile_aspects=aspects_of(adapter or path),
        )

    return load


def cache_share(gb: float | None, adapters: Sized) -> int:
    """Bytes that the prefix cache of each engine may keep, so that the model and these adapters together keep `gb` GiB, by default 2."""
    whole = BUDGET if gb is None else int(gb * 1024**3)
    return whole // (1 + len(adapters))


def embedded_app(
    models: dict[str, Model],
    settings: JudgeSettings,
    *,
    limits: Limits | None = None,
    keys: Path | None = None,
    readers: Readers | None = None,
    more: More | None = None,
    batches: Batches | None = None,
    json_log: bool = False,
) -> FastAPI:
    """The application that uvicorn runs.

    Raises:
        BadInput: keys that cannot be ones.
    """
    limits, metrics = limits or Limits(), Metrics()
    front = Front.of(limits, keys, metrics, json_log=json_log)
    turns = Turns(1, limits.items, queued=metrics.queued, wait=front.gate.wait)
    service = JudgeService(models, settings, turns=turns, metrics=metrics)
    front.watch(turns, readers)
    judging = Judging(batches, service, readers) if batches else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if judging:
            judging.start(front.gate)
        yield
        if judging:
            await judging.stopped()
        service.close()
        if readers:
            readers.close()

    app = FastAPI(
        title="perse judge",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )
    app.state.front = front
    app.state.judge = service
    app.state.judge_alive = _alive
    app.state.readers = readers
    app.state.more_adapters = more
    app.state.batches = judging
    for router in (judge_router(), batch_router(), reader_router(), adapter_router(), chat_router(), page_router()):
        app.include_router(router)
    app.add_exception_handler(HTTPException, not_a_route)
    app.add_exception_handler(Exception, _bug)

    @app.head("/health", response_class=Response, include_in_schema=False)
    @app.get("/health", response_class=Response)
    async def health() -> Response:
        """Whether the server lives."""
        return Response()

    @app.get("/metrics", response_class=Response, dependencies=[KEYED], responses=OF_KEYS)
    async def counted() -> Response:
        """What the server counts, for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    app.add_middleware(Guard)
    return app


def serve_embedded(app: FastAPI, *, host: str, port: int, certificate: str | None, certificate_key: str | None) -> None:
    """Run the application until it is told to stop."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,  # the guard writes a line for each request
            ssl_certfile=certificate,
            ssl_keyfile=certificate_key,
            **UVICORN,
        )
    )
    app.state.server = server
    server.run()


class Stoppable:
    """The embedded engine for one request: it looks before every prompt and token whether anyone still waits."""

    def __init__(self, engine: TransformersEngine, calls: Calls) -> None:
        self._engine = engine
        self._calls = calls
        self.capabilities = engine.capabilities
        self.settings = engine.settings

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        return self._engine.generate(prompts, sampling, seeds=seeds, wanted=self._calls.check)

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
