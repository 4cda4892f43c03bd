"""Whoever waits for a server that refuses is told at once, and once: the SDK tries again for half a minute or more, and says nothing."""

from __future__ import annotations

import logging

import openai._base_client
import pytest
from hostile_server import hostile

from perse.engines.again import Again
from perse.engines.base import Reply, Sampling
from perse.engines.http import SharedClient, tls_context
from perse.engines.openai import ChatCompletionsEngine

ANSWER = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "[Score] 7"}}]}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.002)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_refuses_is_told_of_while_it_is_asked_again(status: int, caplog: pytest.LogCaptureFixture) -> None:
    said_by_then: list[int] = []

    def say(*_: object) -> object:
        said_by_then.append(len(caplog.messages))
        return (status, {}, b'{"error": {"message": "later"}}') if len(said_by_then) < 5 else ANSWER

    with caplog.at_level(logging.WARNING), hostile(say) as server:
        [reply] = ChatCompletionsEngine(f"{server.url}/v1", "m").chat(["a text"], Sampling(), seeds=[1])
    assert isinstance(reply, Reply)
    [line] = caplog.messages
    assert f"answered {status}, try 3 of 7: it is asked again for about" in line and "Ctrl-C" in line
    assert said_by_then == [0, 0, 0, 1, 1]


def test_a_server_that_wants_to_be_left_alone_is_told_of_at_its_first_answer(caplog: pytest.LogCaptureFixture) -> None:
    Again("http://there", 6).failed("answered 429", 0, took=0.1, asked=60.0)
    assert caplog.messages == ["http://there answered 429, try 1 of 7: it is asked again in 60 s, as it wants; Ctrl-C to stop"]


def test_a_connection_that_took_long_to_fail_is_told_of_and_what_the_further_tries_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Again("http://there", 6).failed("gives no answer (ConnectTimeout)", 0, took=10.0)
    [line] = caplog.messages
    assert "for about 84 s more" in line  # 0.5 + 1 + 2 + 4 + 8 + 8 between six tries of 10


def test_one_server_is_told_of_once_by_all_the_clients_that_are_made_for_it(caplog: pytest.LogCaptureFixture) -> None:
    shared = SharedClient("http://127.0.0.1:9/v1", 6, tls_context(), 2)

    async def fail() -> None:
        shared.client._client.again.failed("answered 429", 2, took=0.1)  # type: ignore[attr-defined]

    for _ in range(3):  # each call of none beside it makes a client of its own
        shared.run(fail())
    assert len(caplog.messages) == 1


def test_one_line_a_minute_and_none_of_the_last_try(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    again = Again("http://there", 6, clock=lambda: now[0])
    again.failed("answered 500", 6, took=20.0)
    assert not caplog.messages
    for now[0] in (100.0, 101.0, 159.0, 160.0):
        again.failed("answered 500", 2, took=0.1)
    assert len(caplog.messages) == 2
