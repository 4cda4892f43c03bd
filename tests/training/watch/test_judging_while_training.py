"""Judging while training gives the numbers of judging afterwards and leaves no trace in what is trained."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import pairwise_examples, pointwise_examples, tiny_llama
from peft import LoraConfig, get_peft_model
from tolerances import forward
from watching_builders import judged_lines, losses, model_in_training, rows_to_train, sample, trained

from perse.answering.base import JudgeSettings
from perse.engines.transformers import TransformersEngine
from perse.judgement import Judgement, Status, Tokens
from perse.judging.judge import Judge
from perse.models import finding as models
from perse.questions import QUESTIONS
from perse.records import Example
from perse.rendering.prompt import Renderer
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import training_branches
from perse.training.watch.judging import judged_now, metrics
from perse.training.watch.sample import Watched


@pytest.mark.numeric
@pytest.mark.parametrize("name", ["pointwise_score", "pairwise", "pointwise"])
def test_judging_in_training_equals_judging_the_same_weights_afterwards(
    renderer: Renderer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perse.answering.exact.MIN_MASS", 0.0)  # a random model says anything
    what = sample(renderer, name)
    model = model_in_training(renderer.tokenizer)
    found = judged_now(model, what, renderer, attention="tree")
    model.set_attn_implementation("sdpa")
    plain = model.merge_and_unload().eval()
    judge = Judge(TransformersEngine(plain), renderer, name="merged")
    tokens = what.answer_tokens if name != "pointwise" else what.new_tokens
    afterwards = metrics(
        what.question, what.judged, judge.ask(what.question, what.judged, JudgeSettings(temperature=0, max_new_tokens=tokens))
    )
    assert afterwards["parse_rate"] == 1.0 and afterwards.get("kendall", 1.0) is not None
    assert found.pop("loss") == pytest.approx(loss_of_separate_rows(plain, what, renderer), rel=2 * forward(plain, 1000), abs=0)
    assert found == afterwards, "shares of answers, and an order of expected scores that lie far enough apart"


def loss_of_separate_rows(model: Any, what: Watched, renderer: Renderer) -> float:
    ids = {one for row in what.rows for one in row.example_ids}
    examples: list[Any] = [*pointwise_examples(4, 3, k=2), *pairwise_examples(4)]
    chosen = [one for one in examples if one.id in ids and isinstance(one, what.question.example_type)]
    branches = training_branches(renderer, what.question, chosen, answer_tokens=64).fitting
    total = 0.0
    for branch in branches:
        tokens = torch.tensor([branch.prompt + branch.answer])
        with torch.no_grad():
            logprobs = torch.log_softmax(model(input_ids=tokens).logits[0, :-1], dim=-1)
        answer = torch.tensor(branch.answer)
        total -= float(logprobs[-len(answer) :].gather(1, answer[:, None]).sum())
    return total / sum(len(branch.answer) for branch in branches)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_judging_leaves_model_gradients_and_random_state_as_they_were(
    renderer: Renderer, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perse.answering.exact.MIN_MASS", 0.0)
    model = model_in_training(renderer.tokenizer, checkpointing=checkpointing)
    next(model.modules()).get_submodule("base_model.model.model.layers.0").eval()  # a module with a mode of its own
    what = sample(renderer, "pointwise")
    row = collate([what.rows[0]])
    labels = row.pop("labels")
    answer_loss(model(**row), labels).backward()

    def state() -> Any:
        return (
            {name: (p.detach().clone(), None if p.grad is None else p.grad.clone()) for name, p in model.named_parameters()},
            [module.training for module in model.modules()],
            (torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()),  # type: ignore[index]
            model.config._attn_implementation,
        )

    before = state()
    found = judged_now(model, what, renderer, attention="tree")
    after = state()
    assert found["parse_rate"] == 1.0 and found["loss"] is not None
    assert torch.equal(before[2][0], after[2][0]) and before[1:2] == after[1:2] and before[2][1:] == after[2][1:]
    assert before[3] == after[3] == "perse_tree"
    for name, (weight, grad) in before[0].items():
        assert torch.equal(weight, after[0][name][0]), name
        assert (grad is None and after[0][name][1] is None) or torch.equal(grad, after[0][name][1]), name
    assert judged_now(model, what, renderer, attention="tree") == found


def real(renderer: Renderer) -> Any:
    what = sample(renderer, examples=4)
    return lambda model: judged_now(model, what, renderer, attention="tree")


@pytest.mark.integration
def test_a_watched_run_learns_exactly_what_an_unwatched_one_does(renderer: Renderer, tmp_path: Path) -> None:
    plain, unwatched = trained(renderer, tmp_path / "plain", rows=2)
    one, lines = trained(renderer, tmp_path / "watched", judging=real(renderer), rows=2, eval_on_start=True)
    assert len(losses(unwatched)) == 8 and losses(lines) == losses(unwatched)
    passes = rows_to_train(renderer, 2).epochs
    assert passes > 1 and [line["epoch"] for line in lines if "loss" in line] == [step / 8 * passes for step in range(1, 9)]
    assert [step for step, _ in judged_lines(lines)] == [0, 2, 4, 6, 8]
    for (name, weight), (_, other) in zip(plain.model.named_parameters(), one.model.named_parameters(), strict=True):
        assert torch.equal(weight, other), name
    (found,) = [line for line in lines if line["step"] == 4 and "eval_seconds" in line]
    assert {"eval_loss", "eval_parse_rate", "eval_accuracy", "eval_within_one", "eval_asked", "eval_share"} <= set(found)
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in found.values())


def judgement(example: Example, label: str | None, expected: float | None) -> Judgement:
    return Judgement(
        id=example.id,
        question="pointwise_score",
        status=Status.OK if label is not None else Status.UNPARSED,
        label=label,
        expected=expected,
        k_effective=0,
        tokens=Tokens(prompt=1, cached=0, generated=0),
        model="m",
    )


def test_metrics_of_known_answers() -> None:
    """True scores of reader 0 are 1, 4, 7, 10. Labels 1, 5, none, 3: one of four right, two within one label, three parsed.

    Kendall of the three that are ok, true (1, 4, 10) and expected (1, 6, 3): pairs (1, 4) and (1, 10) are concordant,
    (4, 10) is not: (2 - 1) / 3. Of all four, with the mean 5.5 for the third, expected (1, 6, 5.5, 3): the three pairs with the
    first are concordant, the other three are not: 0.
    """
    examples = pointwise_examples(1, 4)
    assert [one.reference.score for one in examples if one.reference] == [1, 4, 7, 10]
    answers = [("1", 1.0), ("5", 6.0), (None, None), ("3", 3.0)]
    judgements = [judgement(one, *answer) for one, answer in zip(examples, answers, strict=True)]
    assert metrics(QUESTIONS["pointwise_score"], examples, judgements) == {
        "asked": 4,
        "parse_rate": 0.75,
        "accuracy": 0.25,
        "within_one": 0.5,
        "kendall": pytest.approx(1 / 3),
        "kendall_imputed": 0,
    }
    none = [judgement(one, None, None) for one in examples]
    found = metrics(QUESTIONS["pointwise_score"], examples, none)
    assert found["kendall"] is None and found["kendall_imputed"] is None


def test_two_easy_answers_are_worse_than_many_good_ones() -> None:
    """True 1, 4, 7, 10; the first and the last alone, in order: 1.0 of what is ok. Of all, with 5.5 for two: 5 of 6 pairs are
    concordant, one is tied among the expected: 5 / sqrt(6 * 5) = 0.913."""
    examples = pointwise_examples(1, 4)
    few = [judgement(one, *a) for one, a in zip(examples, [("1", 1.0), (None, None), (None, None), ("9", 9.0)], strict=True)]
    found = metrics(QUESTIONS["pointwise_score"], examples, few)
    assert found["kendall"] == 1 and found["kendall_imputed"] == pytest.approx(5 / math.sqrt(30))


def test_the_head_is_in_float32_while_judging_as_it_is_afterwards(
    renderer: Renderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small labels' shares in bfloat16 logits are halved or doubled, so equal to the last bit means the same head."""
    kept: list[Sequence[Judgement]] = []
    monkeypatch.setattr("perse.answering.exact.MIN_MASS", 0.0)
    monkeypatch.setattr("perse.training.watch.judging.metrics", lambda question, examples, found: kept.append(found) or {})
    tiny = tiny_llama(renderer.tokenizer)
    tiny.lm_head.weight = tiny.get_input_embeddings().weight
    tiny.config.tie_word_embeddings = True
    tiny.save_pretrained(tmp_path)
    model = models.load(tmp_path, dtype="bfloat16")
    what = sample(renderer)
    judged_now(model, what, renderer, attention="mask")
    judge = Judge(TransformersEngine.load(tmp_path), renderer, name="loaded")
    settings = JudgeSettings(temperature=0, max_new_tokens=what.answer_tokens)
    afterwards = [one.expected for one in judge.ask(what.question, what.judged, settings)]
    assert None not in afterwards and [one.expected for one in kept[0]] == afterwards
    assert model.lm_head.weight is model.get_input_embeddings().weight and not model.lm_head._forward_hooks


@pytest.mark.parametrize("trained_whole", [False, True], ids=["frozen", "trained whole"])
def test_the_head_is_in_float32_while_judging_under_autocast(renderer: Renderer, trained_whole: bool) -> None:
    model = tiny_llama(renderer.tokenizer)
    head = model.lm_head
    if trained_whole:
        lora = LoraConfig(r=2, target_modules="all-linear", modules_to_save=["lm_head"], task_type="CAUSAL_LM")
        model = get_peft_model(model, lora)
        head = model.base_model.model.lm_head.modules_to_save["default"]
        torch.nn.init.normal_(head.weight)
    states: list[torch.Tensor] = []
    logits: list[torch.Tensor] = []
    head.register_forward_pre_hook(lambda head, given: states.append(given[0].clone()))
    model.register_forward_hook(lambda whole, given, out: logits.append(out.logits.clone()))
    with torch.autocast("cpu", torch.bfloat16):  # around every forward, as accelerate has it for train.precision=bf16
        judged_now(model, sample(renderer), renderer, attention="mask")
    with torch.inference_mode():
        assert torch.equal(logits[-1], torch.nn.functional.linear(states[-1].float(), head.weight))
