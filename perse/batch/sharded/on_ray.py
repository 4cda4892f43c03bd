"""Workers of a Ray cluster: Ray Data hands out the names of shards, and an actor with a judge turns each into a file of answers.

Ray starts lost actors again, elsewhere if a machine is gone, and gives them what they had, without end (its default): rows that kill actors are found by halves, which ends.
Files say what is done, so nothing that was finished is judged again. On a laptop a small Ray is started and ended with the run; `RAY_ADDRESS` names a cluster, whose machines see the run's folder under
the same path. Only names and counts go through Ray, never texts.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any

from perse.batch.sharded.drivers import LOGS
from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import Run
from perse.bounded import first_line
from perse.engines.kind import USUAL, Hardware
from perse.errors import BadInput, EngineLost, PerseError
from perse.files.disk import writing
from perse.installing import needing
from perse.progress import OnProgress, unseen
from perse.secrets import redact

WAIT = 1.0
"""Seconds between looks at a shard that another worker holds."""
REACHED = 10.0
"""Seconds in which a cluster has to answer."""


def work_on_ray(
    run: Run,
    workers: int | None,
    *,
    session: str,
    hardware: Hardware = USUAL,
    trust_remote_code: bool = False,
    on_progress: OnProgress = unseen,
) -> None:
    """Have the actors of a Ray cluster judge what is left of the run.

    Args:
        workers: actors, each with a judge; by default one for each GPU, or one.
        hardware: what each takes of its machine; where it is more than one GPU, these are of one machine.
        trust_remote_code: see `judge_of`.
    Raises:
        BadInput: Ray is not installed, or the cluster has too little for so many workers.
        EngineLost: actors die again and again.
    """
    with needing("ray"):
        import ray
        import ray.data
    places = Places(run.folder)
    left = {shard.id: shard.rows for shard in run.plan.shards if not places.done(shard)}
    judged, total = run.plan.rows - sum(left.values()), run.plan.rows
    on_progress(judged, total)
    if not left:
        return
    with _told_to(run.folder / LOGS / "ray.log") as told:
        began = not ray.is_initialized()
        if began:
            _init(ray, told)
        try:
            machines = [one["Resources"] for one in ray.nodes() if one["Alive"]]  # type: ignore[no-untyped-call]
            several = hardware.tensor_parallel if hardware.tensor_parallel > 1 else None
            asked, each = _fitting(machines, workers, several)
            names = ray.data.from_items([{"shard": name} for name in left], override_num_blocks=len(left))
            done = names.map_batches(
                _Worker,
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(asked, len(left))),
                num_cpus=1,
                num_gpus=each,
                fn_constructor_kwargs={
                    "folder": str(run.folder.resolve()),
                    "session": session,
                    "hardware": vars(hardware),
                    "trust": trust_remote_code,
                },
            )
            for row in done.iter_rows():
                if row["error"]:
                    raise BadInput(row["error"])
                judged += left[row["shard"]]
                on_progress(judged, total)
        except PerseError:
            raise
        except Exception as error:  # noqa: BLE001  # Ray's own, which wrap what happened in an actor
            raise EngineLost(
                f"Ray gave up ({type(error).__name__}: {first_line(error)}); what was finished is kept, and the same command continues"
            ) from None
        finally:
            if began:
                ray.shutdown()


class _Worker:
    """The actor: a judge, loaded once."""

    def __init__(self, folder: str, session: str, hardware: Mapping[str, Any], trust: bool) -> None:
        from perse.batch.sharded.asking import judge_of
        from perse.batch.sharded.claims import Claims, Holder
        from perse.batch.sharded.starting import read

        self._error = ""
        self._session = session
        try:
            self._run = read(Path(folder))
            self._asker, _ = judge_of(self._run, hardware=Hardware(**hardware), trust_remote_code=trust)
        except PerseError as error:
            self._error = str(error)  # another start would not help
            return
        self._shards = {shard.id: shard for shard in self._run.plan.shards}
        self._places = Places(self._run.folder)
        holder = Holder.me(f"ray-{os.getpid()}")
        self._claims = Claims(self._run.folder / "claims", holder)
        self._claims.begin()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        from perse.batch.sharded.working import Telemetry, judge_claimed

        names = [str(name) for name in batch["shard"]]
        if self._error:
            return {"shard": names, "error": [self._error] * len(names)}
        errors = []
        for name in names:
            shard = self._shards[name]
            while not self._places.done(shard):
                if self._claims.take(name):
                    try:
                        with Telemetry(self._run.folder, self._claims.holder) as telemetry:
                            judge_claimed(
                                self._places, self._run.plan, shard, self._asker, self._claims, telemetry, session=self._session
                            )
                    except EngineLost as error:
                        print(f"perse: {error}", file=sys.stderr, flush=True)  # noqa: T201  # into Ray's log
                        os._exit(1)  # Ray starts another
                    except PerseError as error:
                        return {"shard": names, "error": [str(error)] * len(names)}
                else:
                    time.sleep(WAIT)
            errors.append("")
        return {"shard": names, "error": errors}


@contextmanager
def _told_to(log: Path) -> Iterator[IO[str]]:
    """What Ray prints of its own machinery goes to a file: our stdout is for answers, our stderr for what a person does next."""
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        told = log.open("a", encoding="utf-8")
    of_data = logging.getLogger("ray.data")
    usual, apart = of_data.handlers, logging.StreamHandler(told)
    apart.setLevel(logging.WARNING)
    of_data.handlers = [*(one for one in usual if not isinstance(one, logging.StreamHandler)), apart]
    with told, redirect_stdout(told):
        try:
            yield told
        finally:
            of_data.handlers = usual


def _init(ray: Any, told: IO[str]) -> None:
    """Start Ray on this machine, or join the cluster that RAY_ADDRESS names.

    Raises:
        BadInput: it cannot be reached, or used.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # of its C++ part, whose lines concern its own developers
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    address = os.environ.get("RAY_ADDRESS")
    if address:
        _reach(address)
    try:
        with _own_stderr(told):
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                include_dashboard=False if not address else None,
            )
    except Exception as error:  # noqa: BLE001  # whatever keeps Ray from its start
        where = f"the cluster that RAY_ADDRESS names ({redact(address)})" if address else "Ray on this machine"
        raise BadInput(f"{where} cannot be used ({type(error).__name__}: {first_line(error)})") from None


def _reach(address: str) -> None:
    """Look whether anybody answers, since Ray itself waits a quarter of an hour for a cluster that is not there.

    Raises:
        BadInput: nobody does.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):  # "auto", "local"
        return
    try:
        socket.create_connection((host, int(port)), timeout=REACHED).close()
    except OSError as error:
        raise BadInput(
            f"the cluster that RAY_ADDRESS names ({redact(address)}) cannot be reached ({error.strerror or error}); start it, or unset RAY_ADDRESS "
            "to use this machine alone"
        ) from None


@contextmanager
def _own_stderr(told: IO[str]) -> Iterator[None]:
    """What the C++ part of Ray writes to stderr goes to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(told.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _fitting(machines: Sequence[Mapping[str, float]], workers: int | None, gpus: float | None) -> tuple[int, float]:
    """How many workers there are, and how many GPUs each has, all of one machine.

    Raises:
        BadInput: the cluster has too little; what it has is named.
    """
    cards, processors = (sum(one.get(name, 0.0) for one in machines) for name in ("GPU", "CPU"))
    each = (1.0 if cards else 0.0) if gpus is None else gpus
    room = sum(int(min(one.get("CPU", 0.0), one.get("GPU", 0.0) / each if each else math.inf)) for one in machines)
    wanted = workers or (max(1, room) if each else 1)
    if wanted > room:
        raise BadInput(
            f"{wanted} workers need a CPU and {each:g} GPUs each; the Ray cluster has {processors:g} CPUs and {cards:g} GPUs on "
            f"{len(machines)} machines, room for {room}: give fewer --workers, or add machines"
        )
    return wanted, each
