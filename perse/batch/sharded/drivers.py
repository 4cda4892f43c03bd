"""Workers on this machine: each a process of its own, started again when it dies, until the run is whole.

A worker that dies over certain rows comes back to them; `perse.batch.sharded.running` halves these until the deadly one stands alone. One that
refuses its work (exit code 2: another judge, a full disk) ends the run, since another would refuse it, too.
"""

from __future__ import annotations

import logging
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
from perse.engines.kind import USUAL, Hardware
from perse.errors import BadInput, EngineLost
from perse.formats.plain_files import own_bytes
from perse.progress import OnProgress, unseen

log = logging.getLogger(__name__)

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
    number: int
    log: Path
    process: subprocess.Popen[bytes]
    restart_at: float | None = None
    deaths: int = field(default=0)


def work_here(
    run: Run,
    workers: int | None,
    *,
    session: str,
    name: str,
    hardware: Hardware = USUAL,
    trust_remote_code: bool = False,
    on_progress: OnProgress = unseen,
) -> None:
    """Let `workers` processes of this machine judge what is left of the run.

    Args:
        workers: by default one for each GPU, or for as many as each needs; one where there is none.
        session: a name for this start; see `run_shard`.
        hardware: what each takes of the machine.
        trust_remote_code: see `judge_of`.
        name: begins the names of the workers, which no other machine may use at the same time.
        on_progress: told how many examples are judged, by whatever worker.
    Raises:
        BadInput: a worker refused its work, or needs more GPUs than there are.
        EngineLost: workers die again and again.
    """
    crews = _crews(cards(), hardware.tensor_parallel)
    workers = workers or len(crews)
    asked = [f"--{name.replace('_', '-')}={value}" for name, value in vars(hardware).items() if value is not None]
    asked += ["--trust-remote-code"] if trust_remote_code else []
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

    def begun(number: int) -> _Worker:
        words = ["--name", f"{name}-{number}", "--session", session, "--number", str(number), "--of", str(workers), *asked]
        return _started(run, logs / f"{name}-{number}.log", number, words, crews[number % len(crews)])

    started = [begun(number) for number in range(min(workers, len(left)))]
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
                    log.warning(
                        "worker %s died (exit code %d: %s) and begins again; its log is %s",
                        one.log.stem,
                        code,
                        _last_words(one.log),
                        one.log,
                    )
                    one.restart_at = time.monotonic() + (0 if deaths <= 2 else min(2.0 ** (deaths - 2), 30.0) / 10)
                elif time.monotonic() >= one.restart_at:
                    one.process, one.restart_at = begun(one.number).process, None
            started = [one for one in started if one not in ended]
        next_look = 0.0
        look()
    finally:
        _end(started)


def _started(run: Run, log: Path, number: int, words: Sequence[str], crew: Sequence[str]) -> _Worker:
    """A worker with these GPUs."""
    # -P: what lies in the folder that one is in is nobody's module.
    asked = [sys.executable, "-P", "-m", "perse", "score", "worker", str(run.folder), *words, "--parent", str(os.getpid())]
    env = {**os.environ, **({"CUDA_VISIBLE_DEVICES": ",".join(crew)} if crew else {})}
    with log.open("ab") as written:
        process = subprocess.Popen(asked, stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=env)
    return _Worker(number, log, process)


def _crews(cards: Sequence[str], each: int) -> list[Sequence[str]]:
    """The GPUs that work together, `each` of them; one crew without GPUs where there is none.

    Raises:
        BadInput: there are some, but too few for one.
    """
    if cards and len(cards) < each:
        raise BadInput(f"a worker needs {each} GPUs (--tensor-parallel), and {len(cards)} are to be used here; give fewer")
    return [cards[at : at + each] for at in range(0, len(cards) - each + 1, each)] if cards else [()]


def cards() -> list[str]:
    """The GPUs that this process may use."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [one for one in map(str.strip, given.split(",")) if one and one != "-1"]
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
