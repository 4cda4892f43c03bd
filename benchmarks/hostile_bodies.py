"""Memory of a judge server on the embedded engine, while several clients at once send bodies as large as it takes.

    OMP_NUM_THREADS=2 python benchmarks/hostile_bodies.py

Each kind of body is sent ten times at once; the highest resident memory of the server meanwhile, and what it keeps, are told in MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx2
import psutil

ROOT = Path(__file__).resolve().parents[1]
ITEM = b'{"profile":[],"query":"x"}'
REVIEW = b'{"text":"t","review":"r","score":5}'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--small", action="store_true", help="Bodies of 64 KiB, two at once.")
    options = parser.parse_args()
    size, at_once = (2**16, 2) if options.small else (8_200_000, 10)
    with tempfile.NamedTemporaryFile("r") as log:
        command = [sys.executable, str(ROOT / "serve.py"), "--config", "embedded", "engine=transformers", "dtype=float32", "port=0", f"model={options.model}", f"limits.items={100 if options.small else 4096}"]  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PERSE_API")} | {
            "COLUMNS": "200"
        }
        with Path(log.name).open("wb") as out:
            server = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=environment)
        try:
            url = _ready(server, Path(log.name))
            print(f"before: {_memory(server.pid):.0f} MiB")
            for name, body in _bodies(size).items():
                asyncio.run(_send(url, server.pid, name, body, at_once))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(90)


def _bodies(size: int) -> dict[str, bytes]:
    def filled(one: bytes) -> bytes:
        return b",".join([one] * (size // (len(one) + 1)))

    return {
        "empty lists": b'{"input":[' + filled(b"[]") + b"]}",
        "empty objects": b'{"input":[' + filled(b"{}") + b"]}",
        "good items": b'{"input":[' + filled(ITEM) + b"]}",
        "one profile": b'{"input":{"query":"x","profile":[' + filled(REVIEW) + b"]}}",
        "numbers": b'{"input":[' + filled(b"1") + b"]}",
        "strings": b'{"input":[' + filled(b'"ab"') + b"]}",
        "lists in lists": b'{"input":' + b"[" * (size // 80) + b"]" * (size // 80) + b"}",
        "one text": b'{"input":{"profile":[],"query":"' + b"a " * (size // 2 - 50) + b'"},"question":"pointwise_score"}',
    }


async def _send(url: str, pid: int, name: str, body: bytes, at_once: int) -> None:
    peak = 0.0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, _memory(pid))
            await asyncio.sleep(0.05)

    async def one(http: httpx2.AsyncClient) -> int | str:
        try:
            answer = await http.post(f"{url}/v1/judge/pointwise", content=body, headers={"Content-Type": "application/json"})
            return answer.status_code
        except httpx2.TransportError as error:
            return type(error).__name__

    begun = time.monotonic()
    async with httpx2.AsyncClient(timeout=600, limits=httpx2.Limits(max_connections=at_once)) as http:
        watching = asyncio.create_task(watch())
        answers = Counter(await asyncio.gather(*(one(http) for _ in range(at_once))))
        watching.cancel()
    told = ", ".join(f"{count} x {status}" for status, count in sorted(answers.items(), key=str))
    seconds = time.monotonic() - begun
    print(
        f"{name}: {len(body) / 2**20:.1f} MiB x {at_once}: {told}; peak {peak:.0f}, after {_memory(pid):.0f} MiB; {seconds:.0f} s",
        flush=True,
    )


def _memory(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / 2**20


def _ready(server: subprocess.Popen[bytes], log: Path) -> str:
    url, end = "", time.monotonic() + 300
    while True:
        if server.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.2)
        found = re.search(r"at (http://\S+)", log.read_text())
        url = found[1] if found else url
        try:
            if url and httpx2.get(f"{url}/ready").status_code == 200:
                return url
        except httpx2.TransportError:
            continue


if __name__ == "__main__":
    main()
