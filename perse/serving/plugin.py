"""The judge inside vLLM's own server: an endpoint plugin, on the same engine as vLLM's own routes.

vLLM makes it by the entry point `vllm.endpoint_plugins` when VLLM_PLUGINS names it, first attaches the routes, then gives
it the engine. Our settings come with vLLM's arguments, as `args.perse`.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from perse.answering.base import JudgeSettings
from perse.engines.calls import Calls
from perse.errors import BadInput
from perse.models.finding import judge_digest
from perse.rendering.prompt import Renderer
from perse.serving.problems import not_a_route
from perse.serving.routes import judge_router
from perse.serving.service import JudgeService, Model

WORKERS = 128
"""Requests answered at the same time; vLLM's scheduler batches what they ask, further ones wait."""


@dataclass(frozen=True)
class Serving:
    """The plugin's settings: the model's folder and name, its adapters, and what requests are answered with."""

    name: str
    model: Path
    adapters: dict[str, Path]
    settings: JudgeSettings
    trust_remote_code: bool = False


class JudgePlugin:
    """See vllm.plugins.endpoint_plugins.interface.EndpointPlugin."""

    name = "perse"
    required_tasks = None  # always loaded, so that a model that cannot judge stops the start instead of going without us

    def attach_router(self, app: FastAPI) -> None:
        app.include_router(judge_router())
        app.add_exception_handler(HTTPException, not_a_route)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        from perse.engines.vllm import VERSION, Served
        from perse.models.opening import tokenizer

        serving: Serving = args.perse
        if engine_client is None or "generate" not in await engine_client.get_supported_tasks():
            raise BadInput(f"{serving.model} does not write text, so it cannot judge; serve a causal language model")
        served = Served(engine_client, asyncio.get_running_loop())
        context = engine_client.vllm_config.model_config.max_model_len
        renderer = Renderer(tokenizer(serving.model, trust_remote_code=serving.trust_remote_code), context)
        served.engine(None, Calls())  # refuses a vLLM that cannot be read exactly, before anyone asks
        loras = state.openai_serving_models.lora_requests
        models = {serving.name: Model(partial(served.engine, None), renderer, judge_digest(serving.model, None), adapter=False)}
        for name, adapter in serving.adapters.items():
            digest = judge_digest(serving.model, adapter)
            models[name] = Model(partial(served.engine, loras[name]), renderer, digest, adapter=True)
        state.judge = JudgeService(models, serving.settings, workers=WORKERS, engine_version=VERSION)
        state.judge_alive = served.alive
        args.perse_served = served
