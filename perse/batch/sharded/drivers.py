"""Workers on this machine: each a process of its own, started again when it dies, until the run is whole.

A worker that dies over certain rows comes back to them; `perse.batch.sharded.running` halves these until the deadly one stands alone. One that
refuses its work (exit code 2: another judge, a full disk) ends the run, since another would refuse it, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import Run
from perse.errors import BadInput, EngineLost
from perse.formats.plain_files import own_bytes
from perse.progress import OnProgress, unseen

LOGS = "logs"
REFUSED = 2
"""Exit code of a worker that no other start would help."""
MOST_DEATHS = 24
"""Workers that may die without a finished shard or part between them: to find one deadly row among 256 takes up to 18."""
LOOK_EVERY = 0.5
GRACE = 20.0
"""Seconds that workers have to end, once they are told to."""


@dataclass
class _Worker:
    name: str
    number: int
    log: Path
    process: subprocess.Popen[bytes]
    restart_at: float | None = None
    deaths: int = field(default=0)


def work_here(
    run: Run, workers: int, *, session: str, name: str, trust_remote_code: bool = False, on_progress: OnProgress = unseen
) -> None:
    """Let `workers` processes of this machine judge what is left of the run.

    Args:
        session: a name for this start; see `run_shard`.
        trust_remote_code: see `judge_of`.
        name: begins the names of the workers, which no other machine may use at the same time.
        on_progress: told how many examples are judged, by whatever worker.
    Raises:
        BadInput: a worker refused its work.
        EngineLost: workers die again and again.
    """
    places = Places(run.folder)
    logs = run.folder / LOGS
    logs.mkdir(exist_ok=True)
    left = {shard.id: shard.rows for shard in run.plan.shards}
    judged, total = 0, run.plan.rows

    next_look = 0.0

    def look() -> bool:
        """Count what was finished, where that was not just done; whether anything was. Of a million shards a look takes seconds."""
        nonlocal judged, next_look
        began = time.monotonic()
        if began < next_look:
            return False
        ended = places.finished() & left.keys()
        for name in ended:
            judged += left.pop(name)
        on_progress(judged, total)
        next_look = time.monotonic() + 10 * (time.monotonic() - began)
        return bool(ended)

    look()
    if not left:
        return
    started = [
        _started(run, logs, f"{name}-{number}", number, workers, session, trust_remote_code)
        for number in range(min(workers, len(left)))
    ]
    deaths, parts = 0, _parts(run.folder)
    try:
        while left and started:
            time.sleep(LOOK_EVERY)
            before, parts = parts, _parts(run.folder)
            if look() or parts != before:
                deaths = 0
            ended: list[_Worker] = []
            for one in started:
                code = one.process.poll()
                if code is None:
                    continue
                if code == 0:
                    ended.append(one)
                elif code == REFUSED:
                    raise BadInput(_last_words(one.log))
                elif one.restart_at is None:
                    deaths += 1
                    if deaths > MOST_DEATHS:
                        raise EngineLost(
                            f"{deaths} workers died one after the other, the last with exit code {code}: {_last_words(one.log)}; see {logs}; "
                            "the same command continues"
                        )
                    one.restart_at = time.monotonic() + (0 if deaths <= 2 else min(2.0 ** (deaths - 2), 30.0) / 10)
                elif time.monotonic() >= one.restart_at:
                    again = _started(run, logs, one.name, one.number, workers, session, trust_remote_code)
                    one.process, one.restart_at = again.process, None
            started = [one for one in started if one not in ended]
        next_look = 0.0
        look()
    finally:
        _end(started)


def _started(run: Run, logs: Path, name: str, number: int, of: int, session: str, trust: bool) -> _Worker:
    log = logs / f"{name}.log"
    # -P: what lies in the folder that one is in is nobody's module.
    asked = [sys.executable, "-P", "-m", "perse", "score", "worker", str(run.folder), "--name", name, "--session", session]
    asked += ["--number", str(number), "--of", str(of), "--parent", str(os.getpid())]
    asked += ["--trust-remote-code"] if trust else []
    with log.open("ab") as written:
        process = subprocess.Popen(asked, stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=_environment(number))
    return _Worker(name, number, log, process)


def _environment(number: int) -> dict[str, str]:
    """One GPU for each worker, of those that this process may use."""
    given = dict(os.environ)
    mine = [one for one in given.get("CUDA_VISIBLE_DEVICES", "").split(",") if one] or cards()
    if mine:
        given["CUDA_VISIBLE_DEVICES"] = mine[number % len(mine)]
    return given


def cards() -> list[str]:
    """The GPUs of this machine, by number."""
    try:
        found = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(number) for number, line in enumerate(found.stdout.splitlines()) if line.startswith("GPU ")]


def _parts(run: Path) -> int:
    """Finished parts of shards that workers died over."""
    return sum(1 for _ in (run / "pieces").rglob("*.parquet"))


def _last_words(log: Path) -> str:
    with suppress(OSError, BadInput):
        lines = [line.strip() for line in own_bytes(log).decode("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].removeprefix("perse: ")
    return "it said nothing"


def _end(workers: Sequence[_Worker]) -> None:
    running = [one.process for one in workers if one.process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGTERM)
    until = time.monotonic() + GRACE
    for process in running:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
