"""What waiting threads cost: the embedded model on an idle machine and beside other work, by how OpenMP's threads wait.

    python benchmarks/threads.py --beside 0 2 4 --rounds 5

Between two operations the threads of OpenMP wait for each other; by default they spin, which takes the CPU from whoever would use it, and
from the very thread that is waited for. Each way of waiting is a process of its own (libgomp reads its variables once), which reads prompts
behind a shared profile, writes, and trains a step; the ways take turns, and the median over rounds is compared. `--beside` is how many other
processes compute meanwhile, each on one thread.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAYS: dict[str, dict[str, str]] = {
    "spinning (libgomp's default)": {},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "GOMP_SPINCOUNT=1000": {"GOMP_SPINCOUNT": "1000"},
    "GOMP_SPINCOUNT=100": {"GOMP_SPINCOUNT": "100"},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
}
READ, WRITTEN, PREFIX, LEARNED = 256, 32, 768, 512
"""Tokens: read behind a profile of PREFIX, written, and of a training step."""


def main() -> None:
    options = _options()
    if options.work:
        _work(options)
        return
    rows: dict[tuple[int, str], list[dict[str, float]]] = {}
    for beside in options.beside:
        with _others(beside):
            for turn in range(options.rounds):
                for name, variables in WAYS.items():
                    rows.setdefault((beside, name), []).append(found := _measured(options, variables))
                    print(f"beside {beside}, round {turn + 1}: {name}: {found}", file=sys.stderr)
    print(f"| beside | threads wait | {' | '.join(_KINDS)} |")
    print("|---:|---|" + "---:|" * len(_KINDS))
    for (beside, name), found in rows.items():
        cells = [
            f"{statistics.median(one[kind] for one in found):.2f} s ({statistics.median(one[f'{kind} cpu'] for one in found):.2f})"
            for kind in _KINDS
        ]
        print(f"| {beside} | {name} | {' | '.join(cells)} |")


_KINDS = (f"reads {READ} tokens", f"writes {WRITTEN}", f"trains on {LEARNED}")


def _measured(options: argparse.Namespace, variables: dict[str, str]) -> dict[str, float]:
    """Seconds of each kind of work, and of CPU in all threads, in a fresh process."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    }
    environment |= {"OMP_NUM_THREADS": str(options.threads), **variables}
    command = [sys.executable, __file__, "--work", "--model", options.model, "--repeats", str(options.repeats)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _work(options: argparse.Namespace) -> None:
    import torch

    from perse.engines.base import Sampling
    from perse.engines.transformers import TransformersEngine
    from perse.models.finding import find, load

    path = find(options.model)
    engine = TransformersEngine.load(path)
    draw = torch.Generator().manual_seed(0)
    size = engine.model.config.vocab_size

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(0, size, (count,), generator=draw).tolist())

    prefix = ids(PREFIX)

    def write(count: int, tokens: int) -> None:
        engine.generate([prefix + ids(count)], Sampling(0.0, tokens, frozenset()), seeds=[0])

    write(1, 1)
    learner = load(path, dtype="float32").train()
    steps = torch.optim.AdamW(learner.parameters(), lr=1e-6)

    def learn() -> None:
        row = torch.tensor([ids(LEARNED)])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            learner(input_ids=row, labels=row).loss.backward()
        steps.step()
        steps.zero_grad()

    learn()
    found: dict[str, float] = {}
    for kind, work in zip(_KINDS, (lambda: write(READ, 1), lambda: write(1, WRITTEN), learn), strict=True):
        took: list[tuple[float, float]] = []
        for _ in range(options.repeats):
            begun, cpu = time.perf_counter(), time.process_time()
            work()
            took.append((time.perf_counter() - begun, time.process_time() - cpu))
        found |= {kind: statistics.median(one for one, _ in took), f"{kind} cpu": statistics.median(one for _, one in took)}
    print(json.dumps(found))


@contextmanager
def _others(count: int) -> Iterator[None]:
    """Processes that compute all the while."""
    busy = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(count)]
    for one in busy:
        one.start()
    try:
        yield
    finally:
        for one in busy:
            one.terminate()
            one.join()


def _spin() -> None:
    value = 1
    while True:
        value = value * 1_103_515_245 % 2_147_483_647


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--beside", type=int, nargs="+", default=[0, 2, 4], help="how many other processes compute meanwhile")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="of each kind of work in one process")
    parser.add_argument("--small", action="store_true", help="one round of one repeat beside nothing")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.small:
        options.beside, options.rounds, options.repeats = [0], 1, 1
    return options


if __name__ == "__main__":
    main()
