"""What is fetched from stores that are hostile, absent or wrongly named: one sentence, no key in it, and a disk that stays usable."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from perse.batch.sharded import inputs
from perse.errors import BadInput
from perse.judging.loading import parse_judge


class _Endless(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65536)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endless() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/examples.jsonl"
        server.shutdown()


def test_a_server_that_sends_without_end_fills_no_disk(endless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(inputs, "SPARED", shutil.disk_usage(tmp_path).free - 2**26)
    with pytest.raises(BadInput, match=r"examples\.jsonl is larger than the disk of .* has room for; set TMPDIR"):
        next(inputs.files_at(endless))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_was_fetched_goes_where_the_command_is_ended_by_sigterm(endless: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    asked = [
        sys.executable,
        "-m",
        "perse",
        "score",
        "--examples",
        endless,
        "--judge",
        "tiny",
        "--out",
        str(tmp_path / "run"),
        "--driver",
        "local",
    ]
    room = tmp_path / "room"
    room.mkdir()
    process = subprocess.Popen(asked, env=os.environ | {"TMPDIR": str(room)}, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not any(one.stat().st_size for one in room.glob("perse-*/examples.jsonl")):
        time.sleep(0.01)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in said and list(room.glob("perse-*")) == []


@pytest.mark.parametrize(
    "place",
    ["zip://*.jsonl::FILE", "tar://x::file://FILE", "reference://x.jsonl", "http://[::1/x.jsonl", "nosuch://x.jsonl", "memory://none.jsonl"],
)  # fmt: skip
def test_whatever_a_store_raises_is_one_sentence(place: str, tmp_path: Path) -> None:
    (tmp_path / "examples.jsonl").write_text("{}")
    with pytest.raises(BadInput, match=r"cannot be (looked at|read) \(\w+\)"):
        list(inputs.files_at(place.replace("FILE", str(tmp_path / "examples.jsonl"))))


@pytest.mark.parametrize("place", ["s3://k:hunter2pass@bucket/x.jsonl", "s3://k:hunter2pass@bucket/*.jsonl"])
def test_a_password_in_a_stores_address_is_in_no_sentence(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(BadInput, match="cannot be") as refused:
        list(inputs.files_at(place))
    assert "hunter2pass" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["openai:http://127.0.0.1:1/v1#m?token=hunter2pass", "openai:http://127.0.0.1:1/v1#?api_key=hunter2pass"]
)
def test_a_key_behind_a_models_name_is_refused_before_it_is_kept(name: str) -> None:
    """It stood in every line of the answers as the model's name."""
    with pytest.raises(BadInput, match=r"the model's name holds a '\?', behind which a key may stand") as refused:
        parse_judge(name)
    assert "hunter2pass" not in str(refused.value)
