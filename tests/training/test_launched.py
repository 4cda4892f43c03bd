"""What a launcher started is what was meant, or one sentence says what is not, before anything is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from places import ROOT
from torch.distributed.fsdp import MixedPrecisionPolicy
from typer.testing import CliRunner

from perse.commands.app import app
from perse.errors import BadInput
from perse.settings.training import Train, load_config, recipes
from perse.training.launched import Launched, check_launcher, join, launch_file, launched, sum_in_float32, told_in
from perse.training.trainer import training_arguments

CONFIGS = ROOT / "configs" / "accelerate"
KINDS = {"ddp": "none", "fsdp2": "fsdp2", "zero2": "zero2", "zero3": "zero3", "zero3_offload": "zero3"}


@pytest.mark.parametrize("name", KINDS)
def test_every_launch_file_says_how_the_model_is_held(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where the path of DeepSpeed's file leads from
    assert told_in(CONFIGS / f"{name}.yaml") == KINDS[name]


def test_every_launch_file_is_one_that_accelerate_takes_and_explains_itself() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    files = sorted(CONFIGS.glob("*.yaml"))
    assert [file.stem for file in files] == sorted(KINDS)
    for file in files:
        assert load_config_from_file(str(file)).num_processes == 8
        assert file.read_text().startswith("# ") and "accelerate launch --config_file" in file.read_text()
        assert yaml.safe_load(file.read_text()).get("mixed_precision", "no") == "no", "train.precision decides"


@pytest.mark.parametrize(
    ("precision", "asked", "said"),
    [
        ("as_loaded", {"ACCELERATE_MIXED_PRECISION": "bf16"}, "asks for mixed precision bf16.*or set train.precision=bf16"),
        (
            "as_loaded",
            {"ACCELERATE_MIXED_PRECISION": "fp16"},
            "asks for mixed precision fp16.*start without --mixed_precision$",
        ),
        ("bf16", {"ACCELERATE_MIXED_PRECISION": "fp16"}, "train.precision is bf16, which decides"),
        ("as_loaded", {"ACCELERATE_DYNAMO_BACKEND": "INDUCTOR"}, "asks for --dynamo_backend inductor.*start without it"),
    ],
)
def test_a_launcher_that_would_compute_otherwise_than_the_settings_say_is_refused(
    precision: str, asked: dict[str, str], said: str
) -> None:
    settings = Train(learning_rate=1e-4, precision=precision)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=said):
        check_launcher(settings, asked)
    check_launcher(settings, {"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "NO"})
    check_launcher(Train(learning_rate=1e-4, precision="bf16"), {"ACCELERATE_MIXED_PRECISION": "bf16"})


def test_the_environment_of_a_launcher_is_read() -> None:
    assert launched({}) == Launched(1, 0, "none")
    assert launched({"WORLD_SIZE": "16", "RANK": "3", "MASTER_ADDR": "node1"}) == Launched(16, 3, "none")
    assert launched({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}).sharding == "fsdp2"
    assert launched({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}).sharding == "zero3"
    file = str(ROOT / "configs" / "deepspeed" / "zero2.json")
    assert launched({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_CONFIG_FILE": file}).sharding == "zero2"
    assert [Launched(8, 0, kind).sharded_weights for kind in ("none", "zero1", "zero2", "zero3", "fsdp2")] == [0, 0, 0, 1, 1]


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="version 1 of FSDP, .*; expected fsdp_version: 2"):
        launched({"ACCELERATE_USE_FSDP": "true"})
    with pytest.raises(BadInput, match="cannot read nowhere.json: .*; give one of configs.deepspeed"):
        launched({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_CONFIG_FILE": "nowhere.json"})
    with pytest.raises(BadInput, match="WORLD_SIZE in the environment is 2, and MASTER_ADDR, .*accelerate launch train.py"):
        launched({"WORLD_SIZE": "2"})
    with pytest.raises(BadInput, match="RANK in the environment is '2', expected 0 to 1, for WORLD_SIZE is 2"):
        launched({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "node1"})
    with pytest.raises(BadInput, match="is no configuration of accelerate"):
        told_in(tmp_path / "nothing.yaml")
    with pytest.raises(
        BadInput, match="the launcher asks for fsdp2, and no GPU is found here, where it would be ignored in silence"
    ):
        join(Launched(1, 0, "fsdp2"), Train(learning_rate=0.1))


def test_rows_that_the_devices_cannot_divide_are_refused_with_the_numbers_that_would_do() -> None:
    settings = Train(learning_rate=0.1, rows_per_step=8)
    assert [settings.accumulation(devices) for devices in (1, 2, 4, 8)] == [8, 4, 2, 1]
    with pytest.raises(BadInput, match="rows_per_step is 8, which 3 devices cannot divide; set it to 6 or 9, or train on"):
        settings.accumulation(3)
    with pytest.raises(
        BadInput, match="16 devices cannot divide; set it to 16 and train.batch_size=2, for about as many examples"
    ):
        settings.accumulation(16)


EMBEDDED = ("embedded_lora", "embedded_best")
"""Recipes of a model that fits on any device, for one process."""


def test_adapters_are_trained_whole_on_each_device_and_all_weights_are_divided() -> None:
    said = {
        name: launch_file(load_config(name, ["data.path=x"])).rpartition("/")[2] for name in recipes() if name not in EMBEDDED
    }
    assert {name for name, file in said.items() if file == "fsdp2.yaml"} == {"llama2_7b_full", "llama2_13b_full"}
    assert set(said.values()) == {"fsdp2.yaml", "ddp.yaml"} and all((CONFIGS / file).exists() for file in said.values())
    coarse = load_config("llama2_7b_full", ["data.path=x", "train.optimizer=adafactor"])  # whose state is not divided
    assert launch_file(coarse).endswith("ddp.yaml")
    done = CliRunner().invoke(app, ["train", "--launch-file", "--config", "llama2_13b_lora", "data.path=x"])
    assert (done.exit_code, done.output) == (0, "configs/accelerate/ddp.yaml\n")
    alone = CliRunner().invoke(app, ["train", "--launch-file", "--config", "llama2_13b_lora"])
    assert (alone.exit_code, alone.output) == (0, done.output), "neither data nor output has a part in it"


def test_the_full_recipes_judge_where_a_checkpoint_is_written_anyway() -> None:
    for name in ("llama2_7b_full", "llama2_13b_full"):
        config = load_config(name, ["data.path=x"])
        assert config.watch is not None and config.watch.every is not None
        assert config.watch.every % config.train.save_every == 0 and config.train.steps % config.watch.every == 0, name


def test_the_reference_recipes_run_on_8_devices_and_on_fewer() -> None:
    for name in (name for name in recipes() if name not in EMBEDDED):
        config = load_config(name, ["data.path=x"])
        assert [config.train.accumulation(devices) for devices in (1, 2, 4, 8)], name


@pytest.mark.integration
def test_one_process_where_two_were_meant_is_refused_and_not_fallen_back_to(tmp_path: Path) -> None:
    """`accelerate launch --cpu --num_processes 2` starts one, and says nothing."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "train.py"]
    given = [
        "--config",
        "embedded_lora",
        "data.path=x",
        "model.path=smollm2-135m",
        "train.world_size=2",
        f"output={tmp_path / 'run'}",
    ]
    done = subprocess.run(
        [*command, *given], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "found 1 processes, expected train.world_size=2; start as many" in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


def test_gradients_that_fsdp2_divides_are_added_up_in_float32_and_divided_row_by_row(tmp_path: Path) -> None:
    """Held back to a step's last row they would stand whole on every device."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    plugin = SimpleNamespace(mixed_precision_policy=policy)
    trainer = SimpleNamespace(accelerator=SimpleNamespace(state=SimpleNamespace(fsdp_plugin=plugin)))
    sum_in_float32(trainer, Launched(2, 0, "none"))
    assert plugin.mixed_precision_policy is policy
    sum_in_float32(trainer, Launched(2, 0, "fsdp2"))
    assert plugin.mixed_precision_policy == MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    config = load_config("embedded_lora", ["data.path=x", "train.rows_per_step=8"])
    for sharding, each in (("fsdp2", {"sync_each_batch": True}), ("none", None)):
        arguments = training_arguments(
            config,
            tmp_path,
            steps=1,
            watching=None,
            begun=False,
            process=Launched(2, 0, sharding),  # type: ignore[arg-type]
        )
        assert arguments.accelerator_config.gradient_accumulation_kwargs == each
