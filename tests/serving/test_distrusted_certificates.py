"""A client that does not trust a server's certificate says so, and what to do; it does not ask whether the server runs."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from perse.serving.client import JudgeClient, ServerError


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a server whose certificate, that no authority signed, is of localhost alone; and the certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    key, certificate = tmp_path / "our.key", tmp_path / "our.crt"
    of = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *of], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, certificate
        server.shutdown()


def test_a_certificate_that_is_not_trusted_is_named_at_once_with_what_to_do(
    served: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, certificate = served
    waits: list[float] = []
    monkeypatch.setattr("perse.serving.client.time.sleep", waits.append)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(ServerError, match=r"not trusted here \(self.signed certificate\); .* SSL_CERT_FILE") as refused:
        JudgeClient(f"https://localhost:{port}").version()
    assert "running" not in str(refused.value) and waits == [], "no other try changes it"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert JudgeClient(f"https://localhost:{port}").version() == {}
    with pytest.raises(ServerError, match=r"not trusted here \(.*127\.0\.0\.1.*ask by a name that it holds"):
        JudgeClient(f"https://127.0.0.1:{port}").version()
