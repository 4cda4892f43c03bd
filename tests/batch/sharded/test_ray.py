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
from pathlib import Path

import pytest
import yaml
from builders import pointwise_examples
from command_line import perse
from places import ROOT
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
    words = [
        "--examples",
        place / f"{source}.jsonl",
        "--judge",
        "scripted:a",
        "--temperature",
        "0",
        "--shard-rows",
        "8",
        "--workers",
        "2",
    ]
    asked = [sys.executable, "-m", "perse", "score", *map(str, words), "--out", str(place / driver), "--driver", driver]
    env = {**install(place / "package"), **({"SCRIPTED_DELAY": delay} if delay else {}), **more}
    return subprocess.Popen(asked, env=env, stderr=subprocess.PIPE, text=True)


def merged(place: Path, driver: str) -> bytes:
    out = place / f"{driver}.jsonl"
    asked = [sys.executable, "-m", "perse", "score", "merge", str(place / driver), "--out", str(out)]
    subprocess.run(asked, env=install(place / "package"), check=True, capture_output=True)
    return out.read_bytes()


def claimed(place: Path) -> Path:
    """A shard that an actor is at."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if found := sorted((place / "ray" / "claims").glob("[!.]*")):
            return found[0]
        time.sleep(0.1)
    raise AssertionError("no actor took a shard")


def judged_again(place: Path) -> int:
    """Shards that were finished more than once."""
    told = [
        json.loads(line)["shard"]
        for path in (place / "ray" / "telemetry").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return len(told) - len(set(told))


def below(parent: int) -> dict[int, str]:
    """All processes that a process began, and theirs, with their command lines."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [
        (int(one[0]), int(one[1]), one[2]) for one in (line.split(None, 2) for line in listed.splitlines()) if len(one) == 3
    ]
    found, more = {}, {parent}
    while more:
        of_these = {pid: args for pid, above, args in rows if above in more and pid not in found}
        found |= of_these
        more = set(of_these)
    return found


@pytest.mark.cluster
@pytest.mark.slow
def test_a_lost_actor_and_a_deadly_row_leave_the_answers_that_workers_here_give(place: Path) -> None:
    process = begun(place, "ray", source="deadly", delay="0.2")
    os.kill(json.loads(claimed(place).read_text())["pid"], signal.SIGKILL)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 0 and "(95 ok, 1 engine_error)" in said, said
    here = begun(place, "local", source="deadly")
    assert here.wait(timeout=240) == 0
    assert merged(place, "ray") == merged(place, "local")


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("who", ["driver", "raylet", "interrupt"])
def test_a_run_whose_ray_is_lost_goes_on_with_the_same_command_and_little_is_judged_again(place: Path, who: str) -> None:
    process = begun(place, "ray", delay="0.2")
    claimed(place)
    time.sleep(2)
    family = below(process.pid)
    if who == "raylet":
        os.kill(next(pid for pid, args in family.items() if "raylet/raylet" in args.split()[0]), signal.SIGKILL)
    elif who == "driver":
        process.kill()
    else:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0 and "Traceback" not in said, said
    end = time.monotonic() + 60
    while left := [pid for pid in family if Path(f"/proc/{pid}").exists() and "Z" not in _state(pid)]:
        assert time.monotonic() < end, f"processes are left of it: {[family[pid][:80] for pid in left]}"
        time.sleep(0.5)
    again = begun(place, "ray")
    _, said = again.communicate(timeout=240)
    assert again.returncode == 0 and "(96 ok)" in said, said
    assert judged_again(place) <= 2, "one shard of each worker"


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_that_is_not_there_or_lacks_gpus_is_told_within_seconds(place: Path) -> None:
    process = begun(place, "ray", RAY_ADDRESS="127.0.0.1:1")
    _, said = process.communicate(timeout=90)
    assert process.returncode == 2 and "the cluster that RAY_ADDRESS names cannot be used" in " ".join(said.split()), said


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


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
