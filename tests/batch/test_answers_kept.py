"""However often a work that asks is killed, it comes to its end, and asks again only what was in flight."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from kills import Script, check_nothing_lost, times_killed

from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.engines.openai import ChatCompletionsEngine
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import TextRenderer

TWENTY = LoadedExamples(pointwise_examples(5, 4), digest="d", folder=None, fold=None)
AT_ONCE = 4


@pytest.mark.slow
def test_a_scoring_that_is_killed_after_every_second_answer_loses_none(tmp_path: Path) -> None:
    def ask(folder: Path, script: Script) -> None:
        judge = Judge(ScriptedEngine(script), TextRenderer(), name="j")
        score(judge, QUESTIONS["pointwise"], TWENTY, folder / "run", settings=JudgeSettings())

    check_nothing_lost(ask, lambda message, seed: f"[Review] fine\n[Score] {1 + seed % 10}", tmp_path)


class Paid:
    """A chat server that counts what it is asked; each question costs."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.url = ""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked[body["messages"][0]["content"]] += 1
        message = {"role": "assistant", "content": "[Review] fine\n[Score] 7"}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}


@pytest.fixture
def paid() -> Iterator[Paid]:
    server = Paid()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None: ...

        def do_POST(self) -> None:
            body = json.dumps(server.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.handle_error = lambda *args: None  # type: ignore[method-assign]  # clients that were killed
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        server.url = f"http://127.0.0.1:{running.server_port}/v1"
        yield server
        running.shutdown()


@pytest.mark.slow
def test_of_a_paid_server_a_kill_costs_no_more_than_the_requests_that_it_had_open(
    paid: Paid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    lines = tmp_path / "run" / "judgements.jsonl"

    def work() -> None:
        begun = lines.read_bytes().count(b"\n") if lines.exists() else 0

        def kill(done: int, total: int) -> None:
            if done == begun + 3:
                os.kill(os.getpid(), signal.SIGKILL)

        judge = Judge(ChatCompletionsEngine(paid.url, "m", concurrency=AT_ONCE), TextRenderer(), name="m")
        score(judge, QUESTIONS["pointwise"], TWENTY, tmp_path / "run", settings=JudgeSettings(), on_progress=kill)

    kills = times_killed(work)
    ids = [json.loads(line)["id"] for line in lines.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == len(paid.asked) == 20
    assert kills == 6 and paid.asked.total() <= 20 + AT_ONCE * kills
