"""A real server is told to stop in the middle of its work; and connections that ask nothing are closed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from builders import pointwise_examples
from fastapi import FastAPI
from places import ROOT

from perse.serving.client import JudgeClient, ServerError
from perse.serving.front.connections import close_silent

ITEM = pointwise_examples(1, 1)[0].model_dump(mode="json", exclude_none=True)
PATIENCE = 900


@pytest.fixture
def started(tiny_model_folder: Path, tmp_path: Path) -> Iterator[Any]:
    servers: list[subprocess.Popen[bytes]] = []

    def start(*settings: str) -> tuple[subprocess.Popen[bytes], str]:
        given = [f"model={tiny_model_folder}", "engine=transformers", "dtype=float32", "port=0", *settings]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PERSE_")}
        server = subprocess.Popen(
            [sys.executable, ROOT / "serve.py", "--config", ROOT / "configs/serve/embedded.yaml", *given],
            cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=(tmp_path / "log").open("wb"),
        )  # fmt: skip
        servers.append(server)
        end = time.monotonic() + PATIENCE
        while not (said := re.search(r"at (https?://\S+)", (tmp_path / "log").read_text())):
            assert server.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
        url = said[1]
        while True:
            try:
                if httpx2.get(f"{url}/ready", trust_env=False, verify=False).status_code == 200:
                    return server, url
            except httpx2.TransportError:
                assert server.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(0.1)

    yield start
    for server in servers:
        server.kill()
        server.wait()


def ask(url: str, new_tokens: int) -> int | str:
    body = {"input": ITEM, "max_new_tokens": new_tokens, "temperature": 1.5, "seed": random.getrandbits(31)}
    try:
        return httpx2.post(f"{url}/v1/judge/pointwise", json=body, timeout=PATIENCE, trust_env=False).status_code
    except (
        httpx2.ConnectError,
        httpx2.ReadError,
    ):  # the second: reset, of one that had not been taken in; cutting off one inside is another error
        return "closed"


def ask_until_refused(url: str, answered: list[int | str], new_tokens: int) -> int | str:
    """The first answer that is not 200."""
    while (status := ask(url, new_tokens)) == 200:
        answered.append(status)
    return status


def stopped_under_load(server: subprocess.Popen[bytes], url: str, *, new_tokens: int) -> list[int | str]:
    """How eight clients that ask without a pause learn that the server stops."""
    answered: list[int | str] = []
    with ThreadPoolExecutor(8) as clients:
        asking = [clients.submit(ask_until_refused, url, answered, new_tokens) for _ in range(8)]
        end = time.monotonic() + PATIENCE
        while len(answered) < 20:
            assert time.monotonic() < end
            time.sleep(0.02)
        server.send_signal(signal.SIGTERM)
        return [one.result() for one in asking]


@pytest.mark.slow
def test_sigterm_answers_all_that_is_inside_and_ends_well(started: Any) -> None:
    server, url = started()
    assert set(stopped_under_load(server, url, new_tokens=200)) <= {503, "closed"}, "nobody was cut off"
    assert server.wait(PATIENCE) == 0


@pytest.mark.slow
def test_what_outlasts_the_time_to_stop_is_told_so_and_the_server_ends(started: Any) -> None:
    server, url = started("limits.drain=0")
    assert set(stopped_under_load(server, url, new_tokens=200)) <= {503, "closed"}
    assert server.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here to make a certificate with")
def test_it_is_asked_by_https_with_a_certificate(started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *names], check=True, capture_output=True)
    _, url = started(f"certificate={tmp_path / 'cert.pem'}", f"certificate_key={tmp_path / 'key.pem'}")
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    assert httpx2.get(f"{url}/version", verify=trusted, trust_env=False).status_code == 200
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"{url}/version", trust_env=False)
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"{url.replace('https', 'http')}/version", trust_env=False)
    with JudgeClient(url, tries=1) as stranger, pytest.raises(ServerError):
        stranger.version()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with JudgeClient(url) as client:
        assert client.version()["models"]


def test_connections_on_which_nothing_is_asked_are_closed_and_others_are_not() -> None:
    app, begun, released = FastAPI(), asyncio.Event(), asyncio.Event()

    @app.get("/slow")
    async def slow() -> dict[str, bool]:
        begun.set()
        await released.wait()
        return {"answered": True}

    async def run() -> None:
        server = uvicorn.Server(uvicorn.Config(app, http="h11", log_level="warning", timeout_keep_alive=60))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.01)
            first = b"GET /slow HTTP/1.1\r\nHost: x\r\n"
            connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            (_, writes), (_, dribbles), (_, asks), _ = connections
            writes.write(b"GET /slo")
            asks.write(first + b"\r\n")
            await begun.wait()  # before it, a busy machine might have let that connection be silent for long
            watching = asyncio.create_task(close_silent(server, seconds=0.2, every=0.02))
            closed = asyncio.gather(*(connections[n][0].read() for n in (0, 1, 3)))
            while not closed.done():  # a byte now and then is not a request
                dribbles.write(first[:1])
                await asyncio.sleep(0.02)
            released.set()
            answer = await connections[2][0].readuntil(b"}")
            assert answer.startswith(b"HTTP/1.1 200") and json.loads(answer.partition(b"\r\n\r\n")[2]) == {"answered": True}
            watching.cancel()
            server.should_exit = True
            for _, writer in connections:
                writer.close()
            await serving

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
