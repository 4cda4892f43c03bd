"""Clients that lie about whom they ask, hang up, or send names of megabytes; and whatever breaks inside: one shape of error."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.engines.scripted import ScriptedEngine
from perse.rendering.prompt import TextRenderer
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front import bodies
from perse.serving.problems import ProblemRoute
from perse.serving.service import Model

JSON = (b"content-type", b"application/json")
HERE = (b"host", b"localhost:8000")
LONG = 2_000_000


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


@pytest.fixture
def http(models: dict[str, Model]) -> Iterator[TestClient]:
    with TestClient(
        embedded_app(models, JudgeSettings()), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        yield client


def asked(app: Any, method: str, path: str, *headers: tuple[bytes, bytes], received: tuple[Any, ...] = ()) -> list[Any]:
    """What an application sends to a request whose body comes in these messages, as a server would hand them on."""
    coming = iter(received or ({"type": "http.request", "body": b"", "more_body": False},))
    sent: list[Any] = []

    async def receive() -> Any:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    asyncio.run(
        app({**scope, "http_version": "1.1", "scheme": "http", "headers": list(headers), "server": None}, receive, send)
    )
    return sent


@pytest.mark.parametrize(
    "host",
    [
        "[::1]evil", "[::1].evil.example", "localhost:@evil.example", "localhost:80@evil.example", "localhost:", "localhost:x",
        "localhost:\xb2", "::1", "[::1", "localhost,evil.example", "localhost evil.example", "localhost/", "127.0.0.1.evil.example",
        "127.0.0.10", "localhosts", " localhost",
    ],
)  # fmt: skip
def test_a_name_that_only_resembles_this_machines_is_refused(models: dict[str, Model], host: str) -> None:
    app = embedded_app(models, JudgeSettings())
    assert asked(app, "GET", "/version", (b"host", host.encode("latin-1")))[0]["status"] == 403


@pytest.mark.parametrize("host", ["LOCALHOST", "LocalHost:8000", "127.0.0.1:1", "[::1]", "[::1]:65535"])
def test_this_machines_names_are_answered_in_any_case_and_with_any_port(models: dict[str, Model], host: str) -> None:
    assert asked(embedded_app(models, JudgeSettings()), "GET", "/version", (b"host", host.encode()))[0]["status"] == 200


@pytest.mark.parametrize("names", [(b"evil.example", b"localhost"), (b"localhost", b"evil.example"), (b"localhost",) * 2, ()])
def test_a_request_has_one_host_and_no_second_one_behind_it(models: dict[str, Model], names: tuple[bytes, ...]) -> None:
    app = embedded_app(models, JudgeSettings())
    assert asked(app, "GET", "/version", *((b"host", name) for name in names))[0]["status"] == 403


def test_a_client_that_hangs_up_in_the_middle_of_its_body_leaves_no_traceback(
    models: dict[str, Model], caplog: pytest.LogCaptureFixture
) -> None:
    half = {"type": "http.request", "body": b'{"input": ', "more_body": True}
    app = embedded_app(models, JudgeSettings())
    sent = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, received=(half, {"type": "http.disconnect"}))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


ITEM = {"profile": [], "query": "a plot"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        {"input": ITEM, "model": "m" * LONG},
        {"input": ITEM, "f" * LONG: 1},
        {"input": {**ITEM, "f" * LONG: 1}},
        {"input": [{**ITEM, "f" * LONG: 1}]},
        {"input": [{**ITEM, "id": "i" * LONG}] * 2, "question": "q" * LONG},
    ],
    ids=["model", "field", "item", "listed item", "question"],
)
def test_a_name_of_megabytes_is_repeated_in_short(http: TestClient, body: Any) -> None:
    answer = http.post("/v1/judge/pointwise", json=body)
    error = (answer.json()["results"][0] if "results" in answer.json() else answer.json())["error"]
    assert len(answer.content) < 2000 and error["message"] and error["code"] in (400, 404)


@pytest.mark.parametrize(
    "fields",
    [{"scale": [0, 10**400]}, {"scale": [0, 100], "profile": [{"text": "a", "review": "b", "score": 10**400}]}],
    ids=["scale", "score"],
)
def test_a_number_that_no_float_holds_is_the_request_s_fault(http: TestClient, fields: Any) -> None:
    answer = http.post("/v1/judge/pointwise", json={"input": ITEM | fields})
    assert answer.status_code == 400 and "inf" in answer.json()["error"]["message"]


def test_an_unknown_model_of_megabytes_is_answered_with_those_that_are_served(http: TestClient) -> None:
    answer = http.post("/v1/judge/pointwise", json={"input": ITEM, "model": "m" * LONG})
    assert answer.json()["error"]["message"] == f"there is no model '{'m' * 200}...' here; served are tiny"
    assert len(http.get(f"/{'p' * 20_000}").content) < 2000


class Panic(BaseException):
    """As pyo3's, which is no `Exception`."""


@pytest.mark.parametrize("error", [Panic("no such state"), ZeroDivisionError("x"), MemoryError()])
def test_whatever_breaks_inside_is_an_error_of_our_shape_and_the_log_says_what(
    models: dict[str, Model], caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    class Broken:
        capabilities = models["tiny"].engine(None).capabilities  # type: ignore[arg-type]

        def label_distributions(self, *_: Any) -> Any:
            raise error

    broken = {"tiny": Model(lambda _: Broken(), models["tiny"].renderer, "", adapter=False)}  # type: ignore[arg-type, return-value]
    said = json.dumps({"input": pointwise_examples(1, 1)[0].model_dump(mode="json"), "question": "pointwise_score"}).encode()
    whole = {"type": "http.request", "body": said, "more_body": False}
    app = embedded_app(broken, JudgeSettings())
    start, content = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, received=(whole,) + (never_leaving,) * 9)
    kind = type(error).__name__
    assert start["status"] == 500
    assert json.loads(content["body"])["error"]["message"] == f"{kind}; the server's log has more"
    assert f"{kind}" in caplog.text and "Traceback" in caplog.text


def test_a_text_on_which_the_tokenizer_panics_is_the_requests_and_one_line_in_the_log(
    models: dict[str, Model], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    panicked = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def encode(*_: Any, **__: Any) -> Any:
        raise panicked("regex exploded\nat src/lib.rs")

    monkeypatch.setattr(type(models["tiny"].renderer.tokenizer), "encode", encode)
    item = {"profile": [{"text": "a text of its own", "review": "good", "score": 3}], "query": "another text"}
    whole = {"type": "http.request", "body": json.dumps({"input": item}).encode(), "more_body": False}
    app = embedded_app(models, JudgeSettings())
    start, content = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, received=(whole,) + (never_leaving,) * 9)
    assert start["status"] == 400, content
    told = json.loads(content["body"])["error"]["message"]
    assert told.startswith("the tokenizer failed on this text: PanicException: regex exploded; give the tokenizer")
    [line] = [record for record in caplog.records if record.name.startswith("perse.serving")]
    assert told in line.getMessage() and line.exc_info is None


never_leaving = {"type": "http.request", "body": b"", "more_body": False}


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_end_of_the_server_is_not_taken_for_a_fault_of_a_request(end: type[BaseException]) -> None:
    router = APIRouter(route_class=ProblemRoute)

    @router.get("/ends")
    async def ends() -> None:
        raise end

    app = FastAPI()
    app.include_router(router)
    with pytest.raises(end):
        asked(app, "GET", "/ends", HERE)


def _parts(*bodies: bytes) -> tuple[dict[str, Any], ...]:
    return tuple({"type": "http.request", "body": one, "more_body": at < len(bodies)} for at, one in enumerate(bodies, start=1))


def test_a_body_that_is_too_large_is_refused_before_it_is_read(models: dict[str, Model]) -> None:
    app = embedded_app(models, JudgeSettings())
    told = (b"content-length", str(bodies.LARGEST_BODY + 1).encode())
    sent = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, told, received=_parts(b"{"))
    assert sent[0]["status"] == 413 and b"the body is larger than 8 MiB; send fewer items" in sent[1]["body"]
    assert (b"connection", b"close") in sent[0]["headers"]
    huge = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, (b"content-length", b"9" * 5000), received=_parts(b"{"))
    assert huge[0]["status"] == 413


def test_a_body_whose_length_is_not_told_or_a_lie_is_refused_where_it_becomes_too_large(models: dict[str, Model]) -> None:
    app, piece = embedded_app(models, JudgeSettings()), b"x" * 2**20
    for told in ((b"transfer-encoding", b"chunked"), (b"content-length", b"10")):
        sent = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, told, received=_parts(*[piece] * 9))
        assert sent[0]["status"] == 413, told


def test_a_body_in_pieces_is_the_body(models: dict[str, Model]) -> None:
    whole = json.dumps({"input": {"profile": [], "query": "A ferry sinks."}, "question": "pointwise_score"}).encode()
    told = (b"content-length", str(len(whole)).encode())
    app = embedded_app(models, JudgeSettings())
    sent = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, told, received=_parts(whole[:9], b"", whole[9:40], whole[40:]))
    assert sent[0]["status"] == 200 and json.loads(sent[1]["body"])["question"] == "pointwise_score"


def test_a_body_that_does_not_come_is_not_waited_for_without_end(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/judge/pointwise", "query_string": b"", "http_version": "1.1"}
    headers = [HERE, JSON, (b"transfer-encoding", b"chunked")]
    app = embedded_app(models, JudgeSettings())
    asyncio.run(
        app({**scope, "raw_path": b"/", "root_path": "", "scheme": "http", "headers": headers, "server": None}, receive, send)
    )
    assert sent[0]["status"] == 408 and b"did not arrive within 0 s" in sent[1]["body"]


def test_a_client_that_leaves_in_the_middle_of_its_body_is_not_answered(models: dict[str, Model]) -> None:
    app = embedded_app(models, JudgeSettings())
    told = (b"content-length", b"100")
    left = ({"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"})
    assert asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, told, received=left) == []


def test_a_field_that_stands_twice_is_refused_since_a_proxy_may_read_the_other_one(http: TestClient) -> None:
    body = b'{"input": {"profile": [], "query": "one", "query": "two"}}'
    answer = http.post("/v1/judge/pointwise", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and "an object in the body has the field 'query' twice; send it once" in answer.text


def test_a_body_of_brackets_is_refused_before_it_is_parsed(http: TestClient) -> None:
    answer = http.post("/v1/judge/pointwise", json={"input": [[]] * 400_001})
    assert answer.status_code == 400 and "400,003 lists and objects; expected at most 400,000" in answer.text


def test_a_client_that_leaves_is_no_failure_of_the_engine() -> None:
    noticed = threading.Event()

    def said(message: str, seed: int) -> str:
        noticed.wait()  # for as long as the server takes to look whether the client is there
        return "[Score] 3/10"

    slow = Model(lambda calls: ScriptedEngine(said), TextRenderer(), "d", False)  # type: ignore[arg-type, return-value]
    app = embedded_app({"slow": slow}, JudgeSettings())
    whole = {"type": "http.request", "body": json.dumps({"input": ITEM}).encode(), "more_body": False}
    sent = asked(app, "POST", "/v1/judge/pointwise", HERE, JSON, received=(whole, {"type": "http.disconnect"}))
    noticed.set()
    assert sent[0]["status"] == 499
    assert 'route="/v1/judge/pointwise",status="499"' in app.state.front.metrics.text().decode()


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_whatever_watches_a_server_may_ask_for_the_head_alone(http: TestClient, path: str) -> None:
    assert http.head(path).status_code == 200 and http.head(path).content == b""
