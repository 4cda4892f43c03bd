"""Shards on a real Ray: lost actors and a deadly row change nothing of what is there in the end."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml
from builders import pointwise_examples
from command_line import perse
from places import ROOT
from scripted_package import install

from perse.batch.sharded.on_ray import _fitting
from perse.errors import BadInput


@pytest.mark.parametrize(
    ("machines", "workers", "gpus", "found"),
    [
        ([{"CPU": 16.0, "GPU": 8.0}], None, None, (8, 1.0)),
        ([{"CPU": 8.0, "GPU": 4.0}, {"CPU": 8.0, "GPU": 4.0}, {"CPU": 4.0}], None, 2, (4, 2)),
        ([{"CPU": 4.0}], None, None, (1, 0.0)),
        ([{"CPU": 4.0}], 4, None, (4, 0.0)),
        ([{}, {"CPU": 2.0}], 2, None, (2, 0.0)),
    ],
)
def test_there_are_as_many_workers_as_asked_or_as_gpus(
    machines: list[dict[str, float]], workers: int | None, gpus: float | None, found: tuple[int, float]
) -> None:
    assert _fitting(machines, workers, gpus) == found


@pytest.mark.parametrize(
    ("machines", "workers", "gpus", "sentence"),
    [
        ([{"CPU": 4.0, "GPU": 1.0}], 8, None, "8 workers need a CPU and 1 GPUs each; the Ray cluster has 4 CPUs and 1 GPUs on 1 machines, room for 1: give fewer"),
        ([{"CPU": 4.0}], None, 1, "1 workers need a CPU and 1 GPUs each; the Ray cluster has 4 CPUs and 0 GPUs"),
        ([{"CPU": 8.0, "GPU": 1.0}] * 2, 1, 2, "2 GPUs each; the Ray cluster has 16 CPUs and 2 GPUs on 2 machines, room for 0"),
    ],
    ids=["too_many", "no_gpus", "gpus_of_several_machines"],
)  # fmt: skip
def test_a_cluster_that_has_too_little_is_named_and_not_waited_for(
    machines: list[dict[str, float]], workers: int | None, gpus: float | None, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        _fitting(machines, workers, gpus)


# With a real Ray on this machine.


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pytest.importorskip("ray")
    some = pointwise_examples(12, 8)
    changed = [one.model_copy(update={"query": f"{one.query} DEADLY"}) if n == 50 else one for n, one in enumerate(some)]
    for name, examples in (("in", some), ("deadly", changed)):
        (tmp_path / f"{name}.jsonl").write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in examples))
    return tmp_path


def begun(place: Path, driver: str, *, source: str = "in", delay: str = "", **more: str) -> subprocess.Popen[str]:
    words = f"--examples {place}/{source}.jsonl --judge scripted:a --temperature 0 --shard-rows 4 --workers 2 --out {place}/{driver}"
    asked = [sys.executable, "-m", "perse", "score", *words.split(), "--driver", driver]
    env = {**install(place / "package"), **({"SCRIPTED_DELAY": delay} if delay else {}), **more}
    return subprocess.Popen(asked, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said_by(process: subprocess.Popen[str]) -> str:
    """What it printed until its end, on one line."""
    return " ".join(process.communicate(timeout=900)[0].split())


def merged(place: Path, driver: str) -> bytes:
    out = place / f"{driver}.jsonl"
    asked = [sys.executable, "-m", "perse", "score", "merge", str(place / driver), "--out", str(out)]
    subprocess.run(asked, env=install(place / "package"), check=True, capture_output=True)
    return out.read_bytes()


def actor_at_work(place: Path, process: subprocess.Popen[str]) -> int:
    """An actor of the process that is at a shard."""
    end = time.monotonic() + 900
    while time.monotonic() < end:
        own = {one.pid for one in psutil.Process(process.pid).children(recursive=True)}
        for path in (place / "ray" / "claims").glob("[!.]*"):
            with suppress(FileNotFoundError):
                if (holder := json.loads(path.read_text())["pid"]) in own:
                    return int(holder)
        time.sleep(0.1)
    raise AssertionError("no actor took a shard")


def judged(place: Path) -> list[str]:
    """The shards that were finished, by telemetry: one that was finished twice stands there twice."""
    lines = [line for path in (place / "ray" / "telemetry").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line)["shard"] for line in lines]


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.cluster
@pytest.mark.slow
def test_a_lost_actor_and_a_deadly_row_leave_the_answers_that_workers_here_give(place: Path) -> None:
    process = begun(place, "ray", source="deadly", delay="0.05")
    os.kill(actor_at_work(place, process), signal.SIGKILL)
    said = said_by(process)
    assert process.returncode == 0 and "(95 ok, 1 engine_error)" in said, said
    words = "note: asked in words: no distributions, because its engine gives none"
    assert said.startswith(f"{words} judging: ") and "raylet" not in said, "what Ray says of its machinery is kept apart"
    here = begun(place, "local", source="deadly")
    assert "(95 ok, 1 engine_error)" in said_by(here)
    assert merged(place, "ray") == merged(place, "local")


@pytest.mark.cluster
@pytest.mark.slow
def test_a_run_that_loses_driver_then_raylet_then_ends_by_ctrl_c_goes_on_each_time_and_leaves_no_process(place: Path) -> None:
    left: list[psutil.Process] = []
    for number, lost in enumerate(("driver", "raylet", "interrupt"), start=1):
        process = begun(place, "ray", delay="1")
        actor_at_work(place, process)
        own = psutil.Process(process.pid)
        family = own.children(recursive=True)
        killed = next(one for one in family if one.name() == "raylet") if lost == "raylet" else own
        asked = time.monotonic()
        killed.send_signal(signal.SIGINT if lost == "interrupt" else signal.SIGKILL)
        said = said_by(process) if lost != "driver" else ""  # Ray's processes keep its stdout a while
        assert "Traceback" not in said, said
        # A driver without its raylet is ended by Ray (1), unless the loss of an actor is seen first (2).
        assert process.wait() in {"driver": {-9}, "raylet": {1, 2}, "interrupt": {130}}[lost], said
        assert "ERROR" not in said, "what Ray says of its machinery is kept apart"
        assert time.monotonic() - asked < 60, f"{lost}: it ended after {time.monotonic() - asked:.0f} s"
        assert len(judged(place)) - len(set(judged(place))) <= 2 * number, f"{lost}: more than one shard of each worker again"
        left += family
    process = begun(place, "ray")
    said = said_by(process)
    assert process.returncode == 0 and "(96 ok)" in said, said
    assert set(judged(place)) == {path.stem for path in (place / "ray" / "shards").rglob("*.parquet")}
    end = time.monotonic() + 900  # Ray's own agents look for their raylet once a minute
    while alive := [one for one in left if not is_gone(one)]:
        assert time.monotonic() < end, f"processes are left of it: {alive}"
        time.sleep(0.5)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_told_within_seconds(place: Path) -> None:
    asked = time.monotonic()
    process = begun(place, "ray", RAY_ADDRESS="127.0.0.1:1")
    said = said_by(process)
    assert process.returncode == 2 and "the cluster that RAY_ADDRESS names (127.0.0.1:1) cannot be reached" in said
    assert time.monotonic() - asked < 30


def test_the_manifest_for_kuberay_has_the_fields_of_its_kind_and_a_command_that_perse_reads() -> None:
    """By hand, field by field, since the schema of KubeRay is in no package: RayJob of ray.io/v1."""
    job, claim = yaml.safe_load_all((ROOT / "deploy" / "score-rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"], claim["kind"]) == ("ray.io/v1", "RayJob", "PersistentVolumeClaim")
    spec = job["spec"]
    assert set(spec) == {
        "entrypoint", "submissionMode", "backoffLimit", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "rayClusterSpec"
    }  # fmt: skip
    cluster = spec["rayClusterSpec"]
    assert set(cluster) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        assert set(group) <= {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        [container] = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert container["image"] == "perse:score"
    assert job["metadata"]["namespace"] == claim["metadata"]["namespace"] and claim["spec"]["accessModes"] == ["ReadWriteMany"]
    pinned = re.search(r"^ray==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned and cluster["rayVersion"] == pinned[1]
    words = shlex.split(spec["entrypoint"])
    told = perse(*words[1:])
    assert (
        words[0] == "perse" and told.returncode == 2 and "/runs/examples.parquet: no such file" in " ".join(told.stderr.split())
    )
    gpus = sum(int(group["template"]["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", 0)) * group.get("replicas", 1) for group in groups)  # fmt: skip
    assert int(words[words.index("--workers") + 1]) == gpus
