"""Two devices, each way of holding the model: the weights that one process trains, whole when saved, and gone on with elsewhere.

What runs is what runs on GPUs: `accelerate launch` with our launch files, the Trainer, DDP, FSDP2 and DeepSpeed, our rows, loss and
checkpoints. Only the devices are CPU processes (tests/training/cpu_devices.py), so that kernels and NCCL stay unproven.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from builders import pointwise_examples
from places import ROOT
from safetensors.torch import load_file
from tolerances import TRAINED, TRAINED_WEIGHTS

from perse.records import example_lines
from perse.training.saving.checkpoints import ASIDE

pytestmark = [pytest.mark.integration, pytest.mark.numeric]
LONG = partial(pytest.param, marks=pytest.mark.long)
"""A further way of dividing what another has shown already: `make long`."""

WAYS = [
    *(LONG("full", way) for way in ("zero3", "ddp", "zero2", "zero3_offload", "fsdp2")),
    ("lora", "fsdp2"),
    LONG("lora", "zero3"),  # test_two_ranks.py has DDP
]
STEPS = 5  # of 9 rows, two in a step: the last one is half empty


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(9, 2, k=1))), encoding="utf-8")
    return path


def settings(model: Path, data: Path, out: Path, *more: str) -> list[str]:
    return [
        f"model.path={model}",
        "model.dtype=float32",
        "model.context=2048",
        f"data.path={data}",
        "lora.rank=4",
        "train.batch_size=2",
        "train.max_shared_examples=2",
        "train.row_tokens=4096",
        "train.rows_per_step=2",
        "train.save_every=2",
        "train.keep_checkpoints=3",
        "train.log_every=1",
        "train.report_to=[]",
        "train.learning_rate=0.01",
        "train.max_grad_norm=100000",
        f"output={out}",
        *more,
    ]


def command(way: str | None, devices: int, given: list[str], *, script: str | None = None) -> list[str]:
    """Of one plain process, or of `accelerate launch` with a launch file of ours."""
    if way is None:
        return [sys.executable, "train.py", "--config", "embedded_lora", *given]
    script = script or ("train.py" if way == "ddp" else "tests/training/cpu_devices.py")
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", f"configs/accelerate/{way}.yaml"]
    return [*launch, "--num_processes", str(devices), script, "--config", "embedded_lora", *given]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def trained(way: str | None, devices: int, given: list[str]) -> str:
    done = subprocess.run(
        command(way, devices, given), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr[-20000:]
    return " ".join(done.stderr.split())


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def judgings(run: Path) -> list[dict[str, float]]:
    return [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "eval_seconds" in line]


def best(run: Path) -> dict[str, Any]:
    """The last line: which step's weights are kept, and why."""
    found = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    return {name: found[name] for name in ("step", "best")}


def apart(one: Path, other: Path) -> float:
    """The largest relative difference of a tensor of two runs' models."""
    weights, others = (load_file(run / "merged" / "model.safetensors") for run in (one, other))
    assert set(weights) == set(others)
    return max(float((others[name] - weight).norm() / weight.norm()) for name, weight in weights.items())


MORE = {
    "full": ["lora=null", "train.weight_decay=0.1"],
    "lora": ["lora.plus=4", "lora.rslora=true", "lora.modules_to_save=[lm_head]"],
}


@pytest.fixture(scope="module")
def alone(tiny_model_folder: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What one process trains, without a launcher."""
    runs = {kind: tmp_path_factory.mktemp(f"alone-{kind}") / "run" for kind in MORE}
    for kind, run in runs.items():
        trained(None, 1, settings(tiny_model_folder, data, run, *MORE[kind]))
    return runs


Made = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def together(tiny_model_folder: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What two devices train, of a kind and in a way: each once, whoever asks."""

    @cache
    def made(kind: str, way: str) -> Path:
        run = tmp_path_factory.mktemp(f"together-{kind}-{way}") / "run"
        trained(way, 2, settings(tiny_model_folder, data, run, "train.world_size=2", *MORE[kind]))
        return run

    return made


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_two_devices_train_what_one_process_does_and_either_goes_on_from_the_other(
    kind: str, way: str, alone: dict[str, Path], together: Made, tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    two = together(kind, way)
    manifest = json.loads((two / "manifest.json").read_text())
    held = {"world_size": 2, "sharding": "none" if way == "ddp" else way.removesuffix("_offload")}
    known = {"model_is_folder": True, "choosers": [], "longest_profile": 1, "id": manifest["context"]["id"]}
    assert manifest["context"] == held | known
    assert manifest["run"] == json.loads((alone[kind] / "manifest.json").read_text())["run"], "the same examples in every step"
    assert losses(two) == pytest.approx(losses(alone[kind]), rel=TRAINED, abs=0) and len(losses(two)) == STEPS
    assert apart(alone[kind], two) < TRAINED_WEIGHTS
    for checkpoint in (two / "checkpoints").glob("checkpoint-*"):
        [file] = checkpoint.glob("*.safetensors")
        assert all(weight.numel() for weight in load_file(file).values())

    # Killed after the second checkpoint, as it were; then on as many devices (LoRA: the test of a kill has it), and on one.
    before = (two / "merged" / "model.safetensors").read_bytes()
    for devices in (2, 1) if kind == "full" else (1,):
        again = tmp_path / f"again-{devices}"
        shutil.copytree(two, again)
        for gone in ("merged", "adapter", f"checkpoints/checkpoint-{STEPS}"):
            shutil.rmtree(again / gone, ignore_errors=True)
        said = trained(way, devices, settings(tiny_model_folder, data, again, *MORE[kind]))
        assert "going on from" in said and said.count("training: 5 of 5") == 1 and "training: 4 of 5" not in said
        assert losses(again) == pytest.approx(losses(two), rel=0 if devices == 2 else TRAINED, abs=0)
        if devices == 2:
            assert (again / "merged" / "model.safetensors").read_bytes() == before, "bit for bit"
        # AdamW divides by sqrt(v), so where that is tiny the rounding of another order of sums is not.
        assert apart(two, again) < TRAINED_WEIGHTS


@pytest.mark.long
def test_what_one_process_wrote_is_gone_on_with_by_two(
    alone: dict[str, Path], tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    shutil.copytree(alone["full"], again)
    for gone in ("merged", "adapter", f"checkpoints/checkpoint-{STEPS}"):
        shutil.rmtree(again / gone, ignore_errors=True)
    given = settings(tiny_model_folder, data, again, *MORE["full"])
    refused = subprocess.run(
        command("fsdp2", 2, given), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=900
    )
    assert refused.returncode != 0
    assert "was written with sharding none, expected fsdp2" in " ".join(refused.stderr.split())
    trained("ddp", 2, given)
    assert losses(again) == pytest.approx(losses(alone["full"]), rel=TRAINED, abs=0)
    assert apart(alone["full"], again) < TRAINED_WEIGHTS


@pytest.mark.parametrize("way", [LONG(None), LONG("zero3"), "fsdp2"])
def test_killed_while_a_checkpoint_is_written_it_goes_on_from_the_one_before(
    way: str | None, alone: dict[str, Path], together: Made, tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    whole, killed = together("lora", way) if way else alone["lora"], tmp_path / "killed"
    given = settings(tiny_model_folder, data, killed, *MORE["lora"])
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW.replace("TESTS", str(Path(__file__).parent)), encoding="utf-8")
    begun = command(way, 2, given, script=str(slow)) if way else [sys.executable, str(slow), *command(None, 1, given)[2:]]
    process = subprocess.Popen(begun, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True)
    torn = killed / "checkpoints" / ASIDE / "checkpoint-4"
    end = time.monotonic() + 900
    while not (torn / "half-listed").exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    kill_all(process)
    assert [path.name for path in (killed / "checkpoints").glob("checkpoint-*")] == ["checkpoint-2"]
    assert list(torn.rglob("*.safetensors")), "killed too early to test anything"
    said = trained(way, 2, given)
    assert "checkpoint-2" in said.split("going on from")[1][:300]
    assert losses(killed) == losses(whole)
    files = [(run / "merged" / "model.safetensors").read_bytes() for run in (whole, killed)]
    assert files[0] == files[1]


@pytest.mark.parametrize(("kind", "way"), [("full", "fsdp2"), LONG("lora", "zero3")])
def test_readers_are_judged_where_weights_are_divided_as_one_process_judges_them(
    kind: str, way: str, answering_model: Path, data: Path, tmp_path: Path
) -> None:
    """A label is read from as many forward passes on every device, so Kendall decides there, too."""
    others = tmp_path / "others.jsonl"  # behind the nine readers who are trained on
    others.write_text("".join(example_lines(pointwise_examples(16, 2, k=1)[18:])), encoding="utf-8")
    more = (
        "data.question=pointwise_score",
        f"watch.data={others}",
        "watch.every=2",
        "watch.examples=14",
        "train.learning_rate=0.0001",
        *MORE[kind],
    )
    one, two = tmp_path / "one", tmp_path / "two"
    trained(None, 1, settings(answering_model, data, one, *more))
    said = trained(way, 2, settings(answering_model, data, two, *more))
    expected, found = judgings(one), judgings(two)
    assert "the loss alone" not in said and len(found) == len(expected) == 4  # before the first step, after 2, 4 and 5
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["eval_asked"] == 14 and ours["eval_parse_rate"] == 1 and "eval_kendall_imputed" in ours
        for name in ("eval_loss", "eval_kendall_imputed", "eval_accuracy", "eval_within_one"):
            assert ours[name] == pytest.approx(theirs[name], rel=TRAINED, abs=1e-6), name
    assert best(one) == best(two) and best(two)["best"] == "kendall_imputed"
    assert apart(one, two) < TRAINED_WEIGHTS


@pytest.mark.parametrize("way", [LONG("zero2"), LONG("zero3"), LONG("fsdp2")])
def test_the_order_of_scores_is_learned_alike_where_the_model_is_divided(
    way: str, tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    """As many forward passes on every device, and pairs counted over both, in the half empty last step too."""
    more = ("data.question=pointwise_score", "train.rank_weight=2", "train.ordinal_smoothing=0.5", *MORE["full"])
    one, two = tmp_path / "one", tmp_path / "two"
    trained(None, 1, settings(tiny_model_folder, data, one, *more))
    trained(way, 2, settings(tiny_model_folder, data, two, *more))
    logged = [
        [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "loss" in line] for run in (one, two)
    ]
    assert len(logged[0]) == STEPS and sum(line["rank_pairs"] for line in logged[0]) == 9
    for ours, theirs in zip(*logged, strict=True):
        for name in ("loss", "answer_loss", "rank_loss", "rank_pairs", "rank_ordered"):
            assert theirs[name] == pytest.approx(ours[name], rel=TRAINED), name
    assert apart(one, two) < TRAINED_WEIGHTS


@pytest.mark.parametrize("way", [LONG("zero2"), "zero3"])
def test_deepspeed_computes_in_bfloat16_and_saves_what_it_learned_in_float32(
    way: str, tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    """And stops at a gradient that is no number, which it would leave out and go on."""
    given = settings(tiny_model_folder, data, tmp_path / "run", "lora=null", "train.precision=bf16", "train.learning_rate=1e-5")
    trained(way, 2, given)
    begun = load_file(tiny_model_folder / "model.safetensors")
    weights = load_file(tmp_path / "run" / "merged" / "model.safetensors")
    moved = max(float((weights[name] - weight).norm() / weight.norm()) for name, weight in begun.items())
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert 0 < moved < 1e-2, "steps too small for bfloat16 are kept"
    script = tmp_path / "spoilt.py"
    script.write_text(SPOILT.replace("TESTS", str(Path(__file__).parent)), encoding="utf-8")
    spoilt = settings(tiny_model_folder, data, tmp_path / "spoilt", "lora=null", "train.save_every=1")
    done = subprocess.run(
        command(way, 2, spoilt, script=str(script)),
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and "is not finite in step 3; look at these examples" in said, done.stderr[-5000:]
    assert not (tmp_path / "spoilt" / "merged").exists()


# From the third step on every gradient is no number.
SPOILT = """
import sys
sys.path.insert(0, "TESTS")
import cpu_devices
from perse.training import trainer

loss = trainer.answer_loss
calls = [0]

def spoilt(outputs, labels, num_items_in_batch=None):
    calls[0] += 1
    found = loss(outputs, labels, num_items_in_batch)
    if calls[0] == 3:
        found.register_hook(lambda gradient: gradient * float("nan"))
    return found

trainer.answer_loss = spoilt

if __name__ == "__main__":
    from perse.commands.train import main

    main()
"""


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """A launcher's workers are in sessions of their own."""
    everyone = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for each in everyone:
        each.kill()
    psutil.wait_procs(everyone, timeout=900)
    process.wait()


# Everything of the second checkpoint is written but its list, which takes as long as the test needs to kill.
SLOW = """
import sys, time
import os
if "WORLD_SIZE" in os.environ:
    sys.path.insert(0, "TESTS")
    import cpu_devices
from perse.training.watch import trainer as watched

seal = watched.seal

def slowly(written, into, **more):
    if written.name == "checkpoint-4":
        (written / "half-listed").touch()
        time.sleep(300)
    return seal(written, into, **more)

watched.seal = slowly

if __name__ == "__main__":
    from perse.commands.train import main

    main()
"""
