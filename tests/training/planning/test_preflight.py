"""`perse preflight` finds before the queue what training would find behind it, and lists all of it at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from builders import pointwise_examples
from typer.testing import CliRunner

from perse.commands.app import app
from perse.records import example_lines
from perse.settings.training import load_config
from perse.training.planning.hardware import GPUS, Device
from perse.training.preflight import preflight
from perse.training.trainer import train


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(3, 4))), encoding="utf-8")
    return path


def given(model: Path, data: Path, *more: str) -> list[str]:
    tiny = ["model.dtype=float32", "model.context=2048", "lora.rank=2", "train.learning_rate=0.01", "train.report_to=[]"]
    return [f"model.path={model}", f"data.path={data}", *tiny, f"output={data.parent / 'run'}", *more]


def problems(settings: list[str], *, devices: int = 2, sharding: str = "none", gpu: str = "a100-80gb") -> dict[str, str]:
    config = load_config("embedded_lora", settings)
    seen = preflight(config, device=GPUS[gpu], devices=devices, sharding=sharding)  # type: ignore[arg-type]
    return {check.what: check.problem for check in seen if check.problem}


@pytest.mark.slow
def test_a_run_that_can_begin_is_ready_and_its_rows_are_made(tiny_model_folder: Path, data: Path) -> None:
    done = CliRunner().invoke(app, ["preflight", "--gpus-per-node", "2", *given(tiny_model_folder, data)])
    assert done.exit_code == 0, done.output
    assert "ready: the run can begin" in done.output and "12 examples (0 too long); " in done.output
    run = data.parent / "run"
    assert [path.name for path in run.iterdir()] == [".rows"]
    stamp = (run / ".rows" / "about.json").stat().st_mtime_ns
    train(load_config("embedded_lora", given(tiny_model_folder, data)))
    assert (run / ".rows" / "about.json").stat().st_mtime_ns == stamp, "training makes them again"
    assert problems(given(tiny_model_folder, data)) == {}
    again = CliRunner().invoke(app, ["preflight", *given(tiny_model_folder, data)])
    assert "trained already" in again.output


def test_everything_that_is_wrong_is_listed_at_once_with_exit_code_2(data: Path) -> None:
    settings = given(data.parent / "no-model", data, "train.world_size=4")
    done = CliRunner().invoke(app, ["preflight", "--nodes", "3", *settings])
    assert done.exit_code == 2
    assert "world_size is 4, and 3 devices are asked for" in done.output
    assert "there is no model" in done.output and "2 of 3 checks failed; nothing was started" in done.output
    assert not (data.parent / "run").exists()
    machine = CliRunner().invoke(app, ["preflight", "--nodes", "3", *settings, "--json", "--quiet"])
    assert machine.exit_code == 2 and len([one for one in json.loads(machine.stdout) if one["problem"]]) == 2


@pytest.mark.slow
def test_a_path_is_said_in_letters_that_no_terminal_obeys(tiny_model_folder: Path, data: Path) -> None:
    config = load_config("embedded_lora", given(tiny_model_folder, data, f'output="{data.parent}/\\e[31mred"'))
    seen = preflight(config, device=GPUS["a100-80gb"], devices=2, sharding="none")
    [disk] = [check.found for check in seen if check.what == "disk"]
    assert disk.endswith("/\\x1b[31mred")


def test_weights_that_were_not_fetched_whole_are_found(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for file in tiny_model_folder.iterdir():
        if file.suffix != ".safetensors":
            (model / file.name).write_bytes(file.read_bytes())
    assert "holds no weights in safetensors files" in problems(given(model, data))["model"]
    (model / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
    )
    assert "lacks 2 of its 2 files of weights (one.safetensors)" in problems(given(model, data))["model"]


def test_data_that_is_not_there_and_a_step_that_cannot_be_divided_are_found(tiny_model_folder: Path, data: Path) -> None:
    found = problems(given(tiny_model_folder, data.with_name("gone.jsonl")), devices=3)
    assert "which 3 devices cannot divide" in found["world size"] and "gone.jsonl" in found["data"]
    os.mkfifo(data.with_name("pipe"))
    assert "pipe is no plain file" in problems(given(tiny_model_folder, data.with_name("pipe")))["data"]


@pytest.mark.slow
def test_too_little_memory_is_found_for_the_way_that_is_asked_for(
    tiny_model_folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    small = replace(GPUS["l4"], memory=2_000_000)
    monkeypatch.setitem(GPUS, "l4", small)
    found = problems(given(tiny_model_folder, data), gpu="l4")
    assert "GB are needed on each device" in found["memory"] and "`perse plan` says what would do" in found["memory"]


@pytest.mark.slow
def test_the_time_is_that_of_checkpointing_as_it_is_set(tiny_model_folder: Path, data: Path) -> None:
    """What is computed twice takes longer, though `perse plan` would do without."""
    told = {}
    for again in ("false", "true"):
        settings = given(tiny_model_folder, data, f"train.gradient_checkpointing={again}", "watch=null")
        seen = preflight(
            load_config("embedded_lora", settings),
            device=Device("a slow one", 24_000_000_000, 1e3, 1e3),
            devices=1,
            sharding="none",
        )
        [memory] = [check.found for check in seen if check.what == "memory"]
        told[again] = float(memory.partition("; about ")[2].split()[0].replace(",", ""))
    assert 1.2 < told["true"] / told["false"] < 1.6


def test_packed_weights_are_not_divided(tiny_model_folder: Path, data: Path) -> None:
    settings = given(tiny_model_folder, data, "model.quantize=nf4")
    assert "whose packed weights every device must hold whole" in problems(settings, sharding="fsdp2")["memory"]


@pytest.mark.slow
def test_a_run_with_other_settings_in_the_folder_is_found(tiny_model_folder: Path, data: Path) -> None:
    train(load_config("embedded_lora", given(tiny_model_folder, data, "train.steps=2", "train.save_every=1")))
    (data.parent / "run" / "merged").rename(data.parent / "elsewhere")
    found = problems(given(tiny_model_folder, data, "train.steps=2", "train.save_every=1", "train.learning_rate=0.5"))
    assert "(train.learning_rate was 0.01, is 0.5); give the same" in found["run folder"]
    assert problems(given(tiny_model_folder, data, "train.steps=2", "train.save_every=1", "train.world_size=2")) == {}


@pytest.mark.slow
def test_no_room_on_the_disk_is_found(tiny_model_folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**6, 10**6 - 10, 10))  # type: ignore[attr-defined]
    assert "checkpoints of" in problems(given(tiny_model_folder, data))["disk"]
