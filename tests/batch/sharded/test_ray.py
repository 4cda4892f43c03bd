"""Shards on a real Ray: lost actors and a deadly row change nothing of what is there in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import pointwise_examples
from scripted_package import install

from perse.batch.sharded.on_ray import _fitting
from perse.errors import BadInput


@pytest.mark.parametrize(
    ("cluster", "workers", "gpus", "found"),
    [
        ({"CPU": 16.0, "GPU": 8.0}, None, None, (8, 1.0)),
        ({"CPU": 16.0, "GPU": 8.0}, None, 2, (4, 2)),
        ({"CPU": 4.0}, None, None, (1, 0.0)),
        ({"CPU": 4.0}, 4, None, (4, 0.0)),
    ],
)
def test_there_are_as_many_workers_as_asked_or_as_gpus(
    cluster: dict[str, float], workers: int | None, gpus: float | None, found: tuple[int, float]
) -> None:
    assert _fitting(cluster, workers, gpus) == found


def test_a_cluster_that_has_too_little_is_named_and_not_waited_for() -> None:
    with pytest.raises(BadInput, match="8 workers need 8 CPUs and 8 GPUs; the Ray cluster has 4 CPUs and 1 GPUs: give fewer"):
        _fitting({"CPU": 4.0, "GPU": 1.0}, 8, None)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_lost_actor_and_a_deadly_row_leave_the_answers_that_workers_here_give(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    env = install(tmp_path / "package")
    some = pointwise_examples(12, 8)
    changed = [one.model_copy(update={"query": f"{one.query} DEADLY"}) if n == 50 else one for n, one in enumerate(some)]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in changed))
    words = ["--examples", source, "--judge", "scripted:a", "--temperature", "0", "--shard-rows", "8", "--workers", "2"]

    def begun(driver: str, *, slow: bool) -> subprocess.Popen[str]:
        asked = [sys.executable, "-m", "perse", "score", *map(str, words), "--out", str(tmp_path / driver), "--driver", driver]
        delay = {"SCRIPTED_DELAY": "0.2"} if slow else {}
        return subprocess.Popen(asked, env={**env, **delay}, stderr=subprocess.PIPE, text=True)

    process = begun("ray", slow=True)
    end = time.monotonic() + 120
    while not (claims := list((tmp_path / "ray" / "claims").glob("[!.]*"))) and time.monotonic() < end:
        time.sleep(0.2)
    os.kill(json.loads(claims[0].read_text())["pid"], signal.SIGKILL)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 0 and "(95 ok, 1 engine_error)" in said, said
    here = begun("local", slow=False)
    assert here.wait(timeout=240) == 0
    for driver in ("ray", "local"):
        merged = [
            sys.executable,
            "-m",
            "perse",
            "score",
            "merge",
            str(tmp_path / driver),
            "--out",
            str(tmp_path / f"{driver}.jsonl"),
        ]
        subprocess.run(merged, env=env, check=True, capture_output=True)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
