"""What a request has running in an engine is stopped when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest
from builders import pointwise_examples

from perse.answering.base import JudgeSettings
from perse.engines.base import Capabilities
from perse.engines.calls import Calls, as_they_come
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


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_all_answers_come_and_so_many_are_worked_on_at_once(at_once: int) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def work(one: int) -> Iterator[tuple[int, str]]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        yield one, "first"
        time.sleep(0.005)
        yield one, "second"
        with lock:
            inside -= 1

    found = list(as_they_come(work, range(7), at_once))
    assert sorted(found) == [(n, word) for n in range(7) for word in ("first", "second")] and most <= at_once
    assert [word for n, word in found if n == 3] == ["first", "second"]
    assert list(as_they_come(work, [], at_once)) == [] and list(as_they_come(lambda one: [], range(3), at_once)) == []


def test_an_answer_comes_before_a_slower_ones_and_an_error_where_it_was_raised() -> None:
    go = threading.Event()

    def work(one: int) -> Iterator[int]:
        if one == 0:
            assert go.wait(900)
        if one == 2:
            raise RuntimeError("no")
        yield one

    coming = as_they_come(work, range(2), 2)
    assert next(coming) == 1
    go.set()
    assert list(coming) == [0]
    asked: list[int] = []

    def noted() -> Iterator[int]:
        for one in (1, 2, 3, 4):
            asked.append(one)
            yield one

    broken = as_they_come(work, noted(), 1)
    assert next(broken) == 1
    with pytest.raises(RuntimeError, match="no"):
        next(broken)
    assert asked in ([1, 2], [1, 2, 3]), "nothing more begins"
