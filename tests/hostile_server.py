"""A server that answers byte for byte as a test says, and remembers what it was sent."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
Say = Callable[[str, Any], Any]
"""What is answered to "POST /v1/completions" with a body: something JSON-able, bytes, or a whole `Answer`."""


class Hostile:
    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []


def _body(sent: bytes) -> Any:
    """JSON, or what else was sent."""
    try:
        return json.loads(sent)
    except ValueError:
        return sent


@contextmanager
def hostile(say: Say) -> Iterator[Hostile]:
    """Such a server, for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = _body(self.rfile.read(length)) if length else None
            route = f"{self.command} {self.path}"
            served.asked.append((route, body))
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            said = say(route, body)
            status, headers, content = said if isinstance(said, tuple) else (200, {}, said)
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None: ...  # a client that reads no further hangs up

    with Server(("127.0.0.1", 0), Handler) as http:
        served = Hostile(f"http://127.0.0.1:{http.server_port}")
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield served
        http.shutdown()


@contextmanager
def dripping(first: bytes, drip: bytes, every: float = 0.02) -> Iterator[str]:
    """The address of a server that answers with `first`, and then with `drip` again and again until the client has enough."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(1 << 16)
                self.request.sendall(first)
                while not over.wait(every):
                    self.request.sendall(drip)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as tcp:
        threading.Thread(target=tcp.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{tcp.server_address[1]}"
        over.set()
        tcp.shutdown()


BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
DRIPS = {
    "body": (BODY, b" "),
    "headers": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "1xx": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
}
