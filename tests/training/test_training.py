"""Training: only answers are learned, and a killed run ends where one never killed does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import pairwise_examples, pointwise_examples, tiny_llama
from places import ROOT, SAMPLES
from tolerances import logprob

from perse.data.build import PointwiseOptions, build_pointwise
from perse.errors import BadInput, RunMismatch
from perse.judging.trained import trained_profile
from perse.questions import QUESTIONS
from perse.records import example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import Train, load_config
from perse.training.rows.batches import collate
from perse.training.rows.branches import training_branches
from perse.training.rows.prepare import Prepared
from perse.training.rows.trie import packed
from perse.training.saving.checkpoints import whole_checkpoint
from perse.training.trainer import _warn_of_no_warmup, train


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 6))), encoding="utf-8")
    return path


def settings(model: Path, data: Path, out: Path, *more: str) -> list[str]:
    return [
        f"model.path={model}",
        "model.dtype=float32",
        "model.context=2048",
        f"data.path={data}",
        "lora.rank=4",
        "train.epochs=2",
        "train.batch_size=2",
        "train.rows_per_step=2",
        "train.learning_rate=0.01",
        "train.save_every=2",
        "train.log_every=1",
        f"output={out}",
        *more,
    ]


def losses(run: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    assert len(steps) == len(set(steps)), "a step is logged twice"
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def test_only_the_answer_is_learned_and_the_prompt_is_the_one_judged(tokenizer: Any) -> None:
    renderer, question = Renderer(tokenizer, 2048), QUESTIONS["pointwise"]
    examples = pointwise_examples(2, 2)
    for branch, example in zip(training_branches(renderer, question, examples).fitting, examples, strict=True):
        batch = collate([packed([branch])], attention="mask")
        learned = batch["labels"][0, 1:].tolist()
        assert example.reference is not None
        text = tokenizer.decode(learned).strip()
        assert text.startswith(f"[Review] {example.reference.review}\n[Score] {example.reference.score}")
        assert learned[-1] in renderer.end_ids
        assert tuple(batch["input_ids"][0].tolist()) == branch.prompt + branch.answer
        assert branch.prompt == renderer.render(question, example)[0].ids


def test_pairs_are_learned_as_plot_a_or_plot_b(tokenizer: Any) -> None:
    branches = training_branches(Renderer(tokenizer, 2048), QUESTIONS["pairwise"], pairwise_examples()).fitting
    texts = {tokenizer.decode(list(branch.answer), skip_special_tokens=True).strip() for branch in branches}
    assert texts == {"Plot A", "Plot B"}


def test_too_long_examples_are_counted_and_not_trained_on(tokenizers: dict[str, Any]) -> None:
    examples = pointwise_examples(1, 2)
    examples[1] = examples[1].model_copy(update={"query": "word " * 900})
    branches = training_branches(Renderer(tokenizers["chatml"], 800), QUESTIONS["pointwise"], examples, answer_tokens=64)
    assert [branch.example_id for branch in branches.fitting] == ["r0-0"] and branches.too_long == ("r0-1",)
    with pytest.raises(BadInput, match="none of the 1 examples fits"):
        training_branches(Renderer(tokenizers["chatml"], 300), QUESTIONS["pointwise"], examples[1:], answer_tokens=64)


def test_an_example_without_reference_is_refused(tokenizers: dict[str, Any]) -> None:
    example = pointwise_examples(1, 1)[0].model_copy(update={"reference": None})
    with pytest.raises(BadInput, match="has no 'reference'"):
        training_branches(Renderer(tokenizers["chatml"], 2048), QUESTIONS["pointwise"], [example])


@pytest.mark.parametrize(
    ("harm", "error", "said"),
    [
        (lambda out: out.write_text("mine"), BadInput, "cannot make the run folder .*: File exists; choose another"),
        (lambda out: out.symlink_to("nowhere"), BadInput, "it is a link to nowhere, where nothing is; choose another"),
        (
            lambda out: (out.mkdir(), (out / "mine.txt").touch()),
            RunMismatch,
            "is not empty and holds no run; choose another folder",
        ),
    ],
    ids=["a file", "a link to nothing", "a folder of somebody's"],
)
def test_an_output_that_cannot_be_used_is_refused_before_the_data_are_read(
    tiny_model_folder: Path, tmp_path: Path, harm: Any, error: Any, said: str
) -> None:
    harm(tmp_path / "run")
    (tmp_path / "train.jsonl").write_text("no data")
    with pytest.raises(error, match=said):
        train(load_config("embedded_lora", settings(tiny_model_folder, tmp_path / "train.jsonl", tmp_path / "run")))


@pytest.mark.slow
@pytest.mark.numeric
def test_training_lowers_the_loss_and_the_merged_model_equals_base_plus_adapter(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    run = train(load_config("embedded_lora", settings(tiny_model_folder, data, tmp_path / "run")))
    found = losses(run)
    assert sorted(found) == list(range(1, 13))
    assert found[12] < found[1]
    base = AutoModelForCausalLM.from_pretrained(tiny_model_folder)
    adapted = PeftModel.from_pretrained(base, run / "adapter").eval()
    merged = AutoModelForCausalLM.from_pretrained(run / "merged").eval()
    plain = AutoModelForCausalLM.from_pretrained(tiny_model_folder).eval()
    ids = torch.arange(20)[None] + 5
    with torch.inference_mode():
        assert torch.allclose(adapted(ids).logits, merged(ids).logits, atol=logprob(merged, 20), rtol=0)
        assert not torch.allclose(plain(ids).logits, merged(ids).logits, atol=1e-2)


@pytest.mark.slow
def test_an_adapter_brings_its_tokenizer_and_names_its_base_as_the_settings_do(
    tiny_model_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the folder of this machine's cache that the name led to."""
    from transformers import AutoTokenizer

    snapshot = tmp_path / "hub" / "models--owner--tiny" / "snapshots" / "0123"
    shutil.copytree(tiny_model_folder, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0123")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    more = ["train.steps=1", "train.save_every=1", "watch=null"]
    given = [each for each in settings(tiny_model_folder, data, tmp_path / "run", *more) if not each.startswith("model.path")]
    run = train(load_config("embedded_lora", [*given, "model.path=owner/tiny"]))
    assert json.loads((run / "adapter" / "adapter_config.json").read_text())["base_model_name_or_path"] == "owner/tiny"
    beside, merged = (AutoTokenizer.from_pretrained(run / name) for name in ("adapter", "merged"))
    assert beside.get_vocab() == merged.get_vocab() and beside.chat_template == merged.chat_template


@pytest.mark.slow
def test_every_epoch_of_a_data_set_drawn_by_epoch_has_profiles_of_its_own(tiny_model_folder: Path, tmp_path: Path) -> None:
    samples = SAMPLES
    options = {"reviews": samples / "reviews.jsonl", "items": samples / "items.jsonl", "out": tmp_path / "set"}
    build_pointwise(PointwiseOptions(**options, k=1, profiles="per_reviewer_epoch", max_queries=1))  # type: ignore[arg-type]
    shown: list[Prepared] = []
    more = ["data.question=pointwise_score", "train.save_every=50", "train.log_every=50"]
    config = load_config("embedded_lora", settings(tiny_model_folder, tmp_path / "set", tmp_path / "run", *more))
    run = train(config, show=shown.append)
    (prepared,) = shown
    trained = [branch for row in prepared.schedule.rows for branch in row]
    first = sorted((one for one in trained if "-e" not in one.example_id), key=lambda one: one.example_id)
    second = sorted((one for one in trained if one.example_id.endswith("-e1")), key=lambda one: one.example_id)
    assert len(first) == len(second) == 32 and {one.example_id for one in trained[:32]} == {one.example_id for one in first}
    assert sum(one.prompt != other.prompt for one, other in zip(first, second, strict=True)) > 24
    state = json.loads((whole_checkpoint(run / "checkpoints", facts={}) / "trainer_state.json").read_text())  # type: ignore[operator]
    assert trained_profile(str(run)) == trained_profile(str(run / "merged")) == 1, (
        "as the folder was built, which the settings do not say"
    )
    assert state["global_step"] == 16  # two epochs of 32 examples, four in a step


@pytest.mark.slow
def test_training_can_take_fewer_profile_entries_than_the_folder_shows(tiny_model_folder: Path, tmp_path: Path) -> None:
    samples = SAMPLES
    options = {"reviews": samples / "reviews.jsonl", "items": samples / "items.jsonl", "out": tmp_path / "set"}
    build_pointwise(PointwiseOptions(**options, k=3, max_queries=1))  # type: ignore[arg-type]
    shown: list[Prepared] = []
    more = ["data.k=0", "data.review_text=false", "train.steps=1"]
    train(
        load_config("embedded_lora", settings(tiny_model_folder, tmp_path / "set", tmp_path / "run", *more)), show=shown.append
    )
    assert {branch.k for branch in shown[0].branches.fitting} == {0}
    more = ["data.k=4", "train.steps=1"]
    with pytest.raises(BadInput, match="build it with --max-k 4"):
        train(load_config("embedded_lora", settings(tiny_model_folder, tmp_path / "set", tmp_path / "other", *more)))


@pytest.mark.slow
def test_full_training_writes_a_whole_model(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "full.yaml"
    recipe.write_text("model: {path: x, dtype: float32}\ndata: {path: x}\ntrain: {learning_rate: 0.001, steps: 2}\noutput: x\n")
    overrides = [f"model.path={tiny_model_folder}", f"data.path={data}", f"output={tmp_path / 'run'}"]
    run = train(load_config(recipe, overrides))
    assert (run / "merged" / "config.json").exists() and not (run / "adapter").exists()


@pytest.mark.numeric
@pytest.mark.integration
def test_killed_and_resumed_gives_the_same_losses_as_never_killed(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    whole = train(load_config("embedded_lora", settings(tiny_model_folder, data, tmp_path / "whole")))

    killed = tmp_path / "killed"
    command = [sys.executable, str(ROOT / "train.py"), "--config", "embedded_lora", *settings(tiny_model_folder, data, killed)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    wait_for(lambda: any((killed / "checkpoints").glob("checkpoint-*")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "merged").exists(), "killed too late to test anything"
    before = (killed / "log.jsonl").read_text()
    assert before

    resumed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr[-2000:]
    assert "going on from" in resumed.stderr
    assert losses(killed) == losses(whole), "the same rows on the same kernels"
    merged = [(run / "merged" / "model.safetensors").read_bytes() for run in (whole, killed)]
    assert merged[0] == merged[1]


def wait_for(condition: Any, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"ended before it could be killed: {process.stderr.read()[-2000:]!r}"  # type: ignore[union-attr]
        assert time.monotonic() < end, "nothing to kill after two minutes"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_finished_run_is_left_as_it_is_and_another_config_is_refused(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    given = settings(tiny_model_folder, data, tmp_path / "run", "train.steps=2")
    run = train(load_config("embedded_lora", given))
    stamp = (run / "merged" / "model.safetensors").stat().st_mtime_ns
    train(load_config("embedded_lora", given))
    assert (run / "merged" / "model.safetensors").stat().st_mtime_ns == stamp
    for other, named in (
        ("train.seed=7", "train.seed was 0, is 7"),
        ("train.learning_rate=0.02", r"train.learning_rate was 0\.01, is 0\.02"),
        ("train.weight_decay=0.3", "train.weight_decay was .*, is 0.3"),
        ("lora.rank=8", "lora.rank was 4, is 8"),
        ("data.question=pointwise_score", 'question was "pointwise", is "pointwise_score"'),
        ("data.answer_tokens=50", "data.answer_tokens was .*, is 50"),
    ):
        with pytest.raises(RunMismatch, match=f"holds a run with other settings .*{named}"):
            train(load_config("embedded_lora", [*given, other]))


@pytest.mark.slow
def test_a_run_of_other_data_or_of_another_model_at_the_same_place_is_refused(
    tokenizers: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    """The command is the same to the letter: what lies behind its paths has changed."""
    base = tmp_path / "base"
    tokenizers["whole_numbers"].save_pretrained(base)
    tiny_llama(tokenizers["whole_numbers"]).save_pretrained(base)
    config = load_config("embedded_lora", settings(base, data, tmp_path / "run", "train.steps=1"))
    run = train(config)
    weights = (run / "merged" / "model.safetensors").read_bytes()
    text = data.read_text()
    data.write_text(text.replace("}\n", " }\n", 1), encoding="utf-8")
    with pytest.raises(RunMismatch, match="data_digest was"):
        train(config)
    data.write_text(text, encoding="utf-8")
    tiny_llama(tokenizers["whole_numbers"], seed=1).save_pretrained(base)
    with pytest.raises(RunMismatch, match=r"\(model_digest was"):
        train(config)
    assert (run / "merged" / "model.safetensors").read_bytes() == weights


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scheduler": "constant", "warmup": 0.1}, True),
        ({"scheduler": "constant"}, False),
        ({"scheduler": "constant_with_warmup", "warmup": 0.1}, False),
    ],
)
def test_a_warm_up_that_the_schedule_does_not_read_is_told(
    given: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_of_no_warmup(Train(learning_rate=0.1, **given))
    assert ("train.warmup is 0.1, which train.scheduler=constant does not read" in caplog.text) is told
