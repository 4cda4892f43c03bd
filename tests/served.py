"""A judge server as a person starts it, in a process of its own, on vLLM or on the embedded engine; or in a thread of this one."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from places import ROOT

ENVIRONMENT = {"OMP_NUM_THREADS": str(os.cpu_count()), **os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Server:
    url: str
    log: Path
    process: subprocess.Popen[bytes]


@contextmanager
def serving(log: Path, *settings: object, engine: str = "vllm", **environment: str) -> Iterator[Server]:
    """`python serve.py` until it is ready, and stopped at the end."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "serve.py", "--config", "configs/serve/embedded.yaml", f"engine={engine}", "port=0", "context=2048", "memory_gb=1", *map(str, settings)],
            cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env={**ENVIRONMENT, **environment},
        )  # fmt: skip
    try:
        url = ""
        end = time.monotonic() + 900
        while True:
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
            time.sleep(0.5)
            found = re.search(r"at (http://\S+)", log.read_text())
            url = found[1] if found else url
            try:
                if url and httpx2.get(f"{url}/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                continue
        yield Server(url, log, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(900)
        finally:
            process.kill()


@contextmanager
def in_thread(app: Any, **settings: Any) -> Iterator[str]:
    """The address of an application that a uvicorn in this process serves, until the block ends."""
    server = uvicorn.Server(uvicorn.Config(app, **{"log_level": "warning", **settings}))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
