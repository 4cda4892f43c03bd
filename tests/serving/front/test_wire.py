"""What comes over the wire: floods of headers, two lengths, bytes that are no text, garbage. The server refuses it and lives on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.stopping import UVICORN

ITEM = {"profile": [{"text": "a plot", "review": "fine", "score": 7}], "query": "a new plot"}
BODY = json.dumps({"input": ITEM, "question": "pointwise_score"}).encode()
ASKED = b"POST /v1/judge/pointwise HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(tiny_model_folder: Path) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
            patch.delenv(name, raising=False)
        models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)
        app = embedded_app(models, JudgeSettings(max_new_tokens=4))
    with in_thread(app, log_level="critical", **UVICORN) as url:
        yield int(url.rpartition(":")[2])


def said(port: int, sent: bytes, *, close: bool = True) -> bytes:
    """All that comes back; a connection that the server cuts while it is being written to is an answer, too."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        found = b""
        try:
            connection.sendall(sent)
            while part := connection.recv(65536):
                found += part
                if close and found.count(b"HTTP/1.1") and b"\r\n\r\n" in found and not sent.count(b"HTTP/1.1") > 1:
                    break
        except (ConnectionError, TimeoutError):
            return found
        return found


def whole(body: bytes, *more: bytes) -> bytes:
    return ASKED + b"".join(one + b"\r\n" for one in more) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1") else 0


HOSTILE: dict[str, tuple[bytes, set[int]]] = {
    "a header of a megabyte": (ASKED + b"X: " + b"a" * 2**20 + b"\r\n\r\n", {0, 400, 431}),
    "ten thousand headers": (ASKED + b"".join(b"X-%d: 1\r\n" % n for n in range(10_000)) + b"\r\n", {0, 400, 431}),
    "a line of a megabyte": (b"GET /" + b"a" * 2**20 + b" HTTP/1.1\r\n\r\n", {0, 400, 414, 431}),
    "two lengths": (ASKED + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\n{}{}{}{}", {0, 400}),
    "a length and chunks": (ASKED + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "a length below zero": (ASKED + b"Content-Length: -1\r\n\r\n", {0, 400}),
    "a chunk without a length": (ASKED + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", {0, 400}),
    "bytes that are no text": (whole(b'{"input": "\xff\xfe\x80"}'), {400}),
    "no number": (whole(b'{"input": NaN, "temperature": Infinity}'), {400}),
    "a number of ten thousand digits": (whole(b'{"input": ' + b"9" * 10_000 + b"}"), {400}),
    "lists ten thousand deep": (whole(b'{"input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"), {400}),
    "half a character": (whole(b'{"input": {"profile": [], "query": "\\ud800"}}'), {400}),
    "garbage": (bytes(range(256)) * 8 + b"\r\n\r\n", {0, 400}),
    "TLS on a plain port": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 300, {0, 400}),
    "another protocol": (b"SSH-2.0-OpenSSH_9.0\r\n\r\n", {0, 400}),
    "a method of its own": (b"BREW /v1/judge/pointwise HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", {405}),
    "an absolute address of elsewhere": (
        b"GET http://evil.example/version HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        {400, 403, 404},
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_request_is_refused_and_the_server_lives(port: int, what: str) -> None:
    sent, expected = HOSTILE[what]
    assert status(said(port, sent)) in expected
    assert status(said(port, whole(BODY))) == 200


def test_what_follows_a_request_with_two_ends_is_never_taken_for_a_request(port: int) -> None:
    """A proxy that believes the length sends as a body what we, who believe the chunks, would read as the next request."""
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    hidden = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    length = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(chunks + hidden)
    for method in (ASKED, ASKED.replace(b"POST /v1/judge/pointwise", b"GET /health")):
        answers = said(port, method + length + chunks + hidden, close=False)
        assert status(answers) == 400 and b"found both Content-Length and Transfer-Encoding" in answers
        assert answers.count(b"HTTP/1.1 ") == 1 and b"connection: close" in answers.lower()


def test_requests_that_follow_each_other_on_one_connection_are_each_answered(port: int) -> None:
    last = whole(BODY, b"Connection: close")
    answers = said(port, whole(BODY) * 3 + last, close=False)
    assert answers.count(b"HTTP/1.1 200 OK") == 4


def test_no_answer_says_what_the_server_is_made_of(port: int) -> None:
    answer = said(port, whole(b'{"input": {"profile": [], "query": "x"}, "model": "no"}'))
    assert status(answer) == 404 and b"/work" not in answer and b"Traceback" not in answer and b".py" not in answer
