"""What a request has running in an engine is stopped when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest
from builders import pointwise_examples

from perse.answering.base import JudgeSettings
from perse.engines.base import Capabilities
from perse.engines.calls import Calls
from perse.serving.metrics import Metrics
from perse.serving.problems import ClientLeft
from perse.serving.requests import judge_routes
from perse.serving.service import JudgeService, Model
from perse.serving.turns import Turns


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_call_gives_its_result_or_its_error(loop: asyncio.AbstractEventLoop) -> None:
    async def good() -> int:
        return 3

    async def bad() -> int:
        raise RuntimeError("no")

    calls = Calls()
    assert calls.run(good(), loop) == 3
    with pytest.raises(RuntimeError, match="no"):
        calls.run(bad(), loop)


def test_cancelling_stops_what_runs_and_what_would_be_begun(loop: asyncio.AbstractEventLoop) -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise

    calls = Calls()

    def cancel_once_begun() -> None:
        begun.wait()
        calls.cancel()

    threading.Thread(target=cancel_once_begun).start()
    with pytest.raises(CancelledError):
        calls.run(slow(), loop)
    assert stopped.wait(900)
    begun.clear()
    with pytest.raises(CancelledError):
        calls.run(slow(), loop)
    assert not begun.is_set()


def test_a_client_that_leaves_cancels_its_calls_of_the_engine(tiny_model_folder: Any) -> None:
    from transformers import AutoTokenizer

    from perse.rendering.prompt import Renderer

    begun, stopped = threading.Event(), threading.Event()

    class Waiting:
        capabilities = Capabilities(accepts_token_ids=True, exact_distribution=True)
        settings: dict[str, str] = {}  # noqa: RUF012

        def __init__(self, calls: Calls, loop: asyncio.AbstractEventLoop) -> None:
            self.calls, self.loop = calls, loop

        def label_distributions(self, *_: Any) -> Any:
            async def forever() -> None:
                begun.set()
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    stopped.set()

            return self.calls.run(forever(), self.loop)

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        renderer = Renderer(AutoTokenizer.from_pretrained(tiny_model_folder), 2048)
        model = Model(lambda calls: Waiting(calls, loop), renderer, "", adapter=False)  # type: ignore[arg-type, return-value]
        service = JudgeService({"m": model}, JudgeSettings(), turns=Turns(1, 1), metrics=Metrics())
        asked = judge_routes()["pointwise"].request(
            input=pointwise_examples(1, 1)[0].model_dump(mode="json"), question="pointwise_score"
        )

        async def disconnected() -> bool:
            return begun.is_set()

        with pytest.raises(ClientLeft, match="the client left"):
            await service.answer(asked, disconnected)
        # Looked at here: the end of `asyncio.run` cancels everything, whoever left.
        assert await asyncio.to_thread(stopped.wait, 120), "the engine is still at work for a client that has left"
        service.close()

    asyncio.run(leave())
