"""Settings files and `key=value` that no person would write on purpose: one short sentence, at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from perse.errors import BadInput
from perse.formats.yaml_text import DEEPEST, parsed
from perse.settings.serving import load_config as load_serve
from perse.settings.training import load_config, recipes
from perse.training.launched import told_in

OK = ["data.path=somewhere"]
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)
"""31 billion values in eleven lines."""


def short(error: pytest.ExceptionInfo[BadInput]) -> str:
    assert len(str(error.value)) < 400 and "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, "line 2: aliases (*name) are not read; write the value out"),
        ("train:\n  seed: 0x_\n", "line 2: '0x_' is no int"),
        ("train:\n  seed: " + "9" * 5000 + "\n", "line 2: '" + "9" * 37 + "...' is no int"),
        ("train:\n  seed: 0x" + "f" * 5000 + "\n", "is no int"),
        ("a: 1\nb: " + "[" * 3000, f"line 2: lists or mappings are nested more than {DEEPEST} deep"),
        ("a: 1\nb: " + "[" * 3000 + "]" * 3000, f"line 2: lists or mappings are nested more than {DEEPEST} deep"),
        ("a: 1\nb: !!bool perhaps\n", "line 2: 'perhaps' is no bool"),
        ("a: 1\nb: !!timestamp x\n", "line 2: 'x' is no timestamp"),
        ("a: 1\nb: !!python/object/apply:os.system [true]\n", "line 2: could not determine a constructor"),
        ("a: [1\nb: 2\n", "line 2: "),
        ("train:\n  seed: 1\nmodel: {}\ntrain: {}\n", "line 4: 'train' is given twice; keep one"),
        ("a: \x00", "special characters are not allowed"),
        ('a: "\\UFFFFFFFF"', "an escape (\\U...) stands for no character"),
        ('a: "\\U00110000"', "an escape (\\U...) stands for no character"),
    ],
    ids=[
        "aliases",
        "hex",
        "digits",
        "hex digits",
        "open",
        "closed",
        "bool",
        "date",
        "object",
        "torn",
        "twice",
        "null",
        "no number",
        "no character",
    ],
)
def test_a_hostile_settings_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    began = time.process_time()
    with pytest.raises(BadInput) as error:
        load_config(file, OK)
    assert f"{file} is not YAML (" in short(error) and sentence in short(error)
    with pytest.raises(BadInput, match="is no configuration of accelerate"):
        told_in(file)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("train.seed=0x_", "train.seed: input should be a valid integer"),
        ("train.seed=" + "9" * 5000, "train.seed: "),
        ("train.seed=0x" + "f" * 5000, "train.seed: "),
        ("train.seed=-1", "train.seed: input should be greater than or equal to 0"),
        ("train.seed=4294967296", "train.seed: input should be less than 4294967296"),
        ("train.seed=2020-13-45", "train.seed: input should be a valid integer"),
        ("train=" + "[" * 3000, "train: "),
        ("train.seed=" + "[" * 3000 + "]" * 3000, "train.seed: "),
        ("train={a: &a [x, x], b: [*a, *a]}", "train: "),
        ("train.seed=[" + "x, " * 5000 + "x]", "train.seed: "),
    ],
    ids=["hex", "digits", "hex digits", "negative", "huge", "date", "open", "closed", "aliases", "long"],
)
def test_a_hostile_override_is_one_short_sentence_that_names_it(override: str, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        load_config("embedded_lora", [*OK, override])
    assert sentence in short(error)


@pytest.mark.parametrize("name", ["2020-13-45", "2026-11-23", "0x_", "[drafts", "*.jsonl"])
def test_a_folder_may_be_called_what_yaml_has_another_meaning_for(name: str) -> None:
    assert load_config("embedded_lora", [*OK, f"model.path={name}"]).model.path == name


@pytest.mark.parametrize("setting", ["output", "data.path", "watch.data"])
@pytest.mark.parametrize(
    "address",
    ["https://u:hunter2pass@h/x", "https:/u:hunter2pass@h/x", "s3://KEY:hunter2pass@bucket", "gs://b?sig=hunter2pass"],
)
def test_an_address_is_no_local_path_and_none_of_it_is_repeated(setting: str, address: str) -> None:
    with pytest.raises(BadInput) as error:
        load_config("embedded_lora", [*OK, f"{setting}={address}"])
    assert f"{setting} is an address, expected a path on this machine; " in short(error) and "hunter2pass" not in short(error)


@pytest.mark.parametrize("setting", ["output", "data.path", "watch.data"])
def test_a_path_that_no_system_takes_is_named(setting: str) -> None:
    with pytest.raises(BadInput) as error:
        load_config("embedded_lora", [*OK, f'{setting}="a\\0b"'])
    assert f"{setting} holds a NUL character" in short(error)


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_says_the_same_as_to_any_reader_of_yaml(name: str) -> None:
    text = recipes()[name].read_text()
    assert parsed(text) == yaml.safe_load(text)


@pytest.mark.parametrize("override", ['name="\\e[31m"', 'adapters={"a\\e[31m": tiny}'])
def test_a_served_name_moves_no_cursor(override: str) -> None:
    with pytest.raises(BadInput, match="found the control character U\\+001B, expected a name without"):
        load_serve("embedded", [override])
