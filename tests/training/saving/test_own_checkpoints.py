"""What a person did to checkpoints, moved, edited or put there, outlives rotation and a run that comes to the same step."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from test_checkpoints import FACTS, damaged_by_the_disk, sealed, settings

from perse.settings.training import load_config
from perse.training.saving import checkpoints
from perse.training.saving.checkpoints import LIST, remove_others, whole_checkpoint
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
    remove_others(folder, newest=4, keep=2, best=None)
    assert whole_checkpoint(folder, facts=FACTS) == folder / "checkpoint-4"
    assert (folder / "checkpoint-2").is_symlink(), "it is one of the two to keep"
    remove_others(folder, newest=4, keep=1, best=None)
    assert contents(elsewhere) == was and not (folder / "checkpoint-2").is_symlink()
    assert f"checkpoint-2 is a link to {elsewhere}: the link is removed, and what it leads to stays" in caplog.text


def test_a_link_that_leads_nowhere_now_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-1").symlink_to(tmp_path / "a disk that is not mounted")
    for step in (2, 3):
        sealed(tmp_path, step)
    remove_others(tmp_path, newest=3, keep=1, best=None)
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
    remove_others(tmp_path, newest=3, keep=1, best=None)
    assert "checkpoint-1/weights is not as perse wrote it, and stays" in caplog.text
    assert contents(tmp_path / "checkpoint-1") == {"weights": b"soup of mine"}
    assert contents(tmp_path / "checkpoint-2") == {"deep/optimizer": b"!" * 1000}
    caplog.clear()
    remove_others(tmp_path, newest=3, keep=1, best=None)
    assert not caplog.text, "it is said once"


def test_a_copy_of_a_checkpoint_inside_another_outlives_it(tmp_path: Path) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)
    backup = tmp_path / "checkpoint-1" / "backup"
    shutil.copytree(tmp_path / "checkpoint-2", backup)
    was = contents(backup)
    remove_others(tmp_path, newest=2, keep=1, best=None)
    assert contents(tmp_path / "checkpoint-1") == {f"backup/{name}": content for name, content in was.items()}


def test_a_checkpoint_with_a_list_of_an_older_perse_or_copied_goes_by_its_digests(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        sealed(tmp_path, step)
    told = json.loads((tmp_path / "checkpoint-1" / LIST).read_text())
    del told["times"]
    (tmp_path / "checkpoint-1" / LIST).write_text(json.dumps(told))
    for path in (tmp_path / "checkpoint-2").rglob("*"):
        os.utime(path)
    remove_others(tmp_path, newest=3, keep=1, best=None)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-3"]


def test_nothing_is_read_again_of_a_checkpoint_that_nobody_wrote_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (1, 2):
        sealed(tmp_path, step)

    def read(path: Path) -> str:
        raise AssertionError(f"{path} is read: minutes for a large model")

    monkeypatch.setattr(checkpoints, "file_digest", read)
    remove_others(tmp_path, newest=2, keep=1, best=None)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]


def test_a_persons_folder_does_not_count_as_one_of_those_to_keep(tmp_path: Path) -> None:
    for step in (1, 3):
        sealed(tmp_path, step)
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "checkpoint-2" / "thesis.tex").write_text("years of work")
    remove_others(tmp_path, newest=3, keep=2, best=None)
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
