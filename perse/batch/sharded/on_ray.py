"""Workers of a Ray cluster: Ray Data hands out the names of shards, and an actor with a judge turns each into a file of answers.

Ray starts lost actors again, elsewhere if a machine is gone, and gives them what they had; files say what is done, so nothing that was finished is
judged again. On a laptop a small Ray is started and ended with the run; `RAY_ADDRESS` names a cluster, whose machines see the run's folder under
the same path. Only names and counts go through Ray, never texts.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import Run
from perse.bounded import first_line
from perse.engines.kind import USUAL, Hardware
from perse.errors import BadInput, EngineLost, PerseError
from perse.installing import needing
from perse.progress import OnProgress, unseen

RETRIES = 40
"""Times that Ray gives a shard to an actor again; one deadly row among 256 takes up to 18."""

WAIT = 1.0
"""Seconds between looks at a shard that another worker holds."""


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
    places = Places(run.folder)
    left = {shard.id: shard.rows for shard in run.plan.shards if not places.done(shard)}
    judged, total = run.plan.rows - sum(left.values()), run.plan.rows
    on_progress(judged, total)
    if not left:
        return
    began = not ray.is_initialized()
    if began:
        _init(ray)
    try:
        asked, each = _fitting(ray.cluster_resources(), workers, _gpus(hardware))  # type: ignore[no-untyped-call]
        names = ray.data.from_items([{"shard": name} for name in left], override_num_blocks=len(left))
        done = names.map_batches(
            _Worker,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(asked, len(left))),
            num_cpus=1,
            num_gpus=each,
            max_restarts=-1,
            max_task_retries=RETRIES,
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
                        with Telemetry(self._run.folder, self._claims.holder.worker) as telemetry:
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


def _gpus(hardware: Hardware) -> int | None:
    """Of each actor; None for one where the cluster has some, so that it runs on one without, too."""
    return hardware.tensor_parallel if hardware.tensor_parallel > 1 else None


def _init(ray: Any) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # of its C++ part, whose lines concern its own developers
    address = os.environ.get("RAY_ADDRESS")
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False if not address else None,
        )
    except Exception as error:  # noqa: BLE001  # whatever keeps Ray from its start
        where = "the cluster that RAY_ADDRESS names" if address else "Ray on this machine"
        raise BadInput(f"{where} cannot be used ({type(error).__name__}: {first_line(error)})") from None
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False


def _fitting(cluster: Mapping[str, float], workers: int | None, gpus: float | None) -> tuple[int, float]:
    """How many workers there are, and how many GPUs each has.

    Raises:
        BadInput: the cluster has too little; what it has is named.
    """
    cards, processors = cluster.get("GPU", 0.0), cluster.get("CPU", 0.0)
    each = (1.0 if cards else 0.0) if gpus is None else gpus
    wanted = workers or (max(1, int(cards / each)) if each else 1)
    if wanted > processors or wanted * each > cards:
        raise BadInput(
            f"{wanted} workers need {wanted} CPUs and {wanted * each:g} GPUs; the Ray cluster has {processors:g} CPUs and {cards:g} GPUs: "
            "give fewer --workers, or add machines"
        )
    return wanted, each
