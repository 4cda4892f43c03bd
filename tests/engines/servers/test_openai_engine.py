"""Servers of the OpenAI API, played by a stub: patience, order, refusals, keys and models."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anyio
import pytest
from builders import pointwise_examples
from command_line import perse
from openai import DefaultAsyncHttpxClient
from openai_stub import (
    KEY,
    SOON,
    Answer,
    Json,
    Stub,
    chat,
    echoing,
    fault,
    listing,
    reasons,
    said,
    texts,
    words_of,
)

from perse import Judge
from perse.engines.base import Failure, Reply, Sampling
from perse.engines.http import ClientFault
from perse.engines.openai import ChatCompletionsEngine
from perse.errors import BadInput, EngineLost
from perse.judging.connecting import connect
from perse.records import example_lines
from perse.studies.frame.running import Asking


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
    both = threading.Barrier(2)

    def slow(body: Json) -> Json:
        if words_of(body) in ("0", "1"):
            both.wait(900)
        return said(words_of(body))

    server.routes["POST /v1/chat/completions"] = slow
    asked = [str(n) for n in range(24)]
    assert texts(chat(server, *asked)) == asked
    assert 1 < server.most_in_flight <= 6


def test_answers_keep_their_order_when_the_first_comes_last(server: Stub) -> None:
    last = threading.Event()

    def answer(body: Json) -> Json:
        if words_of(body) == "first":
            assert last.wait(900)
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
        released.wait(900)
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
    for call in (lambda: chat(server, *"abcdefghi"), lambda: connect(server.url, "", tokenizer=None, context=None)):
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


def test_a_judge_that_loses_its_distributions_behind_a_proxy_says_so_and_why(server: Stub) -> None:
    """LiteLLM before vLLM lists models as OpenAI's."""
    listing(server, {"id": "m", "owned_by": "openai", "max_model_len": 4096})
    said = Judge.load(f"openai:{server.url}").without_distributions
    assert said == (
        f"asked in words: no distributions, because {server.url} lists m as owned by 'openai', and vLLM as owned by 'vllm'; if vLLM "
        "runs behind it, give the address of vLLM itself"
    )
    listing(server, {"id": "m", "owned_by": "vllm"})
    assert "does not say how many tokens m takes" in Judge.load(f"openai:{server.url}").without_distributions


def test_why_a_judge_has_no_distributions_is_said_without_a_key_in_its_address(
    server: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcd1234EFGH5678ijkl")
    listing(server, {"id": "m", "owned_by": "openai"})
    judge = Judge.load(f"openai:{server.url}")
    judge.in_words = judge.in_words.replace(server.url, "http://gateway/sk-abcd1234EFGH5678ijkl/v1")
    assert "because http://gateway/***/v1 lists m as owned by" in judge.without_distributions


def test_commands_that_judge_say_at_the_start_that_there_are_no_distributions(server: Stub, tmp_path: Path) -> None:
    listing(server, {"id": "m", "owned_by": "openai"})
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Review] Fine.\n[Score] 10")
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"text": "a plot", "review": "Fine.", "score": 7}\n')
    done = perse("ask", "--judge", f"openai:{server.url}", "--reviews", mine, "--text", "x")
    assert done.returncode == 0, done.stderr
    assert "note: asked in words: no distributions, because " in done.stderr


@pytest.mark.slow
def test_workers_that_judge_in_words_are_told_of_once_and_before_they_begin(server: Stub, tmp_path: Path) -> None:
    listing(server, {"id": "m", "owned_by": "openai"})
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Review] Fine.\n[Score] 10")
    (tmp_path / "examples.jsonl").write_text("".join(example_lines(pointwise_examples(3))), "utf-8")
    score = (
        "score",
        "--examples",
        tmp_path / "examples.jsonl",
        "--judge",
        f"openai:{server.url}",
        "--driver",
        "local",
        "--workers",
        1,
    )
    done = perse(*score, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    note = "note: asked in words: no distributions, because "
    assert done.stderr.count(note) == 1 and done.stderr.index(note) < done.stderr.index("judging:")
    again = perse(*score, "--out", tmp_path / "run")
    assert again.returncode == 0 and note not in again.stderr, "nothing is left to ask"


def test_a_study_says_before_it_asks_that_its_judge_gives_no_distributions(
    server: Stub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listing(server, {"id": "m", "owned_by": "openai"})
    Asking(examples=tmp_path / "examples.jsonl").load(f"openai:{server.url}")
    assert any(one.getMessage().startswith("asked in words: no distributions, because ") for one in caplog.records)


def test_a_server_without_a_list_needs_a_model_named(server: Stub) -> None:
    assert Judge.load(f"openai:{server.url}#m").identity.model == "m"
    with pytest.raises(BadInput, match="lists no models; does the address end in /v1"):
        Judge.load(f"openai:{server.url}")


@pytest.mark.parametrize(
    ("list_of_models", "why"),
    [
        ({"object": "list", "data": []}, "lists no models, as vLLM does"),
        ({"models": ["m"]}, "lists no models, as vLLM does"),
        ({"data": [{"name": "m"}]}, "does not list its models as vLLM does \\(1 of its fields"),
        (fault(500, "no cache folder", **SOON), "does not list its models, as vLLM does \\(500: no cache folder\\)"),
        (fault(403, "the key may not list models"), "does not list its models, as vLLM does \\(403: the key may not"),
    ],
)
def test_a_named_model_is_asked_whatever_the_server_lists(server: Stub, list_of_models: Any, why: str) -> None:
    server.routes["GET /v1/models"] = lambda _: list_of_models
    judge = Judge.load(f"openai:{server.url}#m")
    assert isinstance(judge.engine, ChatCompletionsEngine) and judge.identity.model == "m"
    assert re.search(why, judge.without_distributions)


def test_a_server_that_is_starting_is_not_taken_for_one_without_distributions(server: Stub) -> None:
    server.routes["GET /v1/models"] = lambda _: fault(503, "loading", **SOON)
    with pytest.raises(BadInput, match="/models answered 503 \\(loading\\); look after the server"):
        Judge.load(f"openai:{server.url}#m")


def test_a_model_that_is_not_listed_is_used_if_it_answers(server: Stub) -> None:
    """`transformers serve` answers to folders that it does not list, routers to names with endings."""
    listing(server, {"id": "one"}, {"id": "two"})
    echoing(server)
    judge = Judge.load(f"openai:{server.url}#one:free")
    assert judge.identity.model == "one:free" and "answers to one:free and does not list it" in judge.without_distributions
    server.routes["POST /v1/chat/completions"] = lambda _: fault(400, "no such model: one:fre")
    with pytest.raises(BadInput, match="has no model 'one:fre' \\(400: no such model: one:fre\\); it has one, two"):
        Judge.load(f"openai:{server.url}#one:fre")


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_a_server_that_answers_under_any_name_is_not_asked_for_one_that_it_has_not(server: Stub, owner: str) -> None:
    listing(server, {"id": "one", "owned_by": owner, "max_model_len": 2048})
    echoing(server)
    with pytest.raises(BadInput, match="has no model 'gpt'; it has one"):
        Judge.load(f"openai:{server.url}#gpt")


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
def test_an_older_perses_embedded_server_is_asked_otherwise(server: Stub, status: int) -> None:
    server.routes["GET /v1/models"] = lambda _: fault(status)
    server.routes["GET /version"] = lambda _: {"version": "0.1", "perse": "0.1", "engine": {}, "models": {}}
    for url in (server.url, server.url.removesuffix("/v1")):
        with pytest.raises(
            BadInput,
            match="runs the embedded engine of an older perse, .*; ask it with perse.serving.client, or serve the model with",
        ):
            connect(url, "m", tokenizer=None, context=None)


@pytest.mark.parametrize("version", [{"version": "3"}, [], "<html>", fault(403), fault(500, **SOON)])
def test_a_server_without_a_list_that_is_not_perses_is_asked_in_words(server: Stub, version: Any) -> None:
    server.routes["GET /version"] = lambda _: version if isinstance(version, tuple) else (200, {}, version)
    assert isinstance(connect(server.url, "m", tokenizer=None, context=None).engine, ChatCompletionsEngine)


@pytest.mark.parametrize("given", ["abcdef ZQsecret", "X-Team: \u00e9ZQsecret", "X-A: b\nno header ZQsecret", "a b: ZQsecret"])
def test_headers_that_cannot_be_sent_are_named_and_not_blamed_on_the_server(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", given)
    with pytest.raises(BadInput, match="OPENAI_CUSTOM_HEADERS, line [12], is no header") as refused:
        Judge.load("openai:http://127.0.0.1:1/v1#m")
    assert "ZQsecret" not in str(refused.value)


@pytest.mark.slow
def test_no_more_requests_are_under_way_than_concurrency_allows(server: Stub, tmp_path: Path) -> None:
    """The server holds each answer until as many wait as may, so that fewer than that are noticed, too."""
    together = threading.Barrier(3)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if "New plot" in words_of(body):
            together.wait(timeout=20)
        return said("[Review] Fine.\n[Score] 10")

    listing(server, {"id": "m", "owned_by": "somebody"})
    server.routes["POST /v1/chat/completions"] = answer
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(one.model_dump_json() + "\n" for one in pointwise_examples(2, 6)))
    asked = ("score", "--examples", examples, "--judge", f"openai:{server.url}", "--concurrency", "3")
    for name, driver in (("one", ()), ("shards", ("--driver", "local"))):
        server.most_in_flight = 0
        done = perse(*asked, "--out", tmp_path / name, *driver)
        assert done.returncode == 0, done.stderr
        assert server.most_in_flight == 3
