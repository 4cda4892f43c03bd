"""A server that reads, checks, renders or writes much at once answers others meanwhile, and makes no more errors than one would read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import pointwise_examples
from fastapi import FastAPI
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.errors import PerseError
from perse.rendering.prompt import Renderer
from perse.serving import problems, service
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.front import Front
from perse.serving.front.guard import Guard
from perse.serving.metrics import Metrics
from perse.serving.problems import Busy, ClientLeft
from perse.serving.routes import judge_router
from perse.serving.service import JudgeService, Model
from perse.serving.turns import Turns
from perse.settings.serving import Limits

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)
PATIENCE = 60
"""Seconds after which a server that was silenced is let go."""


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


def plugged_in(models: dict[str, Model]) -> FastAPI:
    """The routes as they stand in another server, with as many threads as vLLM's."""
    app = FastAPI()

    async def alive() -> None: ...

    app.include_router(judge_router())
    metrics = Metrics()
    app.state.front = Front.of(Limits(), None, metrics)
    app.state.judge = JudgeService(models, SETTINGS, turns=Turns(128, 4096), metrics=metrics)
    app.state.judge_alive = alive
    app.add_middleware(Guard)
    return app


APPS: dict[str, Callable[[dict[str, Model]], FastAPI]] = {
    "embedded": lambda models: embedded_app(models, SETTINGS),
    "vllm": plugged_in,
}
LONG = "word " * 5000
STEPS = {
    "reading": (problems, "read_body", {}),
    "checking": (service, "_examples", {}),
    "rendering": (Renderer, "render", {}),
    "saying what is too long": (service, "_alone", {"query": LONG}),
    "writing": (problems, "written", {}),
}


@pytest.mark.parametrize("engine", APPS)
@pytest.mark.parametrize("step", STEPS)
def test_others_are_answered_while_a_request_is_at_any_of_its_steps(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch, engine: str, step: str
) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    place, name, more = STEPS[step]
    begun, answered = threading.Event(), threading.Event()
    does = getattr(place, name)

    def slowly(*given: Any, **named: Any) -> Any:
        begun.set()
        assert answered.wait(PATIENCE), "nobody was answered meanwhile"
        return does(*given, **named)

    monkeypatch.setattr(place, name, slowly)
    item = pointwise_examples(1, 1)[0].model_dump(mode="json", exclude_none=True) | more

    async def ask() -> int:
        transport = httpx2.ASGITransport(app=APPS[engine](models))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=2 * PATIENCE) as client:
            body = {"input": item, "question": "pointwise_score"}
            asked = asyncio.create_task(client.post("/v1/judge/pointwise", json=body))
            while not begun.is_set() and not asked.done():
                await asyncio.sleep(0.001)
            assert begun.is_set() and not asked.done()
            assert (await client.get("/ready")).status_code == 200
            answered.set()
            return (await asked).status_code

    assert asyncio.run(ask()) == (422 if more else 200)


@pytest.fixture
def http(models: dict[str, Model], monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    return TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1")


def test_a_list_with_too_many_bad_items_is_refused_once_they_are_too_many(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    http = TestClient(embedded_app(models, SETTINGS, limits=Limits(items=200_000)), base_url="http://127.0.0.1")
    made: list[Any] = []
    body_of = problems.body

    def counted(*given: Any, **named: Any) -> Any:
        made.append(given)
        return body_of(*given, **named)

    monkeypatch.setattr(problems, "body", counted)
    answer = http.post("/v1/judge/pointwise", json={"input": [{}] + [0] * 100_000})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        "more than 1,000 of the 100,001 items cannot be judged, the first, input.0, because field 'query': field required; correct "
        "them, or send fewer at a time"
    )
    assert len(made) == 1002, "one for each that was looked at, and one for all"


def test_a_list_longer_than_the_server_queues_is_refused_before_it_is_checked(http: TestClient) -> None:
    answer = http.post("/v1/judge/pointwise", json={"input": [0] * 5000})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "'input' has 5,000 items; this server takes at most 4,096 at a time"


@pytest.mark.slow
def test_as_many_bad_items_as_are_borne_do_not_fail_the_rest(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_BAD", 3)
    good = pointwise_examples(1, 1)[0].model_dump(mode="json", exclude_none=True)

    def results(bad: int) -> Any:
        asked = {"input": [*[0] * bad, good], "question": "pointwise_score"}
        return http.post("/v1/judge/pointwise", json=asked).json().get("results")

    assert [isinstance(one["error"], dict) for one in results(3)] == [True, True, True, False]
    assert results(4) is None


def test_a_profile_of_bad_reviews_has_one_error(http: TestClient) -> None:
    asked = {"input": {"profile": [{"text": "t", "review": "r", "score": 0}] * 50_000, "query": "x"}}
    answer = http.post("/v1/judge/pointwise", json=asked)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "field 'profile.0.score': input should be greater than or equal to 1"


@pytest.mark.parametrize("place", ["the body", "an item", "a review"])
def test_an_object_with_very_many_fields_is_refused_as_it_is_read(http: TestClient, place: str) -> None:
    many = {f"field {n}": 1 for n in range(50_000)}
    item = {"profile": [{"text": "t", "review": "r", "score": 1}], "query": "x"}
    sent: dict[str, Any] = {
        "the body": {"input": item, **many},
        "an item": {"input": [{**item, **many}]},
        "a review": {"input": [{**item, "profile": [many]}]},
    }[place]
    answer = http.post("/v1/judge/pointwise", content=json.dumps(sent), headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "fields; expected at most 1,000" in answer.json()["error"]["message"]


def test_work_of_a_models_own_takes_one_place_at_the_engine_and_one_in_the_queue(models: dict[str, Model]) -> None:
    """As the chat's does: two run side by side where there is room for two, a third waits, and a fourth is told to ask again."""
    both, end = threading.Barrier(2, timeout=PATIENCE), threading.Event()

    def beside(*_: Any) -> str:
        both.wait()
        assert end.wait(PATIENCE)
        return "done"

    async def here() -> bool:
        return False

    async def ask() -> list[str]:
        judge = JudgeService(models, SETTINGS, turns=Turns(2, 1), metrics=Metrics())
        running = []
        for waiting in (0, 0, 1):
            running.append(asyncio.create_task(judge.run(None, beside if not waiting else lambda *_: "after", here)))
            await asyncio.sleep(0.01)
            assert judge.turns.waiting == waiting
        with pytest.raises(Busy, match="1 items wait for the engine, and 1 more would be above the limit of 1"):
            await judge.run("tiny", lambda *_: "never", here)
        end.set()
        with pytest.raises(PerseError, match="there is no model 'other' here; served are tiny"):
            await judge.run("other", lambda *_: "never", here)
        return await asyncio.gather(*running)

    assert asyncio.run(ask()) == ["done", "done", "after"]


def test_work_whose_client_left_is_not_waited_for(models: dict[str, Model]) -> None:
    async def gone() -> bool:
        return True

    async def ask() -> None:
        judge = JudgeService(models, SETTINGS, turns=Turns(1, 1), metrics=Metrics())
        async with judge.turns.turn("somebody else", 1):
            with pytest.raises(ClientLeft, match="left before the answer was ready"):
                await judge.run(None, lambda *_: "never", gone)
        assert judge.turns.waiting == 0 and await judge.run(None, lambda *_: "next", gone) == "next"

    asyncio.run(ask())
