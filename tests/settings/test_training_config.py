"""Settings are refused in plain words, with the nearest right name."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import pairwise_examples, pointwise_examples

from perse.errors import BadInput
from perse.records import example_lines
from perse.settings.training import load_config, recipes
from perse.training.trainer import train

OK = ["data.path=somewhere"]


@pytest.mark.parametrize("name", recipes())
def test_every_packaged_recipe_is_valid(name: str) -> None:
    config = load_config(name, OK)
    assert config.train.learning_rate > 0


def test_the_reference_recipes_have_the_papers_constants() -> None:
    """PerSE, appendix B: full fine-tuning at 1e-5, batch 4 (7B) and 2 (13B) on 8 devices; 2k and 6k steps on Per-MPST."""
    for name, batch, steps in (("llama2_7b_full", 4, 2000), ("llama2_13b_full", 2, 6000)):
        config = load_config(name, OK)
        assert (config.lora, config.train.learning_rate, config.train.batch_size, config.train.steps) == (
            None,
            1e-5,
            batch,
            steps,
        )


def test_overrides_change_the_file_and_numbers_are_read_as_numbers() -> None:
    config = load_config("embedded_lora", [*OK, "train.learning_rate=3e-4", "train.steps=7", "lora.targets=[q_proj, v_proj]"])
    assert config.train.learning_rate == 3e-4 and config.train.steps == 7
    assert config.lora is not None and config.lora.targets == ("q_proj", "v_proj")


def test_4_bit_weights_are_refused_without_an_adapter_to_train() -> None:
    for recipe, given in (("embedded_lora", ["lora=null", "model.quantize=nf4"]), ("llama2_7b_full", ["model.quantize=nf4"])):
        with pytest.raises(
            BadInput, match="weights of 4 bits are frozen, so that nothing would be trained; give a lora section"
        ):
            load_config(recipe, [*OK, *given])


def test_lora_can_be_switched_off() -> None:
    assert load_config("embedded_lora", [*OK, "lora=null", "model.dtype=float32"]).lora is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.learning_rate=inf", "train.learning_rate: input should be a finite number"),
        ("watch.held_apart=nan", "watch.held_apart: input should be"),
        ("train.learning_rat=1", "there is no setting 'train.learning_rat'; did you mean 'train.learning_rate'?"),
        ("learning_rate=1", "there is no setting 'learning_rate'; did you mean 'train.learning_rate'?"),
        ("train.steps=many", "train.steps: input should be a valid integer"),
        ("train.batch_size=0", "train.batch_size: input should be greater than or equal to 1, found 0"),
        ("train.steps=999999999", "train.steps: input should be less than or equal to 1000000, found 999999999"),
        ("train.epochs=1e308", "train.epochs: input should be less than or equal to 10000"),
        ("model.dtype=int8", "model.dtype: input should be 'float32', 'bfloat16' or 'float16', found 'int8'"),
        ("model.quantize=int4", "model.quantize: input should be 'nf4', found 'int4'"),
        ("lora.dora=perhaps", "lora.dora: input should be a valid boolean"),
        ("train.liger=perhaps", "train.liger: input should be a valid boolean"),
        ("lora.dora_rank=4", "there is no setting 'lora.dora_rank'; did you mean 'lora.rank'?"),
        ("train.steps", "'train.steps' is no setting; write key=value"),
        ("train=5", "train: input should be a valid dictionary"),
        ("data.mix=work/books", "data.mix: found 'work/books', expected a list of {path, weight}"),
        ("data.mix=[work/books]", "data.mix.0: found 'work/books', expected {path, weight}"),
        ("data.mix=[{path: a, wieght: 2}]", "there is no setting 'data.mix.0.wieght'; expected {path, weight}"),
        (
            "model.dtype=float16",
            "model.dtype is float16, whose small gradients vanish without a loss scaler, and there is none",
        ),
        ("lora=null", "full fine-tuning of bfloat16 weights loses small updates"),
    ],
)
def test_wrong_settings_say_what_is_wrong(override: str, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        load_config("embedded_lora", [*OK, override])
    assert message in str(raised.value)


def test_all_problems_of_a_file_are_listed_together(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("model: {path: m}\ndata: {pth: d}\ntrain: {learning_rate: 1, stepz: 3}\noutput: o\n")
    with pytest.raises(BadInput, match=r"'data.pth'; did you mean 'data.path'\?; .*'train.stepz'; did you mean 'train.steps'"):
        load_config(file)


def test_missing_data_is_named() -> None:
    with pytest.raises(BadInput, match="setting 'data.path' is missing; give data.path="):
        load_config("embedded_lora")


def test_an_absent_file_lists_the_packaged_recipes() -> None:
    with pytest.raises(BadInput, match="there is no config file nowhere.yaml; packaged recipes are .*embedded_lora"):
        load_config("nowhere.yaml")


def test_an_aspect_that_no_example_has_is_refused_with_those_there_are(tiny_model_folder: Path, tmp_path: Path) -> None:
    for examples, message in (
        (
            pairwise_examples(),
            "data.aspect is 'Plot', and the training examples hold aspects Ending, Surprise; choose one of them",
        ),
        (pointwise_examples(), "hold single texts, which have no aspects"),
    ):
        data = tmp_path / "data.jsonl"
        data.write_text("".join(example_lines(examples)), encoding="utf-8")
        given = [f"model.path={tiny_model_folder}", f"data.path={data}", "data.aspect=Plot", f"output={tmp_path / 'out'}"]
        with pytest.raises(BadInput, match=message):
            train(load_config("embedded_lora", given))
    assert not (tmp_path / "out").exists()


def test_a_schedule_that_is_refused_says_so_and_prints_no_settings() -> None:
    with pytest.raises(
        BadInput, match="train: power is 3, which only scheduler=polynomial reads, and it is cosine; leave one out$"
    ):
        load_config("embedded_lora", [*OK, "train.power=3"])
