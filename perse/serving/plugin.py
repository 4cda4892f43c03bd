"""The judge inside vLLM's own server: an endpoint plugin, on the same engine as vLLM's own routes.

vLLM makes it by the entry point `vllm.endpoint_plugins` when VLLM_PLUGINS names it, first attaches the routes, then gives
it the engine. Our settings come with vLLM's arguments, as `args.perse`.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from perse.answering.base import JudgeSettings
from perse.batch.local import aspects_of
from perse.engines.calls import Calls
from perse.errors import BadInput
from perse.models.finding import judge_digest
from perse.rendering.prompt import Renderer
from perse.serving.adapters import More, adapter_router
from perse.serving.batches.judging import Judging
from perse.serving.batches.kept import Batches
from perse.serving.batches.routes import batch_router
from perse.serving.front.front import Front
from perse.serving.metrics import Metrics, vllm_registry
from perse.serving.page.routes import page_router
from perse.serving.problems import not_a_route
from perse.serving.readers.routes import reader_router
from perse.serving.readers.store import Readers
from perse.serving.routes import judge_router
from perse.serving.service import LARGEST_PART, JudgeService, Model, stacking_served
from perse.serving.turns import Turns
from perse.settings.serving import Limits


@dataclass(frozen=True)
class Serving:
    """The plugin's settings: the model's folder and name, its adapters, what requests are answered with, and who may send them."""

    name: str
    model: Path
    adapters: dict[str, Path]
    settings: JudgeSettings
    limits: Limits = field(default_factory=Limits)
    keys: Path | None = None
    more_adapters: Path | None = None
    readers: str | None = field(default=None, repr=False)  # an address may hold a password, and vLLM prints its arguments
    batches: Path | None = None
    batches_days: float = 7
    json_log: bool = False
    certificate: str | None = None
    certificate_key: str | None = None
    trust_remote_code: bool = False
    stacking: Path | bool = True


class JudgePlugin:
    """See vllm.plugins.endpoint_plugins.interface.EndpointPlugin."""

    name = "perse"
    required_tasks = None  # always loaded, so that a model that cannot judge stops the start instead of going without us

    def attach_router(self, app: FastAPI) -> None:
        for router in (judge_router(), batch_router(), reader_router(), adapter_router(), page_router()):
            app.include_router(router)
        app.router.redirect_slashes = False  # it would lead to whatever name the client gave this machine
        app.add_exception_handler(HTTPException, not_a_route)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        from perse.engines.vllm import VERSION, Served, served_lora
        from perse.models.opening import tokenizer

        serving: Serving = args.perse
        if engine_client is None or "generate" not in await engine_client.get_supported_tasks():
            raise BadInput(f"{serving.model} does not write text, so it cannot judge; serve a causal language model")
        served = Served(engine_client, asyncio.get_running_loop())
        context = engine_client.vllm_config.model_config.max_model_len
        renderer = Renderer(tokenizer(serving.model, trust_remote_code=serving.trust_remote_code), context)
        served.engine(None, Calls())  # refuses a vLLM that cannot be read exactly, before anyone asks
        known = state.openai_serving_models
        loras = known.lora_requests

        def model_of(adapter: Path | None, lora: Any) -> Model:
            digest = judge_digest(serving.model, adapter)
            return Model(
                partial(served.engine, lora),
                renderer,
                digest,
                adapter=adapter is not None,
                forget=served.forget,
                stacking=stacking_served(serving.model, adapter, digest, serving.stacking),
                profile_aspects=aspects_of(adapter or serving.model),
            )

        models = {serving.name: model_of(None, None)}
        models |= {name: model_of(adapter, loras[name]) for name, adapter in serving.adapters.items()}
        metrics = Metrics(vllm_registry())
        front = Front.of(serving.limits, serving.keys, metrics, json_log=serving.json_log)
        # Not more items than it has memory for: in vLLM's own queue nobody could be put beside others of their profile.
        room = serving.limits.at_once or served.room
        turns = Turns(room, serving.limits.items, queued=metrics.queued, wait=front.gate.wait)
        state.judge = JudgeService(
            models, serving.settings, turns=turns, metrics=metrics, part=min(LARGEST_PART, room), engine_version=VERSION
        )
        state.judge_alive = served.alive
        state.more_adapters = None
        if serving.more_adapters:
            made: dict[str, Any] = {}

            def model(name: str, adapter: Path) -> Model:
                lora = served_lora(name, adapter, number=known.lora_id_counter.inc(1), most=args.max_lora_rank)
                made[name] = lora
                return model_of(adapter, lora)

            def added(name: str) -> None:
                loras[name] = made[name]  # so that the routes of OpenAI's API serve it too

            state.more_adapters = More(serving.more_adapters, serving.model, model, serving.trust_remote_code, added)
        state.readers = Readers.open(serving.readers) if serving.readers else None
        front.watch(turns, state.readers)
        state.batches = None
        if serving.batches:
            batches = Batches(serving.batches, days=serving.batches_days, most=serving.limits.batches)
            state.batches = Judging(batches, state.judge, state.readers)
            state.batches.start(front.gate)
        front.gate.when_draining(partial(setattr, served, "told_to_end", True))
        state.front = front
        args.perse_served = served
