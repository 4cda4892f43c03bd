"""Checkpoints that somebody changed, and sealed again: passed over for the one before, or one sentence; nothing in them is run."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import state_of
from command_line import perse
from test_checkpoints import FACTS, sealed, settings

from perse.errors import BadInput
from perse.settings.training import load_config
from perse.training.saving.checkpoints import LIST, seal, sealed_files, whole_checkpoint
from perse.training.trainer import train
from perse.training.watch.trainer import take_weights

pytestmark = pytest.mark.slow

DEEP = "[" * 900 + "]" * 900


def resealed(checkpoint: Path) -> None:
    """Its list as it would be of the files as they are now."""
    told = json.loads((checkpoint / LIST).read_text())
    aside = checkpoint.parent / "aside" / checkpoint.name
    shutil.copytree(checkpoint, aside)
    (aside / LIST).unlink()
    shutil.rmtree(checkpoint)
    seal(aside, checkpoint.parent, facts=told["facts"], made_by=told["made_by"])


LISTS: dict[str, object] = {
    "a list": [],
    "files of numbers": {"files": {"a": 5}},
    "no maker": {"facts": FACTS, "files": {}},
    "a maker that says nothing": {"facts": FACTS, "files": {}, "made_by": {}},
    "facts of another type": {"facts": 5, "files": {}, "made_by": {"world_size": 1, "sharding": "none"}},
    "a file elsewhere": {"facts": FACTS, "files": {"../../x": [0, ""]}, "made_by": {"world_size": 1, "sharding": "none"}},
    "a number": 5,
}


@pytest.mark.parametrize("told", [*map(json.dumps, LISTS.values()), DEEP, "[" * 100_000], ids=[*LISTS, "deep", "bottomless"])
def test_a_checkpoint_whose_list_has_another_shape_is_damaged(
    tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    (newest / LIST).write_text(told)
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert "checkpoint-2 is left out: checkpoint.json cannot be read (" in caplog.text
    for reader in (sealed_files, lambda one: take_weights(one, tmp_path / "trained")):
        with pytest.raises(BadInput, match="checkpoint.json cannot be read .*; move that checkpoint away"):
            reader(newest)


STATES: dict[str, tuple[object, str]] = {
    "a step beyond": ({"global_step": 10**9}, "is of step 1000000000, expected 2"),
    "a step before": ({"global_step": 1}, "is of step 1, expected 2"),
    "a step that is true": ({"global_step": True}, "is of step true, expected 2"),
    "unknown": ({"evil": 1}, "has 'evil', which the Trainer does not know"),
    "callbacks that are a number": ({"stateful_callbacks": 5}, "has stateful_callbacks 5"),
    "callbacks without the control": ({"stateful_callbacks": {}}, "has stateful_callbacks {}"),
    "a best step that is a path": ({"best_global_step": "../../x"}, "has best_global_step"),
    "a best step to come": ({"best_global_step": 3}, "has best_global_step 3"),
    "a history of text": ({"log_history": [{"step": "x"}]}, "has log_history"),
    "a judging in words": ({"log_history": [{"step": 1, "eval_loss": "x"}]}, "has log_history"),
    "batches of text": ({"train_batch_size": "x"}, 'has train_batch_size "x"'),
}


@pytest.mark.parametrize(("change", "sentence"), STATES.values(), ids=STATES)
def test_a_checkpoint_whose_state_the_trainer_did_not_write_is_damaged(
    tmp_path: Path, change: dict[str, Any], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    (newest / "trainer_state.json").write_text(json.dumps(state_of(2) | change))
    resealed(newest)
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert f"checkpoint-2 is left out: trainer_state.json {sentence}" in caplog.text


@pytest.mark.parametrize("text", [DEEP, "[" * 100_000, "5", "[]"], ids=["deep", "bottomless", "number", "list"])
def test_a_checkpoint_whose_state_is_no_state_is_damaged(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    (newest / "trainer_state.json").write_text(text)
    resealed(newest)
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert "checkpoint-2 is left out: trainer_state.json " in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        "pytorch_model_fsdp_0/x",
        "optimizer.pt",
        "adapter_model.bin",
        "global_step2/x",
        "other/adapter_model.bin",
        "rng_state.pth",
    ],
)
def test_a_file_that_was_not_saved_with_a_checkpoint_and_would_be_read_makes_it_damaged(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    (newest / name).parent.mkdir(exist_ok=True)
    (newest / name).write_bytes(b"x")
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert f"{Path(name).parts[0]} is in it, and was not saved with it" in caplog.text


def test_a_note_beside_the_files_of_a_checkpoint_is_no_damage(tmp_path: Path) -> None:
    newest = sealed(tmp_path, 2)
    (newest / "notes").mkdir()
    (newest / "notes" / "why.txt").write_text("the good one")
    (newest / "README.md").write_text("mine")
    assert whole_checkpoint(tmp_path, facts=FACTS) == newest


class Code:
    """What a pickle runs when it is opened without care."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.sign,)


@pytest.fixture(scope="module")
def trained(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run with checkpoints of steps 4 and 6, whose last step is still to be done again."""
    folder = tmp_path_factory.mktemp("trained")
    given = settings(tiny_model_folder, folder)
    run = train(load_config("embedded_lora", given))
    shutil.rmtree(run / "merged")
    shutil.rmtree(run / "checkpoints" / "checkpoint-6")
    return run, given


def changed(trained: tuple[Path, list[str]], folder: Path, change: Callable[[Path], None]) -> tuple[int, str]:
    """Exit code and words of `perse train` that goes on with a run that was changed."""
    run, given = trained
    shutil.copytree(run, folder / "run")
    change(folder / "run")
    done = perse("train", "--config", "embedded_lora", *given, f"output={folder / 'run'}")
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.integration
@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_a_pickle_planted_in_a_checkpoint_is_not_run_and_is_one_sentence(
    trained: tuple[Path, list[str]], tmp_path: Path, name: str
) -> None:
    sign = tmp_path / "it was run"

    def plant(run: Path) -> None:
        checkpoint = run / "checkpoints" / "checkpoint-4"
        torch.save(Code(sign), checkpoint / name)
        resealed(checkpoint)

    code, said = changed(trained, tmp_path, plant)
    assert code == 2 and "Traceback" not in said and not sign.exists()
    assert "checkpoint-4 cannot be used (UnpicklingError: Weights only load failed" in said
    assert "move it away, and the same command resumes from the one before" in said


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("optimizer.pt", {"state": {}}, "it lacks 'param_groups'"),
        ("optimizer.pt", {}, "it lacks 'param_groups'"),
        ("optimizer.pt", 5, "a part of it is not what the Trainer saves"),
        ("scheduler.pt", [], "a part of it is not what the Trainer saves"),
        ("rng_state.pth", {}, "it lacks 'python'"),
        ("rng_state.pth", {"python": 5}, "a part of it is not what the Trainer saves"),
    ],
)
def test_a_damaged_part_of_a_checkpoint_is_told_in_our_own_words(
    trained: tuple[Path, list[str]], tmp_path: Path, name: str, content: object, why: str
) -> None:
    def damage(run: Path) -> None:
        torch.save(content, run / "checkpoints" / "checkpoint-4" / name)
        resealed(run / "checkpoints" / "checkpoint-4")

    code, said = changed(trained, tmp_path, damage)
    assert code == 2 and f"checkpoint-4 cannot be used ({why}); move it away" in said, said


def edited(name: str, **values: object) -> Callable[[Any], None]:
    """Changes the settings of each group of weights, or what the scheduler has."""

    def edit(found: Any) -> None:
        for one in found["param_groups"] if name == "optimizer.pt" else [found]:
            one.update(values)

    return edit


def no_moments(found: Any) -> None:
    for kept in found["state"].values():
        del kept["exp_avg_sq"]


def one_forgotten(found: Any) -> None:
    del found["state"][next(iter(found["state"]))]


def not_a_number(found: Any) -> None:
    next(iter(found["state"].values()))["exp_avg"].fill_(float("nan"))


def negative_square(found: Any) -> None:
    next(iter(found["state"].values()))["exp_avg_sq"].flatten()[0] = -1.0


def no_step(found: Any) -> None:
    for kept in found["state"].values():
        kept["step"] = torch.zeros(2)


@pytest.mark.parametrize(
    ("name", "edit", "why"),
    [
        ("scheduler.pt", edited("scheduler.pt", last_epoch="x"), "last_epoch of the scheduler is 'x', expected one like"),
        ("scheduler.pt", edited("scheduler.pt", base_lrs=[]), "base_lrs of the scheduler is [], expected one like"),
        ("scheduler.pt", edited("scheduler.pt", step=5), "the scheduler's step is none of its numbers"),
        ("optimizer.pt", edited("optimizer.pt", lr="x"), "lr of the optimizer is 'x', expected one like"),
        ("optimizer.pt", edited("optimizer.pt", lr=float("nan")), "lr of the optimizer is nan, expected one like"),
        ("optimizer.pt", edited("optimizer.pt", betas=None), "betas of the optimizer is None, expected one like"),
        ("optimizer.pt", no_moments, "the optimizer lacks the exp_avg_sq of a weight"),
        ("optimizer.pt", one_forgotten, "the optimizer keeps something of 27 weights, expected 28"),
        (
            "optimizer.pt",
            not_a_number,
            "the optimizer has numbers in the exp_avg of a weight that cannot be there, such as NaN",
        ),
        ("optimizer.pt", negative_square, "the optimizer has numbers in the exp_avg_sq of a weight that cannot be there"),
        ("optimizer.pt", no_step, "the optimizer has a step of a weight that is no number"),
    ],
)
def test_a_setting_of_a_checkpoint_that_is_of_another_kind_is_named(
    trained: tuple[Path, list[str]], tmp_path: Path, name: str, edit: Callable[[Any], None], why: str
) -> None:
    def damage(run: Path) -> None:
        file = run / "checkpoints" / "checkpoint-4" / name
        found = torch.load(file, weights_only=True)
        edit(found)
        torch.save(found, file)
        resealed(run / "checkpoints" / "checkpoint-4")

    code, said = changed(trained, tmp_path, damage)
    assert code == 2 and f"checkpoint-4 cannot be used (ValueError: {why}" in said, said
    assert "move it away, and the same command resumes from the one before" in said


def test_weights_of_a_checkpoint_that_are_no_numbers_are_named_and_not_the_examples(
    trained: tuple[Path, list[str]], tmp_path: Path
) -> None:
    def damage(run: Path) -> None:
        from safetensors.torch import load_file, save_file

        file = run / "checkpoints" / "checkpoint-4" / "adapter_model.safetensors"
        weights = load_file(file)
        next(iter(weights.values())).fill_(float("nan"))
        save_file(weights, file)
        resealed(file.parent)

    code, said = changed(trained, tmp_path, damage)
    assert code == 2 and "checkpoint-4 cannot be used (ValueError: its weights " in said and "no finite numbers" in said, said


@pytest.mark.parametrize("name", ["weights", "deep"])
def test_a_checkpoint_is_not_read_through_a_link_in_it(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    before, newest = sealed(tmp_path, 1), sealed(tmp_path, 2)
    (newest / name).rename(tmp_path / "elsewhere")
    (newest / name).symlink_to(tmp_path / "elsewhere")
    assert whole_checkpoint(tmp_path, facts=FACTS) == before
    assert (
        "checkpoint-2 is left out: " in caplog.text and "is a link, or lies behind one, and was saved as a file" in caplog.text
    )


@pytest.mark.slow
def test_a_finished_run_whose_merged_weights_are_gone_says_so_and_makes_them_anew(
    trained: tuple[Path, list[str]], tmp_path: Path
) -> None:
    def damage(run: Path) -> None:
        (run / "merged").mkdir()
        (run / "merged" / "config.json").write_text("{}")

    code, said = changed(trained, tmp_path, damage)
    assert code == 2 and "merged has lost its weights (*.safetensors); move the folder away" in said, said
    (tmp_path / "run" / "merged").rename(tmp_path / "away")
    code, said = changed((tmp_path / "run", trained[1]), tmp_path / "again", lambda run: None)
    assert code == 0 and list((tmp_path / "again" / "run" / "merged").glob("*.safetensors")), said


def test_weights_of_a_checkpoint_that_are_a_pickle_are_refused_unread(trained: tuple[Path, list[str]], tmp_path: Path) -> None:
    sign = tmp_path / "it was run"

    def plant(run: Path) -> None:
        checkpoint = run / "checkpoints" / "checkpoint-4"
        (checkpoint / "adapter_model.safetensors").unlink()
        (checkpoint / "adapter_model.bin").write_bytes(pickle.dumps(Code(sign)))
        resealed(checkpoint)

    code, said = changed(trained, tmp_path, plant)
    assert code == 2 and "adapter_model.bin is a pickle, which is never written here" in said and not sign.exists()


@pytest.mark.parametrize(
    "name", ["checkpoints/.trained.perse-tmp", "checkpoints/.saving.perse-tmp", ".rows.perse-tmp", ".merged.perse-tmp"]
)
def test_a_link_planted_where_perse_writes_aside_is_refused_and_nothing_is_written_through_it(
    trained: tuple[Path, list[str]], tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "adapter_model.safetensors").write_text("mine")

    def plant(run: Path) -> None:
        shutil.rmtree(run / ".rows")
        shutil.rmtree(run / "adapter")
        (run / name).symlink_to(outside)

    code, said = changed(trained, tmp_path, plant)
    assert code == 2 and f"{name} is a link, where perse would write and remove files; remove it" in said, said
    assert [path.name for path in outside.iterdir()] == ["adapter_model.safetensors"]
    assert (outside / "adapter_model.safetensors").read_text() == "mine"
    assert not (tmp_path / "run" / "adapter").exists() and not (tmp_path / "run" / "checkpoints" / "checkpoint-6").exists()


def test_weights_are_not_taken_through_a_link_nor_into_a_file(tmp_path: Path) -> None:
    checkpoint = sealed(tmp_path, 1)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "weights").write_text("mine")
    (tmp_path / "trained").symlink_to(tmp_path / "outside")
    for what in ("a link", "no folder"):
        with pytest.raises(BadInput, match=f"trained is {what}, where perse would write and remove files; remove it"):
            take_weights(checkpoint, tmp_path / "trained")
        (tmp_path / "trained").unlink()
        (tmp_path / "trained").write_text("mine")
    assert (tmp_path / "outside" / "weights").read_text() == "mine"


@pytest.mark.parametrize("line", ['{"step": "x"}', "5", '{"loss": 1}', DEEP], ids=["text", "number", "no step", "deep"])
def test_a_line_of_the_log_of_another_shape_is_named(trained: tuple[Path, list[str]], tmp_path: Path, line: str) -> None:
    def plant(run: Path) -> None:
        (run / "log.jsonl").write_text(f"{line}\n" + (run / "log.jsonl").read_text())

    code, said = changed(trained, tmp_path, plant)
    assert code == 2 and "log.jsonl, line 1: " in said and "Traceback" not in said
