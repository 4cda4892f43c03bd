"""Servers of the OpenAI API, played by a stub: patience, order, refusals, and exact distributions from one like vLLM's."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import openai._base_client
import pytest
from builders import KINDS, pairwise_examples, pointwise_examples
from openai import DefaultAsyncHttpxClient

from perse import Judge
from perse.engines.base import Failure, Generation, LabelDistribution, Reply, Sampling
from perse.engines.http import ClientFault
from perse.engines.openai import ChatCompletionsEngine, CompletionsEngine
from perse.errors import BadInput, EngineLost
from perse.judgement import Status, Tokens
from perse.judging.connecting import connect
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import LABEL_TOKENS, Renderer, TextRenderer

KEY = "sk-secret-0123456789"
SOON = {"retry-after-ms": "1"}
Json = dict[str, Any]
Answer = tuple[int, dict[str, str], Any]


class Stub:
    """What a server says: `routes` by method and path, each a function of the request's body. It remembers every request."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[Json], Answer | Json]] = {}
        self.asked: list[tuple[str, Json, float]] = []
        self.keys: set[str | None] = set()
        self.in_flight = self.most_in_flight = 0
        self.url = ""
        self._lock = threading.Lock()

    def bodies(self, path: str) -> list[Json]:
        return [body for route, body, _ in self.asked if route.endswith(path)]

    def times(self, path: str) -> list[float]:
        return [at for route, _, at in self.asked if route.endswith(path)]

    def answer(self, route: str, key: str | None, body: Json) -> Answer:
        with self._lock:
            self.asked.append((route, body, time.monotonic()))
            self.keys.add(key)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            said = self.routes[route](body) if route in self.routes else (404, {}, {"detail": "Not Found"})
            return said if isinstance(said, tuple) else (200, {}, said)
        finally:
            with self._lock:
                self.in_flight -= 1


@pytest.fixture
def server() -> Iterator[Stub]:
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else {}
            status, headers, said = stub.answer(f"{self.command} {self.path}", self.headers.get("Authorization"), body)
            if status == 0:  # hang up
                self.close_connection = True
                return
            data = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None: ...  # a client that gave up hangs up

    with Server(("127.0.0.1", 0), Handler) as http:
        stub.url = f"http://127.0.0.1:{http.server_port}/v1"
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield stub
        http.shutdown()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own waits are short; those that the server asks for stay."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.005)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def said(text: str | None, *, finish_reason: str = "stop", **message: Any) -> Json:
    return {
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}],
        "usage": {
            "prompt_tokens": 40,
            "completion_tokens": 5,
            "total_tokens": 45,
            "prompt_tokens_details": {"cached_tokens": 32},
        },
    }


def words_of(body: Json) -> str:
    return str(body["messages"][0]["content"])


def echoing(server: Stub, *before: Answer, on: str = "") -> None:
    """Chat answers repeat the message; the first that hold `on` get the answers of `before` instead."""
    waiting = list(before)

    def answer(body: Json) -> Answer | Json:
        return waiting.pop(0) if waiting and on in words_of(body) else said(words_of(body))

    server.routes["POST /v1/chat/completions"] = answer


def chat(server: Stub, *messages: str, **sampling: Any) -> list[Reply | Failure]:
    engine = ChatCompletionsEngine(server.url, "m", concurrency=6)
    return engine.chat(messages, Sampling(**sampling), seeds=range(len(messages)))


def texts(replies: list[Reply | Failure]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else "failed" for reply in replies]


def reasons(replies: list[Reply | Failure]) -> list[str]:
    return [reply.reason for reply in replies if isinstance(reply, Failure)]


def fault(status: int, message: str = "no", **headers: str) -> Answer:
    return status, headers, {"error": {"message": message, "type": "x", "code": status}}


# Patience


@pytest.mark.slow
def test_a_rate_limit_is_waited_out_as_long_as_the_server_says(server: Stub) -> None:
    echoing(server, fault(429, **{"Retry-After": "1"}))
    assert texts(chat(server, "hello")) == ["hello"]
    first, second = server.times("completions")
    assert second - first > 0.9


def test_a_fault_of_this_programs_own_is_not_blamed_on_the_server(server: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK calls a TypeError of its own, or of the HTTP library below, a lost connection."""

    def send(*_: Any, **__: Any) -> None:
        raise TypeError("Timeout object cannot be unpacked")

    monkeypatch.setattr(DefaultAsyncHttpxClient, "send", send)
    with pytest.raises(ClientFault, match=r"TypeError: Timeout object cannot be unpacked \(openai \d.*httpx"):
        connect(server.url, "m", tokenizer=None, context=None)
    with pytest.raises(ClientFault):
        chat(server, "hello")
    assert not server.asked


def test_a_wait_of_an_hour_is_not_waited(server: Stub) -> None:
    echoing(server, fault(429, "quota spent", **{"Retry-After": "3600"}))
    assert reasons(chat(server, "hello")) == [f"{server.url} answered 429 after 1 try: quota spent"]


@pytest.mark.parametrize("said", ["61", "120", "date"])
def test_a_wait_of_up_to_two_minutes_is_waited(server: Stub, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """By openai 2 as by openai 3: what the newer one does alone is the rest, which both know."""
    waited = []

    async def slept(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", slept)
    monkeypatch.setattr(anyio, "sleep", slept)  # the SDK's
    wait = formatdate(time.time() + 100.5, usegmt=True) if said == "date" else said
    echoing(server, fault(429, **{"Retry-After": wait}))
    assert texts(chat(server, "hello")) == ["hello"]
    assert sum(waited) == pytest.approx(100 if said == "date" else int(said), abs=1)


@pytest.mark.parametrize(
    "bad", [fault(503, **SOON), fault(500), fault(408), fault(409), (0, {}, None)], ids=["503", "500", "408", "409", "hung up"]
)
def test_a_passing_failure_is_tried_again(server: Stub, bad: Answer) -> None:
    echoing(server, bad, bad)
    assert texts(chat(server, "hello")) == ["hello"]
    assert len(server.asked) == 3


def test_a_lasting_failure_is_one_items_after_seven_tries(server: Stub) -> None:
    echoing(server, *[fault(503, "overloaded", **SOON)] * 7, on="two")
    replies = chat(server, "one", "two", "three")
    assert texts(replies) == ["one", "failed", "three"]
    assert reasons(replies) == [f"{server.url} answered 503 after 7 tries: overloaded"]


def test_a_bad_request_is_not_tried_again_and_fails_alone(server: Stub) -> None:
    echoing(server, fault(400, "the prompt is too long"), on="two")
    replies = chat(server, "one", "two", "three")
    assert texts(replies) == ["one", "failed", "three"]
    assert reasons(replies) == [f"{server.url} answered 400 after 1 try: the prompt is too long"]
    assert len(server.asked) == 3


@pytest.mark.parametrize("answer", [{}, {"choices": []}, "<html>", {"choices": [{"message": {"content": [{"type": "x"}]}}]}])
def test_an_answer_of_another_shape_fails_alone(server: Stub, answer: Any) -> None:
    echoing(server, (200, {}, answer), on="two")
    assert texts(chat(server, "one", "two")) == ["one", "failed"]


def test_a_server_that_is_gone_loses_the_engine_and_a_few_lost_requests_do_not(
    nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ChatCompletionsEngine(nowhere, "m")
    replies = engine.chat(["x"] * 4, Sampling(), seeds=range(4))
    assert all(isinstance(reply, Failure) and "after 7 tries (ConnectError" in reply.reason for reply in replies)
    with pytest.raises(EngineLost, match="no answer from http://127.0.0.1.* the same command continues"):
        engine.chat(["x"] * 5, Sampling(), seeds=range(5))


def test_a_server_that_answers_once_is_not_gone(server: Stub) -> None:
    echoing(server, *[(0, {}, None)] * 42, on="lost")
    assert (
        texts(chat(server, "lost", "lost", "here", "lost", "lost", "lost", "lost"))
        == ["failed"] * 2 + ["here"] + ["failed"] * 4
    )


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_every_request_is_quoted_and_a_few_refusals_fail_alone(server: Stub, status: int) -> None:
    echoing(server, *[fault(status, "'temperature' is not supported")] * 9)
    assert reasons(chat(server, *"abcd")) == [f"{server.url} answered {status} after 1 try: 'temperature' is not supported"] * 4
    with pytest.raises(BadInput, match=f"answered {status} .*'temperature' is not supported; so it did to all 5 .*change what"):
        chat(server, *"abcde")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_server_that_is_never_well_loses_the_engine(server: Stub, status: int) -> None:
    echoing(server, *[fault(status, "overloaded", **SOON)] * 35)
    with pytest.raises(EngineLost, match=f"answered {status} after 7 tries: overloaded; .*the same command continues"):
        chat(server, *"abcde")


def test_requests_that_fail_differently_fail_alone(server: Stub) -> None:
    server.routes["POST /v1/chat/completions"] = lambda body: fault(400 if words_of(body) == "a" else 422)
    assert texts(chat(server, *"abcde")) == ["failed"] * 5


# Many at once


def test_at_most_so_many_are_asked_at_once_and_more_than_one(server: Stub) -> None:
    def slow(body: Json) -> Json:
        time.sleep(0.05)
        return said(words_of(body))

    server.routes["POST /v1/chat/completions"] = slow
    asked = [str(n) for n in range(24)]
    assert texts(chat(server, *asked)) == asked
    assert 1 < server.most_in_flight <= 6


def test_answers_keep_their_order_when_the_first_comes_last(server: Stub) -> None:
    last = threading.Event()

    def answer(body: Json) -> Json:
        if words_of(body) == "first":
            assert last.wait(10)
        if words_of(body) == "last":
            last.set()
        return said(words_of(body))

    server.routes["POST /v1/chat/completions"] = answer
    assert texts(chat(server, "first", "middle", "last")) == ["first", "middle", "last"]


def test_it_can_be_asked_from_a_thread_and_from_within_a_loop(server: Stub) -> None:
    echoing(server)

    async def notebook() -> list[Reply | Failure]:
        return chat(server, "loop")

    with ThreadPoolExecutor(2) as threads:
        assert [texts(done) for done in threads.map(lambda text: chat(server, text), ["a", "b"])] == [["a"], ["b"]]
    assert texts(asyncio.run(notebook())) == ["loop"]


def test_ctrl_c_gets_through_while_the_server_is_silent(server: Stub) -> None:
    released = threading.Event()

    def silent(body: Json) -> Json:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(20)
        return said("")

    server.routes["POST /v1/chat/completions"] = silent
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            chat(server, "hello")
        assert not released.is_set()
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)


# Key, model, address


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_says_which_variable_holds_it_and_never_shows_it(
    server: Stub, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echoing(server, *[fault(status, f"Incorrect API key provided: {KEY}")] * 9)
    server.routes["GET /v1/models"] = lambda _: fault(status, f"Incorrect API key provided: {KEY}")
    for call in (lambda: chat(server, *"abcdefghi"), lambda: connect(server.url, "m", tokenizer=None, context=None)):
        with pytest.raises(BadInput, match="put a valid one into OPENAI_API_KEY") as refused:
            call()
        assert KEY not in str(refused.value) and "***" in str(refused.value)
    assert server.keys == {f"Bearer {KEY}"}
    assert caplog.records and KEY not in caplog.text


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_for_one_request_is_not_that_messages_fault(server: Stub, status: int) -> None:
    echoing(server, fault(status), on="b")
    with pytest.raises(BadInput, match=f"refused the key \\({status}: no\\); put a valid one into OPENAI_API_KEY"):
        chat(server, *"abc")


def test_the_key_is_not_in_a_failure_either(server: Stub) -> None:
    echoing(server, fault(400, f"you sent {KEY}"))
    [failure] = chat(server, "x")
    assert isinstance(failure, Failure) and failure.reason.endswith("you sent ***")


def test_without_a_key_a_placeholder_is_sent(server: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    echoing(server)
    assert texts(chat(server, "x")) == ["x"] and server.keys == {"Bearer none"}


def listing(server: Stub, *entries: Json) -> None:
    server.routes["GET /v1/models"] = lambda _: {"object": "list", "data": list(entries)}


def test_a_model_that_went_away_lists_those_there_are(server: Stub) -> None:
    listing(server, {"id": "one"}, {"id": "two"})
    server.routes["POST /v1/chat/completions"] = lambda _: fault(404, "gone")
    with pytest.raises(BadInput, match="knows no model 'm' \\(404: gone\\); it has one, two"):
        chat(server, "x")


def test_an_unknown_model_lists_those_there_are_the_nearest_of_many(server: Stub) -> None:
    listing(server, {"id": "one"}, {"id": "two"})
    with pytest.raises(BadInput, match="has no model 'three'; it has one, two$"):
        connect(server.url, "three", tokenizer=None, context=None)
    listing(server, *({"id": f"model-{n}"} for n in range(50)))
    with pytest.raises(BadInput, match="it has model-49, .* and 30 more$"):
        connect(server.url, "mode-49", tokenizer=None, context=None)


def test_the_only_model_is_taken_and_of_several_one_must_be_named(server: Stub) -> None:
    listing(server, {"id": "only", "owned_by": "someone"})
    judge = Judge.load(f"openai:{server.url}")
    assert judge.identity.model == "only" and isinstance(judge.engine, ChatCompletionsEngine)
    assert judge.engine.settings == {"engine": "openai", "url": server.url, "model": "only", "api": "chat", "server": ""}
    listing(server, {"id": "one"}, {"id": "two"})
    with pytest.raises(BadInput, match="has several models, name one: openai:.*#MODEL; it has one, two"):
        Judge.load(f"openai:{server.url}")


def test_a_server_without_a_list_needs_a_model_named(server: Stub) -> None:
    assert Judge.load(f"openai:{server.url}#m").identity.model == "m"
    with pytest.raises(BadInput, match="lists no models; does the address end in /v1"):
        Judge.load(f"openai:{server.url}")


def test_nobody_at_the_address_is_one_clear_sentence(nowhere: str) -> None:
    with pytest.raises(
        BadInput, match=f"nothing answers at {nowhere} \\(ConnectError: .*\\); start the server, or correct the addr"
    ):
        connect(nowhere, "m", tokenizer=None, context=None)


def test_a_web_page_is_no_api(server: Stub) -> None:
    server.routes["GET /v1/models"] = lambda _: (200, {"Content-Type": "text/html"}, "<html>")
    with pytest.raises(BadInput, match="is no OpenAI API"):
        connect(server.url, "m", tokenizer=None, context=None)


def test_an_address_without_its_v1_is_set_right(server: Stub) -> None:
    listing(server, {"id": "one"})
    server.routes["GET /version"] = lambda _: {"version": "0.32.0", "perse": "0.1"}  # perse's plugin in vLLM has it too
    root = server.url.removesuffix("/v1")
    for model, shown in (("", "MODEL"), ("one", "one")):
        with pytest.raises(BadInput, match=f"did you mean openai:{server.url}#{shown}\\?"):
            connect(root, model, tokenizer=None, context=None)


@pytest.mark.parametrize("status", [404, 405])
def test_perses_embedded_server_is_asked_otherwise(server: Stub, status: int) -> None:
    server.routes["GET /v1/models"] = lambda _: fault(status)
    server.routes["GET /version"] = lambda _: {"version": "0.1", "perse": "0.1", "engine": {}, "models": {}}
    for url in (server.url, server.url.removesuffix("/v1")):
        with pytest.raises(
            BadInput, match="runs the embedded engine, .*; ask it with perse.serving.client, or serve .* on vLLM"
        ):
            connect(url, "m", tokenizer=None, context=None)


@pytest.mark.parametrize("version", [{"version": "3"}, [], "<html>", fault(403), fault(500, **SOON)])
def test_a_server_without_a_list_that_is_not_perses_is_asked_in_words(server: Stub, version: Any) -> None:
    server.routes["GET /version"] = lambda _: version if isinstance(version, tuple) else (200, {}, version)
    assert isinstance(connect(server.url, "m", tokenizer=None, context=None).engine, ChatCompletionsEngine)


# Judgements in words


@pytest.fixture
def chatting(server: Stub) -> Judge:
    return Judge(ChatCompletionsEngine(server.url, "m"), TextRenderer(), name="m")


def test_a_chat_judgement_has_a_label_and_no_distribution(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Review] Fine.\n[Score] 10")
    [judgement] = chatting.ask(
        QUESTIONS["pointwise"], pointwise_examples(1, 1), JudgeSettings(temperature=0.3, max_new_tokens=9)
    )
    assert (judgement.status, judgement.label, judgement.text) == (Status.OK, "10", "Fine.")
    assert judgement.distribution is None and judgement.expected is None and judgement.mass is None
    assert (judgement.tokens.prompt, judgement.tokens.cached, judgement.tokens.generated) == (40, 32, 5)
    [body] = server.bodies("completions")
    assert (body["model"], body["temperature"], body["max_completion_tokens"]) == ("m", 0.3, 9 + LABEL_TOKENS)
    assert 0 <= body["seed"] < 2**31 and "max_tokens" not in body


def test_where_no_review_is_asked_for_the_limit_is_the_labels(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Score] 10")
    chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1), JudgeSettings(max_new_tokens=9))
    assert server.bodies("completions")[0]["max_completion_tokens"] == LABEL_TOKENS


class Saying:
    """A chat engine that says what it was given, one reply after the other."""

    capabilities = ChatCompletionsEngine.capabilities

    def __init__(self, *replies: Reply) -> None:
        self.settings: dict[str, str] = {}
        self.replies = list(replies)

    def chat(self, messages: Sequence[str], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        return [self.replies.pop(0) for _ in messages]


NOTHING = Tokens(prompt=0, cached=0, generated=0)


@pytest.mark.parametrize(
    ("text", "label"), [("[Review] Fine.\n[Score] 1", None), ("1", None), ("[Score] 10\nBec", "10"), ("[Score] 10\n", "10")]
)
def test_of_an_answer_that_is_cut_off_only_complete_lines_count(text: str, label: str | None) -> None:
    for question in ("pointwise", "pointwise_score"):
        judge = Judge(Saying(Reply(text, "length", NOTHING)), TextRenderer(), name="m")
        [judgement] = judge.ask(QUESTIONS[question], pointwise_examples(1, 1))
        assert (judgement.label, judgement.status) == (label, Status.OK if label else Status.UNPARSED)
        assert label or (judgement.error or "").endswith(f"the model said, before it was cut off: {judgement.text}")


@pytest.mark.parametrize(("refusal", "shown"), [("I would rather not.", "I would rather not."), ("", "content_filter")])
def test_of_two_replies_the_refused_one_is_quoted(refusal: str, shown: str) -> None:
    engine = Saying(Reply("Plot A", "stop", NOTHING), Reply(refusal, "content_filter", NOTHING, refused=True))
    [judgement] = Judge(engine, TextRenderer(), name="m").ask(QUESTIONS["pairwise"], pairwise_examples(1)[:1])
    assert judgement.status is Status.REFUSED and judgement.error == f"the model declined to answer: {shown}"


def test_usage_that_is_not_told_is_zero(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: {"choices": said("7")["choices"]}
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.label == "7" and judgement.tokens.prompt == judgement.tokens.generated == 0


@pytest.mark.parametrize(
    "reply",
    [said(None, refusal="I cannot judge that."), said(None, finish_reason="content_filter"), said("[Score] 7", refusal="No.")],
    ids=["refusal", "filter", "refusal after all"],
)
def test_a_refusal_is_refused(server: Stub, chatting: Judge, reply: Json) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: reply
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.status is Status.REFUSED and judgement.label is None
    assert "the model declined to answer" in (judgement.error or "")


def test_a_filter_that_answers_400_refuses_and_loses_nothing(server: Stub, chatting: Judge) -> None:
    """Azure's, which looks at prompts too; however many it holds back, the server is well."""
    error = {"message": "The prompt triggered the content management policy", "code": "content_filter", "status": 400}
    server.routes["POST /v1/chat/completions"] = lambda _: (400, {}, {"error": error})
    judgements = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 6))
    assert {(j.status, j.finish_reason, j.tokens.prompt) for j in judgements} == {(Status.REFUSED, "content_filter", 0)}
    assert len(server.asked) == 6


@pytest.mark.parametrize("text", ["I liked it.", "[Score] 7.5", "", None])
def test_an_answer_without_a_label_is_unparsed(server: Stub, chatting: Judge, text: str | None) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said(text)
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.status is Status.UNPARSED and "expected '[Score] ' and one of 1..10" in (judgement.error or "")


@pytest.mark.parametrize(("text", "shown"), [("a" * 200, "a" * 200), ("a" * 201, "a" * 200 + "...")])
def test_a_long_answer_without_a_label_is_quoted_from_its_beginning(
    server: Stub, chatting: Judge, text: str, shown: str
) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said(text)
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert (judgement.error or "").endswith(f"; the model said: {shown}") and judgement.text == text


def test_a_failed_request_is_one_examples_engine_error(server: Stub, chatting: Judge) -> None:
    examples = pointwise_examples(1, 3)

    def answer(body: Json) -> Answer | Json:
        return fault(400, "bad") if examples[1].query in words_of(body) else said("7")

    server.routes["POST /v1/chat/completions"] = answer
    statuses = [judgement.status for judgement in chatting.ask(QUESTIONS["pointwise_score"], examples)]
    assert statuses == [Status.OK, Status.ENGINE_ERROR, Status.OK]


def test_pairs_are_asked_in_both_orders(server: Stub, chatting: Judge) -> None:
    """Always the first: of A and B in turn, so the orders disagree. Always the same text: they agree."""
    question, [example, *_] = QUESTIONS["pairwise"], pairwise_examples(1)
    server.routes["POST /v1/chat/completions"] = lambda _: said("Plot A")
    [judgement] = chatting.ask(question, [example])
    assert judgement.order_gap == 1 and judgement.label in ("A", "B")
    assert judgement.tokens.prompt == 80 and len(server.asked) == 2

    def second_text(body: Json) -> Json:
        shown = words_of(body).rpartition("[New pair]")[2]
        return said("Plot A" if shown.index(example.query.text_b) < shown.index(example.query.text_a) else "Plot B")

    server.routes["POST /v1/chat/completions"] = second_text
    [judgement] = chatting.ask(question, [example])
    assert judgement.order_gap == 0 and judgement.label == "B"


def test_temperature_zero_and_seed_zero_are_told_to_the_server(server: Stub, completions: Completions) -> None:
    echoing(server)
    chat(server, "x", temperature=0)
    CompletionsEngine(server.url, "m").generate([(1, 2)], Sampling(temperature=0), seeds=[0])
    for body in server.bodies("completions"):
        assert (body["temperature"], body["seed"]) == (0, 0)


def test_an_older_server_is_told_the_limit_by_its_older_name_from_then_on(server: Stub) -> None:
    def older(body: Json) -> Answer | Json:
        new = "max_completion_tokens"
        return fault(400, f"Unrecognized request argument supplied: {new}") if new in body else said(words_of(body))

    server.routes["POST /v1/chat/completions"] = older
    engine = ChatCompletionsEngine(server.url, "m")
    assert texts(engine.chat(["one"], Sampling(max_new_tokens=9), seeds=[1])) == ["one"]
    assert texts(engine.chat(["two"], Sampling(max_new_tokens=9), seeds=[1])) == ["two"]
    assert [body.get("max_tokens") for body in server.bodies("completions")] == [None, 9, 9]


def test_a_limit_that_is_wrong_by_either_name_is_a_failure(server: Stub) -> None:
    server.routes["POST /v1/chat/completions"] = lambda body: fault(400, f"{min(body)} or max_completion_tokens is too large")
    assert texts(chat(server, "x")) == ["failed"]


def test_a_schema_goes_to_the_server(server: Stub) -> None:
    echoing(server)
    chat(server, "x", schema={"type": "object"})
    assert server.bodies("completions")[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}


# Exact distributions


class Completions:
    """vLLM's /v1/completions: `next` gives next-token probabilities, `text` what is written when nothing is forced."""

    def __init__(self, server: Stub) -> None:
        self.next: Callable[[tuple[int, ...]], dict[int, float]] = lambda ids: {}
        self.text: tuple[int, ...] = ()
        self.processed = False
        server.routes["POST /v1/completions"] = self.answer

    def answer(self, body: Json) -> Json:
        [prompt] = body["prompt"]
        ids, steps, own = tuple(prompt), [], []
        allowed = body.get("allowed_token_ids")
        written = allowed * body["max_tokens"] if allowed else list(self.text) or [body["logprob_token_ids"][0]]
        for token in written:
            known = self.next(ids)
            told = {n: math.log(known.get(n, 1e-6)) for n in {*body["logprob_token_ids"], token}}
            if self.processed and allowed:
                told = {n: 0.0 if n in allowed else -9999.0 for n in told}
            steps.append({f"token_id:{n}": p for n, p in told.items()})
            own.append(told[token])
            ids = (*ids, token)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(written), "total_tokens": 0}
        usage["prompt_tokens_details"] = {"cached_tokens": len(prompt) // 2}  # type: ignore[assignment]
        choice = {"index": 0, "text": "", "finish_reason": "length", "stop_reason": None, "token_ids": written}
        choice["logprobs"] = {"top_logprobs": steps, "token_logprobs": own, "tokens": [], "text_offset": []}
        return {"choices": [choice], "usage": usage}


@pytest.fixture
def completions(server: Stub) -> Completions:
    return Completions(server)


@pytest.mark.parametrize("kind", KINDS)
def test_distributions_are_those_of_the_told_log_probabilities(
    server: Stub, completions: Completions, tokenizers: dict[str, Any], kind: str
) -> None:
    """Split digits: P(10) = P("1") P("0" | "1"), and P(1) = P("1") - P(10). Whole numbers: as told. Then over their sum."""
    question = QUESTIONS["pointwise_score"]
    renderer = Renderer(tokenizers[kind], 2048)
    support = renderer.label_support(question)
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(2, 2)]
    first = [label[0] for label in support.labels]

    def model(ids: tuple[int, ...]) -> dict[int, float]:
        chance = random.Random(str(ids))
        return {token: chance.uniform(0.01, 0.09) for token in (*first, support.labels[9][-1])}

    completions.next = model
    found = CompletionsEngine(server.url, "m").label_distributions(prompts, support)
    for prompt, read in zip(prompts, found, strict=True):
        told = model(prompt + support.stem)
        by_hand = [told[token] for token in first]
        if kind != "whole_numbers":
            one, zero = support.labels[9]
            by_hand[9] = told[one] * model((*prompt, *support.stem, one))[zero]
            by_hand[0] = told[one] - by_hand[9]
        assert isinstance(read, LabelDistribution)
        assert read.mass == pytest.approx(sum(by_hand))
        assert read.probabilities == pytest.approx([p / sum(by_hand) for p in by_hand])
        assert read.cached == len(prompt + support.stem) // 2
    assert len(server.asked) == len(prompts)  # one request each


def test_every_setting_that_a_server_could_have_of_its_own_is_said(
    server: Stub, completions: Completions, tokenizers: dict[str, Any]
) -> None:
    renderer = Renderer(tokenizers["chatml"], 2048)
    support = renderer.label_support(QUESTIONS["pointwise_score"])
    engine = CompletionsEngine(server.url, "m")
    engine.label_distributions([(5, 6, 7)], support)
    engine.generate([(5, 6, 7)], Sampling(0.8, 12, frozenset({9, 8}), {"type": "object"}), seeds=[2**62])
    reading, writing = server.bodies("/completions")
    common = {"model": "m", "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0}
    common |= {"frequency_penalty": 0, "logprobs": 1, "add_special_tokens": False}
    common |= {"return_token_ids": True, "return_tokens_as_token_ids": True}
    one = support.labels[0][0]
    assert reading == common | {
        "prompt": [[5, 6, 7, *support.stem]],
        "max_tokens": 2,
        "temperature": 0,
        "logprob_token_ids": sorted({token for label in support.labels for token in label}),
        "allowed_token_ids": [one],
        "ignore_eos": True,
    }
    assert writing == common | {
        "prompt": [[5, 6, 7]],
        "max_tokens": 12,
        "temperature": 0.8,
        "seed": 2**62,
        "logprob_token_ids": [0],
        "stop_token_ids": [8, 9],
        "structured_outputs": {"json": {"type": "object"}},
    }


def test_what_was_written_comes_back_with_its_end_and_its_mean_log_probability(server: Stub, completions: Completions) -> None:
    completions.text = (4, 3, 9)
    completions.next = lambda ids: {4: 0.5, 3: 0.25, 9: 0.125}
    engine = CompletionsEngine(server.url, "m")
    [stopped] = engine.generate([(1, 2)], Sampling(stop_ids=frozenset({9})), seeds=[1])
    assert isinstance(stopped, Generation)
    assert (stopped.ids, stopped.finish_reason, stopped.cached) == ((4, 3, 9), "stop", 1)
    assert stopped.mean_logprob == pytest.approx((math.log(0.5) + math.log(0.25) + math.log(0.125)) / 3)
    [cut, failed] = engine.generate([(1, 2), (1, 2)], Sampling(schema={"type": "object"}), seeds=[1, 2])
    assert isinstance(cut, Generation) and cut.finish_reason == "length" and cut.mean_logprob is None
    assert isinstance(failed, Generation)


def test_a_server_that_leaves_a_label_out_is_a_failure_and_not_a_distribution(
    server: Stub, completions: Completions, tokenizers: dict[str, Any]
) -> None:
    support = Renderer(tokenizers["whole_numbers"], 2048).label_support(QUESTIONS["pointwise_score"])

    def top_two_only(body: Json) -> Json:
        answer = completions.answer(body)
        told = answer["choices"][0]["logprobs"]
        told["top_logprobs"] = [dict(list(step.items())[:2]) for step in told["top_logprobs"]]
        return answer

    server.routes["POST /v1/completions"] = top_two_only
    [failure] = CompletionsEngine(server.url, "m").label_distributions([(1, 2)], support)
    assert failure == Failure("the server did not tell the log-probability of every label")


@pytest.fixture
def vllm(server: Stub, completions: Completions, tokenizers: dict[str, Any], tiny_model_folder: Path) -> Stub:
    """A server that passes for perse's, with the tiny model and an adapter on it."""
    tokenizer = tokenizers["whole_numbers"]

    def tokenize(body: Json) -> Json:
        return {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=body["add_special_tokens"])}

    listing(
        server,
        {"id": "tiny", "owned_by": "vllm", "root": str(tiny_model_folder), "max_model_len": 4096},
        {"id": "lora", "owned_by": "vllm", "root": "/adapters/lora", "parent": "tiny", "max_model_len": None},
    )
    server.routes["POST /tokenize"] = tokenize
    models = {"tiny": {"sha256": "aa", "adapter": False}, "lora": {"sha256": "bb", "adapter": True}}
    server.routes["GET /version"] = lambda _: {"version": "0.32.0", "perse": "0.1", "engine": {}, "models": models}
    return server


@pytest.mark.slow
def test_a_vllm_server_judges_exactly_and_an_adapter_with_its_base_models_tokenizer(
    vllm: Stub, completions: Completions
) -> None:
    for name, digest in (("tiny", "aa"), ("lora", "bb")):
        judge = Judge.load(f"openai:{vllm.url}#{name}")
        adapter = "lora" if name == "lora" else None
        assert (judge.identity.model, judge.identity.adapter, judge.identity.digest) == ("tiny", adapter, digest)
        assert judge.renderer.context == 4096
        server = {"engine": "openai", "url": vllm.url, "model": name, "api": "completions", "server": "vllm 0.32.0"}
        assert judge.engine.settings == server
        ten, one = (judge.renderer.label_support(QUESTIONS["pointwise_score"]).labels[n][0] for n in (9, 0))
        completions.next = lambda ids, ten=ten, one=one: {ten: 0.6, one: 0.2}  # type: ignore[misc]
        judgements = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(2, 2), JudgeSettings(temperature=0))
        assert {judgement.label for judgement in judgements} == {"10"}
        assert judgements[0].distribution is not None and judgements[0].distribution["1"] == pytest.approx(0.25, abs=1e-4)
        assert vllm.bodies("/v1/completions")[-1]["model"] == name
    assert Judge.load(f"openai:{vllm.url}#tiny", context=1000).renderer.context == 1000


@pytest.mark.slow
def test_plain_vllm_has_no_digest_and_one_without_the_routes_beside_v1_will_do(vllm: Stub) -> None:
    vllm.routes["GET /version"] = lambda _: {"version": "0.32.0", "models": {"tiny": {"sha256": "not ours to read"}}}
    assert Judge.load(f"openai:{vllm.url}#tiny").identity.digest == ""
    del vllm.routes["GET /version"], vllm.routes["POST /tokenize"]
    assert Judge.load(f"openai:{vllm.url}#tiny").engine.settings["server"] == "vllm"


def test_processed_log_probabilities_are_refused(vllm: Stub, completions: Completions) -> None:
    completions.processed = True
    with pytest.raises(BadInput, match="start vLLM with --logprobs-mode raw_logprobs"):
        Judge.load(f"openai:{vllm.url}#tiny")


def test_logits_are_refused(vllm: Stub, completions: Completions) -> None:
    completions.next = lambda ids: dict.fromkeys(range(600), 20.0)  # log 20 = 3.0
    with pytest.raises(BadInput, match="does not tell the model's own log-probabilities"):
        Judge.load(f"openai:{vllm.url}#tiny")


def test_logits_are_refused_where_those_of_the_tokens_looked_at_are_negative(vllm: Stub, completions: Completions) -> None:
    completions.text = (599,)
    completions.next = lambda ids: {599: 20.0}
    with pytest.raises(BadInput, match="does not tell the model's own log-probabilities"):
        Judge.load(f"openai:{vllm.url}#tiny")


@pytest.mark.slow
@pytest.mark.parametrize("bad", [fault(500, "starting", **SOON), (0, {}, None)], ids=["500", "hung up"])
def test_a_version_that_is_there_is_waited_for_and_missed(vllm: Stub, bad: Answer) -> None:
    told = vllm.routes["GET /version"]
    waiting = [bad, bad]
    vllm.routes["GET /version"] = lambda body: waiting.pop() if waiting else told(body)
    assert Judge.load(f"openai:{vllm.url}#tiny").identity.digest == "aa"
    vllm.routes["GET /version"] = lambda _: bad
    with pytest.raises(
        BadInput, match="/version did not say which model runs there, after 3 tries \\(.*; look after the server"
    ):
        Judge.load(f"openai:{vllm.url}#tiny")


@pytest.mark.parametrize(
    "foreign", ["<html>", [], {"version": {"major": 3}}, {"perse": "0.1", "models": ["tiny"]}, fault(404), fault(405)]
)
def test_a_version_of_another_shape_is_none(vllm: Stub, foreign: Any) -> None:
    vllm.routes["GET /version"] = lambda _: foreign if isinstance(foreign, tuple) else (200, {}, foreign)
    judge = Judge.load(f"openai:{vllm.url}#tiny")
    assert (judge.identity.digest, judge.engine.settings["server"]) == ("", "vllm")


@pytest.mark.slow
def test_another_tokenizer_than_the_servers_is_refused(vllm: Stub, tokenizers: dict[str, Any], embedded: Path) -> None:
    with pytest.raises(BadInput, match="is not that of tiny, .*; give the right one with --tokenizer FOLDER"):
        Judge.load(f"openai:{vllm.url}#tiny", tokenizer=str(embedded))
    tokenizer = tokenizers["chatml"]
    vllm.routes["POST /tokenize"] = lambda body: {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=False)}
    assert Judge.load(f"openai:{vllm.url}#tiny", tokenizer=str(embedded)).renderer.tokenizer.name_or_path == str(embedded)


def test_a_tokenizer_that_is_not_on_this_machine_must_be_given(vllm: Stub, tiny_model_folder: Path) -> None:
    listing(vllm, {"id": "tiny", "owned_by": "vllm", "root": "/models/elsewhere", "max_model_len": 4096})
    with pytest.raises(BadInput, match="'/models/elsewhere' does not give one on this machine .*--tokenizer FOLDER"):
        Judge.load(f"openai:{vllm.url}")
    assert Judge.load(f"openai:{vllm.url}", tokenizer=str(tiny_model_folder)).renderer.context == 4096
