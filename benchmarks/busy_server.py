"""How long a server is silent while it reads a large body, measured by asking for /health all the while.

    python benchmarks/busy_server.py

A server of the embedded engine, in a process of its own, is sent a body of a million items that are none, and one item with very many
reviews of 120 words, most of which leave a context of 1,024 tokens. The slowest of many requests for /health beside it is the longest that anybody would have waited.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import threading
import time

import httpx2
from rich.console import Console
from rich.table import Table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--reviews", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    items, reviews = (1000, [50]) if options.small else (options.items, options.reviews)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "perse",
        "serve",
        f"model={options.model}",
        f"port={port}",
        "engine=transformers",
        "context=1024",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, server)
        table = Table(title="beside one body, on the embedded engine")
        for column in ("body", "answered after", "with", "/health asked", "slowest answer"):
            table.add_column(column, justify="left" if column == "body" else "right")
        bodies = {"no item at all": {"input": [0]}, f"{items:,} bad items": {"input": [0] * items}}
        bodies |= {f"one item with {count:,} reviews": {"input": _item(count)} for count in reviews}
        for name, body in bodies.items():
            table.add_row(name, *_measured(url, {**body, "question": "pointwise_score"}))
        Console(width=100).print(table)
    finally:
        server.terminate()
        server.wait(30)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            if httpx2.get(f"{url}/health").status_code == 200:
                return
        except httpx2.HTTPError:
            if server.poll() is not None:
                raise SystemExit("the server did not start; try `perse serve` by hand") from None
        time.sleep(0.2)


def _measured(url: str, body: object) -> tuple[str, str, str, str]:
    """Seconds until the answer, its status, how often /health was asked meanwhile, and the slowest of those."""
    sent, waits, over = json.dumps(body).encode(), [], threading.Event()

    def ask() -> None:
        with httpx2.Client(timeout=600) as client:
            while not over.is_set():
                begun = time.perf_counter()
                client.get(f"{url}/health")
                waits.append(time.perf_counter() - begun)
                time.sleep(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    begun = time.perf_counter()
    answer = httpx2.post(f"{url}/v1/judge/pointwise", content=sent, headers={"Content-Type": "application/json"}, timeout=600)
    seconds = time.perf_counter() - begun
    over.set()
    asking.join()
    return f"{seconds:.2f} s", str(answer.status_code), str(len(waits)), f"{max(waits):.2f} s"


def _item(reviews: int) -> dict[str, object]:
    dice = random.Random(0)

    def words(count: int) -> str:
        return " ".join(dice.choices(("harbour", "ferry", "ghost", "ticket", "winter", "coin"), k=count))

    profile = [{"text": words(60), "review": words(60), "score": dice.randint(1, 10)} for _ in range(reviews)]
    return {"profile": profile, "query": words(60)}


if __name__ == "__main__":
    main()
