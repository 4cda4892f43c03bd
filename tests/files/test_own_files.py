"""What a person puts into a run folder is never lost, whatever perse writes, replaces or removes there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from builders import pointwise_examples, state_of
from kills import killed_at
from places import ROOT

from perse.errors import BadInput, RunMismatch
from perse.files.own_files import one_writer, remove_own, replace_folder, write_own, write_together
from perse.files.replacing import settle
from perse.records import example_lines
from perse.settings.training import load_config
from perse.training.callbacks import StopFile
from perse.training.launched import Launched
from perse.training.saving.checkpoints import ASIDE, recover, remove_others, seal, whole_checkpoint, write_list
from perse.training.trainer import train
from perse.training.watch.trainer import take_weights


def files(folder: Path) -> dict[str, str]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found if path.name != ".perse-files.json"}


def test_what_perse_wrote_is_replaced_and_what_it_did_not_write_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "table.md"
    write_own(place, "one")
    write_own(place, "two")
    assert files(tmp_path) == {"table.md": "two"}
    place.write_text("two, with remarks of mine")
    write_own(place, "three")
    place.write_text("more remarks")
    write_own(place, "four")
    assert files(tmp_path) == {
        "table.kept-1.md": "two, with remarks of mine",
        "table.kept-2.md": "more remarks",
        "table.md": "four",
    }


def test_a_persons_file_link_or_folder_under_a_name_of_perses_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a thesis")
    (tmp_path / "study.json").symlink_to(tmp_path / "elsewhere")
    write_own(tmp_path / "study.json", "{}")
    assert (tmp_path / "elsewhere").read_text() == "a thesis" and (tmp_path / "study.kept-1.json").is_symlink()
    (tmp_path / "table.md").mkdir()
    with pytest.raises(BadInput, match="table.md is a folder, where a file is to be written; move it away"):
        write_own(tmp_path / "table.md", "")


@pytest.mark.integration
def test_a_kill_at_any_moment_leaves_the_old_report_or_the_new_one_and_what_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    old = {"report.html": b"old", "figures/x.svg": b"old", "figures/y.svg": b"old", "table.csv": b"old"}
    new = {"report.html": b"new", "figures/x.svg": b"new", "more.csv": b"new"}
    before = {"report.html": "old", "figures/x.svg": "mine", "figures/y.svg": "old", "table.csv": "mine", "notes.md": "mine"}
    after = {
        **{"report.html": "new", "figures/x.svg": "new", "more.csv": "new"},
        **{"figures/x.kept-1.svg": "mine", "table.csv": "mine", "notes.md": "mine", "figures/earlier/y.svg": "old"},
    }
    found = []
    died = True
    while died:
        out = tmp_path / str(len(found)) / "report"
        write_together(out, old)
        for name in ("figures/x.svg", "table.csv", "notes.md"):
            (out / name).write_text("mine")
        died = killed_at(len(found), lambda out=out: write_together(out, new), out)  # type: ignore[misc]
        settle(out)
        found.append({name: text for name, text in files(out).items() if not name.startswith(".perse-new")})
        assert found[-1] in (before, after)
        write_together(out, new)
        assert files(out) == after and [path.name for path in out.parent.iterdir()] == ["report"]
    assert before in found and after in found[:-1]


def test_a_folder_that_is_replaced_keeps_what_has_no_successor_also_after_a_kill(tmp_path: Path) -> None:
    def fresh(content: str) -> Path:
        made = tmp_path / "fresh"
        (made / "deep").mkdir(parents=True)
        (made / "weights").write_text(content)
        (made / "deep" / "settings").write_text(content)
        return made

    place = tmp_path / "adapter"
    replace_folder(fresh("1"), place)
    (place / "deep" / "notes.md").write_text("mine")
    place.rename(tmp_path / ".adapter.perse-old")  # as a kill leaves it between two steps
    replace_folder(fresh("2"), place)
    (place / "more.md").write_text("mine")
    replace_folder(fresh("3"), place)
    assert files(tmp_path) == {
        "adapter/deep/notes.md": "mine",
        "adapter/deep/settings": "3",
        "adapter/more.md": "mine",
        "adapter/weights": "3",
    }


def test_what_is_not_as_perse_wrote_it_outlives_the_folder_that_takes_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def put(content: str) -> None:
        fresh = tmp_path / "fresh"
        (fresh / "deep").mkdir(parents=True)
        for name in ("weights.safetensors", "settings.json", "deep/more"):
            (fresh / name).write_text(content)
        replace_folder(fresh, run / "adapter", listed_in=run)

    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for folder in (run / "adapter", elsewhere):
        folder.mkdir(parents=True)
    (run / "adapter" / "settings.json").write_text("put there before")
    (elsewhere / "more").write_text("mine")
    (run / "adapter" / "deep").symlink_to(elsewhere)
    put("1")
    put("2")
    assert caplog.text.count("is kept as") == 2, "what perse wrote is replaced without a word"
    (run / "adapter" / "weights.safetensors").write_text("edited")
    put("3")
    assert files(run / "adapter") == {
        "deep/more": "3",
        "settings.json": "3",
        "settings.kept-1.json": "put there before",
        "weights.safetensors": "3",
        "weights.kept-1.safetensors": "edited",
    }
    assert files(elsewhere) == {"more": "mine"} and (run / "adapter" / "deep.kept-1").is_symlink()


@pytest.mark.slow
def test_a_kill_at_any_moment_while_an_adapter_is_replaced_loses_nothing_that_was_edited(tmp_path: Path) -> None:
    def put(run: Path, content: str) -> None:
        shutil.rmtree(run / "fresh", ignore_errors=True)
        (run / "fresh").mkdir(parents=True)
        for name in ("weights", "settings"):
            (run / "fresh" / name).write_text(content)
        replace_folder(run / "fresh", run / "adapter", listed_in=run)

    died, number = True, 0
    while died:
        run = tmp_path / str(number)
        put(run, "1")
        (run / "adapter" / "settings").write_text("mine")
        died = killed_at(number, lambda run=run: put(run, "2"), run)  # type: ignore[misc]
        put(run, "2")
        assert files(run) == {"adapter/weights": "2", "adapter/settings": "2", "adapter/settings.kept-1": "mine"}
        number += 1
    assert number > 4


def test_names_that_lead_out_of_a_folder_remove_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("mine")
    (tmp_path / "in" / "own").mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    (tmp_path / "in" / "own" / "file").write_text("ours")
    remove_own(tmp_path / "in", ["../thesis", str(tmp_path / "thesis"), "link/thesis", "own/../../thesis", "own/file"])
    assert files(tmp_path) == {"thesis": "mine"} and (tmp_path / "in" / "link").is_symlink()
    assert not (tmp_path / "in" / "own").exists()


def sealed(folder: Path, step: int) -> Path:
    aside = folder / ASIDE / f"checkpoint-{step}"
    aside.mkdir(parents=True)
    (aside / "weights").write_bytes(b"w" * step)
    (aside / "optimizer.pt").write_bytes(b"o")
    (aside / "trainer_state.json").write_text(json.dumps(state_of(step)))
    return seal(aside, folder, facts={}, made_by={"world_size": 1, "sharding": "none"})


def test_notes_in_a_checkpoint_outlive_it_and_do_not_stop_its_weights_from_being_taken(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        (sealed(tmp_path, step) / "notes.md").write_text(f"of step {step}")
    together = tmp_path / "checkpoint-1" / "for-any-1"
    (together / "zero" / "weights").mkdir(parents=True)  # as DeepSpeed's converter does
    (together / "zero" / "weights" / "fp32.pt").write_text("zero")
    write_list(together, {})
    (together / "mine").write_text("mine")
    remove_others(tmp_path, newest=3, keep=1, best=None, facts={})
    assert {name for name in files(tmp_path) if "checkpoint-3" not in name} == {
        "checkpoint-1/for-any-1/mine",
        "checkpoint-1/notes.md",
        "checkpoint-2/notes.md",
    }
    sealed(tmp_path, 3)  # come here again
    assert (tmp_path / "checkpoint-3" / "notes.md").read_text() == "of step 3"
    assert whole_checkpoint(tmp_path, facts={}) == tmp_path / "checkpoint-3"
    take_weights(tmp_path / "checkpoint-3", tmp_path / "trained")
    assert files(tmp_path / "trained") == {"weights": "www"}


@pytest.mark.slow
def test_a_kill_at_any_moment_while_a_checkpoint_is_replaced_leaves_a_whole_one_and_the_notes_in_it(tmp_path: Path) -> None:
    found = []
    died = True
    while died:
        folder = tmp_path / str(len(found))
        (sealed(folder, 3) / "notes.md").write_text("mine")
        died = killed_at(len(found), lambda folder=folder: sealed(folder, 3), folder)  # type: ignore[misc]
        found.append((folder / "checkpoint-3").is_dir())
        recover(folder)
        assert whole_checkpoint(folder, facts={}) == folder / "checkpoint-3"
        assert (folder / "checkpoint-3" / "notes.md").read_text() == "mine"
        assert not list(folder.glob(".*.perse-old"))
    assert False in found and found[-1]


@pytest.mark.integration
def test_training_goes_on_from_what_a_kill_caught_while_it_was_replaced(tiny_model_folder: Path, tmp_path: Path) -> None:
    data, run = tmp_path / "train.jsonl", tmp_path / "run"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "model.dtype=float32", "model.context=2048"]
    config = load_config("embedded_lora", [*given, "train.steps=1", "train.report_to=[]", "watch=null", f"output={run}"])
    train(config)
    (run / "merged").rename(tmp_path / "gone")
    was = (run / "checkpoints" / "checkpoint-1").stat().st_ino
    for place in (run / "adapter", run / "checkpoints" / "checkpoint-1"):
        (place / "notes.md").write_text("mine")
        place.rename(place.with_name(f".{place.name}.perse-old"))
    train(config)
    assert (run / "checkpoints" / "checkpoint-1").stat().st_ino == was, "it is not made again"
    assert (run / "checkpoints" / "checkpoint-1" / "notes.md").exists() and (run / "adapter" / "notes.md").exists()
    assert (run / "merged" / "config.json").exists() and not list(run.rglob(".*.perse-old"))


def test_a_stop_file_with_something_in_it_is_not_removed(tmp_path: Path) -> None:
    stop = StopFile(tmp_path, Launched(1, 0, "none"))
    (tmp_path / "stop").touch()
    stop.on_train_begin()
    assert not (tmp_path / "stop").exists()
    (tmp_path / "stop").write_text("why I stopped it")
    with pytest.raises(BadInput, match="stop stops the run and is no empty file, so it is not removed; move it away"):
        stop.on_train_begin()
    assert (tmp_path / "stop").read_text() == "why I stopped it"


def test_training_into_a_folder_of_something_else_leaves_nothing_there(tiny_model_folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "model.dtype=float32", "train.steps=1", f"output={out}"]
    with pytest.raises(RunMismatch, match="is not empty and holds no run"):
        train(load_config("embedded_lora", given))
    assert files(out) == {"thesis.tex": "years of work"}


@pytest.mark.slow
def test_what_a_person_put_into_a_training_run_is_there_when_it_has_ended(tiny_model_folder: Path, tmp_path: Path) -> None:
    data, run = tmp_path / "train.jsonl", tmp_path / "run"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    given = [
        f"model.path={tiny_model_folder}",
        f"data.path={data}",
        "model.dtype=float32",
        "model.context=2048",
        "train.steps=1",
    ]
    config = load_config("embedded_lora", [*given, "train.report_to=[]", "watch=null", f"output={run}"])

    aside = [f"{place}/notes.md" for place in (".rows.tmp", "checkpoints/.saving", "checkpoints/.trained", ".adapter.old")]

    def put(*_: object) -> None:
        for name in ("README.md", "curves.png", "adapter/notes.md", "checkpoints/notes.md", ".rows/notes.md", *aside):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text("mine")

    train(config, show=put)
    mine = {
        name
        for name, content in ((str(path.relative_to(run)), path.read_bytes()) for path in run.rglob("*") if path.is_file())
        if content == b"mine"
    }
    assert mine == {
        "README.kept-1.md",
        "curves.kept-1.png",
        "adapter/notes.md",
        "checkpoints/notes.md",
        ".rows/notes.md",
        *aside,
    }
    assert (run / "README.md").read_text().startswith("---") and (run / "adapter" / "adapter_config.json").exists()
    (run / "merged").rename(tmp_path / "gone")
    (run / "merged").mkdir()
    with pytest.raises(BadInput, match="merged is there and holds no model.*move it away"):
        train(config)


@pytest.mark.slow
def test_an_adapter_that_a_person_put_or_edited_there_outlives_the_end_of_the_run(
    tiny_model_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, run = tmp_path / "train.jsonl", tmp_path / "run"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "model.dtype=float32", "model.context=2048"]
    config = load_config("embedded_lora", [*given, "train.steps=1", "train.report_to=[]", "watch=null", f"output={run}"])
    names = ("adapter/adapter_config.json", "adapter/adapter_model.safetensors", "merged/config.json")

    def put(*_: object) -> None:
        for name in names:
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_bytes(b"mine")

    train(config, show=put)
    mine = ["adapter/adapter_config.kept-1.json", "adapter/adapter_model.kept-1.safetensors", "merged.kept-1/config.json"]
    assert [(run / name).read_bytes() for name in mine] == [b"mine"] * 3 and caplog.text.count("is kept as") == 3
    (run / "merged").rename(tmp_path / "gone")
    train(config)
    assert caplog.text.count("is kept as") == 3, "its own adapter is replaced without a word"
    (run / "merged").rename(tmp_path / "gone too")
    edited = (run / names[0]).read_bytes() + b" "
    (run / names[0]).write_bytes(edited)
    train(config)
    assert (run / "adapter" / "adapter_config.kept-2.json").read_bytes() == edited
    assert [(run / name).read_bytes() for name in mine] == [b"mine"] * 3


@pytest.mark.slow
def test_a_merged_model_that_a_person_put_there_outlives_full_training(tiny_model_folder: Path, tmp_path: Path) -> None:
    data, run = tmp_path / "train.jsonl", tmp_path / "run"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    recipe = tmp_path / "full.yaml"
    recipe.write_text("model: {path: x, dtype: float32}\ndata: {path: x}\ntrain: {learning_rate: 0.001, steps: 1}\noutput: x\n")
    config = load_config(recipe, [f"model.path={tiny_model_folder}", f"data.path={data}", f"output={run}"])

    def put(*_: object) -> None:
        (run / "merged").mkdir()
        (run / "merged" / "model.safetensors").write_bytes(b"mine")

    train(config, show=put)
    assert (run / "merged" / "config.json").exists() and [path.name for path in (run / "merged").glob("*.safetensors")] == [
        "model.safetensors"
    ]
    assert files(run / "merged.kept-1") == {"model.safetensors": "mine"}


def test_two_that_would_write_one_folder_do_not_take_each_others_files(tmp_path: Path) -> None:
    from perse.publishing.merging import made_whole

    with made_whole(tmp_path / "merged") as making:
        (making / "weights").write_text("first")
        with pytest.raises(RunMismatch, match="merged is being written by another process"), made_whole(tmp_path / "merged"):
            pass
    assert files(tmp_path) == {"merged/weights": "first"}
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    (tmp_path / ".other.perse-tmp").symlink_to(tmp_path / "thesis")
    with pytest.raises(BadInput, match="other.perse-tmp is a link"), made_whole(tmp_path / "other"):
        pass
    assert (tmp_path / "thesis" / "thesis.tex").exists()


def test_a_folder_that_only_looks_temporary_is_nobodys_to_remove(tmp_path: Path) -> None:
    from perse.publishing.merging import made_whole

    for name in (".merged.tmp", "merged.tmp", ".merged.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.md").write_text("mine")
    with made_whole(tmp_path / "merged") as making:
        (making / "weights").write_text("new")
    assert sorted(files(tmp_path)) == [".merged.old/notes.md", ".merged.tmp/notes.md", "merged.tmp/notes.md", "merged/weights"]


def test_make_clean_leaves_what_people_have_built_in_work() -> None:
    said = subprocess.run(["make", "-n", "clean"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "work/demo" in said and not {"work", "work/", "work/*"} & set(said)


def test_a_folder_that_cannot_be_made_is_named_and_not_the_one_beside_it_that_is_perses(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target, why in ((tmp_path / "file" / "merged", "Not a directory"), (tmp_path / ("x" * 300), "File name too long")):
        with (
            pytest.raises(BadInput, match=f"cannot make the folder {target}: {why}; choose another"),
            one_writer(target.with_name(f".{target.name}.perse-tmp"), target),
        ):
            pass


def test_a_strangers_list_of_written_files_has_no_file_of_mine_removed(tmp_path: Path) -> None:
    """The list names them with the digests that they have: empty ones, and those that everybody has."""
    report = tmp_path / "report"
    write_together(report, {"report.html": b"a page", "figures/old.svg": b"<svg/>"})
    mine = {
        "notes.txt": b"",
        "LICENSE": b"terms",
        "sub/__init__.py": b"",
        "figures/mine.txt": b"",
        "figures/earlier/x.svg": b"",
    }
    for name, content in mine.items():
        (report / name).parent.mkdir(parents=True, exist_ok=True)
        (report / name).write_bytes(content)
    listed = json.loads((report / ".perse-files.json").read_text())
    flat = json.dumps(listed)
    digests = {name: [hashlib.sha256(content).hexdigest()] for name, content in mine.items()}
    key = next((one for one, value in listed.items() if isinstance(value, dict)), None)
    named = {**listed, key: {**listed[key], **digests}} if key else {**listed, **digests}
    (report / ".perse-files.json").write_text(json.dumps(named))
    assert "figures/old.svg" in flat
    write_together(report, {"report.html": b"another page"})
    assert {name: (report / name).read_bytes() for name in mine} == mine
    assert not (report / "figures" / "old.svg").exists(), "a figure of the report before"


def test_make_demo_replaces_no_data_set_that_somebody_built_in_its_folder(tmp_path: Path) -> None:
    def steps() -> str:
        wanted = ["make", "-n", "-o", ".venv/.ready", "demo", f"DEMO={tmp_path}", "DTYPE=float32"]
        return subprocess.run(wanted, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "perse data pointwise" in steps() and "--overwrite" not in steps()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.json").write_text("{}")
    assert "perse data pointwise" not in steps() and "perse score" in steps()


def test_make_demo_says_so_where_the_data_set_in_its_folder_is_of_other_reviews(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    manifest = tmp_path / "data" / "manifest.json"
    manifest.write_text('{"sources": {"reviews": {"name": "reviews.jsonl", "sha256": "mine"}}}')
    wanted = ["make", "-o", ".venv/.ready", "demo", f"DEMO={tmp_path}", "DTYPE=float32"]
    done = subprocess.run(wanted, cwd=ROOT, capture_output=True, text=True)
    assert (
        done.returncode == 2 and f"{tmp_path}/data is a data set of other reviews than the demo's; move it away" in done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["data"] and "mine" in manifest.read_text()
