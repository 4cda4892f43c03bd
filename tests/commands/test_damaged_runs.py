"""Run and data set folders whose JSON is not what perse wrote: one sentence that names the file, or its line, and exit code 2."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import perse
from evaluation_builders import noisy_judge, world
from test_evaluate_command import run_folder

from perse.data.dataset.folder import load_folder
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.formats.json_text import DEEPEST, parsed, shortened

DEEP = {"bottomless": "[" * 100_000, "deeper than any of ours": "[" * 900 + "]" * 900}
"""The second is read by Python, and breaks whatever walks through it."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    examples = world(4)
    return run_folder(tmp_path / "run", examples, noisy_judge(examples, noise=1, seed=1))


def refused(folder: Path, *sentence: str) -> None:
    for command in (("evaluate", folder), ("report", folder, "--out", folder.parent / "page")):
        done = perse(*command)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert all(part in done.stderr for part in sentence), done.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told: {**told, "run": 5}, "'run' is 5, expected a JSON object"),
        (lambda told: {**told, "context": ["x"]}, "'context' is [\"x\"], expected a JSON object"),
        (lambda told: {**told, "run": {**told["run"], "judge": "me"}}, "'run.judge' is \"me\", expected a JSON object"),
        (lambda told: {**told, "context": {"prices": {"a": 1}}}, "prices, field"),
        (lambda told: {**told, "run": {**told["run"], "fold": [1]}}, "fold is [1], expected a whole number or null"),
        (lambda told: {**told, "run": {**told["run"], "fold": -1}}, "fold is -1, expected a whole number or null"),
        (lambda _: [], "holds no JSON object but a list"),
    ],
    ids=["run", "context", "judge", "prices", "a list for a fold", "a fold below zero", "list"],
)
def test_a_manifest_of_another_shape_is_one_sentence(run: Path, change: Callable[..., object], sentence: str) -> None:
    manifest = run / "manifest.json"
    manifest.write_text(json.dumps(change(json.loads(manifest.read_text()))))
    refused(run, "manifest.json", sentence)


@pytest.mark.parametrize("nested", DEEP.values(), ids=DEEP)
def test_a_manifest_nested_too_deeply_is_one_sentence(run: Path, nested: str) -> None:
    (run / "manifest.json").write_text(nested)
    refused(run, "manifest.json is not JSON (lists or objects are nested more than 100 deep)")


@pytest.mark.parametrize("name", ["judgements.jsonl", "examples.jsonl"])
@pytest.mark.parametrize("nested", DEEP.values(), ids=DEEP)
def test_a_line_nested_too_deeply_is_named(run: Path, name: str, nested: str) -> None:
    path = run / name
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([first, nested + "\n", *others]))
    refused(run, f"{name}, line 2: not JSON", "nested more than 100 deep")


def test_a_line_that_is_no_object_is_named(run: Path) -> None:
    with (run / "judgements.jsonl").open("a") as file:
        file.write("[1]\n")
    refused(run, "judgements.jsonl, line 41: found [1], expected a JSON object")


@pytest.mark.parametrize("seconds", ['"x"', "1" + 400 * "0", "-1", "true"])
def test_a_line_of_times_of_another_shape_is_named(run: Path, seconds: str) -> None:
    (run / "timing.jsonl").write_text(f'{{"judged": 1, "seconds": {seconds}}}\n')
    refused(run, "timing.jsonl, line 1: found", "expected 'judged' and 'seconds'")


@pytest.mark.parametrize("nested", DEEP.values(), ids=DEEP)
def test_a_data_sets_manifest_nested_too_deeply_is_named(tmp_path: Path, nested: str) -> None:
    (tmp_path / "manifest.json").write_text(nested)
    with pytest.raises(BadInput, match="manifest.json is not JSON .lists or objects are nested more than 100 deep"):
        load_examples(tmp_path, split="valid")


def test_options_of_a_data_set_of_another_type_are_named(tmp_path: Path) -> None:
    from perse.data.dataset.folder import SCHEMA

    options = {"split": "reviewer", "k": 3, "max_k": 3, "folds": "many"}
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "kind": "pointwise", "options": options}))
    with pytest.raises(BadInput, match="option 'folds' is \"many\", expected a whole number"):
        load_folder(tmp_path)


def test_what_is_nested_as_deep_as_allowed_is_read_and_no_deeper() -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    assert json.dumps(parsed(text)) == text
    for deeper in (f"[{text}]", '{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1)):
        with pytest.raises(ValueError, match="nested more than 100 deep"):
            parsed(deeper)


def test_a_message_shows_forty_characters_of_a_value() -> None:
    assert shortened(["x" * 5000]) == '["' + "x" * 35 + "..."


@pytest.mark.parametrize("name", ["examples.jsonl", "judgements.jsonl", "manifest.json"])
def test_a_pipe_in_the_place_of_a_file_of_a_run_is_not_waited_for(run: Path, tmp_path: Path, name: str) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    (run / name).unlink()
    os.mkfifo(run / name)
    refused(run, f"{name} is no plain file; move it away")
    assert "is no plain file; move it away" in perse("compare", other, run).stderr


def test_a_pipe_in_the_place_of_a_study_is_not_waited_for(run: Path, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    os.mkfifo(tmp_path / "study" / "study.json")
    for command in (
        ("report", run, "--study", tmp_path / "study", "--out", tmp_path / "page"),
        ("study", "paper", "--study", tmp_path / "study"),
    ):
        done = perse(*command)
        assert done.returncode == 2 and "study.json is no plain file; move it away" in done.stderr


def test_bytes_that_a_power_cut_left_are_said_to_be_no_text() -> None:
    for left in (b"\0" * 100 + b"\n", b'{"a": "\xff"}'):
        with pytest.raises(ValueError, match="^these bytes are no text in UTF-8$"):
            parsed(left)
