"""A server that takes requests and never answers: who waits is told of it, and how to wait less, and the wait has an end."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator

import pytest
from openai_stub import Stub, chat

import perse.models.silence
from perse.engines.base import RequestFailure
from perse.errors import BadInput, EngineLost
from perse.models.silence import Watch, patience
from perse.serving.client import JudgeClient, ServerError


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute is a tenth of a second, and the ten are one."""
    monkeypatch.setattr(perse.models.silence, "TOLD_AFTER", 0.1)
    monkeypatch.setattr("perse.engines.openai.TOLD_AFTER", 0.1)
    monkeypatch.setenv("PERSE_TIMEOUT", "1")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener who accepts nothing: connections wait in its queue."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


LINE = "has not answered for 0.1 s; each request is waited for up to 1 s"


@pytest.mark.slow
def test_who_waits_for_a_silent_server_is_told_once_and_the_wait_ends_after_two_tries(
    silent: str, soon: None, caplog: pytest.LogCaptureFixture
) -> None:
    stub = Stub()
    stub.url = f"{silent}/v1"
    [failure] = chat(stub, "hello")
    assert isinstance(failure, RequestFailure) and f"no answer from {silent}/v1 after 2 tries" in failure.reason
    with pytest.raises(EngineLost, match="look after the server; the same command continues"):
        chat(stub, *"abcde")
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        told
        == [f"{silent}/v1 {LINE}, 2 times: look after the server, or wait less (PERSE_TIMEOUT=SECONDS in the environment)"] * 2
    )


@pytest.mark.slow
def test_a_silent_judge_server_is_named_too(silent: str, soon: None, caplog: pytest.LogCaptureFixture) -> None:
    for given, less in ((None, "PERSE_TIMEOUT=SECONDS in the environment"), (1, "timeout=SECONDS")):
        caplog.clear()
        with (
            JudgeClient(silent, timeout=given) as client,
            pytest.raises(ServerError, match="took longer than the client waits"),
        ):
            client.version()
        assert [record.getMessage() for record in caplog.records] == [
            f"{silent} {LINE}: look after the server, or wait less ({less})"
        ]


def test_a_server_that_answers_others_is_not_called_silent(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch("http://busy", 600)
    begun = time.monotonic()
    watch.heard(begun)
    watch.tell(begun)
    assert not caplog.records
    for _ in range(2):
        watch.tell(time.monotonic() + 1)
    assert len(caplog.records) == 1, "once"
    watch.heard(begun - perse.models.silence.TOLD_AFTER - 1)
    watch.tell(time.monotonic() + 1)
    assert len(caplog.records) == 1, "one that is slow each time is not named each time"
    watch.heard(time.monotonic())
    watch.tell(time.monotonic() + 1)
    assert len(caplog.records) == 2, "one that had answered soon again is"


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_a_time_that_is_none_is_refused_by_the_variables_name(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_TIMEOUT", given)
    with pytest.raises(BadInput, match=f"PERSE_TIMEOUT in the environment is '{given}', expected seconds above 0"):
        patience()


def test_ten_minutes_are_waited_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_TIMEOUT", raising=False)
    assert patience() == 600
    monkeypatch.setenv("PERSE_TIMEOUT", " ")
    assert patience() == 600
