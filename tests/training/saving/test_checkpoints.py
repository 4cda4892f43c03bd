"""A checkpoint is whole or not there: sealed with digests, read only after every byte was looked at, never half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import pointwise_examples, state_of, tiny_llama, whole_number_tokenizer
from transformers import TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput, SaveFailed
from perse.files.disk import GrowingFile
from perse.records import example_lines
from perse.settings.training import load_config
from perse.training.callbacks import ProgressCallback, SaveByMinutes
from perse.training.launched import launched
from perse.training.saving.checkpoints import (
    ASIDE,
    LIST,
    check_room,
    checkpoints_in,
    made_by,
    remove_others,
    seal,
    step_of,
    whole_checkpoint,
)
from perse.training.saving.gather_weights import check_written, gather_weights, write_weights
from perse.training.trainer import train

FACTS = {"model_digest": "m", "data_digest": "d"}


def sealed(folder: Path, step: int, *, facts: dict[str, str] = FACTS, run_id: str | None = None) -> Path:
    aside = folder / ASIDE / f"checkpoint-{step}"
    (aside / "deep").mkdir(parents=True)
    (aside / "weights").write_bytes(bytes(range(256)) * step)
    (aside / "deep" / "optimizer").write_bytes(b"o" * 1000)
    (aside / "trainer_state.json").write_text(json.dumps(state_of(step)))
    return seal(aside, folder, facts=facts, made_by={"world_size": 2, "sharding": "none"}, run_id=run_id)


def test_the_newest_whole_checkpoint_is_found_and_says_who_wrote_it(tmp_path: Path) -> None:
    for step in (2, 10, 9):
        sealed(tmp_path, step)
    found = whole_checkpoint(tmp_path, facts=FACTS)
    assert found == tmp_path / "checkpoint-10" and made_by(found) == {"world_size": 2, "sharding": "none"}
    listed = json.loads((found / LIST).read_text())["files"]
    assert sorted(listed) == ["deep/optimizer", "trainer_state.json", "weights"] and listed["weights"][0] == 2560
    assert whole_checkpoint(tmp_path / "nothing", facts=FACTS) is None


def damaged_by_the_disk(file: Path) -> None:
    """Other bytes, but nobody has written there."""
    before = file.stat()
    file.write_bytes(b"!" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("damage", ["a byte", "shorter", "gone", "list"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    weights = newest / "weights"
    if damage == "a byte":
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    elif damage == "shorter":
        weights.write_bytes(b"torn")
    elif damage == "gone":
        weights.unlink()
    else:
        (newest / LIST).write_text('{"facts"')
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert "checkpoint-2 is left out" in caplog.text
    (before / "weights").unlink()
    with pytest.raises(
        BadInput,
        match=r"none of the 2 checkpoints in .* can be gone on from .*checkpoint-1: weights is missing.*; bring one back",
    ):
        whole_checkpoint(tmp_path, facts=FACTS)


def test_what_a_kill_left_aside_is_no_checkpoint(tmp_path: Path) -> None:
    sealed(tmp_path, 1)
    torn = tmp_path / ASIDE / "checkpoint-2"
    torn.mkdir(parents=True)
    (torn / "weights").write_bytes(b"half")
    assert whole_checkpoint(tmp_path, facts=FACTS) == tmp_path / "checkpoint-1"


def test_a_checkpoint_of_another_model_or_data_set_is_refused(tmp_path: Path) -> None:
    sealed(tmp_path, 1)
    with pytest.raises(
        BadInput, match=r"checkpoint-1 is of another run: its data_digest is 'd', expected 'other'; give the model and the data"
    ):
        whole_checkpoint(tmp_path, facts={**FACTS, "data_digest": "other"})


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 10):
        sealed(tmp_path, step)
    remove_others(tmp_path, newest=10, keep=2, best=1, facts=FACTS)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-1", "checkpoint-10", "checkpoint-3"]


def test_a_step_that_is_saved_again_replaces_its_checkpoint(tmp_path: Path) -> None:
    sealed(tmp_path, 1)
    sealed(tmp_path, 1)
    assert whole_checkpoint(tmp_path, facts=FACTS) is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == [ASIDE, "checkpoint-1"]


def test_no_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    check_room(tmp_path / "not" / "yet", 1, what="a run")
    with pytest.raises(BadInput, match=r"a run takes about 10,000,000.0 GB in .*, and .* [GM]B are free there; make room"):
        check_room(tmp_path / "not" / "yet", 10**16, what="a run")


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(whole_number_tokenizer())


def test_what_is_written_equals_what_is_in_memory(model: Any, tmp_path: Path) -> None:
    weights = gather_weights(model, is_main_process=True)
    assert set(weights) == set(model.state_dict())
    write_weights(model, weights, tmp_path)
    names = sorted(weights)
    with pytest.raises(SaveFailed, match=f"holds other numbers for {names[0]}"):
        check_written(tmp_path, {**weights, names[0]: weights[names[0]] + 1})
    with pytest.raises(SaveFailed, match="lacks 1 tensors of the model, the first .'one.more'."):
        check_written(tmp_path, {**weights, "one.more": torch.ones(1)})
    with pytest.raises(SaveFailed, match=f"holds {names[0]}, which the model has not"):
        check_written(tmp_path, {name: weights[name] for name in names[1:]})
    assert gather_weights(model, is_main_process=False) == {}


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_said_to_be_so_and_not_blamed_on_the_disk(
    model: Any, tmp_path: Path, bad: float
) -> None:
    weights = gather_weights(model, is_main_process=True)
    name = sorted(weights)[0]
    with pytest.raises(BadInput, match=f"{name} has weights that are no finite numbers .* lower train.learning_rate"):
        write_weights(model, {**weights, name: torch.full_like(weights[name], bad)}, tmp_path)
    assert not any(tmp_path.iterdir())


def test_empty_shards_are_no_saved_model(model: Any, tmp_path: Path) -> None:
    """What ZeRO-3 leaves in a module, and has been published as a trained adapter before."""
    weights = gather_weights(model, is_main_process=True)
    empty = {name: torch.empty(0) for name in weights}
    model.save_pretrained(tmp_path, state_dict=empty)
    with pytest.raises(SaveFailed, match=r"as \(0,\) of torch.float32, expected \(\d+"):
        check_written(tmp_path, weights)


def settings(model: Path, folder: Path, *more: str) -> list[str]:
    data = folder / "train.jsonl"
    if not data.exists():
        data.write_text("".join(example_lines(pointwise_examples(4, 6))), encoding="utf-8")
    tiny = ["model.dtype=float32", "model.context=2048", "lora.rank=4", "train.batch_size=2", "train.learning_rate=0.01"]
    often = ["train.save_every=2", "train.log_every=1", "train.steps=6", "train.report_to=[]"]
    return [f"model.path={model}", f"data.path={data}", *tiny, *often, f"output={folder / 'run'}", *more]


@pytest.mark.slow
def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(
    tiny_model_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = settings(tiny_model_folder, tmp_path)
    run = train(load_config("embedded_lora", given))
    weights = (run / "merged" / "model.safetensors").read_bytes()
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-6"]
    shutil.rmtree(run / "merged")
    optimizer = run / "checkpoints" / "checkpoint-6" / "optimizer.pt"
    optimizer.write_bytes(optimizer.read_bytes()[:-9] + b"bit flips")
    train(load_config("embedded_lora", given))
    assert "checkpoint-6 is left out: optimizer.pt has sha256" in caplog.text
    assert (run / "merged" / "model.safetensors").read_bytes() == weights
    assert not list(run.rglob("training_args.bin")), "a pickle that nobody should load"


@pytest.mark.slow
def test_a_checkpoint_is_written_by_minutes_where_steps_are_far_between(tiny_model_folder: Path, tmp_path: Path) -> None:
    """The last setting counts, and with another one it is the same run."""
    given = settings(
        tiny_model_folder, tmp_path, "train.save_every=100", "train.save_minutes=0.00001", "train.keep_checkpoints=9"
    )
    run = train(load_config("embedded_lora", given))
    assert [step_of(path) for path in checkpoints_in(run / "checkpoints")] == [1, 2, 3, 4, 5, 6]
    (run / "merged").rename(run / "merged-before")
    shutil.rmtree(run / "checkpoints" / "checkpoint-6")
    train(load_config("embedded_lora", [*given, "train.save_minutes=60"]))
    weights = [(run / folder / "model.safetensors").read_bytes() for folder in ("merged", "merged-before")]
    assert weights[0] == weights[1]


def test_the_minutes_count_from_the_last_checkpoint_of_whatever_reason() -> None:
    now = [0.0]
    saver = SaveByMinutes(10, launched(), clock=lambda: now[0])
    saver.on_train_begin()
    asked = []
    for step, at in enumerate((0, 300, 599, 600, 900, 1199, 1300, 1900), start=1):
        now[0], control = at, TrainerControl()
        saver.on_step_end(TrainingArguments(), TrainerState(global_step=step, max_steps=99), control)
        if control.should_save or at == 1199:  # where steps say so, too
            saver.on_save()
        asked.append(control.should_save)
    assert asked == [False, False, False, True, False, False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("saved", "told"),
    [
        (2, "stopped in step 4: the checkpoint of step 2 is kept; steps to compute again: 1"),
        (100, "no checkpoint was written yet; steps to compute again: 3"),
        (3, "stopped in step 4: the checkpoint of step 3 is kept"),
    ],
)
def test_ctrl_c_says_what_of_a_training_is_kept(
    tiny_model_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    saved: int,
    told: str,
) -> None:
    def stopped(
        self: ProgressCallback, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if state.global_step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressCallback, "on_step_begin", stopped, raising=False)
    with pytest.raises(KeyboardInterrupt), caplog.at_level("INFO", "perse"):
        train(load_config("embedded_lora", settings(tiny_model_folder, tmp_path, f"train.save_every={saved}")))
    assert told in caplog.text


@pytest.mark.integration
def test_a_run_stops_where_it_is_asked_to_and_goes_on_to_the_same_weights(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ["train.steps=60", "train.save_every=100"]
    for folder in (tmp_path / "whole", tmp_path / "stopped"):
        folder.mkdir()
    whole = train(load_config("embedded_lora", settings(tiny_model_folder, tmp_path / "whole", *long)))
    given = settings(tiny_model_folder, tmp_path / "stopped", *long)
    stopped = tmp_path / "stopped" / "run"

    append = GrowingFile.append

    def then_ask(self: GrowingFile, lines: Iterable[str], **named: Any) -> None:
        lines = [*lines]
        append(self, lines, **named)
        if any('"loss"' in line for line in lines):
            (stopped / "stop").touch()

    with monkeypatch.context() as asking:
        asking.setattr(GrowingFile, "append", then_ask)
        train(load_config("embedded_lora", given))
    [checkpoint] = (stopped / "checkpoints").glob("checkpoint-*")
    assert step_of(checkpoint) < 60 and not (stopped / "merged").exists()
    train(load_config("embedded_lora", given))  # which takes the file away
    assert not (stopped / "stop").exists()
    weights = [(run / "merged" / "model.safetensors").read_bytes() for run in (whole, stopped)]
    assert weights[0] == weights[1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False).returncode
    ):
        pytest.skip("a small file system can be mounted by root only")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.integration
def test_a_full_disk_leaves_the_checkpoint_before_whole_and_is_said_in_a_sentence(
    tiny_model_folder: Path, tmp_path: Path, small_disk: Path
) -> None:
    given = settings(
        tiny_model_folder, tmp_path, f"output={small_disk / 'run'}", "train.save_every=1", "train.keep_checkpoints=1"
    )
    # What is known beforehand is said beforehand; here others fill the disk while the run goes on.
    program = (
        "import sys; from pathlib import Path; from perse.training import trainer; from perse.training.saving import checkpoints; from perse.commands.train import main\n"
        "from perse.training.watch import trainer as watched\n"
        "seal = checkpoints.seal\n"
        "def fill(written, into, **more):\n"
        "    place = seal(written, into, **more)\n"
        "    free = __import__('shutil').disk_usage(into).free\n"
        "    if not Path('FILLED').exists(): Path('FILLED').write_bytes(b'x' * (free - 40_000))\n"
        "    return place\n"
        "watched.seal = fill; trainer.check_disk = lambda *_: 0\n"
        "main()\n"
    ).replace("FILLED", str(small_disk / "others"))
    command = [sys.executable, "-c", program, "--config", "embedded_lora", *given]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2, done.stderr[-3000:]
    assert (
        "perse: no room for checkpoint-2 in" in said and "resumes from what was finished before, such as a checkpoint" in said
    )
    checkpoints = small_disk / "run" / "checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["checkpoint-1"]
    (small_disk / "others").unlink()
    remaining = [each for each in given if not each.startswith("output=")]
    moved = tmp_path / "moved"
    shutil.copytree(small_disk / "run", moved)
    run = train(load_config("embedded_lora", [*remaining, f"output={moved}"]))
    assert (run / "merged" / "config.json").exists()


def test_a_run_that_came_back_behind_a_damaged_checkpoint_keeps_what_it_saves_then(tmp_path: Path) -> None:
    for step in (30, 40):
        sealed(tmp_path, step)
    damaged_by_the_disk(tmp_path / "checkpoint-40" / "weights")
    sealed(tmp_path, 35)
    remove_others(tmp_path, newest=35, keep=1, best=None, facts=FACTS)
    assert whole_checkpoint(tmp_path, facts=FACTS) == tmp_path / "checkpoint-35"
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-35"]


def test_what_a_person_put_beside_the_checkpoints_is_left_alone(tmp_path: Path) -> None:
    for step in (30, 40):
        sealed(tmp_path, step)
    for name in ("checkpoint-40-copy", "checkpoint-30-2"):
        shutil.copytree(tmp_path / "checkpoint-40", tmp_path / name)
    assert whole_checkpoint(tmp_path, facts=FACTS) == tmp_path / "checkpoint-40"
    remove_others(tmp_path, newest=40, keep=1, best=None, facts=FACTS)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == [
        "checkpoint-30-2",
        "checkpoint-40",
        "checkpoint-40-copy",
    ]


def test_weights_taken_from_a_checkpoint_are_those_it_was_sealed_with(tmp_path: Path) -> None:
    from perse.training.watch.trainer import take_weights

    checkpoint = sealed(tmp_path, 1)
    take_weights(checkpoint, tmp_path / "trained")
    assert (tmp_path / "trained" / "weights").read_bytes() == (checkpoint / "weights").read_bytes()
    (checkpoint / "weights").write_bytes(b"\0" * 256)
    with pytest.raises(SaveFailed, match="is not what was saved in .*checkpoint-1; remove that checkpoint"):
        take_weights(checkpoint, tmp_path / "trained")


@pytest.mark.slow
def test_the_room_that_is_counted_is_what_checkpoints_take(tiny_model_folder: Path, tmp_path: Path) -> None:
    from perse.training.planning.disk import check_disk

    given = settings(tiny_model_folder, tmp_path, "lora=null", "train.save_every=1", "train.keep_checkpoints=2", "watch=null")
    config = load_config("embedded_lora", given)
    counted = check_disk(config, "none")
    run = train(config)
    kept = sum(path.stat().st_size for path in (run / "checkpoints").rglob("*") if path.suffix in (".safetensors", ".pt"))
    assert counted * 2 / 3 == pytest.approx(kept, rel=0.1)  # the third is there while it is written
    assert check_disk(load_config("embedded_lora", [*given, f"output={tmp_path / 'new'}"]), "fsdp2") == pytest.approx(
        counted * 4 / 3, rel=1e-3
    )
