"""The judge over HTTP, on the embedded engine: routes, one error shape, keys, and the client. (vLLM: test_vllm.py.)"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from fastapi.testclient import TestClient
from places import ROOT
from tolerances import share

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.engines.base import Sampling
from perse.engines.calls import Calls
from perse.errors import BadInput, EngineLost
from perse.judgement import Judgement
from perse.questions import QUESTIONS
from perse.records import ClaimExample, Example, SummaryExample
from perse.serving.client import AsyncJudgeClient, JudgeClient, Problem, ServerError
from perse.serving.embedded import Stoppable, embedded_app, embedded_models
from perse.serving.front.front import Front
from perse.serving.front.guard import Guard
from perse.serving.metrics import Metrics
from perse.serving.service import Model
from perse.settings.serving import Limits, api_key, load_config, recipes

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=8)
KEY = "a key of at least sixteen characters"


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


@pytest.fixture
def http(models: dict[str, Model]) -> Iterator[TestClient]:
    with client_of(models) as client:
        yield client


def client_of(models: dict[str, Model], base_url: str = "http://127.0.0.1") -> TestClient:
    return TestClient(embedded_app(models, SETTINGS), base_url=base_url, raise_server_exceptions=False)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PERSE_API_KEY", KEY)
    return KEY


@pytest.fixture
def url(models: dict[str, Model], key: str) -> Iterator[str]:
    """A server that wants a key, on a port of its own."""
    server = uvicorn.Server(uvicorn.Config(embedded_app(models, SETTINGS), port=0, log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def rounded(tiny_model_folder: Path) -> Callable[[Any], Any]:
    """The same distribution, computed in a batch of another shape."""
    return lambda distribution: pytest.approx(distribution, abs=share(tiny_model_folder, 1000), rel=0)


def item(example: Example) -> dict[str, Any]:
    return example.model_dump(mode="json", exclude_none=True)


@pytest.mark.numeric
@pytest.mark.parametrize("name", ["pointwise", "pointwise_score", "pairwise"])
def test_the_server_judges_as_the_library_does(
    http: TestClient, tiny_model_folder: Path, name: str, rounded: Callable[[Any], Any]
) -> None:
    examples = pairwise_examples() if name == "pairwise" else pointwise_examples(2, 2)
    route = "pairwise" if name == "pairwise" else "pointwise"
    judge = Judge.load(tiny_model_folder, dtype="float32", context=2048)
    expected = judge.ask(QUESTIONS[name], examples, SETTINGS)
    answer = http.post(f"/v1/judge/{route}", json={"input": [item(example) for example in examples], "question": name})
    assert answer.status_code == 200
    served = [Judgement.model_validate(result) for result in answer.json()["results"]]
    assert [one.id for one in served] == [example.id for example in examples], "order is kept"
    for one, two in zip(served, expected, strict=True):
        assert one.model == "tiny" and one.text == two.text and one.distribution == rounded(two.distribution)


def test_one_item_gives_a_judgement_and_needs_no_ids(http: TestClient) -> None:
    asked = {"profile": [{"text": "a plot", "review": "fine", "score": 7}], "query": "a new plot"}
    answer = http.post("/v1/judge/pointwise", json={"input": asked})
    assert answer.status_code == 200 and answer.json()["k_effective"] == 1
    again = http.post("/v1/judge/pointwise", json={"input": [asked, {**asked, "query": "another"}, asked]}).json()["results"]
    ids = [result["id"] for result in again]
    assert ids[0] == answer.json()["id"], "an item without an id is named by what it says, so its draws are its own"
    assert len(set(ids)) == 3 and ids[2] == f"{ids[0]}-2"


@pytest.mark.numeric
def test_one_bad_item_does_not_fail_the_rest(http: TestClient, rounded: Callable[[Any], Any]) -> None:
    good = item(pointwise_examples(1, 1)[0])
    bad: list[Any] = [
        {**good, "id": "b", "profile": [{"text": "t", "review": "r", "score": 11}]},
        "no item",
        good,
        {**good, "id": "c", "query": good["profile"][0]["text"]},
        {**good, "id": "d", "query": "word " * 5000},
        {**good, "id": "e", "surprise": 1},
    ]
    answer = http.post(
        "/v1/judge/pointwise", json={"input": [good, *bad, {**good, "id": "last"}], "question": "pointwise_score"}
    )
    results = answer.json()["results"]
    assert answer.status_code == 200 and len(results) == 8
    assert (
        results[0]["id"] == good["id"]
        and results[7]["id"] == "last"
        and results[7]["distribution"] == rounded(results[0]["distribution"])
    )
    messages = [result["error"]["message"] for result in (*results[1:5], results[6])]
    assert messages == [
        "field 'profile.0.score': input should be less than or equal to 10",
        'an item is a JSON object; found "no item"',
        f"id '{good['id']}' is already item 0's; give each its own",
        "the query stands in its own profile; the judge would only have to copy the answer",
        "field 'surprise': extra inputs are not permitted",
    ]
    assert [result["error"]["param"] for result in results[1:3]] == ["input.1", "input.2"]
    assert results[5]["status"] == "too_long", "what is too long is a judgement, as in any run"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (b'{"input": {', 400, "the body is not JSON: "),
        (b"[1, 2]", 400, "expected a JSON object, as /docs has it"),
        (b"{}", 400, "field 'input': field required"),
        (b'{"input": []}', 400, "'input' is an empty list"),
        (b'{"input": {"reader": "", "query": "x"}}', 400, "field 'reader': found an empty text; give one that is not empty"),
        (b'{"input": {"profile": [], "query": ""}}', 400, "field 'query': found an empty text; give one that is not empty"),
        (
            b'{"input": {"profile": [], "query": "x"}, "temperature": -1}',
            400,
            "field 'temperature': input should be greater than",
        ),
        (b'{"input": {"profile": [], "query": "x"}, "question": "mood"}', 400, "field 'question': input should be 'pointwise'"),
        (b'{"input": {"profile": [], "query": "x"}, "model": "other"}', 404, "there is no model 'other' here; served are tiny"),
        (b'{"input": 1' + b"0" * 5000 + b"}", 400, "a number has 5001 digits, expected at most 4300"),
        (b"\xff\xfe", 400, "the body is not JSON"),
    ],
)
def test_bad_requests_have_one_shape_and_say_what_is_wrong(http: TestClient, sent: bytes, code: int, message: str) -> None:
    answer = http.post("/v1/judge/pointwise", content=sent, headers={"Content-Type": "application/json"})
    error = answer.json()["error"]
    assert answer.status_code == code == error["code"] and message in error["message"]
    assert set(answer.json()) == {"error"} and set(error) == {"message", "type", "param", "code", "details"}


@pytest.mark.slow
def test_zero_in_a_request_is_a_temperature_and_a_seed_and_not_the_servers_own(
    models: dict[str, Model], tiny_model_folder: Path
) -> None:
    judge = Judge.load(tiny_model_folder, dtype="float32", context=2048)
    [example] = pointwise_examples(1, 1)
    own = JudgeSettings(temperature=1.5, max_new_tokens=8, seed=5)
    said: dict[str, str] = {}
    with TestClient(embedded_app(models, own), base_url="http://127.0.0.1") as http:
        for given in ({}, {"temperature": 0}, {"seed": 0}, {"seed": 0, "temperature": 0.5}, {"max_new_tokens": 1}):
            answer = http.post("/v1/judge/pointwise", json={"input": item(example), **given}).json()
            [expected] = judge.ask(QUESTIONS["pointwise"], [example], replace(own, **given))  # type: ignore[arg-type]
            assert (answer["text"], answer["tokens"]["generated"]) == (expected.text, expected.tokens.generated), given
            said[str(given)] = answer["text"]
    assert len(set(said.values())) == len(said), "each setting makes another text, so that none could pass for another"


def test_too_long_is_422_with_the_numbers(http: TestClient) -> None:
    asked = {"input": {"profile": [], "query": "word " * 3000}}
    answer = http.post("/v1/judge/pointwise", json=asked)
    error = answer.json()["error"]
    assert answer.status_code == 422 and error["type"].startswith("Unprocessable")
    assert error["details"]["words"] > 3000 and error["details"]["word_budget"] == 2500
    assert error["details"]["tokens"] > error["details"]["token_budget"] == 2048 - 8 - 16
    assert str(error["details"]["tokens"]) in error["message"]


def test_routes_methods_and_bodies_that_are_not_ours_have_the_same_shape(http: TestClient) -> None:
    assert http.get("/nowhere").json()["error"]["code"] == 404
    assert http.get("/v1/judge/pointwise").json()["error"]["code"] == 405
    form = http.post("/v1/judge/pointwise", data={"input": "x"})
    assert form.status_code == 415 and "send the header 'Content-Type: application/json'" in form.json()["error"]["message"]


def test_an_engine_that_fails_is_500_and_one_that_is_gone_503(models: dict[str, Model]) -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error
            self.capabilities = models["tiny"].engine(None).capabilities  # type: ignore[arg-type]

        def label_distributions(self, *_: Any) -> Any:
            raise self.error

    asked = {"input": {"profile": [], "query": "x"}, "question": "pointwise_score"}
    for error, code in ((RuntimeError("out of memory"), 500), (EngineLost("vLLM's engine stopped"), 503)):
        broken = {"tiny": Model(lambda _, e=error: Broken(e), models["tiny"].renderer, "", adapter=False)}  # type: ignore[misc, return-value]
        with client_of(broken) as http:
            answer = http.post("/v1/judge/pointwise", json=asked)
            assert answer.status_code == code and str(error) in answer.json()["error"]["message"]
            assert ("retry-after" in answer.headers) == (code == 503), "another server may be started"


def test_questions_come_with_schemas_that_fit_real_requests(http: TestClient) -> None:
    import jsonschema

    questions = {question["name"]: question for question in http.get("/v1/judge/questions").json()["questions"]}
    assert set(questions) == {name for name, question in QUESTIONS.items() if question.served}
    for name, example in (("pointwise", pointwise_examples(1, 1)[0]), ("pairwise", pairwise_examples(1)[0])):
        card = questions[name]
        body = {"input": item(example), "question": name}
        jsonschema.validate(body, card["request_schema"])
        jsonschema.validate(http.post(card["route"], json=body).json(), card["judgement_schema"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"input": {"query": 3}, "question": name}, card["request_schema"])


def test_health_ready_version_and_the_openapi_page(http: TestClient, models: dict[str, Model]) -> None:
    assert http.get("/health").status_code == 200 and http.get("/ready").json() == {"status": "ready"}
    version = http.get("/version").json()
    assert version["models"] == {"tiny": {"sha256": models["tiny"].digest, "adapter": False, "stacking": None}}
    assert version["engine"]["engine"] == "transformers" and version["perse"]
    assert http.get("/docs").status_code == 200
    paths = http.get("/openapi.json").json()["paths"]
    assert {"/v1/judge/pointwise", "/v1/judge/pairwise", "/v1/judge/questions", "/health", "/ready", "/version"} <= set(paths)


def test_the_openapi_page_names_every_operation_its_key_and_the_answers_of_the_front(http: TestClient) -> None:
    page = http.get("/openapi.json").json()
    assert page["components"]["securitySchemes"]["key"] == page["components"]["securitySchemes"]["key"] | {
        "type": "http",
        "scheme": "bearer",
    }
    operations = {(method, path): said for path, found in page["paths"].items() for method, said in found.items()}
    ids = [said["operationId"] for said in operations.values()]
    assert len(set(ids)) == len(ids) and all(name.isidentifier() for name in ids)
    assert {"judge_pointwise", "put_reader", "submit", "chat", "models", "health"} <= set(ids)
    for (method, path), said in operations.items():
        free = path in ("/health", "/ready", "/", "/docs") or path.startswith("/page")
        assert ("security" in said) != free, path
        if not free:
            assert {"401", "403", "429"} <= set(said["responses"]), path
        assert ("415" in said["responses"]) == (method in ("post", "put")), path


def test_without_the_key_only_health_readiness_and_pages_that_hold_nothing_are_told(models: dict[str, Model], key: str) -> None:
    with client_of(models, "http://judge.example") as http:
        assert http.get("/health").status_code == http.get("/ready").status_code == 200
        assert http.get("/docs").status_code == http.get("/openapi.json").status_code == http.get("/").status_code == 200
        for path in ("/version", "/metrics", "/v1/models", "/v1/judge/questions"):
            answer = http.get(path)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == 401
            assert http.get(path, headers={"Authorization": f"Bearer {KEY}x"}).status_code == 401
            assert http.get(path, headers={"Authorization": f"Basic {KEY}"}).status_code == 401
            assert http.get(path, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
            assert http.get(path, headers={"Authorization": f"bearer {KEY}"}).status_code == 200


def test_without_a_key_only_this_machines_own_names_are_answered(models: dict[str, Model]) -> None:
    """A page of elsewhere whose name is made to lead here asks for its own name."""
    with client_of(models) as http:
        for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
            assert http.get("/version", headers={"Host": host}).status_code == 200
        for host in ("evil.example", "evil.example:8000", "localhost.evil.example", ""):
            answer = http.get("/version", headers={"Host": host})
            assert answer.status_code == 403 and "this machine only" in answer.json()["error"]["message"]


def test_websockets_want_the_key_too(key: str) -> None:
    sent: list[Any] = []

    async def never(*_: Any) -> None:
        raise AssertionError("reached")

    async def send(message: Any) -> None:
        sent.append(message)

    app = SimpleNamespace(state=SimpleNamespace(front=Front.of(Limits(), None, Metrics())), routes=[])
    for served in ({"app": app}, {}):  # with what is known of the server, and where nothing is
        asyncio.run(Guard(never)({"type": "websocket", "path": "/health", "headers": [], **served}, never, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}] * 2


def test_other_machines_are_let_in_with_a_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    assert load_config("embedded").host == "127.0.0.1"
    assert load_config("embedded", ["host=::1"]).host == "::1"
    for host in ("0.0.0.0", "::", "10.0.0.7", "judge.example"):
        with pytest.raises(BadInput, match="lets other machines in; set PERSE_API_KEY"):
            load_config("embedded", [f"host={host}"])
    monkeypatch.setenv("PERSE_API_KEY", "short")
    with pytest.raises(BadInput, match="PERSE_API_KEY has 5 characters; give at least 16"):
        load_config("embedded", ["host=0.0.0.0"])
    monkeypatch.setenv("PERSE_API_KEY", "  ")
    with pytest.raises(BadInput, match="PERSE_API_KEY has 0 characters; give at least 16"):
        api_key()
    monkeypatch.setenv("PERSE_API_KEY", KEY)
    assert load_config("embedded", ["host=0.0.0.0"]).host == "0.0.0.0"


def test_a_key_of_an_administrator_that_is_too_short_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    monkeypatch.setenv("PERSE_ADMIN_KEY", "short")
    for given in (["host=0.0.0.0"], []):
        with pytest.raises(BadInput, match="PERSE_ADMIN_KEY has 5 characters; give at least 16"):
            load_config("embedded", given)


def test_a_place_that_can_hold_no_batches_is_refused_before_the_model_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "batches").write_text("a file")
    said = perse("serve", "model=nowhere", f"batches={tmp_path / 'batches'}")
    assert said.returncode == 2 and "batches cannot be made (File exists); give a folder" in said.stderr.replace("\n", " ")


def test_two_places_for_readers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_READERS", "postgresql+psycopg://me:SECRET1@host/db")
    with pytest.raises(BadInput, match="readers= and PERSE_READERS both say where readers are kept"):
        load_config("embedded", ["readers=readers.db"])
    assert load_config("embedded").store == "postgresql+psycopg://me:SECRET1@host/db"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two certificates, their keys, and a key with a password."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "other"):
        made = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt", "-days", "2", "-subj", "/CN=localhost"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made], check=True, capture_output=True)
    locked = ["-in", folder / "ours.key", "-aes256", "-passout", "pass:word", "-out", folder / "locked.key"]
    subprocess.run(["openssl", "rsa", *locked], check=True, capture_output=True)
    (folder / "empty").touch()
    (folder / "text").write_text("no PEM")
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("nowhere.crt", "ours.key", "certificate=.*nowhere.crt cannot be read .No such file"),
        ("ours.crt", "nowhere.key", "certificate_key=.*nowhere.key cannot be read .No such file"),
        ("ours.crt", ".", "certificate_key=.* cannot be read .Is a directory"),
        ("ours.crt", "other.key", "cannot serve https .key values mismatch.; give a certificate and its own key as PEM"),
        ("empty", "ours.key", "cannot serve https"),
        ("text", "ours.key", "cannot serve https"),
        ("ours.crt", "text", "cannot serve https"),
        ("ours.crt", "locked.key", "cannot serve https .*the key without a password"),
    ],
)
def test_a_certificate_that_serves_nothing_is_refused_in_one_sentence(
    certificates: Path, certificate: str, key: str, message: str
) -> None:
    given = [f"certificate={certificates / certificate}", f"certificate_key={certificates / key}"]
    with pytest.raises(BadInput, match=message):
        load_config("embedded", given)


def test_a_certificate_with_its_key_is_taken(certificates: Path) -> None:
    given = [f"certificate={certificates / 'ours.crt'}", f"certificate_key={certificates / 'ours.key'}"]
    assert load_config("embedded", given).certificate == str(certificates / "ours.crt")


def test_settings_of_a_server_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    config = load_config("embedded", ["model=runs/first", "adapters.second=runs/second", "vllm.max_num_seqs=8"])
    assert config.served_name == "first" and config.adapters == {"second": "runs/second"} and config.vllm == {"max_num_seqs": 8}
    with pytest.raises(BadInput, match="there is no setting 'modle'; did you mean 'model'"):
        load_config("embedded", ["modle=x"])
    with pytest.raises(BadInput, match="max_new_tokens=600 leaves no room in context=128"):
        load_config("embedded", ["context=128"])
    with pytest.raises(BadInput, match="'first' names both the model and an adapter"):
        load_config("embedded", ["model=runs/first", "adapters.first=runs/second"])


@pytest.mark.slow
def test_what_is_wrong_with_a_servers_settings_is_said_and_exits_with_2(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    given = ["--config", ROOT / "configs" / "serve" / "embedded.yaml", f"model={tiny_model_folder}", "engine=transformers"]
    serve_py = subprocess.run(
        [sys.executable, ROOT / "serve.py", *given, "host=0.0.0.0"],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"}, timeout=900,
    )  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for done, message in (
            (serve_py, "host=0.0.0.0 lets other machines in"),
            (perse("serve", *given, f"port={port}"), f"cannot listen at 127.0.0.1:{port}"),
            (perse("serve", *given, "port=0", "model=nowhere"), "there is no model 'nowhere'"),
            (
                perse("serve", *given, "port=0", "vllm.max_num_seqs=8"),
                "vllm.max_num_seqs: vLLM's settings, and the embedded engine",
            ),
            (perse("serve", *given, "port=0", "adapters.a=nowhere"), "there is no adapter nowhere"),
        ):
            assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_server_whose_engine_died_ends_with_another_code_than_one_whose_settings_are_wrong(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends with 2 is not started again by its supervisor (deploy/perse-serve.service, slurm/serve.sbatch)."""

    def dying(*_: object) -> None:
        raise EngineLost("vLLM's engine stopped, and the server with it")

    monkeypatch.setattr("perse.commands.serve._embedded", dying)
    done = perse("serve", "--config", "embedded", f"model={tiny_model_folder}", "engine=transformers", "port=0")
    assert done.returncode == 3 and "perse: vLLM's engine stopped, and the server with it" in done.stderr


@pytest.mark.slow
@pytest.mark.numeric
def test_the_client_asks_one_and_many(url: str, rounded: Callable[[Any], Any]) -> None:
    first, second = pointwise_examples(1, 2)
    with JudgeClient(url) as client:
        judgement = client.pointwise(first, question="pointwise_score")
        assert judgement.id == first.id and judgement.distribution is not None
        results = client.pointwise_many([item(first), {"query": 3}, second], question="pointwise_score")
        assert isinstance(results[1], Problem) and results[1].code == 400
        assert [r.id for r in results if isinstance(r, Judgement)] == [first.id, second.id]
        assert results[0].distribution == rounded(judgement.distribution)  # type: ignore[union-attr]
        [pair] = client.pairwise_many(pairwise_examples(1)[:1])
        assert isinstance(pair, Judgement) and pair.question == "pairwise"
        assert client.pairwise(pairwise_examples(1)[0]).distribution == rounded(pair.distribution)
        assert client.questions()[0]["name"] == "pointwise" and "tiny" in client.version()["models"]
        with pytest.raises(ServerError, match="there is no model 'other'") as raised:
            JudgeClient(url, model="other").pointwise(first)
        assert raised.value.code == 404
        with pytest.raises(ServerError) as raised:
            client.pointwise({"profile": [], "query": "word " * 3000})
        assert raised.value.code == 422 and raised.value.details["words"] > 3000
        with pytest.raises(BadInput, match="one item was expected, a list was given; pointwise_many"):
            client.pointwise([first])  # type: ignore[arg-type]
    with pytest.raises(ServerError, match="this server wants a key"):
        JudgeClient(url, key="another key, also long enough").version()


@pytest.mark.numeric
def test_the_asynchronous_client_gives_the_same(url: str, rounded: Callable[[Any], Any]) -> None:
    examples = pointwise_examples(1, 3)

    async def ask() -> list[Any]:
        async with AsyncJudgeClient(url, key=KEY) as client:
            one_by_one = await asyncio.gather(*(client.pointwise(e, question="pointwise_score") for e in examples))
            together = await client.pointwise_many(examples, question="pointwise_score")
            assert await client.questions() and await client.version()
            return [*zip(one_by_one, together, strict=True)]

    for alone, together in asyncio.run(ask()):
        assert alone.id == together.id and alone.distribution == rounded(together.distribution)


def test_long_lists_are_sent_in_parts_and_come_back_in_order(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.serving.client.AT_ONCE", 2)
    examples = pointwise_examples(1, 5)
    with JudgeClient(url, key=KEY) as client:
        assert [r.id for r in client.pointwise_many(examples, question="pointwise_score")] == [e.id for e in examples]  # type: ignore[union-attr]


def test_the_client_waits_as_told_and_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    answers = [(429, {"Retry-After": "3"}), (503, {}), (200, {})]

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, headers = answers.pop(0)
            body = json.dumps({"perse": "x"} if code == 200 else {"error": {"message": "busy"}}).encode()
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with JudgeClient(address) as client:
            assert client.version() == {"perse": "x"} and waits == [3.0, 0.5]
            answers += [(503, {})] * 2
            with pytest.raises(ServerError, match="busy"):
                JudgeClient(address, tries=2).version()
            answers += [(503, {"Retry-After": "86400"})]
            with pytest.raises(ServerError, match="busy"):  # a day is a refusal
                JudgeClient(address).version()
        server.shutdown()
    waits.clear()
    with pytest.raises(ServerError, match=r"no answer from http.*; is the server running\? python serve.py starts one"):
        JudgeClient(address).version()
    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_what_fails_later_in_a_long_list_loses_nothing_that_was_answered(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.serving.client.AT_ONCE", 2)
    examples = pointwise_examples(1, 5)
    with JudgeClient(url, key=KEY) as client:
        post = client._post
        asked: list[Any] = []

        def failing(route: str, given: Any, settings: Any) -> Any:
            asked.append(given)
            if len(asked) == 2:
                raise ServerError("gone", 0)
            return post(route, given, settings)

        monkeypatch.setattr(client, "_post", failing)
        results = client.pointwise_many(examples, question="pointwise_score")
        assert [isinstance(result, Judgement) for result in results] == [True, True, False, False, False]
        asked.clear()
        monkeypatch.setattr(client, "_post", lambda *_: (_ for _ in ()).throw(ServerError("gone", 0)))
        with pytest.raises(ServerError, match="gone"):
            client.pointwise_many(examples)


def test_the_embedded_engine_stops_between_prompts_when_nobody_waits(models: dict[str, Model]) -> None:
    from concurrent.futures import CancelledError

    calls = Calls()
    engine = models["tiny"].engine(calls)
    assert isinstance(engine, Stoppable)
    renderer, question = models["tiny"].renderer, QUESTIONS["pointwise_score"]
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(1, 3)]
    support = renderer.label_tokens(question)
    assert (
        len(engine.label_distributions(prompts, support)) == len(engine.generate(prompts, Sampling(0, 2), seeds=[1, 2, 3])) == 3
    )
    calls.cancel()
    with pytest.raises(CancelledError):
        engine.label_distributions(prompts, support)
    with pytest.raises(CancelledError):
        engine.generate(prompts, Sampling(0, 2), seeds=[1, 2, 3])


def test_more_new_tokens_than_the_context_holds_is_the_requests_mistake(http: TestClient) -> None:
    asked = {"input": {"profile": [], "query": "x"}, "max_new_tokens": 5000}
    answer = http.post("/v1/judge/pointwise", json=asked)
    assert answer.status_code == 400
    assert "5016 tokens are kept for the answer, all of a context of 2048" in answer.json()["error"]["message"]


def test_every_packaged_recipe_is_valid(key: str) -> None:
    assert set(recipes()) >= {"embedded", "llama2_7b", "llama2_13b"}
    for name in recipes():
        config = load_config(f"configs/serve/{name}.yaml")
        assert (config.temperature, config.max_new_tokens) == (0.8, 600), "the paper's"


@pytest.mark.slow
@pytest.mark.numeric
def test_claims_about_a_text_and_summaries_of_reviews_are_judged_as_by_the_library(
    http: TestClient, tiny_model_folder: Path, rounded: Callable[[Any], Any]
) -> None:
    claims = [ClaimExample(id=f"c{n}", reviewer_id="t", text="The bridge opened in May.", claim=f"It opened in {m}.") for n, m in enumerate(("May", "June"))]  # fmt: skip
    summary = SummaryExample(
        id="s", reviewer_id="p", reviews=("Warm and dry.", "The seam broke."), summary="Warm, but it tears."
    )
    judge = Judge.load(tiny_model_folder, dtype="float32", context=2048)
    asked: list[tuple[str, str, list[Any]]] = [
        ("claim", "verify_fact", list(claims)),
        ("claim", "verify_opinion", list(claims)),
        *(("summary", name, [summary]) for name in ("coverage", "sentiment", "coverage_100", "sentiment_100")),
    ]
    for route, name, examples in asked:
        expected = judge.ask(QUESTIONS[name], examples, SETTINGS)
        answer = http.post(f"/v1/judge/{route}", json={"input": [item(one) for one in examples], "question": name})
        assert answer.status_code == 200, answer.text
        for one, two in zip(answer.json()["results"], expected, strict=True):
            assert one["id"] == two.id and one["distribution"] == rounded(two.distribution)
    bare = http.post("/v1/judge/claim", json={"input": {"text": "The bridge opened.", "claim": "It did."}})
    assert bare.status_code == 200 and bare.json()["question"] == "verify_fact"
    assert http.post("/v1/judge/claim", json={"input": {"text": "x"}}).status_code == 400
