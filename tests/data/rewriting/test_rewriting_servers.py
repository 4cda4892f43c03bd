"""Servers that are slow, refuse or die while texts are rewritten: said in a sentence, and what was answered is kept."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import openai._base_client
import pytest
from places import importing
from rewriting_builders import (
    Served,
    judged,
    stored,
    wait_for,
    writer,
)

from perse.engines.base import Failure, Sampling
from perse.engines.openai import RequestFailure
from perse.errors import BadInput, EngineLost
from perse.writing.cache import AnswerCache
from perse.writing.loop import Kind, ask_until_good
from perse.writing.writer import Writer


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits little between its tries."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.005)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


MANY = {f"job {n}": f"message {n}" for n in range(40)}


def asked_of(writer: Writer, cache: AnswerCache, messages: dict[str, str] = MANY) -> Any:
    return ask_until_good(
        writer,
        messages,
        judged,
        cache=cache,
        again=lambda answer, reason: f"{answer}: {reason}",
        sampling=Sampling(),
        seed=3,
        purpose="test",
    )


def by_words(message: str, seed: int = 0) -> str:
    return f"value of {message}" if random.Random(message).random() < 0.7 else "bad"


@pytest.mark.slow
def test_messages_that_always_time_out_are_counted_and_the_others_answered(
    tmp_path: Path, cache: AnswerCache, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = [f"job {n}" for n in (3, 7, 20, 21, 39)]
    silent = {MANY[job] for job in never}
    with AnswerCache(tmp_path / "other") as other:
        calm = asked_of(writer(by_words), other)
    monkeypatch.setenv("PERSE_TIMEOUT", "0.7")
    monkeypatch.setattr("perse.engines.openai.RETRIES", 1)
    with Served(lambda message: None if message in silent else by_words(message)) as server:
        done = asked_of(server.writer(), cache)
    assert [job for job, outcome in done.items() if outcome.kind is Kind.ENGINE] == never
    assert all("APITimeoutError" in attempt.reason for job in never for attempt in done[job].attempts)
    assert all(len(done[job].attempts) == 3 for job in never)
    assert all(done[job].value == calm[job].value for job in MANY if job not in never)


def test_a_server_that_dies_in_the_middle_ends_the_run_and_the_next_goes_on(
    tmp_path: Path, cache: AnswerCache, hasty: None
) -> None:
    def dying(message: str) -> str:
        if len(first.asked) > 20:
            first.close()
        return by_words(message)

    with Served(dying) as first, pytest.raises(EngineLost, match=r"no answer from .*nothing was answered since; .* continues"):
        asked_of(first.writer(), cache)
    wait_for(lambda: stored(cache.path) >= 10)
    with Served(by_words) as second, AnswerCache(tmp_path / "other") as other:
        kept = stored(cache.path)
        done = asked_of(second.writer(), cache)
        assert done == asked_of(writer(by_words), other)
    assert len(second.asked) == stored(other.path) - kept, "what was kept is not asked again"


@pytest.mark.parametrize("left", [1, 5])
def test_a_server_that_dies_before_the_last_few_tries_drops_no_plot(cache: AnswerCache, hasty: None, left: int) -> None:
    def script(message: str) -> str:
        if "bad: " in message:
            server.close()
        return "bad" if int(message.split()[1]) < left else "value"

    with Served(script) as server, pytest.raises(EngineLost, match="ConnectError"):
        asked_of(server.writer(), cache)
    assert stored(cache.path) == len(MANY)


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_knows_not_the_key_or_the_model_ends_the_run_at_once(
    cache: AnswerCache, hasty: None, status: int
) -> None:
    with Served(lambda message: status) as server:
        with pytest.raises(BadInput, match="refused the key" if status == 401 else "knows no model 'm'"):
            asked_of(server.writer(), cache)
        assert len(server.asked) < len(MANY)


@pytest.mark.slow
def test_a_server_that_refuses_every_request_is_quoted(cache: AnswerCache, hasty: None) -> None:
    with Served(lambda message: 400) as server, pytest.raises(BadInput, match="none of 40 messages was answered: change what"):
        asked_of(server.writer(), cache)


def test_a_server_that_refuses_every_request_is_not_asked_for_all_of_a_long_list(cache: AnswerCache, hasty: None) -> None:
    long = {f"job {n}": f"message {n}" for n in range(200)}
    with Served(lambda message: 400) as server:
        with pytest.raises(BadInput, match="none of 64 messages was answered: change what"):
            asked_of(server.writer(), cache, long)
        assert 64 <= len(server.asked) < 150


@pytest.mark.parametrize("answered", [0, 20])
def test_a_tunnel_to_a_dead_server_ends_the_run(cache: AnswerCache, answered: int) -> None:
    # It takes each connection and drops it: RemoteProtocolError, never ConnectError.
    def script(message: str, seed: int) -> Failure | str:
        asked.append(message)
        lost = RequestFailure("no answer from u after 7 tries (RemoteProtocolError: Server disconnected)", 0)
        return "value" if len(asked) <= answered else lost

    asked: list[str] = []
    with pytest.raises(EngineLost, match="RemoteProtocolError"):
        asked_of(writer(script, batch=1), cache)
    assert len(asked) == answered + 8


@pytest.mark.parametrize("answered", [0, 20])
def test_a_proxy_of_a_dead_server_ends_the_run(cache: AnswerCache, answered: int) -> None:
    def script(message: str, seed: int) -> Failure | str:
        asked.append(message)
        return "value" if len(asked) <= answered else RequestFailure("u answered 502 after 7 tries: Bad Gateway", 502)

    asked: list[str] = []
    with pytest.raises(EngineLost, match="Bad Gateway"):
        asked_of(writer(script, batch=1), cache, {f"{n}": f"message {n}" for n in range(200)})
    assert len(asked) == answered + 64


def test_messages_that_fail_again_do_not_end_the_run(cache: AnswerCache) -> None:
    # 30 of them fail three times each at the end: more in a row than would do if each were new.
    def script(message: str, seed: int) -> Failure | str:
        return RequestFailure("u answered 500 after 7 tries", 500) if int(message.split()[1]) >= 10 else "value"

    done = asked_of(writer(script, batch=1), cache)
    assert [outcome.kind for outcome in done.values()] == [Kind.OK] * 10 + [Kind.ENGINE] * 30


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_a_silent_server(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import signal\nimport sys\nfrom pathlib import Path\n"
        "from perse.engines.openai import ChatCompletionsEngine\nfrom perse.judging.judge import Judge\n"
        "from perse.rendering.prompt import TextRenderer\nfrom perse.writing.cache import AnswerCache\n"
        "from perse.writing.writer import Writer\nfrom test_rewriting_servers import asked_of\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it\n"
        "engine = ChatCompletionsEngine(sys.argv[1], 'm')\n"
        "with AnswerCache(Path(sys.argv[2])) as cache:\n"
        "    asked_of(Writer(Judge(engine, TextRenderer(), name='m')), cache)\n"
    )
    with Served(lambda message: None) as server:
        line = [sys.executable, script, server.url, tmp_path / "answers"]
        run = subprocess.Popen(
            line,
            env={**os.environ, "PYTHONPATH": importing(Path(__file__).parent), "NO_PROXY": "127.0.0.1"},
            stderr=subprocess.PIPE,
        )
        wait_for(lambda: len(server.asked) == 32)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=900)[1].decode()
    assert said.strip().endswith("KeyboardInterrupt") and said.count("Traceback") == 1 and len(server.asked) == 32
