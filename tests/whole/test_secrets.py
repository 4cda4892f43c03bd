"""Keys and passwords, planted wherever a person might put one, are found in no file that perse writes and in nothing it prints."""

from __future__ import annotations

import gzip
import json
import logging
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import openai._base_client
import pyarrow.parquet as pq
import pytest
from builders import pointwise_examples
from hostile_server import hostile
from kgds_builders import write_benchmark_file
from places import SAMPLES

from perse.commands import app as cli
from perse.data.build import PointwiseOptions, build_pointwise
from perse.drawing.figure import Figure, save_figure
from perse.engines.base import Sampling
from perse.engines.openai import ChatCompletionsEngine
from perse.errors import BadInput
from perse.files.runlog import RunLog, environment, read_manifest
from perse.judging.loading import parse_judge
from perse.records import example_lines
from perse.secrets import HARMLESS, printable, redact, redact_command, without_keys
from perse.serving.client import AsyncJudgeClient, JudgeClient
from perse.serving.front.keys import add_key, read_keys
from perse.settings.serving import api_key as served_key

ENV = "planted-env-0a1b2c3d"
PASSWORD = "planted-password-4e5f"
QUERY = "planted-query-6a7b8c"
OPTION = "planted-option-9d0e"
PROXY = "planted-proxy-1f2a3b"
HUB = "planted-hub-token-4c5d"
PLANTED = (ENV, PASSWORD, QUERY, OPTION, PROXY, HUB)

WITH_SECRETS = (
    f"http://user:{PASSWORD}@HERE/v1",
    f"http://{PASSWORD}@HERE/v1",
    f"HTTP://user:{PASSWORD}@HERE/v1",
    f"http://user:{PASSWORD}/2@HERE/v1",
    f"http://user:1#{PASSWORD}@HERE/v1",
    f"http://user:2?{PASSWORD}@HERE/v1",
    f"http://HERE/v1?api_key={QUERY}",
    f"http://HERE/v1/?x=1&token={QUERY}",
    f"http://user:{PASSWORD}@HERE/v1?api_key={QUERY}",
    f"http://user:{PASSWORD}@[::1]:80/v1",
    f"http://HERE/v1/%3Fapi_key={QUERY}",
    f"http://HERE/v1/%253ftoken%253D{QUERY}",
    f"http://user%3A{PASSWORD}%40HERE/v1",
    f"http://HERE/{QUERY};token=abc/v1",
    f"http://HERE/v1%3btoken={QUERY}",
)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.005)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setenv("OPENAI_API_KEY", ENV)
    monkeypatch.setenv("HF_TOKEN", HUB)
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{PROXY}@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a chat server that repeats, in answers and in refusals, the headers that it was sent, and everything planted."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        asked = 0

        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told = f"{self.headers.get('Authorization')} came by http://me:{PROXY}@proxy:3128/?api_key={QUERY}"
            status: int = 200
            said: Any = {"data": [{"id": "llama"}]}
            if sent:
                Handler.asked += b"top_logprobs" not in sent  # a judge's first request, by which it looks what the server tells
                status, said = 400, {"error": {"message": f"Incorrect API key provided: {told}", "code": 400}}
                if Handler.asked % 3:
                    text = f"[Review] Fine, said {self.headers.get('Authorization')}.\n[Score] {random.Random(sent).randint(1, 10)}"
                    status, said = 200, {"choices": [{"finish_reason": "stop", "message": {"content": text}}]}
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()


Perse = Callable[..., tuple[int, str]]


@pytest.fixture
def perse(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Perse:
    """A command line in this process: its exit code, and everything it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["perse", *map(str, arguments)])
        try:
            cli.main()
            code: Any = 0
        except SystemExit as left:
            code = left.code
        return int(code or 0), "".join(capfd.readouterr())

    return run


def assert_clean(printed: str, folder: Path) -> None:
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
        if file.suffix == ".parquet":
            content = json.dumps(pq.read_table(file).to_pylist()).encode()
        for secret in PLANTED:
            assert secret.encode() not in content, f"{secret} in {file}"
    for secret in PLANTED:
        assert secret not in printed, f"{secret} was printed"


@pytest.mark.parametrize("form", ["openai:{}#llama", "{}", "vllm:{}", "openai:{}"])
@pytest.mark.parametrize("url", WITH_SECRETS)
def test_an_address_with_a_secret_is_refused_in_a_sentence_that_says_where_keys_belong_and_repeats_none(
    url: str, form: str
) -> None:
    with pytest.raises(BadInput, match=r"put a key into the environment variable OPENAI_API_KEY|and a key into") as refused:
        parse_judge(form.format(url.replace("HERE", "127.0.0.1:8000")))
    said = repr(refused.value)
    assert not any(secret in said for secret in PLANTED) and "user:" not in said.removeprefix("a user")
    assert (refused.value.__cause__ is None and refused.value.__suppress_context__) or refused.value.__context__ is None


@pytest.mark.parametrize(
    "name", ["openai:https://api.cloudflare.com/client/v4/ai/v1#@cf/meta/llama-3", "openai:http://10.0.0.7:8000/v1#claude@2024"]
)
def test_an_at_sign_in_a_models_name_is_no_secret(name: str) -> None:
    assert parse_judge(name).model in ("@cf/meta/llama-3", "claude@2024")


@pytest.mark.parametrize("url", WITH_SECRETS)
def test_a_library_user_is_refused_alike(url: str) -> None:
    engine = ChatCompletionsEngine(url, "m")
    for use in (lambda: engine.chat(["x"], Sampling(), seeds=[0]), lambda: JudgeClient(url), lambda: AsyncJudgeClient(url)):
        with pytest.raises(BadInput) as refused:
            use()
        assert not any(secret in str(refused.value) for secret in PLANTED)


@pytest.mark.slow
def test_every_command_that_names_a_server_refuses_a_secret_before_it_writes_one(tmp_path: Path, perse: Perse) -> None:
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(example_lines(pointwise_examples(4, 2, k=1))), encoding="utf-8")
    (tmp_path / "items.jsonl").write_text('{"item_id": "one", "text": "Ida Venn sails to Harlow."}\n', encoding="utf-8")
    benchmark = write_benchmark_file(tmp_path)
    judge = f"openai:http://user:{PASSWORD}@127.0.0.1:9/v1?api_key={QUERY}#llama"
    for command in (
        ["score", "--examples", examples, "--judge", judge, "--out", tmp_path / "run"],
        ["ask", "--judge", judge, "--reviews", "/dev/null", "--text", "a text"],
        ["study", "order", "--examples", examples, "--judge", judge, "--out", tmp_path / "study"],
        ["kgds", "generate", benchmark, "--writer", judge, "--out", tmp_path / "kgds"],
        ["data", "anonymize", "--items", tmp_path / "items.jsonl", "--writer", judge, "--out", tmp_path / "out.jsonl"],
        ["serve", f"model={judge}"],
        ["serve", f"api_key={OPTION}"],
        ["score", "--api-key", OPTION],
    ):
        code, printed = perse(*command)
        assert code == 2 and "Traceback" not in printed, printed
        assert_clean(printed, tmp_path)


@pytest.mark.slow
def test_a_server_that_repeats_the_key_puts_it_into_no_file_and_no_line_of_any_command(
    tmp_path: Path, perse: Perse, echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(example_lines(pointwise_examples(6, 2, k=1))), encoding="utf-8")
    reviews = tmp_path / "mine.jsonl"
    reviews.write_text('{"text": "a plot", "review": "good", "score": 8}\n', encoding="utf-8")
    (tmp_path / "items.jsonl").write_text(
        "".join(f'{{"item_id": "{n}", "text": "Ida Venn sails to Harlow {n} times."}}\n' for n in range(3)), encoding="utf-8"
    )
    benchmark = write_benchmark_file(tmp_path)
    judge = f"openai:http://{echo}/v1#llama"
    kgds = tmp_path / "kgds"
    for code, *command in (
        [0, "score", "--examples", examples, "--judge", judge, "--out", tmp_path / "run"],
        [0, "report", tmp_path / "run"],
        [0, "ask", "--judge", judge, "--reviews", reviews, "--text", "a text", "--json"],
        [0, "ask", "--judge", judge, "--reviews", reviews, "--text", "another text"],
        [0, "kgds", "generate", benchmark, "--writer", judge, "--out", kgds, "--pattern", "ebs-aos", "--tries", "1"],
        [0, "kgds", "verify", benchmark, kgds, "--judge", judge],
        [
            2,
            "data",
            "anonymize",
            "--items",
            tmp_path / "items.jsonl",
            "--writer",
            judge,
            "--out",
            tmp_path / "out.jsonl",
        ],  # nothing came through
    ):
        found, printed = perse(*command)
        assert found == code, (command, printed)
        assert_clean(printed, tmp_path)
    judgements = [json.loads(line) for line in (tmp_path / "run" / "judgements.jsonl").open(encoding="utf-8")]
    failed, answered = ([one for one in judgements if bool(one["error"]) is is_failed] for is_failed in (True, False))
    assert failed and all("Incorrect API key provided: Bearer ***" in one["error"] for one in failed)
    assert answered and all("Bearer ***" in one["text"] for one in answered)
    assert (tmp_path / "run" / "report" / "report.html").exists()


BLANKS = (f"{ENV}\n", f"\r\n {ENV}\t")
UNUSABLE = (f"{ENV}\nX-Admin: 1", f"{ENV[:9]}\r{ENV}", f"{ENV}\x7fx", f"{ENV}\xe9", f"\u201c{ENV}\u201d")


@pytest.mark.parametrize("key", BLANKS)
def test_white_space_around_a_key_is_no_part_of_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("PERSE_API_KEY", key)
    assert served_key() == ENV
    with hostile(lambda *_: {"choices": [{"finish_reason": "stop", "message": {"content": "fine"}}]}) as server:
        [reply] = ChatCompletionsEngine(f"{server.url}/v1", "m").chat(["x"], Sampling(), seeds=[0])
        assert getattr(reply, "text", "") == "fine"
        for ours in ({}, {"key": key}):
            JudgeClient(server.url, **ours).version()
        assert [sent["authorization"] for sent in server.headers] == [f"Bearer {ENV}"] * 3


@pytest.mark.parametrize("key", UNUSABLE)
def test_a_key_that_no_header_can_carry_is_called_so_with_its_variable_and_not_repeated(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("PERSE_API_KEY", key)
    url = "http://127.0.0.1:9"
    for variable, use in {
        "OPENAI_API_KEY": lambda: ChatCompletionsEngine(f"{url}/v1", "m").chat(["x"], Sampling(), seeds=[0]),
        "PERSE_API_KEY": served_key,
        "PERSE_API_KEY ": lambda: JudgeClient(url),
        "PERSE_API_KEY  ": lambda: AsyncJudgeClient(url),
        "key=": lambda: JudgeClient(url, key=key),
    }.items():
        with pytest.raises(
            BadInput, match=f"the key in {variable.strip()} has a character that no header can carry"
        ) as refused:
            use()
        assert ENV not in str(refused.value) and "X-Admin" not in str(refused.value)


def test_a_manifest_keeps_the_command_without_what_is_given_to_an_option_named_as_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["perse", "--api-key", OPTION, f"--token={OPTION}", f"HF_TOKEN={HUB}", "--salt", OPTION, "x"]
    )
    assert environment()["command"] == ["perse", "--api-key", "***", "--token=***", "HF_TOKEN=***", "--salt", "***", "x"]
    with RunLog(tmp_path / "run", {"url": f"http://user:{PASSWORD}@host/v1"}, lines="lines.jsonl") as log:
        log.append([json.dumps({"error": f"no {ENV}"}) + "\n"])
    assert_clean("", tmp_path)
    kept = ["--max-new-tokens", "600", "--tokenizer", "folder", "train.row_tokens=4096", "--monkey", "see", "data.keys=a"]
    assert redact_command(kept) == kept


def test_a_run_that_kept_a_secret_long_ago_is_shown_without_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"run": {"url": f"http://u:{PASSWORD}@h/v1?api_key={QUERY}"}}))
    assert read_manifest(tmp_path) == {"run": {"url": "http://***@h/v1?api_key=***"}}


def test_a_message_of_ours_never_holds_a_key_whoever_wrote_it() -> None:
    for said in (
        f"no {ENV}", f"at http://u:{PASSWORD}@h/x", f"GET /v1?token={QUERY}&x=1", "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "key sk-proj-abcdefgh12345678", "key hf_abcdefghijklmnopqrst", f"proxy http://me:{PROXY}@p",
    ):  # fmt: skip
        shown = str(BadInput(said))
        assert "***" in shown and not any(secret in shown for secret in (*PLANTED, "dXNlcjp", "sk-proj", "hf_abc"))


@pytest.mark.parametrize(
    ("variable", "headers", "secrets"),
    [
        ("OPENAI_CUSTOM_HEADERS", f"X-Gateway: {OPTION}\nAuthorization: Bearer {QUERY}", [OPTION, QUERY, f"Bearer {QUERY}"]),
        ("OPENAI_CUSTOM_HEADERS", "X-Api-Key: sesameopen\nX-Pair: one-half-0,other-half-1", ["sesameopen", "one-half-0,other-half-1"]),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"api-key={OPTION},x-auth=Basic%20{QUERY}", [OPTION, QUERY, f"Basic {QUERY}"]),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", f"team={OPTION}", [OPTION]),
    ],
)  # fmt: skip
def test_what_the_environment_sends_in_headers_is_taken_out(
    variable: str, headers: str, secrets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, headers)
    for secret in secrets:
        assert without_keys(f"you sent {secret}.") == "you sent ***."


def test_a_header_that_a_server_repeats_is_in_no_answer_and_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gateway: {OPTION}")
    asked = 0

    def repeat(*_: Any) -> Any:
        nonlocal asked
        told, asked = f"you sent {server.headers[-1]['x-gateway']}", asked + 1
        if asked == 1:
            return {"choices": [{"finish_reason": "stop", "message": {"content": told}}]}
        return 400, {}, json.dumps({"error": {"message": told}}).encode()

    with hostile(repeat) as server:
        engine = ChatCompletionsEngine(f"{server.url}/v1", "m")
        [reply], [failure] = (engine.chat(["x"], Sampling(), seeds=[0]) for _ in range(2))
    assert "you sent ***" in getattr(reply, "text", "") and "you sent ***" in getattr(failure, "reason", "")


def test_a_key_in_letters_of_the_other_case_is_taken_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "PlainSecretValue99x")
    assert redact("it points to http://plainsecretvalue99x.evil") == "it points to http://***.evil"
    assert without_keys("PLAINSECRETVALUE99X and OtherKey", "otherkey") == "*** and ***"


def test_words_in_headers_that_name_no_secret_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-dataset=production,x-team=marketing")
    assert without_keys("a lavish production") == "a lavish production"


def test_words_that_are_no_secrets_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("none", "EMPTY", "ollama", "lm-studio", "x"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert without_keys(f"the {key} of it") == f"the {key} of it"
    for text in ("see https://medium.com/@me/post", "line 3: score=11", "mailto:me@host.org", "max_tokens=5 of token 7"):
        assert redact(text) == text


def test_a_proxy_that_cannot_be_used_is_one_sentence_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in (f"ftp://me:{PROXY}@host:1", f"http://me:{PROXY}@host:port"):
        monkeypatch.setenv("ALL_PROXY", proxy)
        with pytest.raises(BadInput, match="a proxy that HTTP_PROXY.* cannot be used") as refused:
            ChatCompletionsEngine("http://198.51.100.1/v1", "m").chat(["x"], Sampling(), seeds=[0])
        assert PROXY not in str(refused.value)


@pytest.mark.parametrize("there", ["nothing", "a folder", "no certificates"])
def test_certificates_that_cannot_be_read_are_named_with_the_variable(
    there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "company.pem"
    if there == "a folder":
        place.mkdir()
    elif there == "no certificates":
        place.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(place))
    with pytest.raises(BadInput, match=f"SSL_CERT_FILE={place}.*: cannot be read as certificates .*or unset it"):
        ChatCompletionsEngine("http://198.51.100.1/v1", "m").chat(["x"], Sampling(), seeds=[0])


def test_a_bug_is_a_sentence_that_says_how_to_see_its_traceback_and_no_key_is_in_either(
    perse: Perse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"cannot reach http://user:{PASSWORD}@host with {ENV}")

    monkeypatch.setattr("perse.models.finding.pull", broken)
    code, printed = perse("models", "pull", "smollm2-135m")
    assert code == 1 and "Traceback" not in printed and "cannot reach http://***@host with ***" in printed
    assert "PERSE_TRACEBACK=1" in printed
    assert_clean(printed, tmp_path)
    monkeypatch.setenv("PERSE_TRACEBACK", "1")
    code, printed = perse("models", "pull", "smollm2-135m")
    assert code == 1 and "Traceback" in printed and "cannot reach http://***@host with ***" in printed
    assert_clean(printed, tmp_path)


def test_a_key_across_the_end_of_a_bugs_sentence_is_not_cut_in_two(perse: Perse, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("x" * 280 + f" {ENV}")  # "RuntimeError: " stands before it, and 300 letters are shown

    monkeypatch.setattr("perse.models.finding.pull", broken)
    code, printed = perse("models", "pull", "smollm2-135m")
    assert code == 1 and ENV[:5] not in printed


def test_a_terminal_obeys_nothing_that_a_command_logs_or_warns_of(
    perse: Perse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def noisy(*_: Any, **__: Any) -> Path:
        logging.getLogger("perse.models.finding").warning("a tensor named %s", "\x1b[2Jx\u202e")
        warnings.warn(f"a pipeline of version \x1b]0;owned\x07 {ENV}", UserWarning, stacklevel=1)
        warnings.warn("unseen as ever", DeprecationWarning, stacklevel=1)
        return tmp_path

    monkeypatch.setattr("perse.models.finding.pull", noisy)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own, beside which ours would not be set up
    logging.captureWarnings(False)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = warnings._showwarning_orig  # type: ignore[attr-defined]
        try:
            code, printed = perse("models", "pull", "smollm2-135m")
        finally:
            logging.captureWarnings(False)
    assert code == 0 and "\\x1b[2Jx\\u202e" in printed and "\\x1b]0;owned\\x07 ***" in printed, printed
    assert not set("\x1b\x07\u202e") & set(printed) and "unseen" not in printed
    assert_clean(printed, tmp_path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("a\u2066b\u2069\u202a", "a\\u2066b\\u2069\\u202a"),
        ("\u05d0\u200f! \u200e\u0915\u094d\u200d\u0937 \u200c", "\u05d0\u200f! \u200e\u0915\u094d\u200d\u0937 \u200c"),
        ("x\x9b2J\r\x7f\ud800\n\t", "x\\x9b2J\\x0d\\x7f\\ud800\n\t"),
    ],
)  # fmt: skip
def test_a_message_cannot_turn_the_direction_of_its_line_and_texts_keep_their_joiners(text: str, shown: str) -> None:
    assert printable(text) == shown == str(BadInput(text))


def test_warnings_are_logged_without_keys(capfd: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(HARMLESS)
    log = logging.getLogger("a library of another")
    log.addHandler(handler)
    try:
        try:
            raise ValueError(ENV)
        except ValueError:
            log.exception("request to %s failed", f"http://u:{PASSWORD}@h")
    finally:
        log.removeHandler(handler)
    printed = "".join(capfd.readouterr())
    assert "request to http://***@h failed" in printed and "ValueError: ***" in printed and PASSWORD not in printed


def test_a_key_in_the_address_of_a_request_opens_nothing_and_is_not_in_the_access_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import uvicorn
    from fastapi import FastAPI
    from starlette.routing import WebSocketRoute
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    from perse.serving.front.front import Front
    from perse.serving.front.guard import Guard
    from perse.serving.metrics import Metrics
    from perse.settings.serving import Limits

    monkeypatch.setenv("PERSE_API_KEY", ENV)
    app = FastAPI()
    app.add_middleware(Guard)
    app.state.front = Front.of(Limits(), None, Metrics())

    async def live(socket: Any) -> None:
        await socket.accept()
        await socket.close()

    app.router.routes.append(WebSocketRoute("/v1/realtime", live))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="info"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.02)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        asked = httpx2.get(f"{url}/v1/models?api_key={ENV}&token={QUERY}", trust_env=False)
        assert asked.status_code == 401 and "not in the address" in asked.text
        asked = httpx2.get(f"{url}/health?api_key={QUERY}", headers={"Authorization": f"Bearer {ENV}"}, trust_env=False)
        assert QUERY not in asked.text
        live_url = f"{url.replace('http', 'ws')}/v1/realtime?api_key={ENV}&token='{QUERY}'"
        with pytest.raises(InvalidStatus):
            connect(live_url, proxy=None).close()
        connect(live_url, proxy=None, additional_headers={"Authorization": f"Bearer {ENV}"}).close()
    finally:
        server.should_exit = True
        thread.join()
    printed = "".join(capfd.readouterr())
    assert '"GET /v1/models HTTP/1.1" 401' in printed and '"GET /health HTTP/1.1" 404' in printed, printed
    assert '"WebSocket ***" 403' in printed and '"WebSocket ***" [accepted]' in printed, printed
    assert not any(secret in printed for secret in PLANTED)


@pytest.mark.parametrize("key", ["abcd5f", "abcde6g", "abcd efgh", "abcDefgh"])
def test_a_key_is_known_as_one_from_six_characters_with_a_digit_and_from_eight_without(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert redact(f"the server said {key}.") == "the server said ***."
    for short in ("abc efg", "abc1e", "whatever"):
        monkeypatch.setenv("OPENAI_API_KEY", short)
        assert redact(f"the server said {short}.") == f"the server said {short}."


def test_a_key_is_known_in_each_way_that_addresses_spell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some encode the slash of a key in base64 and some leave it."""
    monkeypatch.setenv("OPENAI_API_KEY", "ab/cd+ef12=gh34")
    for said in ("ab/cd+ef12=gh34", "ab%2Fcd%2Bef12%3Dgh34", "ab/cd%2Bef12%3Dgh34", "ab/cd%2bef12%3dgh34"):
        assert without_keys(f"no such key: {said}") == "no such key: ***"


@pytest.mark.parametrize(
    "value",
    [
        "postgres",
        "reviewer_id",
        "pointwise_score_stated",
        "Password",
        "REVIEWER_ID",
        "319310",
        "2026-11-29",
        "127.0.0.1",
        "en-us",
    ],
)
def test_words_and_numbers_that_stand_in_any_file_are_not_taken_out_of_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SORT_KEY", value)
    text = f'{{"reviewer_id": "postgres", "said": "{value}", "p": 0.0816{value}5670208}}'
    assert without_keys(text) == text and redact(text) == text


@pytest.mark.parametrize(
    "value", ["hunter2pass", "sk-secret-0123456789", "a key of words and spaces", "k" * 28, "Zx9kQw", "4" * 16, "aB-cD/eF"]
)
def test_what_is_no_word_and_no_number_is_hidden(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SORT_KEY", value)
    assert without_keys(f"so: {value}.") == "so: ***."


def test_no_variable_changes_the_names_of_others_in_a_file_of_keys_and_no_key_becomes_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POSTGRES_PASSWORD", "post9res")
    file = tmp_path / "keys"
    monkeypatch.delenv("POSTGRES_PASSWORD")
    add_key(file, "post9res-app", ["judge"])
    before = file.read_text()
    monkeypatch.setenv("POSTGRES_PASSWORD", "post9res")
    add_key(file, "carl", ["judge"])
    assert file.read_text().startswith(before) and len(read_keys(file)) == 2
    with pytest.raises(BadInput, match="the name holds a key that is known here"):
        add_key(file, "post9res", ["judge"])


def test_a_column_or_a_row_that_is_called_as_a_key_is_stands_in_no_card_and_no_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", HUB)
    rows = [json.loads(line) for line in (SAMPLES / "reviews.jsonl").read_text(encoding="utf-8").splitlines()]
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text(
        "".join(json.dumps({HUB if name == "review" else name: value for name, value in row.items()}) + "\n" for row in rows)
    )
    build_pointwise(
        PointwiseOptions(reviews=reviews, items=SAMPLES / "items.jsonl", columns={"review": HUB}, out=tmp_path / "set")
    )
    figure = Figure("rows", "Rows", "words", f"<svg><text>{HUB}</text></svg>", b"", ("row",), ((HUB,),))
    save_figure(figure, tmp_path / "set" / "figures")
    told = {
        path.name: path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.suffix != ".parquet" and path.is_file()
    }
    assert {"README.md", "manifest.json", "rows.svg", "rows.csv"} <= told.keys()
    assert not [name for name, content in told.items() if HUB.encode() in content] and b"***" in told["README.md"]
