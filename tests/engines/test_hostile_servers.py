"""Servers that lie, point elsewhere or send too much: one sentence, nothing sent on, no number that cannot be."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai._base_client
import pytest
from hostile_server import DRIPS, dripping, hostile
from openai import Timeout

import perse.engines.http
import perse.models.incoming
from perse import Judge
from perse.engines.base import Failure, LabelDistribution, Reply, Sampling
from perse.engines.openai import ChatCompletionsEngine, CompletionsEngine
from perse.errors import BadInput
from perse.judging.connecting import connect
from perse.models.incoming import not_followed
from perse.models.silence import patience
from perse.rendering.prompt import LabelTokens

DEEP = b"[" * 100_000
TEN = LabelTokens(stem=(), labels=(*((n,) for n in range(1, 10)), (1, 0)))
"""The scores 1-10 where "10" is two tokens."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.002)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def said(text: str = "[Score] 7", finish_reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}]}


def chat(url: str) -> Reply | Failure:
    [reply] = ChatCompletionsEngine(f"{url}/v1", "m").chat(["a reader's review"], Sampling(), seeds=[1])
    return reply


def reason(answer: object) -> str:
    assert isinstance(answer, Failure), answer
    return answer.reason


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_its_host_is_said(status: int) -> None:
    with hostile(lambda *_: said()) as other:
        away = {"Location": f"{other.url.replace('//', '//me:PASSWORD1@')}/v1/chat/completions?key=SECRET99"}
        with hostile(lambda *_: (status, away, b"")) as server:
            for ask in (lambda: chat(server.url), lambda: connect(f"{server.url}/v1", "m", tokenizer=None, context=None)):
                with pytest.raises(
                    BadInput, match=f"points to {other.url}, and no redirect is followed; give that addr"
                ) as error:
                    ask()
                assert "PASSWORD1" not in str(error.value) and "SECRET99" not in str(error.value)
            assert len(server.asked) == 2
        assert other.asked == []


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://judge.example/v1", "https://judge.example"),
        ("//judge.example:81/v1", "http://judge.example:81"),
        ("/elsewhere", "another path there"),
        ("http://h:8000/v2", "another path there"),
        ("http://[::1]:9/", "http://[::1]:9"),
        ("http://x:99999/", "an invalid address"),
        ("http://[red]bold[/]/", "an invalid address"),
        ("javascript:alert(1)", "an invalid address"),
        ("file:///etc/passwd", "an invalid address"),
    ],
)
def test_where_a_redirect_points_is_said_without_anything_else_of_it(location: str, shown: str) -> None:
    assert not_followed("http://h:8000/v1", location).startswith(f"http://h:8000/v1 points to {shown}, and no redirect")


# Probabilities that cannot be

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def vllm(change: Change = lambda choice, body: None) -> Callable[[str, Any], Any]:
    """vLLM's /v1/completions: every token that is asked for has a twentieth of the probability; `change` spoils the answer."""

    def say(_: str, body: dict[str, Any]) -> Any:
        allowed, asked = body.get("allowed_token_ids"), body["logprob_token_ids"]
        ids = (allowed or asked[:1]) * (body["max_tokens"] if allowed else 1)
        step = {f"token_id:{token}": math.log(0.05) for token in {*asked, *ids}}
        logprobs = {"top_logprobs": [dict(step) for _ in ids], "token_logprobs": [math.log(0.05)] * len(ids)}
        choice = {"index": 0, "text": "", "finish_reason": "length", "token_ids": ids, "logprobs": logprobs}
        change(choice, body)
        return {"choices": [choice]}

    return say


def every(value: Any) -> Change:
    def change(choice: dict[str, Any], _: Any) -> None:
        told = choice["logprobs"]
        told["top_logprobs"] = [dict.fromkeys(step, value) for step in told["top_logprobs"]]
        told["token_logprobs"] = [value] * len(told["token_logprobs"])

    return change


def read(url: str) -> LabelDistribution | Failure:
    [answer] = CompletionsEngine(f"{url}/v1", "m").label_distributions([(5, 6)], TEN)
    return answer


def written(url: str) -> object:
    [answer] = CompletionsEngine(f"{url}/v1", "m").generate([(5, 6)], Sampling(max_new_tokens=9), seeds=[1])
    return answer


def test_the_honest_server_of_these_tests_is_read() -> None:
    with hostile(vllm()) as server:
        answer = read(server.url)
        assert isinstance(answer, LabelDistribution)
        assert answer.mass == pytest.approx(0.45) and answer.probabilities[9] == pytest.approx(0.0025 / 0.45)
        CompletionsEngine(f"{server.url}/v1", "m").check_raw((1, 2, 3))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.0, "told to have 10 of the probability, more than all of it"),
        (math.log(0.1218), "told to have 1.218 of the probability"),
        (5.0, "invalid log-probabilities"),
        (math.nan, "invalid log-probabilities"),
        (-math.inf, "invalid log-probabilities"),
        (None, "no number but NoneType"),
        ([-1.0], "no number but list"),
        (True, "invalid log-probabilities"),
    ],
)
def test_probabilities_that_cannot_be_are_a_failure_and_no_distribution(value: Any, says: str) -> None:
    with hostile(vllm(every(value))) as server:
        assert says in reason(read(server.url))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (math.log(0.9), "a step were told to have 1.4 of the probability"),
        (5000.0, "invalid log-probabilities"),
        (math.nan, "invalid log-probabilities"),
    ],
)
def test_a_token_that_nobody_asked_for_counts_among_what_a_step_tells(told: float, says: str) -> None:
    def change(choice: dict[str, Any], _: Any) -> None:
        for step in choice["logprobs"]["top_logprobs"]:
            step["token_id:77"] = told

    with hostile(vllm(change)) as server:
        assert says in reason(read(server.url))


@pytest.mark.parametrize("told", [math.log(0.4), -9999.0, -math.inf])
def test_another_token_that_can_be_told_with_the_labels_changes_nothing(told: float) -> None:
    """Such as the token written, and the padding of a vLLM that reads requests of several lengths together."""

    def change(choice: dict[str, Any], _: Any) -> None:
        for step in choice["logprobs"]["top_logprobs"]:
            step["token_id:77"] = told

    with hostile(vllm(change)) as server, hostile(vllm()) as plain:
        assert read(server.url) == read(plain.url)


@pytest.mark.parametrize(
    "name", ["token_id:01", "token_id: 1", "token_id:+1", "token_id:1_0", "token_id:\u0661", "1", "token_id:", "token_id:-1"]
)
def test_a_token_has_one_name_and_no_other_spelling(name: str) -> None:
    def change(choice: dict[str, Any], _: Any) -> None:
        for step in choice["logprobs"]["top_logprobs"]:
            step[name] = math.log(0.01)

    with hostile(vllm(change)) as server:
        assert f"a token is called '{name}', expected token_id:N" in reason(read(server.url))


@pytest.mark.parametrize("token", ["1", True, 1.0, None])
def test_a_token_that_was_written_is_told_as_an_integer(token: Any) -> None:
    def change(choice: dict[str, Any], _: Any) -> None:
        choice["token_ids"] = [token] * len(choice["token_ids"])

    with hostile(vllm(change)) as server:
        for answer in (read(server.url), written(server.url)):
            assert f"a token id is no integer but {type(token).__name__}" in reason(answer)


@pytest.mark.parametrize("value", [5.0, math.nan, -math.inf, None])
def test_a_text_whose_log_probabilities_cannot_be_is_a_failure(value: Any) -> None:
    with hostile(vllm(every(value))) as server:
        assert "log-probabilit" in reason(written(server.url))


def test_a_server_that_writes_another_token_than_the_forced_one_gives_no_distribution() -> None:
    """What it tells after that token would pass for the probability of "10"."""

    def change(choice: dict[str, Any], body: Any) -> None:
        choice["token_ids"] = [7] * len(choice["token_ids"])

    with hostile(vllm(change)) as server:
        assert "wrote token 7 where 1 alone was allowed" in reason(read(server.url))
        with pytest.raises(BadInput, match="writes other tokens than the only one that is allowed .*; exact dist"):
            CompletionsEngine(f"{server.url}/v1", "m").check_raw((1, 2, 3))


def test_log_probabilities_that_are_not_numbers_are_not_raw() -> None:
    raw = pytest.raises(BadInput, match="does not tell the model's own log-probabilities")
    with hostile(vllm(every(math.nan))) as server, raw:
        CompletionsEngine(f"{server.url}/v1", "m").check_raw((1, 2, 3))


@pytest.mark.parametrize("token", [-1, 10**9, 2**70])
def test_a_token_that_no_vocabulary_has_is_a_failure(token: int) -> None:
    def change(choice: dict[str, Any], body: Any) -> None:
        choice["token_ids"] = [token]

    with hostile(vllm(change)) as server:
        assert f"token {token} was written, which no vocabulary has" in reason(written(server.url))


def test_more_tokens_than_were_asked_for_are_a_failure() -> None:
    def change(choice: dict[str, Any], body: Any) -> None:
        told = choice["logprobs"]
        choice["token_ids"] *= 50
        told["top_logprobs"] *= 50
        told["token_logprobs"] *= 50

    with hostile(vllm(change)) as server:
        assert reason(written(server.url)) == "50 tokens were written where 9 were asked for"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"[1]", "a JSON list, expected an object with 'choices'"),
        (b'"hello"', "a JSON string, expected an object with 'choices'"),
        *((said, "an answer without choices") for said in (b"7", b"null", b"{}", b'{"choices": []}', b'{"choices": "x"}')),
        (b'{"choices": [{}]}', "a choice without a message"),
        (b'{"choices": [{"message": {"content": 5}}]}', "the message's content is no text but int"),
        *((said, "the answer is none of the OpenAI API") for said in (b'{"choices": [1]}', b"<html>", b"")),
    ],
)
def test_an_answer_of_another_shape_is_told_in_our_own_words(answer: bytes, says: str) -> None:
    with hostile(lambda *_: answer) as server:
        assert reason(chat(server.url)).endswith(f"/v1 did not answer what was asked for ({says})")
        assert "Error" not in reason(written(server.url))


def test_an_answer_far_longer_than_was_asked_for_is_a_failure() -> None:
    with hostile(lambda *_: said("A" * 30_000_000)) as server:
        assert "an answer of 30,000,000 characters, far more than the tokens that were asked for can have" in reason(
            chat(server.url)
        )


@pytest.mark.parametrize(("told", "kept"), [("\ud800", "\\ud800"), ("x" * 1000, "x" * 40), ("a\x1b[2Jb", "a\\x1b[2Jb")])
def test_why_an_answer_ended_is_a_short_word_that_can_be_written(told: str, kept: str) -> None:
    def change(choice: dict[str, Any], body: Any) -> None:
        choice["finish_reason"] = told

    with hostile(lambda *_: said(finish_reason=told)) as server:
        reply = chat(server.url)
        assert isinstance(reply, Reply) and reply.finish_reason == kept
    with hostile(vllm(change)) as server:
        assert getattr(written(server.url), "finish_reason", None) == kept


# Answers that are too deep, too large, or packed


def test_an_answer_nested_without_end_is_a_failure_and_at_connecting_a_sentence(tiny_model_folder: Path) -> None:
    entry = {"id": "m", "owned_by": "vllm", "root": str(tiny_model_folder), "max_model_len": 2048}

    def say(route: str, _: Any) -> Any:
        return {"data": [entry]} if route == deep_after else DEEP

    deep_after = ""
    with hostile(say) as server:
        assert "nested too deeply" in reason(chat(server.url))
        with pytest.raises(BadInput, match="/models cannot be read: the answer is nested too deeply"):
            connect(f"{server.url}/v1", "m", tokenizer=None, context=None)
        deep_after = "GET /v1/models"
        with pytest.raises(BadInput, match="did not say how it tokenizes a text .*nested too deeply"):
            connect(f"{server.url}/v1", "m", tokenizer=None, context=None)


@pytest.mark.parametrize("answer", [{"error": "no"}, {"tokens": 5}, [1, 2], 5, {}, {"tokens": None}])
def test_a_vllm_server_that_answers_something_else_than_tokens_is_told_in_our_own_words(
    tiny_model_folder: Path, answer: object
) -> None:
    entry = {"id": "m", "owned_by": "vllm", "root": str(tiny_model_folder), "max_model_len": 2048}
    with hostile(lambda route, _: {"data": [entry]} if route == "GET /v1/models" else answer) as server:
        with pytest.raises(
            BadInput, match="did not say how it tokenizes a text: .* look after what stands before it"
        ) as raised:
            connect(f"{server.url}/v1", "m", tokenizer=None, context=None)
        assert "Error" not in str(raised.value) and json.dumps(answer) in str(raised.value)


@pytest.mark.parametrize("status", [200, 400, 503])
def test_an_answer_larger_than_one_can_be_is_not_read_to_its_end_nor_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(perse.models.incoming, "LARGEST", 1 << 20)
    large = json.dumps(said("x" * (1 << 20))).encode()
    for headers, content in (({}, large), ({"Content-Encoding": "gzip"}, gzip.compress(large))):
        with hostile(lambda *_, headers=headers, content=content: (status, headers, content)) as server:
            assert "the answer is larger than 1 MiB" in reason(chat(server.url))
            assert len(server.asked) == 1


@pytest.mark.parametrize("kind", DRIPS)
def test_an_answer_that_never_ends_is_waited_for_so_long_and_not_asked_for_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSE_TIMEOUT", "60")  # of each silence, which is longer on a busy machine than the drip has it
    monkeypatch.setattr(perse.models.incoming, "PATIENCE", 0.75 - 60)
    with dripping(*DRIPS[kind]) as url:
        assert "the answer was not whole after 0.75 s" in reason(chat(url))


def test_a_slow_answer_that_comes_in_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_TIMEOUT", "30")
    text = json.dumps(said()).encode()
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (len(text) + 3) + text
    with dripping(whole, b" ") as url:
        assert isinstance(chat(url), Reply)


def test_a_server_that_says_nothing_of_itself_is_not_waited_for_as_one_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.engines.http, "FIRST_TIMEOUT", Timeout(0.1))
    with dripping(b"", b"") as url, pytest.raises(BadInput, match=f"nothing answers at {url}/v1 .*Timeout"):
        connect(f"{url}/v1", "m", tokenizer=None, context=None)
    assert patience() == 600


def test_an_answer_that_is_packed_once_is_read_and_one_packed_twice_is_not() -> None:
    """Twice packed, a few bytes are gigabytes before the first can be counted."""
    packed = gzip.compress(json.dumps(said()).encode())
    with hostile(lambda *_: (200, {"Content-Encoding": "gzip"}, packed)) as server:
        reply = chat(server.url)
        assert isinstance(reply, Reply) and reply.text == "[Score] 7"
        assert server.headers[0]["accept-encoding"] == "gzip, deflate"
    for coding in ("gzip, gzip", "br", "zstd"):
        with hostile(lambda *_, coding=coding: (200, {"Content-Encoding": coding}, gzip.compress(packed))) as server:
            assert f"packed as '{coding}', expected gzip, deflate or plain" in reason(chat(server.url))


@pytest.mark.parametrize("wait", ["\xb2", "9" * 5000, "-1", "nan", "Mon, 01 Jan 2020 00:00:00 +9999999999", "\x7f"])
def test_a_wait_that_is_none_is_no_traceback(wait: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(lambda *_: (503, {"Retry-After": wait}, b'{"error": {"message": "later"}}')) as server:
        assert "answered 503 after" in reason(chat(server.url))


# What a server says of itself


def _connected(folder: Path, tokenizer: Any, version: Any, **entry: Any) -> Judge:
    listed = {"id": "m", "owned_by": "vllm", "root": str(folder), "max_model_len": 2048, **entry}
    completions = vllm()

    def say(route: str, body: Any) -> Any:
        if route == "GET /v1/models":
            return {"data": [listed]}
        if route == "GET /version":
            return version
        return (
            {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=False)}
            if "token" in route
            else completions(route, body)
        )

    with hostile(say) as server:
        return connect(f"{server.url}/v1", "m", tokenizer=None, context=None)


@pytest.mark.slow
def test_what_a_server_says_of_itself_is_kept_short_and_plain(tiny_model_folder: Path, tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["whole_numbers"]
    judge = _connected(tiny_model_folder, tokenizer, {"version": "\x1b[2J" + "x" * 10_000_000, "perse": "1", "models": {}})
    assert judge.engine.settings["server"].startswith("vllm \\x1b[2Jxxx") and len(judge.engine.settings["server"]) == 205
    for digest in ({"a": [1]}, "../../x", "x" * 1000, "\ud800"):
        told = {"version": "1", "perse": "1", "models": {"m": {"sha256": digest}}}
        assert _connected(tiny_model_folder, tokenizer, told).identity.digest == ""


@pytest.mark.parametrize("length", [-5, 0])
def test_a_context_of_less_than_a_token_is_refused(tiny_model_folder: Path, tokenizers: dict[str, Any], length: int) -> None:
    with pytest.raises(BadInput, match=f"says that m takes {length} tokens \\(max_model_len\\); look after the server"):
        _connected(tiny_model_folder, tokenizers["whole_numbers"], {}, max_model_len=length)


def test_a_server_that_takes_one_temperature_alone_and_lists_another_model_is_there() -> None:
    """Nor does it know the older name of the answer's length."""

    def say(route: str, body: Any) -> Any:
        if route == "GET /v1/models":
            return {"data": [{"id": "other"}]}
        for name in ("max_tokens", "temperature"):
            if name in (body or {}):
                told = f"Unsupported parameter: '{name}' is not supported with this model."
                return 400, {}, {"error": {"message": told}}
        return {"choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}

    with hostile(say) as server:
        assert connect(f"{server.url}/v1", "thinker", tokenizer=None, context=None).identity.model == "thinker"
