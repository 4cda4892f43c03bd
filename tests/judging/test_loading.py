"""Judges by name: which engine, which model, which adapter; and what a run of a paid one cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples, tiny_llama
from tolerances import probability

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.batch.local import check_unseen
from perse.data.load import LoadedExamples
from perse.engines.kind import JudgeName
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, ModelNotFound
from perse.judgement import Judgement, Prices, Status, Tokens
from perse.judging.loading import parse_judge
from perse.models.finding import judge_digest, weights_digest
from perse.questions import QUESTIONS

QUESTION = QUESTIONS["pointwise_score"]
GREEDY = JudgeSettings(temperature=0)


@pytest.fixture(scope="module")
def adapter(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run's folder that holds an adapter of the tiny model, with weights that matter."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(tiny_model_folder),
        LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM"),
    )
    run = tmp_path_factory.mktemp("run")
    model.save_pretrained(run / "adapter")
    return run


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("smollm2-135m", JudgeName("transformers", "smollm2-135m", local=True)),
        ("owner/model", JudgeName("transformers", "owner/model", local=True)),
        ("vllm:runs/first", JudgeName("vllm", "runs/first", local=True)),
        ("runs/base+runs/first", JudgeName("transformers", "runs/base", "runs/first", local=True)),
        ("vllm:owner/model+runs/first", JudgeName("vllm", "owner/model", "runs/first", local=True)),
        ("openai:http://h:8000/v1#a+b", JudgeName("openai", "a+b", url="http://h:8000/v1")),
        ("openai:https://api.example/v1/", JudgeName("openai", "", url="https://api.example/v1")),
    ],
)
def test_a_judges_name_says_engine_model_adapter_and_address(name: str, parts: JudgeName) -> None:
    assert parse_judge(name) == parts


def test_a_folder_may_have_a_plus_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a+b"
    folder.mkdir()
    assert parse_judge(str(folder)) == JudgeName("transformers", str(folder), local=True)
    assert parse_judge(f"vllm:{folder}+c") == JudgeName("vllm", str(folder), "c", local=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:gpt", "has no address; write openai:http://HOST:PORT/v1#MODEL"),
        ("http://127.0.0.1:8000/v1", "is an address; write openai:http://127.0.0.1:8000/v1#MODEL"),
        ("", "'' names no judge"),
        ("vllm:", "'vllm:' names no judge"),
    ],
)
def test_a_name_of_no_known_shape_is_refused(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_judge(name)


@pytest.mark.slow
@pytest.mark.numeric
def test_an_adapter_is_put_on_its_base_as_peft_does(tiny_model_folder: Path, adapter: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    examples = pointwise_examples(2, 2)
    plain = Judge.load(tiny_model_folder, dtype="float32")
    judge = Judge.load(f"{tiny_model_folder}+{adapter}", dtype="float32")
    by_peft = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_model_folder), str(adapter / "adapter"))
    expected = Judge(TransformersEngine(by_peft.eval()), plain.renderer, name="peft").ask(QUESTION, examples, GREEDY)
    answers = judge.ask(QUESTION, examples, GREEDY)
    for one, two, base in zip(answers, expected, plain.ask(QUESTION, examples, GREEDY), strict=True):
        assert one.distribution == pytest.approx(two.distribution, rel=2 * probability(tiny_model_folder, 300))
        assert one.distribution != pytest.approx(base.distribution, abs=1e-3)
        assert (one.model, one.adapter, base.adapter) == (tiny_model_folder.name, adapter.name, None)


def test_the_digest_is_over_model_and_adapter(tiny_model_folder: Path, adapter: Path) -> None:
    judge = Judge.load(f"{tiny_model_folder}+{adapter / 'adapter'}")
    assert judge.identity.digest == judge_digest(tiny_model_folder, adapter / "adapter")
    assert judge.identity.digest != weights_digest(tiny_model_folder) == Judge.load(tiny_model_folder).identity.digest


def test_what_is_no_adapter_or_another_models_is_refused(
    tiny_model_folder: Path, adapter: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ModelNotFound, match="there is no adapter nowhere"):
        Judge.load(f"{tiny_model_folder}+nowhere")
    other = tmp_path / "other"
    model = tiny_llama(tokenizers["whole_numbers"])
    model.config.num_hidden_layers = 1
    model.model.layers = model.model.layers[:1]
    wide = type(model)(type(model.config)(**{**model.config.to_dict(), "hidden_size": 64}))
    wide.save_pretrained(other)
    tokenizers["whole_numbers"].save_pretrained(other)
    with pytest.raises(BadInput, match="does not fit the model"):
        Judge.load(f"{other}+{adapter}")
    (adapter / "manifest.json").write_text(json.dumps({"run": {"kind": "train", "model_digest": "another's"}}))
    try:
        with pytest.raises(BadInput, match="was trained on another model than"):
            Judge.load(f"{tiny_model_folder}+{adapter}")
    finally:
        (adapter / "manifest.json").unlink()
    with pytest.raises(ModelNotFound, match=r"is an adapter without its base model; give BASE\+"):
        Judge.load(adapter / "adapter")


def test_without_vllm_a_vllm_judge_says_how_to_get_it(tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.judging.loading.vllm_installed", lambda: False)
    with pytest.raises(BadInput, match=r"vLLM is not installed; on a GPU machine: pip install .*\[vllm\]'"):
        Judge.load(f"vllm:{tiny_model_folder}")


@pytest.mark.parametrize("shape", ["{run}", "vllm:{run}", "base+{run}"])
def test_a_judge_trained_on_another_fold_is_refused_however_it_is_named(shape: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    trained = {"run": {"kind": "train", "data_digest": "d", "config": {"data": {"fold": 1}}}}
    (run / "manifest.json").write_text(json.dumps(trained))
    loaded = LoadedExamples(pointwise_examples(1, 1), "d", None, 0)
    with pytest.raises(BadInput, match="was trained for fold 1 of this data set"):
        check_unseen(shape.format(run=run), loaded)
    check_unseen("openai:http://127.0.0.1/v1#x", loaded)


@pytest.mark.slow
def test_the_core_names_judges_and_helps_without_torch_or_servers() -> None:
    """Heavy packages are imported where they are used, so that help and names cost nothing."""
    code = (
        "import sys, perse, perse.commands.app, perse.judging.judge, perse.judging.loading, perse.settings.serving, perse.commands.serve, perse.judgement\n"
        "heavy = {'torch', 'transformers', 'vllm', 'openai', 'fastapi', 'uvicorn', 'peft', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def judgement(prompt: int, cached: int, generated: int) -> Judgement:
    tokens = Tokens(prompt=prompt, cached=cached, generated=generated)
    return Judgement(id="x", question="pointwise", status=Status.OK, label="1", k_effective=0, tokens=tokens, model="m")


def test_cost_counts_fresh_cached_and_written_tokens_at_their_prices() -> None:
    """(1000 - 400) * 2 + 400 * 0.5 + 100 * 10 = 2400 millionths for one; two of them."""
    judgements = [judgement(1000, 400, 100)] * 2
    assert Prices.parse("2,10,0.5").cost(judgements) == pytest.approx(2 * 2400 / 1e6)
    assert Prices.parse("2,10").cost(judgements) == pytest.approx(2 * 3000 / 1e6), (
        "without a price of their own, cached tokens cost as others"
    )
    assert Prices.parse("2,10").bill(judgements) == (
        "tokens: 2000 prompt (800 cached), 200 generated; cost 0.0060 (without requests that failed)"
    )


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "a,b", "-1,2", "nan,1"])
def test_prices_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="write INPUT,OUTPUT or INPUT,OUTPUT,CACHED"):
        Prices.parse(text)


def test_scoring_with_an_adapter_is_another_run_than_without(tiny_model_folder: Path, adapter: Path, tmp_path: Path) -> None:
    """The run folder knows its judge by weights: the same name with other weights is refused."""
    from perse.batch.local import score
    from perse.batch.scored import read_run
    from perse.errors import RunMismatch

    loaded = LoadedExamples(pointwise_examples(2, 2), "d", None, None)
    out = tmp_path / "run"
    score(Judge.load(f"{tiny_model_folder}+{adapter}"), QUESTION, loaded, out, settings=GREEDY)
    assert {judgement.adapter for judgement in read_run(out).judgements} == {adapter.resolve().name}
    with pytest.raises(RunMismatch):
        score(Judge.load(tiny_model_folder), QUESTION, loaded, out, settings=GREEDY)
    shutil.rmtree(out)
