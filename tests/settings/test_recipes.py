"""The packaged recipes: what they name is known, every line says why, and tiny models of the same make train as they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import pointwise_examples
from places import ROOT
from typer.testing import CliRunner

from perse.models.finding import EMBEDDED
from perse.records import Evidence, example_lines
from perse.rendering.prompt import chat_frame
from perse.settings.config import described, known_keys
from perse.settings.training import TrainConfig, load_config, recipes
from perse.training.model.architecture import KNOWN, architecture, meta_model
from perse.training.settings_page import COMMAND, settings_page

DATA = ["data.path=somewhere"]
CURRENT = ("qwen3_4b_lora", "olmo3_7b_lora")
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 4,  # one of them looks back without end, in Olmo 3
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_names_a_model_that_can_be_planned_without_its_files(name: str) -> None:
    assert load_config(name, DATA).model.path in {*KNOWN, *EMBEDDED}


@pytest.mark.parametrize("path", recipes().values(), ids=recipes())
def test_every_line_of_a_recipe_says_why(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    settings = [line for line in lines if re.match(r" *\w+: *[^ #]", line)]
    assert len(settings) > 10
    assert [line for line in settings if " # " not in line] == []
    assert lines[0].startswith("# ") and max(map(len, lines)) <= 128


@pytest.mark.parametrize("path", recipes().values(), ids=recipes())
def test_the_command_of_a_recipe_names_files_that_are_there(path: Path) -> None:
    command = " ".join(re.findall(r"^#  +(.*?)\\?$", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = re.findall(r"configs/\S+\.yaml", command)
    assert path.stem in command and "data.path=DIR output=RUN" in command
    assert [file for file in named if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("name", [name for name in recipes() if name.startswith("llama2")])
def test_the_reference_recipes_make_the_same_step_on_any_number_of_devices(name: str) -> None:
    train = load_config(name, DATA).train
    assert [train.accumulation(devices) for devices in (1, 2, 4, 8)] == [8, 4, 2, 1]


def test_kinds_of_adapters_differ_in_one_setting_each() -> None:
    lora, dora, qlora = (load_config(f"llama2_7b_{kind}", DATA) for kind in ("lora", "dora", "qlora"))
    assert lora.lora is not None and dora.lora == lora.lora.model_copy(update={"dora": True})
    assert qlora.model == lora.model.model_copy(update={"quantize": "nf4"}) and qlora.lora == lora.lora


@pytest.mark.parametrize(
    ("name", "parameters"), [("qwen3_4b_lora", 4_022_468_096), ("olmo3_7b_lora", 7_298_011_136)], ids=["qwen3", "olmo3"]
)
def test_the_current_models_have_the_published_number_of_parameters(name: str, parameters: int) -> None:
    config = load_config(name, [*DATA, "lora=null", "model.dtype=float32"])
    model = meta_model(config, architecture(config.model.path), checkpointing=False)
    assert sum(each.numel() for each in model.parameters()) == parameters


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
def test_a_tiny_model_of_the_same_make_trains_by_the_recipe(name: str, tokenizers: dict[str, Any], tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from perse.training.trainer import train

    tokenizer, base = tokenizers["whole_numbers"], tmp_path / "model"
    known = KNOWN[load_config(name, DATA).model.path]
    tokens = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    small = {**known, **SMALL, **tokens, "vocab_size": len(tokenizer)} | ({"head_dim": 32} if "head_dim" in known else {})
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**small))
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    data = tmp_path / "data.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(1, 4))), encoding="utf-8")
    given = [f"model.path={base}", f"data.path={data}", f"output={tmp_path / 'run'}", "train.steps=2", "train.rows_per_step=1"]
    run = train(load_config(name, [*given, "train.log_every=1", "train.attention=tree", "train.warmup=0", "watch=null"]))
    losses = [line["loss"] for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "loss" in line]
    assert len(losses) == 2 and losses[1] < losses[0]  # one row, twice
    merged = AutoModelForCausalLM.from_pretrained(run / "merged")
    assert type(merged).__name__ == {"qwen3_4b_lora": "Qwen3ForCausalLM", "olmo3_7b_lora": "Olmo3ForCausalLM"}[name]


@pytest.mark.slow
def test_the_recipe_of_the_longest_run_learns_from_evidence_and_ranks(answering_model: Path, tmp_path: Path) -> None:
    from perse.training.trainer import train

    told = Evidence(others=2, mean=7.0, spread=1.0, estimate=6.5, shrinkage=4.0)
    examples = [
        one.model_copy(
            update={"evidence": told, "profile": tuple(past.model_copy(update={"estimate": 6.0}) for past in one.profile)}
        )
        for one in pointwise_examples(1, 4)
    ]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(example_lines(examples)), encoding="utf-8")
    given = [f"model.path={answering_model}", f"data.path={data}", f"output={tmp_path / 'run'}", "train.steps=2"]
    run = train(load_config("embedded_best", given))
    lines = [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "rank_loss" in line]
    assert len(lines) == 2 and all(line["rank_pairs"] > 0 for line in lines)
    assert json.loads((run / "manifest.json").read_text())["run"]["question"] == "pointwise_score_evidence"


@pytest.mark.slow
def test_a_row_longer_than_a_models_window_is_planned(tmp_path: Path) -> None:
    """A packed row holds several examples, none of which is longer than the window."""
    from transformers import AutoConfig

    from perse.training.planning.memory import activations

    tokens = {"vocab_size": 90, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    small = {**KNOWN["allenai/Olmo-3-7B-Instruct"], **SMALL, **tokens, "sliding_window": 64}
    AutoConfig.for_model(**small).save_pretrained(tmp_path)
    config = load_config("olmo3_7b_lora", [*DATA, f"model.path={tmp_path}"])
    saved = [
        activations(
            meta_model(config, architecture(str(tmp_path)), checkpointing=False),
            tokens=length,
            learned=5,
            bf16=False,
            checkpointing=False,
        ).saved
        for length in (64, 250)
    ]
    assert 3 < saved[1] / saved[0] < 4


def test_the_template_of_the_current_qwen_leaves_no_room_for_thinking(tokenizers: dict[str, Any]) -> None:
    trl = pytest.importorskip("trl", reason="trl carries the template as published")
    import copy

    tokenizer = copy.deepcopy(tokenizers["whole_numbers"])
    file = Path(trl.__file__).parent / "chat_templates" / "qwen3_instruct_2507.jinja"
    tokenizer.chat_template = file.read_text(encoding="utf-8")
    frame = chat_frame(tokenizer)
    assert frame.head == "<|im_start|>user\n" and frame.tail == "<|im_end|>"
    assert frame.middle == "<|im_end|>\n<|im_start|>assistant\n"


# Every setting is documented


def test_every_setting_is_described_with_its_default() -> None:
    found = {each.name: each for each in described(TrainConfig)}
    assert tuple(sorted(found)) == tuple(sorted(known_keys(TrainConfig)))
    assert [name for name, each in found.items() if not each.meaning or not each.takes] == []
    assert found["train.save_every"].default == "50" and found["data.path"].default == ""
    assert found["train.liger"].takes == "true or false or null"
    for name, each in found.items():
        if each.default and each.default != "as below":
            section, _, inner = name.rpartition(".")
            assert yaml.safe_load(each.default) == _default(section, inner), name


def _default(section: str, name: str) -> Any:
    from perse.settings.training import Data, Lora, Model, Train
    from perse.settings.watching import Watch

    kinds: dict[str, Any] = {"": TrainConfig, "model": Model, "data": Data, "lora": Lora, "train": Train, "watch": Watch}
    default = kinds[section].model_fields[name].default
    return list(default) if isinstance(default, tuple) else default


def test_the_page_of_the_docs_is_what_the_command_prints() -> None:
    from perse.commands.app import app

    printed = CliRunner().invoke(app, ["train", "--settings"])
    assert printed.exit_code == 0 and printed.stdout == settings_page()
    page = (ROOT / "docs" / "training-settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), f"the settings have changed; run: {COMMAND}"
