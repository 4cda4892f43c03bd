"""What tests of rewriting stand on: a plot and its names, scripted writers, a loop with one purpose, a server that can die."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from perse.data.names.capitals import Name
from perse.data.names.names import Renamer
from perse.engines.base import Failure, Reply, Sampling
from perse.engines.openai import ChatCompletionsEngine
from perse.engines.scripted import ScriptedEngine
from perse.judgement import Tokens
from perse.judging.judge import Judge
from perse.rendering.prompt import TextRenderer
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Good, Kind, ask_until_good
from perse.writing.writer import Writer

PLOT = "Ida Venn keeps bees in Larkspur. Her brother Tom Venn sells the hives. Ida forgives Tom, and Larkspur is at peace."
MAPPING = {"Ida Venn": "Olga Brandt", "Tom Venn": "Rolf Brandt", "Larkspur": "Sundhaven"}
RENAMED = "Olga Brandt keeps bees in Sundhaven. Her brother Rolf Brandt sells the hives. Olga forgives Rolf, and Sundhaven is at peace."
OTHER = "A storm takes the roof of Harbour House. Nobody is hurt."
OTHER_MAPPING = {"Harbour House": "Millrace Lodge"}
RETRY = "[What must change]"

Script = Callable[[str, int], Reply | Failure | str]


class Known:
    """Finds the names it was told, on word boundaries: what a recognizer is, without a library to load."""

    name, digest = "known", "0"

    def __init__(self, *people: str, others: Sequence[str] = ()) -> None:
        self.kinds = {**dict.fromkeys(people, "person"), **dict.fromkeys(others, "other")}

    def names(self, texts: Sequence[str]) -> list[list[Name]]:
        found = [dict.fromkeys(span.old for span in Renamer({name: name for name in self.kinds}).spans(text)) for text in texts]
        return [[Name(name, self.kinds[name]) for name in names] for names in found]  # type: ignore[arg-type]


EVERYONE: Any = Known("Ida Venn", "Tom Venn", "Larkspur", "Ida", "Tom", "Venn", "Harbour House")


def writer(script: Script, *, batch: int = 32) -> Writer:
    return Writer(Judge(ScriptedEngine(script, batch=batch), TextRenderer(), name="scripted"))


def logged(path: Path, script: Script) -> Script:
    """`script`, with every message it is asked on a line of a file."""

    def reply(message: str, seed: int) -> Reply | Failure | str:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
        return script(message, seed)

    return reply


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def stored(path: Path) -> int:
    """Answers in the cache, as any other process sees them."""
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=60) as file:
        there = file.execute("SELECT count(*) FROM sqlite_master WHERE name = 'answers'").fetchone()[0]
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0]) if there else 0


def refused(text: str) -> Reply:
    return Reply(text, "stop", Tokens(prompt=0, cached=0, generated=0), refused=True)


def cut_off(text: str) -> Reply:
    return Reply(text, "length", Tokens(prompt=0, cached=0, generated=0))


def flaky(message: str, seed: int) -> str:
    """Good half of the time, by message and seed."""
    good = random.Random(f"{message}{seed}").random() < 0.5
    return f"value {seed}" if good else "bad"


def judged(job: str, answer: str) -> Good[str] | Bad:
    return Good(answer) if answer.startswith("value") else Bad(Kind.BAD_JSON, "no value")


def looped(script: Script, messages: dict[str, str], cache: AnswerCache, *, batch: int = 4, tries: int = 3) -> Any:
    return ask_until_good(
        writer(script, batch=batch),
        messages,
        judged,
        cache=cache,
        again=lambda answer, reason: f"{answer}: {reason}",
        sampling=Sampling(),
        seed=3,
        purpose="test",
        tries=tries,
    )


class Served:
    """A chat server that answers with `say(message)`: a text, a status, or None for no answer at all until it is closed."""

    def __init__(self, say: Callable[[str], str | int | None]) -> None:
        self.closed = threading.Event()
        self.asked: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][0]["content"]
                served.asked.append(message)
                said = say(message)
                if said is None or served.closed.is_set():
                    served.closed.wait(900)
                    self.close_connection = True
                    return
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
                body = json.dumps({"choices": [choice]} if isinstance(said, str) else {"error": {"message": "no"}}).encode()
                self.send_response(200 if isinstance(said, str) else said)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_: Any) -> None: ...  # a client that gave up

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more, and hang up on whoever waits."""
        if not self.closed.is_set():
            self._server.shutdown()
            self._server.socket.close()
            self.closed.set()

    def writer(self) -> Writer:
        """With a digest, so that the address is not what answers are known by."""
        return Writer(Judge(ChatCompletionsEngine(self.url, "m"), TextRenderer(), name="m", digest="d"))
