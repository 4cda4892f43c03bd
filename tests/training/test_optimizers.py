"""`train.optimizer` and `train.scheduler`: what is asked for trains, resumes as if never stopped, and is planned to the byte."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import pointwise_examples
from transformers import Trainer, TrainingArguments, get_scheduler

from perse.errors import BadInput, RunMismatch
from perse.files.runlog import MANIFEST
from perse.records import example_lines
from perse.settings.training import Optimizer, Train, TrainConfig, load_config
from perse.training import optimizers
from perse.training.launched import ALONE
from perse.training.model.architecture import architecture, meta_model
from perse.training.optimizers import check_optimizer, optimizer_arguments
from perse.training.planning.memory import static_memory
from perse.training.ready import load_model
from perse.training.saving.checkpoints import step_of, whole_checkpoint
from perse.training.trainer import train, training_arguments

OTHERS: tuple[Optimizer, ...] = ("adamw_8bit", "adafactor")
FULL = ["lora=null", "model.dtype=float32"]
LORA = ["lora.rank=16"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 6))), encoding="utf-8")
    return path


def settings(base: Path, data: object, out: Path, *more: str) -> TrainConfig:
    if "8bit" in str(more):
        pytest.importorskip("bitsandbytes", reason="moments of 8 bits are bitsandbytes', of the extra `cluster`")
    given = [f"model.path={base}", f"data.path={data}", f"output={out}", "train.batch_size=2", "train.log_every=1"]
    return load_config("embedded_lora", [*given, "model.context=2048", "train.steps=6", *more])


def gone_back(run: Path, to: Path, *, step: int) -> Path:
    """A finished run as it was right after the checkpoint of `step`."""
    shutil.copytree(run, to)
    for later in (path for path in (to / "checkpoints").iterdir() if step_of(path) > step):
        shutil.rmtree(later)
    for made in ("merged", "adapter"):
        shutil.rmtree(to / made, ignore_errors=True)
    return to


def test_adamw_is_the_one_it_was() -> None:
    assert optimizer_arguments("adamw") == {}


@pytest.mark.slow
def test_settings_that_came_later_leave_runs_of_before_the_same(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    config = settings(tiny_model_folder, data, tmp_path / "run", "train.steps=2")
    kept = json.loads((train(config) / MANIFEST).read_text())["run"]["config"]
    assert not {"optimizer", "min_lr_rate", "power", "decay"} & set(kept["train"])
    with pytest.raises(RunMismatch, match="train.optimizer"):
        train(settings(tiny_model_folder, data, tmp_path / "run", "train.steps=2", "train.optimizer=adafactor"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        ["train.optimizer=adamw_8bit"],
        ["train.optimizer=adafactor"],
        ["lora.plus=8", "lora.rslora=true", "lora.modules_to_save=[lm_head]", "model.dtype=float32", "train.scheduler=wsd"],
    ],
    ids=["8 bits", "adafactor", "whole modules, LoRA+"],
)
def test_a_stopped_run_ends_with_the_weights_of_one_never_stopped(
    more: list[str], tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    given = [*LORA, "train.save_every=2", "train.keep_checkpoints=9", *more]
    whole = train(settings(tiny_model_folder, data, tmp_path / "whole", *given))
    stopped = gone_back(whole, tmp_path / "stopped", step=2)
    train(settings(tiny_model_folder, data, stopped, *given))
    assert step_of(whole_checkpoint(stopped / "checkpoints", facts={}) or Path()) == 6
    for name in ("adapter/adapter_model.safetensors", "merged/model.safetensors"):
        assert (whole / name).read_bytes() == (stopped / name).read_bytes()
    plain = train(settings(tiny_model_folder, data, tmp_path / "plain", *LORA))
    learned = [(run / "adapter" / "adapter_model.safetensors").read_bytes() for run in (plain, whole)]
    assert learned[0] != learned[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adamw", *OTHERS])
@pytest.mark.parametrize("more", [LORA, FULL], ids=["lora", "full"])
def test_what_an_optimizer_keeps_is_planned_to_the_byte(
    name: Optimizer, more: list[str], embedded: Path, tmp_path: Path
) -> None:
    config = settings(embedded, "x", tmp_path, f"train.optimizer={name}", *more)
    planned = static_memory(meta_model(config, architecture(str(embedded)), checkpointing=False), optimizer=name)
    model = load_model(config, embedded, shared=True)
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to="none", **optimizer_arguments(name))
    optimizer = Trainer(model=model, args=arguments).create_optimizer()
    model(torch.zeros((1, 2), dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    held = {
        id(value): value.nbytes
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    }
    assert planned.optimizer == sum(held.values())


# Refusals


def test_without_bitsandbytes_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "find_spec", lambda name: None)
    with pytest.raises(
        BadInput, match=r"bitsandbytes computes, and it is not installed; pip install .*\[cluster\]', or set train.optimizer"
    ):
        check_optimizer("adamw_8bit", sharding="none", device="cpu")


def test_a_device_that_bitsandbytes_has_nothing_for_is_refused_with_its_version() -> None:
    pytest.importorskip("bitsandbytes")
    check_optimizer("adamw_8bit", sharding="none", device="cpu")
    with pytest.raises(BadInput, match=r"its version \d\S+ does so on no mps device; set train.optimizer=adamw or adafactor"):
        check_optimizer("adamw_8bit", sharding="none", device="mps")


def test_a_cpu_has_nowhere_to_page_to_and_nothing_is_loaded_to_say_so(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="training is on a CPU, .* set train.optimizer=adamw_8bit"):
        train(settings(tiny_model_folder, data, tmp_path / "run", "train.optimizer=paged_adamw_8bit"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("sharding", ["fsdp2", "zero1", "zero3"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_state_in_blocks_or_rows_is_not_divided_among_devices(name: Optimizer, sharding: str) -> None:
    with pytest.raises(
        BadInput, match=f"train.optimizer is {name}, .* asks for {sharding}; start with configs/accelerate/ddp.yaml"
    ):
        check_optimizer(name, sharding=sharding, device="cuda")


# Schedules


def rates(tmp_path: Path, steps: int, **more: Any) -> list[float]:
    """The learning rate of every step, as a share of the highest."""
    config = load_config(
        "embedded_lora", ["data.path=x", "train.warmup=0.2", *(f"train.{name}={value}" for name, value in more.items())]
    )
    arguments = training_arguments(config, tmp_path, steps=steps, watching=None, begun=False, process=ALONE)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], lr=arguments.learning_rate)
    kwargs: Any = arguments.lr_scheduler_kwargs
    made = get_scheduler(arguments.lr_scheduler_type, optimizer, arguments.get_warmup_steps(steps), steps, kwargs)
    found = []
    for _ in range(steps + 1):
        found.append(made.get_last_lr()[0] / arguments.learning_rate)
        optimizer.step()
        made.step()
    return found


@pytest.mark.parametrize(
    ("more", "by_hand"),
    [
        ({"scheduler": "cosine_with_min_lr"}, lambda t: 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * t))),
        ({"scheduler": "cosine_with_min_lr", "min_lr_rate": 0.4}, lambda t: 0.4 + 0.6 * 0.5 * (1 + math.cos(math.pi * t))),
        ({"scheduler": "polynomial"}, lambda t: (1 - t) ** 2),
        ({"scheduler": "polynomial", "power": 3}, lambda t: (1 - t) ** 3),
        ({"scheduler": "linear"}, lambda t: 1 - t),
        ({"scheduler": "inverse_sqrt"}, lambda t: 1 / math.sqrt(1 + 8 * t / 2)),  # 2 steps of warm-up, then 8
    ],
)
def test_a_schedule_is_the_formula(more: dict[str, Any], by_hand: Any, tmp_path: Path) -> None:
    found = rates(tmp_path, 10, **more)
    assert found[:3] == pytest.approx([0, 0.5, 1])
    assert found[2:] == pytest.approx([by_hand(step / 8) for step in range(9)])


def test_wsd_stays_and_falls_at_the_end(tmp_path: Path) -> None:
    found = rates(tmp_path, 10, scheduler="wsd", decay=0.4)
    falls = [0.5 * (1 + math.cos(math.pi * step / 4)) for step in range(5)]
    assert found == pytest.approx([0, 0.5, 1, 1, 1, 1, *falls])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"power": 3}, "power is 3, which only scheduler=polynomial reads, and it is cosine; leave one out"),
        ({"scheduler": "wsd", "min_lr_rate": 0.2}, "min_lr_rate is 0.2, which only scheduler=cosine_with_min_lr reads"),
        ({"scheduler": "inverse_sqrt", "warmup": 0}, "falls from the warm-up on, and warmup is 0; set it above"),
        ({"scheduler": "wsd", "decay": 0.9, "warmup": 0.2}, r"more than all steps \(0.2 \+ 0.9\); lower one"),
    ],
)
def test_a_value_that_no_schedule_reads_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Train(learning_rate=1e-4, **more)
