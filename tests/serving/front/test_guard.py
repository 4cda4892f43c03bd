"""The door: scopes by route, refusals, time limits, names of requests and their lines in the log."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import pointwise_examples
from fastapi import FastAPI
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.engines.calls import Calls
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.front import Front
from perse.serving.front.guard import Guard
from perse.serving.front.keys import add_key
from perse.serving.metrics import Metrics
from perse.serving.service import Model
from perse.settings.serving import Limits

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)
ITEM = pointwise_examples(1, 1)[0].model_dump(mode="json", exclude_none=True)
BODY = {"input": ITEM, "question": "pointwise_score"}
ASKED = "/v1/judge/pointwise"
PATIENCE = 60


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


class Held:
    """Models whose engine waits until it is let go."""

    def __init__(self, models: dict[str, Model]) -> None:
        self.asked, self.let_go, self.stopped = threading.Event(), threading.Event(), threading.Event()
        real = models["tiny"]

        def engine(calls: Calls) -> Any:
            made: Any = real.engine(calls)
            read = made.label_distributions

            def waits(*given: Any) -> Any:
                self.asked.set()
                for _ in range(100 * PATIENCE):
                    if self.let_go.wait(0.01):
                        return read(*given)
                    try:
                        calls.check()
                    except BaseException:
                        self.stopped.set()
                        raise
                raise AssertionError("never let go")

            made.label_distributions = waits
            return made

        self.models = {"tiny": Model(engine, real.renderer, real.digest, adapter=False)}


@pytest.fixture
def held(models: dict[str, Model]) -> Iterator[Held]:
    waiting = Held(models)
    yield waiting
    waiting.let_go.set()


def talk(app: FastAPI, what: Callable[[httpx2.AsyncClient], Any], **headers: str) -> Any:
    async def run() -> Any:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", timeout=PATIENCE, headers=headers
        ) as client:
            return await what(client)

    return asyncio.run(run())


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def test_a_request_that_takes_too_long_is_given_up_in_the_engine_too(held: Held) -> None:
    def given_up(seconds: float) -> bool:
        """Whether the engine had begun by then."""
        app = embedded_app(held.models, SETTINGS, limits=Limits(deadline=seconds))

        async def ask(client: httpx2.AsyncClient) -> None:
            answer = await client.post(ASKED, json=BODY)
            assert answer.status_code == 504
            assert answer.json()["error"]["message"].startswith(f"not answered within {seconds:g} s")
            if held.asked.is_set():
                await until(held.stopped)

        talk(app, ask)
        return held.stopped.is_set()

    assert any(map(given_up, (0.3, 3, 30))), "the engine never began"


def test_more_requests_than_the_server_takes_are_refused_and_the_others_are_answered(held: Held) -> None:
    app = embedded_app(held.models, SETTINGS, limits=Limits(requests=2))

    async def ask(client: httpx2.AsyncClient) -> None:
        first = [asyncio.create_task(client.post(ASKED, json=BODY)) for _ in range(2)]
        await until(held.asked)
        while app.state.front.gate.inside < 2:
            await asyncio.sleep(0)
        refused = await asyncio.gather(*(client.post(ASKED, json=BODY) for _ in range(8)))
        assert {(one.status_code, one.headers["retry-after"]) for one in refused} == {(503, "1")}
        assert (await client.get("/ready")).status_code == 200, "what holds nothing is answered all the same"
        held.let_go.set()
        assert [one.status_code for one in await asyncio.gather(*first)] == [200, 200]

    talk(app, ask)


def test_more_items_than_the_queue_holds_are_refused(held: Held) -> None:
    app = embedded_app(held.models, SETTINGS, limits=Limits(items=3))

    async def ask(client: httpx2.AsyncClient) -> None:
        first = asyncio.create_task(client.post(ASKED, json=BODY))
        await until(held.asked)
        many = {**BODY, "input": [{**ITEM, "id": str(n)} for n in range(3)]}
        second = asyncio.create_task(client.post(ASKED, json=many))
        while app.state.judge.turns.waiting < 1:
            await asyncio.sleep(0)
        refused = await client.post(ASKED, json=many)
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert "above the limit of 3" in refused.json()["error"]["message"]
        held.let_go.set()
        assert (await first).status_code == (await second).status_code == 200

    talk(app, ask)


def test_a_key_that_asks_too_often_is_told_when_to_ask_again(models: dict[str, Model], tmp_path: Path) -> None:
    alice, bob = (add_key(tmp_path / "keys", name, ["judge"]) for name in ("alice", "bob"))
    app = embedded_app(models, SETTINGS, limits=Limits(per_minute=2), keys=tmp_path / "keys")
    app.state.front.gate._clock = lambda: 1000.0  # no time passes, however busy the machine is

    async def ask(client: httpx2.AsyncClient) -> list[int]:
        answers = [
            await client.post(ASKED, json=BODY, headers={"Authorization": f"Bearer {key}"}) for key in [alice] * 3 + [bob]
        ]
        assert answers[2].headers["retry-after"] == "30"
        return [answer.status_code for answer in answers]

    assert talk(app, ask) == [200, 200, 429, 200]


def test_a_stopping_server_is_not_ready_answers_what_is_inside_and_refuses_the_rest(held: Held) -> None:
    app = embedded_app(held.models, SETTINGS)

    async def ask(client: httpx2.AsyncClient) -> None:
        first = asyncio.create_task(client.post(ASKED, json=BODY))
        await until(held.asked)
        app.state.front.gate.drain()
        ready, lives, late = [await client.get("/ready"), await client.get("/health"), await client.post(ASKED, json=BODY)]
        assert (ready.status_code, lives.status_code, late.status_code) == (503, 200, 503)
        assert late.headers["retry-after"] == ready.headers["retry-after"] == "1" and late.headers["connection"] == "close"
        held.let_go.set()
        assert (await first).status_code == 200

    talk(app, ask)


@pytest.mark.slow
def test_what_is_given_up_as_the_server_stops_is_told_so(held: Held) -> None:
    app = embedded_app(held.models, SETTINGS)

    async def ask(client: httpx2.AsyncClient) -> None:
        first = asyncio.create_task(client.post(ASKED, json=BODY))
        await until(held.asked)
        app.state.front.gate.drain()
        app.state.front.gate.end_all()
        answer = await first
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert "the server is stopping" in answer.json()["error"]["message"]

    talk(app, ask)


@pytest.fixture
def guarded(models: dict[str, Model], tmp_path: Path) -> Iterator[tuple[TestClient, dict[str, dict[str, str]]]]:
    """A server with vLLM-like routes, and a bearer's headers for each scope."""
    file = tmp_path / "keys"
    keys = {scope: add_key(file, scope, [scope]) for scope in ("judge", "readers", "admin")}
    app = embedded_app(models, SETTINGS, keys=file)
    for path in ("/v1/load_lora_adapter", "/reset_prefix_cache", "/collective_rpc", "/tokenize", "/v1/readers/{name:path}"):
        app.add_api_route(path, lambda: {"reached": True}, methods=["POST"], name=path)
    with TestClient(app, base_url="http://elsewhere.example") as client:
        yield client, {scope: {"Authorization": f"Bearer {key}"} for scope, key in keys.items()} | {"nobody": {}}


@pytest.mark.parametrize(
    ("method", "path", "answers"),
    [
        ("POST", "/v1/load_lora_adapter", {"nobody": 401, "judge": 403, "readers": 403, "admin": 200}),
        ("POST", "/reset_prefix_cache", {"nobody": 401, "judge": 403, "readers": 403, "admin": 200}),
        ("POST", "/collective_rpc", {"nobody": 401, "judge": 403, "readers": 403, "admin": 200}),
        ("POST", "/tokenize", {"nobody": 401, "judge": 200, "readers": 403, "admin": 200}),
        ("POST", "/v1/readers/ann", {"nobody": 401, "judge": 403, "readers": 200, "admin": 200}),
        ("GET", "/metrics", {"nobody": 401, "judge": 200, "readers": 403, "admin": 200}),
        ("GET", "/docs", {"nobody": 200, "judge": 200}),
        ("GET", "/openapi.json", {"nobody": 200, "judge": 200}),
        ("GET", "/", {"nobody": 200, "judge": 200}),
        ("POST", "/", {"nobody": 401}),
        ("GET", "/page/app.js", {"nobody": 200}),
        ("GET", "/page/../v1/readers", {"nobody": 401}),
        ("GET", "/version", {"nobody": 401, "judge": 200}),
        ("GET", "/nowhere", {"nobody": 401, "judge": 404, "readers": 404, "admin": 404}),
        ("GET", "/health", {"nobody": 200, "judge": 200}),
        ("GET", "/ready", {"nobody": 200, "judge": 200}),
        ("POST", "/health", {"nobody": 401}),
    ],
)
def test_each_route_wants_its_scope(
    guarded: tuple[TestClient, dict[str, dict[str, str]]], method: str, path: str, answers: dict[str, int]
) -> None:
    client, bearers = guarded
    for who, status in answers.items():
        assert client.request(method, path, headers=bearers[who]).status_code == status, who


def test_of_two_keys_in_a_request_none_is_taken(guarded: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, bearers = guarded
    good, bad = ("Authorization", bearers["judge"]["Authorization"]), ("Authorization", "Bearer nobody's")
    for sent in ([good, bad], [bad, good], [good, good]):
        answer = client.get("/version", headers=sent)
        assert answer.status_code == 401 and "found 2 headers 'Authorization'; send one" in answer.text
    assert client.get("/version", headers=[good]).status_code == 200


def test_where_the_judge_is_not_loaded_nobody_comes_in() -> None:
    app = FastAPI()
    app.add_middleware(Guard)
    app.add_api_route("/v1/completions", lambda: {"reached": True})
    answer = TestClient(app, base_url="http://127.0.0.1").get("/v1/completions")
    assert answer.status_code == 503 and "not loaded" in answer.json()["error"]["message"]
    assert answer.headers["retry-after"].isdigit()


def test_an_answer_carries_its_requests_name_the_clients_own_where_it_is_a_plain_one(models: dict[str, Model]) -> None:
    with TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1") as client:
        assert client.get("/version", headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
        for given in ("a b", "x" * 65, "é", "{}"):
            named = client.get("/version", headers={"X-Request-ID": given.encode()}).headers["x-request-id"]  # type: ignore[dict-item]
            assert len(named) == 16 and named != given
        assert len(client.get("/nowhere").headers["x-request-id"]) == 16


def test_a_key_that_is_given_as_a_requests_name_is_not_its_name(
    models: dict[str, Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PERSE_ADMIN_KEY", "adminZQ-0123456789")
    key = add_key(tmp_path / "keys", "alice", ["judge"])
    caplog.set_level(logging.INFO)
    with TestClient(embedded_app(models, SETTINGS, keys=tmp_path / "keys"), base_url="http://127.0.0.1") as client:
        for given in (key, "adminZQ-0123456789"):
            named = client.get("/version", headers={"Authorization": f"Bearer {key}", "X-Request-ID": given}).headers
            assert len(named["x-request-id"]) == 16
            assert given not in caplog.text and not any(given in record.getMessage() for record in caplog.records)


def test_a_key_that_is_sent_where_it_would_be_kept_too_is_refused(
    guarded: tuple[TestClient, dict[str, dict[str, str]]],
) -> None:
    client, bearers = guarded
    bearer = bearers["admin"]
    key = bearer["Authorization"].removeprefix("Bearer ")
    for path, headers, sent in (
        (f"/v1/readers/{key}", {}, {}),
        ("/v1/readers/ann", {}, {"reviews": [{"text": f"mine is {key}, keep it"}]}),
        ("/v1/readers/ann", {"Idempotency-Key": key}, {}),
    ):
        answer = client.post(path, headers=bearer | headers, json=sent)
        assert answer.status_code == 400 and "found the key of this request in " in answer.text, path
        assert key not in answer.text
    others = {
        "X-API-Key": key,
        "Idempotency-Key": "once",
    }  # some clients send theirs by two names, of which this one is not kept
    assert client.post("/v1/readers/ann", headers=bearer | others, json={"reviews": []}).status_code == 200
    assert client.post("/v1/readers/ann", headers=bearers["readers"], json={"text": key}).status_code == 200  # not whose it is


def test_of_a_websocket_no_path_is_in_the_log(models: dict[str, Model]) -> None:
    embedded_app(models, SETTINGS)
    Guard(FastAPI())  # which puts its filter on the server's loggers
    record = logging.LogRecord(
        "uvicorn.error", logging.INFO, "", 0, '%s - "WebSocket %s" 403', ("127.0.0.1:9", "/v1/readers/Ann%20Example"), None
    )
    for each in logging.getLogger("uvicorn.error").filters:
        each.filter(record)  # type: ignore[union-attr]
    assert record.getMessage() == '127.0.0.1:9 - "WebSocket ***" 403'


def test_a_path_that_routes_would_read_as_another_is_refused(models: dict[str, Model]) -> None:
    with TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1") as client:
        for path in ("/v1/readers/ann%0A", "/v1/readers/Jos%E9", "/v1/readers/%0A", "/v1/models%7F", "/%ff"):
            for method in ("GET", "PUT", "DELETE"):
                answer = client.request(method, path)
                assert answer.status_code == 400, (method, path)
                assert answer.json()["error"]["message"].startswith("the path ")


def test_a_slash_too_many_leads_nowhere_and_not_to_another_host(models: dict[str, Model]) -> None:
    with TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1") as client:
        answer = client.get("/v1/models/", follow_redirects=False)
    assert answer.status_code == 404 and "error" in answer.json() and "location" not in answer.headers


def test_a_line_in_the_log_says_who_asked_what_and_holds_no_text_key_or_query(
    models: dict[str, Model], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = add_key(tmp_path / "keys", "alice", ["judge"])
    caplog.set_level(logging.INFO, "perse.requests")
    with TestClient(
        embedded_app(models, SETTINGS, keys=tmp_path / "keys", json_log=True), base_url="http://127.0.0.1"
    ) as client:
        bearer = {"Authorization": f"Bearer {key}", "X-Request-ID": "r1"}
        client.post(f"{ASKED}?secret=SECRETQUERY", json={**BODY, "input": {**ITEM, "query": "SECRETTEXT"}}, headers=bearer)
        client.get("/SECRETPATH", headers=bearer)
        client.get("/health")
        client.post(ASKED, json=BODY, headers={"Authorization": "Bearer SECRETKEY"})
        client.get("/v1/readers/SECRETREADER", headers=bearer)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "perse.requests"]
    assert [(one["key"], one["path"], one["status"]) for one in lines] == [
        ("alice", ASKED, 200), ("alice", "other", 404), ("", "other", 401), ("alice", "other", 403),
    ]  # fmt: skip
    assert lines[0]["id"] == "r1" and lines[0]["seconds"] >= 0 and lines[2]["refused"] == "access"
    assert "SECRET" not in caplog.text and key not in caplog.text


def test_what_is_counted_is_what_happened(models: dict[str, Model]) -> None:
    with TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1") as client:
        two = {**BODY, "input": [ITEM, {**ITEM, "id": "long", "query": "word " * 5000}]}
        answers = client.post(ASKED, json=two).json()["results"]
        client.post(ASKED, content=b"{", headers={"Content-Type": "application/json"})
        counted = client.get("/metrics").text
    for line in (
        f'perse_judgements_total{{question="pointwise_score",status="{answers[0]["status"]}"}} 1.0',
        'perse_judgements_total{question="pointwise_score",status="too_long"} 1.0',
        f'perse_requests_total{{route="{ASKED}",status="200"}} 1.0',
        f'perse_requests_total{{route="{ASKED}",status="400"}} 1.0',
        f"perse_prompt_tokens_total {answers[0]['tokens']['prompt']:.1f}",
        'perse_label_mass_count{question="pointwise_score"} 1.0',
        "perse_queue_seconds_count 1.0",
        "perse_inside 0.0",
        "perse_draining 0.0",
    ):
        assert line in counted, line


def test_two_servers_in_one_process_count_for_themselves() -> None:
    one, two = (Front.of(Limits(), None, Metrics()) for _ in range(2))
    one.metrics.request("/x", 200, 0.1, "")
    assert b'route="/x"' in one.metrics.text() and b'route="/x"' not in two.metrics.text()
