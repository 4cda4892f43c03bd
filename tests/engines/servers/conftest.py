"""A stub to ask, over a real socket, with the waits of the SDK made short."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai._base_client
import pytest
from openai_stub import (
    KEY,
    Completions,
    Stub,
)

from perse import Judge
from perse.engines.openai import ChatCompletionsEngine
from perse.rendering.prompt import TextRenderer


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


@pytest.fixture
def chatting(server: Stub) -> Judge:
    return Judge(ChatCompletionsEngine(server.url, "m"), TextRenderer(), name="m")


@pytest.fixture
def completions(server: Stub) -> Completions:
    return Completions(server)
