"""What a person did to checkpoints, moved, edited or put there, outlives rotation and a run that comes to the same step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_checkpoints import FACTS, damaged_by_the_disk, sealed, settings

from perse.errors import BadInput
from perse.settings.training import load_config
from perse.training.launched import Launched
from perse.training.saving import checkpoints, reshard
from perse.training.saving.checkpoints import LATEST, LIST, name_converted, remove_others, seal, whole_checkpoint, write_list
from perse.training.trainer import train


def moved_away(checkpoint: Path, to: Path) -> dict[str, bytes]:
    """Move a checkpoint to another disk and leave a link; returns what is in it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(checkpoint, to)
    checkpoint.symlink_to(to)
    return contents(to)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_of_a_linked_checkpoint_only_the_link_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, elsewhere = tmp_path / "checkpoints", tmp_path / "disk" / "checkpoint-2"
    for step in (2, 4, 6):
        sealed(folder, step)
    was = moved_away(folder / "checkpoint-2", elsewhere)
    remove_others(folder, newest=4, keep=2, best=None, facts=FACTS)
    assert whole_checkpoint(folder, facts=FACTS) == folder / "checkpoint-4"
    assert (folder / "checkpoint-2").is_symlink(), "it is one of the two to keep"
    remove_others(folder, newest=4, keep=1, best=None, facts=FACTS)
    assert contents(elsewhere) == was and not (folder / "checkpoint-2").is_symlink()
    assert f"checkpoint-2 is a link to {elsewhere}: the link is removed, and what it leads to stays" in caplog.text


def test_a_link_that_leads_nowhere_now_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-1").symlink_to(tmp_path / "a disk that is not mounted")
    for step in (2, 3):
        sealed(tmp_path, step)
    remove_others(tmp_path, newest=3, keep=1, best=None, facts=FACTS)
    assert (tmp_path / "checkpoint-1").is_symlink() and not (tmp_path / "checkpoint-2").exists()


@pytest.mark.slow
def test_training_goes_on_from_a_linked_checkpoint_and_then_rotates_it_out(tiny_model_folder: Path, tmp_path: Path) -> None:
    given = settings(tiny_model_folder, tmp_path, "train.keep_checkpoints=1")
    run = train(load_config("embedded_lora", given))
    weights = (run / "merged" / "model.safetensors").read_bytes()
    shutil.rmtree(run / "merged")
    saved = tmp_path / "of-step-2"
    second = train(load_config("embedded_lora", [*given, f"output={saved}", "train.keep_checkpoints=3"]))
    for step in (4, 6):
        shutil.rmtree(second / "checkpoints" / f"checkpoint-{step}")
    shutil.rmtree(second / "merged")
    elsewhere = tmp_path / "disk" / "checkpoint-2"
    was = moved_away(second / "checkpoints" / "checkpoint-2", elsewhere)
    manifest = second / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"keep_checkpoints": 3', '"keep_checkpoints": 1'))
    train(load_config("embedded_lora", [*given, f"output={saved}"]))
    assert (second / "merged" / "model.safetensors").read_bytes() == weights
    assert contents(elsewhere) == was
    assert [path.name for path in (second / "checkpoints").iterdir()] == ["checkpoint-6"]


def test_a_file_that_was_edited_in_a_checkpoint_outlives_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (1, 2, 3):
        sealed(tmp_path, step)
    (tmp_path / "checkpoint-1" / "weights").write_bytes(b"soup of mine")
    (tmp_path / "checkpoint-2" / "deep" / "optimizer").write_bytes(b"!" * 1000)  # of the size that it had
    remove_others(tmp_path, newest=3, keep=1, best=None, facts=FACTS)
    assert "checkpoint-1/weights is not as perse wrote it, and stays" in caplog.text
    assert contents(tmp_path / "checkpoint-1") == {"weights": b"soup of mine"}
    assert contents(tmp_path / "checkpoint-2") == {"deep/optimizer": b"!" * 1000}
    caplog.clear()
    remove_others(tmp_path, newest=3, keep=1, best=None, facts=FACTS)
    assert not caplog.text, "it is said once"


def test_a_list_that_a_stranger_made_removes_no_file_but_such_as_checkpoints_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)
    old = tmp_path / "checkpoint-1"
    listing = json.loads((old / LIST).read_text())
    together = old / "for-any-1"
    together.mkdir()
    for notes in (old / "notes.md", together / "notes.md"):
        notes.write_text("mine")
    write_list(together, {})
    (old / LIST).unlink()
    shutil.move(together, tmp_path / "aside")
    write_list(old, {name: listing[name] for name in ("facts", "run_id", "made_by")})
    shutil.move(tmp_path / "aside", together)
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS)
    assert contents(old) == {"notes.md": b"mine", "for-any-1/notes.md": b"mine"}
    assert "checkpoint-1/notes.md stays: the newest checkpoint has no such file" in caplog.text


def test_a_checkpoint_of_other_devices_goes_whole(tmp_path: Path) -> None:
    for step, names in (
        (50, ("rng_state_0.pth", "rng_state_1.pth", "global_step50/zero_pp_rank_1.pt")),
        (100, ("rng_state.pth", "global_step100/zero_pp_rank_0.pt")),
    ):
        aside = tmp_path / checkpoints.ASIDE / f"checkpoint-{step}"
        for name in names:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_text(name)
        seal(aside, tmp_path, facts=FACTS, made_by={"world_size": len(names), "sharding": "zero2"})
    remove_others(tmp_path, newest=100, keep=1, best=None, facts=FACTS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-100"]


def test_a_copy_of_a_checkpoint_inside_another_outlives_it(tmp_path: Path) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)
    backup = tmp_path / "checkpoint-1" / "backup"
    shutil.copytree(tmp_path / "checkpoint-2", backup)
    was = contents(backup)
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS)
    assert contents(tmp_path / "checkpoint-1") == {f"backup/{name}": content for name, content in was.items()}


def test_a_checkpoint_with_a_list_of_an_older_perse_or_copied_goes_by_its_digests(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        sealed(tmp_path, step)
    told = json.loads((tmp_path / "checkpoint-1" / LIST).read_text())
    del told["times"]
    (tmp_path / "checkpoint-1" / LIST).write_text(json.dumps(told))
    for path in (tmp_path / "checkpoint-2").rglob("*"):
        os.utime(path)
    remove_others(tmp_path, newest=3, keep=1, best=None, facts=FACTS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-3"]


def test_nothing_is_read_again_of_a_checkpoint_that_nobody_wrote_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)

    def read(path: Path) -> str:
        raise AssertionError(f"{path} is read: minutes for a large model")

    monkeypatch.setattr(checkpoints, "file_digest", read)
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]


def test_a_persons_folder_does_not_count_as_one_of_those_to_keep(tmp_path: Path) -> None:
    for step in (1, 3):
        sealed(tmp_path, step)
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "checkpoint-2" / "thesis.tex").write_text("years of work")
    remove_others(tmp_path, newest=3, keep=2, best=None, facts=FACTS)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]


@pytest.mark.parametrize("change", ["a folder of mine", "an edited file", "a file more that would be read", "a link to one"])
def test_what_a_person_has_at_the_place_of_a_checkpoint_is_kept_whole(
    tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, kept = tmp_path / "checkpoint-2", tmp_path / "checkpoint-2.kept-1"
    if change == "a folder of mine":
        place.mkdir()
        (place / "weights").write_bytes(b"mine")
        (place / "notes.md").write_bytes(b"mine")
    else:
        sealed(tmp_path, 2)
    if change == "an edited file":
        (place / "weights").write_bytes(b"mine")
    elif change == "a file more that would be read":
        (place / "pytorch_model.bin").write_bytes(b"mine")
    elif change == "a link to one":
        (tmp_path / "optimizer").write_bytes(b"o" * 1000)
        (place / "deep" / "optimizer").unlink()
        (place / "deep" / "optimizer").symlink_to(tmp_path / "optimizer")
    was = contents(place)
    assert sealed(tmp_path, 2) == whole_checkpoint(tmp_path, facts=FACTS)
    assert contents(kept) == was
    assert "checkpoint-2 is not as perse wrote it, and is kept as checkpoint-2.kept-1" in caplog.text


def test_a_checkpoint_that_the_disk_damaged_is_nobodys_to_keep(tmp_path: Path) -> None:
    damaged_by_the_disk(sealed(tmp_path, 2) / "weights")
    assert sealed(tmp_path, 2) == whole_checkpoint(tmp_path, facts=FACTS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]


OTHER = FACTS | {"data_digest": "another"}


@pytest.mark.parametrize(("facts", "run_id"), [(OTHER, "this"), (OTHER, None), (FACTS, "another")])
def test_another_runs_checkpoint_is_neither_rotated_out_nor_counted(
    tmp_path: Path, facts: dict[str, str], run_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    was = contents(sealed(tmp_path, 2, facts=facts, run_id=run_id))
    for step in (1, 3):
        sealed(tmp_path, step, run_id="this")
    sealed(tmp_path, 9, facts=facts, run_id=run_id)
    for keep in (2, 1):
        remove_others(tmp_path, newest=3, keep=keep, best=None, facts=FACTS, run_id="this")
        left = {path.name for path in tmp_path.glob("checkpoint-*")}
        assert left == {"checkpoint-2", "checkpoint-3", "checkpoint-9"} | ({"checkpoint-1"} if keep == 2 else set())
    assert contents(tmp_path / "checkpoint-2") == was
    assert caplog.text.count("checkpoint-2 stays: it is of another run") == 1


def test_a_link_to_another_runs_checkpoint_stays(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-1").symlink_to(sealed(tmp_path / "other", 1, run_id="another"))
    sealed(tmp_path, 2, run_id="this")
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS, run_id="this")
    assert (tmp_path / "checkpoint-1").is_symlink()


@pytest.mark.parametrize(("facts", "run_id"), [(OTHER, "this"), (OTHER, None), (FACTS, "another")])
def test_another_runs_checkpoint_at_the_place_of_a_new_one_is_kept_whole(
    tmp_path: Path, facts: dict[str, str], run_id: str | None
) -> None:
    was = contents(sealed(tmp_path, 2, facts=facts, run_id=run_id))
    assert sealed(tmp_path, 2, run_id="this") == whole_checkpoint(tmp_path, facts=FACTS)
    assert contents(tmp_path / "checkpoint-2.kept-1") == was


def test_a_run_goes_on_from_no_checkpoint_of_another_run_of_the_same_model_and_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = sealed(tmp_path, 1, run_id="this")
    sealed(tmp_path, 2, run_id="another")
    assert whole_checkpoint(tmp_path, facts=FACTS, run_id="this") == own
    assert "checkpoint-2 is left out: it is of another run of the same model and data" in caplog.text
    with pytest.raises(
        BadInput, match="none of the 2 checkpoints in .* can be gone on from .*checkpoint-1: it is of another run"
    ):
        whole_checkpoint(tmp_path, facts=FACTS, run_id="a third")


def test_a_checkpoint_of_an_older_perse_is_its_runs_by_its_facts(tmp_path: Path) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)
    sealed(tmp_path, 2, run_id="this")
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS, run_id="this")
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]


@pytest.mark.slow
def test_a_run_has_an_id_that_its_checkpoints_bear_and_another_run_of_the_same_settings_has_another(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    ids = []
    for name in ("one", "two"):
        given = settings(tiny_model_folder, tmp_path, "train.steps=2", f"output={tmp_path / name}")
        run = train(load_config("embedded_lora", given))
        if name == "one":  # made again, and resumed
            shutil.rmtree(run / "merged")
            shutil.rmtree(run / "checkpoints")
            train(load_config("embedded_lora", given))
        told = json.loads((run / "checkpoints" / "checkpoint-2" / LIST).read_text())
        ids.append(told["run_id"])
        assert ids[-1] and ids[-1] == json.loads((run / "manifest.json").read_text())["context"]["id"]
    assert ids[0] != ids[1]


def put_together(checkpoint: Path, name: str = "") -> Path:
    """What is in a checkpoint for another number of devices."""
    folder = checkpoint / (name or f"for-any-{checkpoint.name.removeprefix('checkpoint-')}")
    (folder / "zero").mkdir(parents=True)
    (folder / "zero" / "fp32.pt").write_bytes(b"w" * 100)
    write_list(folder, {})
    return folder


def test_what_was_put_together_for_other_devices_goes_with_its_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2):
        put_together(sealed(tmp_path, step))
        name_converted(tmp_path / f"checkpoint-{step}")
    remove_others(tmp_path, newest=2, keep=1, best=None, facts=FACTS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]


def test_only_what_perse_put_together_goes_and_only_as_it_was(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        sealed(tmp_path, step)
    was = contents(put_together(tmp_path / "checkpoint-1", "for-any-7"))
    (tmp_path / "checkpoint-1" / LATEST).write_text("for-any-7")
    (put_together(tmp_path / "checkpoint-2") / "zero" / "fp32.pt").write_bytes(b"m" * 100)
    told = put_together(tmp_path / "checkpoint-3") / LIST  # names alone say nothing
    told.write_text(json.dumps({"files": ["zero/fp32.pt"]}))
    remove_others(tmp_path, newest=4, keep=1, best=None, facts=FACTS)
    left = {"latest_universal": b"for-any-7", **{f"for-any-7/{name}": content for name, content in was.items()}}
    assert contents(tmp_path / "checkpoint-1") == left
    assert contents(tmp_path / "checkpoint-2") == {"for-any-2/zero/fp32.pt": b"m" * 100}
    assert "for-any-3/zero/fp32.pt" in contents(tmp_path / "checkpoint-3")


class Trainerlike:
    """What `reshard` tells DeepSpeed through."""

    def __init__(self) -> None:
        self.config: dict[str, object] = {}
        self.accelerator = self.state = self.deepspeed_plugin = self.hf_ds_config = self


def test_a_persons_files_and_links_outlive_that_a_checkpoint_is_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = tmp_path / "aside" / "checkpoint-2"
    (aside / "global_step2").mkdir(parents=True)
    (aside / "global_step2" / "piece").write_text("x")
    checkpoint = seal(aside, tmp_path, facts=FACTS, made_by={"world_size": 2, "sharding": "zero2"})
    calls = 0

    def converter(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        """DeepSpeed's, as far as files are concerned."""
        nonlocal calls
        calls += 1
        output = Path(command[command.index("--output_folder") + 1])
        (output / "zero").mkdir(parents=True)
        (output / "zero" / "fp32.pt").write_text("ours")
        (output.parent / LATEST).write_text(output.name)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(reshard.subprocess, "run", converter)
    process = Launched(1, 0, "zero2")
    (tmp_path / "thesis").write_text("mine")
    (checkpoint / LATEST).symlink_to(tmp_path / "thesis")
    (checkpoint / "for-any-2").mkdir()
    (checkpoint / "for-any-2" / "notes").write_text("mine")
    for _ in range(2):
        reshard.reshard(checkpoint, Trainerlike(), process)
    assert calls == 1, "what is whole is not made again"
    assert (tmp_path / "thesis").read_text() == "mine" and (checkpoint / "latest_universal.kept-1").is_symlink()
    assert contents(checkpoint / "for-any-2.kept-1") == {"notes": b"mine"}
    assert (checkpoint / LATEST).read_text() == "for-any-2" and not (checkpoint / LATEST).is_symlink()
    assert (checkpoint / "for-any-2" / "zero" / "fp32.pt").read_text() == "ours"
    (checkpoint / "for-any-2" / "zero" / "fp32.pt").write_text("edited")
    reshard.reshard(checkpoint, Trainerlike(), process)
    assert calls == 2 and (checkpoint / "for-any-2.kept-2" / "zero" / "fp32.pt").read_text() == "edited"
    planted = checkpoint / ".for-any-2.perse-tmp"
    (checkpoint / "for-any-2" / LIST).unlink()
    planted.symlink_to(tmp_path)
    with pytest.raises(BadInput, match="is a link, where perse would write"):
        reshard.reshard(checkpoint, Trainerlike(), process)
