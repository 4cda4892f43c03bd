"""Judging while training: the same numbers as judging afterwards, no trace in what is trained, and the best weights kept."""

from __future__ import annotations

import json
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
from transformers import PrinterCallback, TrainerCallback, TrainerState, TrainingArguments

from perse import models
from perse.answering.base import JudgeSettings
from perse.data.build import PointwiseOptions, build_pointwise
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.judge import Judge
from perse.judgement import Judgement, Status, Tokens
from perse.questions import QUESTIONS
from perse.records import Example, example_lines
from perse.rendering import Renderer
from perse.training.attention import use_tree_attention
from perse.training.batches import answer_loss, collate
from perse.training.branches import training_branches
from perse.training.config import Data, Train
from perse.training.curves import write_curves
from perse.training.finite import FiniteGradients, check_loss
from perse.training.schedule import RowDataset, Schedule, schedule
from perse.training.trackers import tracker_names, trackers
from perse.training.watch.config import Watch
from perse.training.watch.judging import judged_now, metrics
from perse.training.watch.plan import FORWARD, WRITING, WatchCost, tokens_once, watch_plan
from perse.training.watch.run import watching_for
from perse.training.watch.sample import Watched, unseen_examples, watched
from perse.training.watch.trainer import Patience, WatchedTrainer, best_checkpoint, take_weights

TRAIN = Train(learning_rate=0.01, batch_size=4, branches=4)
SAMPLES = Path(__file__).resolve().parent.parent / "perse" / "samples"


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def sample(renderer: Renderer, name: str = "pointwise_score", **settings: Any) -> Watched:
    examples: Sequence[Example] = pairwise_examples(4) if name == "pairwise" else pointwise_examples(4, 3, k=2)
    return watched(
        examples,
        renderer,
        QUESTIONS[name],
        watch=Watch(**{"examples": 8, "generated": 3, "new_tokens": 5, **settings}),
        train=TRAIN,
        answer_tokens=64,
    )


def model_in_training(tokenizer: Any, *, checkpointing: bool = False) -> Any:
    """As the trainer makes it: tree attention, an adapter that has learned something, training mode, no cache."""
    base = tiny_llama(tokenizer)
    base.config.use_cache = False
    use_tree_attention(base)
    torch.manual_seed(5)
    if checkpointing:
        base.enable_input_require_grads()
    model = get_peft_model(base, LoraConfig(r=2, lora_alpha=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


@pytest.fixture(scope="module")
def renderer(tokenizers: dict[str, Any]) -> Renderer:
    return Renderer(tokenizers["whole_numbers"], 2048)


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
    assert found.pop("loss") == pytest.approx(loss_of_separate_rows(plain, what, renderer), abs=1e-5)
    assert found == {key: value if value is None else pytest.approx(value, abs=1e-6) for key, value in afterwards.items()}


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


def test_a_question_that_writes_first_is_judged_on_a_few_and_its_loss_is_of_all(renderer: Renderer) -> None:
    what = sample(renderer, "pointwise", generated=3)
    assert len(what.judged) == 3 and sum(len(row.example_ids) for row in what.rows) == 8
    assert what.cost.written == 15 and what.best == "kendall_imputed"
    short = sample(renderer, "pointwise_score")
    assert len(short.judged) == 8 and short.cost.written == 0
    assert sample(renderer, "pairwise").best == "accuracy"
    found = judged_now(tiny_llama(renderer.tokenizer), what, renderer, attention="mask")
    assert found["asked"] == 3


def test_the_sample_is_the_same_every_time_and_moves_with_the_seed(renderer: Renderer) -> None:
    assert sample(renderer) == sample(renderer)
    examples = pointwise_examples(4, 3)
    drawn = []
    for few, seed in ((examples, 0), (examples[::-1], 0), (examples, 1)):
        train = TRAIN.model_copy(update={"seed": seed})
        what = watched(few, renderer, QUESTIONS["pointwise_score"], watch=Watch(examples=6), train=train, answer_tokens=64)
        drawn.append([one.id for one in what.judged])
    assert drawn[0] == drawn[1] != drawn[2]


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


def test_a_best_that_pairs_do_not_have_is_refused(renderer: Renderer) -> None:
    with pytest.raises(BadInput, match="watch.best is kendall, and the labels A, B have no order; choose accuracy or loss"):
        sample(renderer, "pairwise", best="kendall")


def test_watched_rows_keep_the_limit_of_rows_that_are_trained_on(renderer: Renderer) -> None:
    def lengths(row_tokens: int | None) -> list[int]:
        train = TRAIN.model_copy(update={"row_tokens": row_tokens, "branches": 1})
        some = pointwise_examples(2, 3, k=2)
        what = watched(some, renderer, QUESTIONS["pointwise_score"], watch=Watch(), train=train, answer_tokens=64)
        return [len(row.ids) for row in what.rows]

    alone = lengths(64)  # every example is longer, so each stands alone
    assert len(alone) == 6 and len(lengths(None)) == 2
    assert len(lengths(2 * max(alone))) == 3 and max(lengths(2 * max(alone))) <= 2 * max(alone)


def test_that_no_watched_example_fits_is_said_of_the_watched_ones(renderer: Renderer) -> None:
    narrow = Renderer(renderer.tokenizer, 80)
    with pytest.raises(
        BadInput, match=r"^examples of others.jsonl were to be judged while training: none of .*, or set watch="
    ):
        watched(
            pointwise_examples(1, 2),
            narrow,
            QUESTIONS["pointwise_score"],
            watch=Watch(data="others.jsonl"),
            train=TRAIN,
            answer_tokens=64,
        )


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


def test_the_head_is_in_float32_while_judging_under_autocast(renderer: Renderer) -> None:
    model = tiny_llama(renderer.tokenizer)
    states: list[torch.Tensor] = []
    logits: list[torch.Tensor] = []
    model.lm_head.register_forward_pre_hook(lambda head, given: states.append(given[0].clone()))
    model.register_forward_hook(lambda whole, given, out: logits.append(out.logits.clone()))
    with torch.autocast("cpu", torch.bfloat16):  # around every forward, as accelerate has it for train.precision=bf16
        judged_now(model, sample(renderer), renderer, attention="mask")
    with torch.inference_mode():
        assert torch.equal(logits[-1], torch.nn.functional.linear(states[-1].float(), model.lm_head.weight))


# How often


def test_judging_is_as_often_as_five_percent_of_the_time_allows() -> None:
    """A judging costs (600 + 400) / 2 = 500 training tokens; 1000 steps of 100 tokens are 100,000; 5% of all the time is
    100,000 x 5 / 95 = 5,263 tokens, so 10 judgings: the first, and 9 intervals of ceil(1000 / 9) = 112 steps.
    Their share is 5,000 / 105,000."""
    plan = watch_plan(WatchCost(600, 400, 0), steps=1000, tokens_per_step=100)
    assert plan is not None and (plan.every, plan.first, plan.count(1000)) == (112, True, 10)
    assert plan.share == pytest.approx(5 / 105)


def test_a_short_run_is_judged_once_at_its_end_or_not_at_all_and_a_given_interval_is_kept() -> None:
    cost = WatchCost(600, 400, 0)  # 500 training tokens
    plan = watch_plan(cost, steps=100, tokens_per_step=100)
    assert plan is not None and (plan.every, plan.first, plan.count(100)) == (100, False, 1)
    assert plan.share == pytest.approx(500 / 10500)
    assert watch_plan(cost, steps=10, tokens_per_step=100) is None
    given = watch_plan(cost, steps=10, tokens_per_step=100, every=4)
    assert given is not None and (given.every, given.first, given.count(10)) == (4, True, 4)  # before, after 4, 8 and 10
    long = watch_plan(cost, steps=10**6, tokens_per_step=10**4)
    assert long is not None and long.count(10**6) == 50


def test_written_tokens_are_dear_and_shared_prompts_count_once() -> None:
    assert WatchCost(0, 0, 10).training_tokens == FORWARD * WRITING * 10
    assert tokens_once([((1, 2), (3,)), ((1, 2), (4, 5)), ((9,), (3,))]) == 2 + 1 + 2 + 1 + 1


# Who is watched


def test_a_folder_is_watched_on_its_valid_side_and_a_file_on_the_named_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build_pointwise(
        PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set", k=2)
    )
    found = unseen_examples(Data(path=str(tmp_path / "set")), Watch(), trained=())
    assert found and all(len(getattr(one, "profile", ())) <= 2 for one in found)
    with pytest.raises(BadInput, match="would be watched and is trained on; expected examples of other reviewers"):
        unseen_examples(Data(path=str(tmp_path / "set")), Watch(), trained={found[0].reviewer_id})
    file = tmp_path / "some.jsonl"
    file.write_text("".join(example_lines(pointwise_examples(2, 2))), encoding="utf-8")
    assert len(unseen_examples(Data(path="elsewhere.jsonl", k=1), Watch(data=str(file)), trained={"x"})) == 4
    named = unseen_examples(Data(path="elsewhere.jsonl", k=1), Watch(data=str(tmp_path / "set")), trained=())
    assert {one.id for one in named} == {one.id for one in found} and max(len(one.profile) for one in named) == 1
    with caplog.at_level("INFO"):
        assert unseen_examples(Data(path=str(file)), Watch(), trained=()) == []
        assert unseen_examples(Data(path=str(tmp_path / "set"), split="valid"), Watch(), trained=()) == []
    assert "has no validation side, so training is not watched" in caplog.text and "is what is trained on" in caplog.text


def test_a_run_is_told_when_to_judge_and_what_is_best(renderer: Renderer, tmp_path: Path) -> None:
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set"))
    data, question = Data(path=str(tmp_path / "set")), QUESTIONS["pointwise_score"]
    wide = Renderer(renderer.tokenizer, 8192)
    rows = rows_to_train(renderer)
    given: dict[str, Any] = {"train": TRAIN, "renderer": wide, "question": question, "schedule": rows, "trained": ()}
    found = watching_for(data, Watch(examples=3, every=3, best="loss"), **given)
    assert found is not None and len(found.what.judged) == 3 and found.plan.count(rows.steps) == 4  # before, after 3, 6 and 8
    assert found.arguments(begun=False, kept=2) == {
        "eval_strategy": "steps",
        "eval_steps": 3,
        "eval_on_start": True,
        "metric_for_best_model": "loss",
        "save_total_limit": 3,
    }
    by_default = watching_for(data, Watch(examples=3, every=3), **given)
    assert by_default is not None and by_default.arguments(begun=False, kept=2)["metric_for_best_model"] == "kendall_imputed"
    assert not found.arguments(begun=True, kept=2)["eval_on_start"]
    assert watching_for(data, None, **given) is None


# With the Trainer


def rows_to_train(renderer: Renderer, rows: int = 2) -> Schedule:
    examples = pointwise_examples(4, 4, k=1)
    branches = training_branches(renderer, QUESTIONS["pointwise_score"], examples, answer_tokens=64).fitting
    return schedule(
        lambda _: branches, epochs=1, steps=8, rows_per_step=rows, row_tokens=1024, batch_size=2, branches=2, seed=0
    )


class Lines(TrainerCallback):
    """What is logged, as the run log has it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        self.lines.append({"step": state.global_step, **(logs or {})})


def trained(
    renderer: Renderer,
    out: Path,
    *,
    judging: Any = None,
    every: int = 2,
    best: str = "kendall",
    resume: Path | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    stop_at: int | None = None,
    loss: Any = answer_loss,
    rows: int = 1,
    **more: Any,
) -> tuple[WatchedTrainer, list[dict[str, Any]]]:
    plan, lines = rows_to_train(renderer, rows), Lines()
    watching = {"eval_strategy": "steps", "eval_steps": every, "metric_for_best_model": best} if judging else {}
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=rows,
        num_train_epochs=1,
        learning_rate=0.02,
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        use_cpu=True,
        train_sampling_strategy="sequential",
        **{"logging_steps": 1, "save_steps": 3, "save_total_limit": 2, **watching, **more},
    )
    trainer = WatchedTrainer(
        model=model_in_training(renderer.tokenizer),
        args=arguments,
        train_dataset=RowDataset(plan),
        data_collator=collate,
        compute_loss_func=loss,
        callbacks=[lines, FiniteGradients(plan), *([Kill(stop_at)] if stop_at else []), *callbacks],
        judging=judging,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return trainer, lines.lines


class Kill(TrainerCallback):
    """Stops a run in the middle of a step, as a kill does: nothing is written any more."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise KeyboardInterrupt


def real(renderer: Renderer) -> Any:
    what = sample(renderer, examples=4)
    return lambda model: judged_now(model, what, renderer, attention="tree")


def scripted(*values: float | None) -> Any:
    left = iter(values)
    return lambda model: {"loss": 1.0, "kendall": next(left)}


def told(*lines: dict[str, float | None]) -> Any:
    left = iter(lines)
    return lambda model: next(left)


def losses(lines: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def judged_lines(lines: list[dict[str, Any]]) -> list[tuple[int, float | None]]:
    return [(line["step"], line.get("eval_kendall")) for line in lines if "eval_seconds" in line]


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


def test_the_best_is_saved_when_it_is_found_and_outlives_newer_checkpoints(renderer: Renderer, tmp_path: Path) -> None:
    trainer, lines = trained(renderer, tmp_path, judging=scripted(0.1, 0.4, None, 0.2), save_steps=1)
    assert judged_lines(lines) == [(2, 0.1), (4, 0.4), (6, None), (8, 0.2)]
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-4", "checkpoint-8"]
    best = best_checkpoint(trainer.state, tmp_path)
    assert best == tmp_path / "checkpoint-4" and trainer.state.best_metric == 0.4
    take_weights(best, tmp_path / "trained")
    trainer.save_model(str(tmp_path / "last"))
    files = {path.name for path in (tmp_path / "last").iterdir()} - {"training_args.bin"}
    assert {path.name for path in (tmp_path / "trained").iterdir()} == files
    weights = [(tmp_path / folder / "adapter_model.safetensors").read_bytes() for folder in ("trained", "checkpoint-4", "last")]
    assert weights[0] == weights[1] != weights[2]


def test_a_best_between_two_saves_is_saved_too_and_a_loss_is_best_when_small(renderer: Renderer, tmp_path: Path) -> None:
    values = iter((0.5, 0.2, 0.3, 0.4))
    trainer, _ = trained(renderer, tmp_path, judging=lambda model: {"loss": next(values)}, best="loss", save_steps=100)
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4"


def test_nothing_judged_or_never_with_a_number_keeps_the_last_weights(renderer: Renderer, tmp_path: Path) -> None:
    trainer, lines = trained(renderer, tmp_path, judging=scripted(None, None, None, None))
    assert judged_lines(lines) == [(2, None), (4, None), (6, None), (8, None)]
    assert best_checkpoint(trainer.state, tmp_path) is None and best_checkpoint(TrainerState(), tmp_path) is None


def test_of_equal_judgings_the_one_with_the_lower_loss_is_best_else_the_first(renderer: Renderer, tmp_path: Path) -> None:
    numbers = [{"loss": loss, "accuracy": 0.5} for loss in (1.0, 0.9, 0.9, 0.95)]
    trainer, _ = trained(renderer, tmp_path, judging=told(*numbers), best="accuracy", save_steps=100, callbacks=[Patience(2)])
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4" and trainer.state.best_metric == 0.5
    assert trainer.state.global_step == 8 and trainer.control.should_training_stop


def test_nothing_is_best_and_patience_runs_while_nothing_is_answered(renderer: Renderer, tmp_path: Path) -> None:
    numbers = [
        {"loss": 1.0, "accuracy": accuracy, "parse_rate": rate} for accuracy, rate in ((0.0, 0), (0.1, 0.5), (0.0, 0), (0.9, 0))
    ]
    trainer, _ = trained(
        renderer, tmp_path, judging=told(*numbers), every=1, best="accuracy", callbacks=[Patience(2)], save_steps=100
    )
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-2" and trainer.state.global_step == 4


def test_a_run_that_goes_on_between_two_logged_steps_has_the_same_losses(renderer: Renderer, tmp_path: Path) -> None:
    """Logged every 3 steps, saved after 4 and 8, judged, and saved as the best, after 5."""
    settings: dict[str, Any] = {"logging_steps": 3, "save_steps": 4, "every": 5, "save_total_limit": 5}
    judging = lambda model: {"loss": 1.0, "kendall": 0.5}  # noqa: E731
    whole = losses(trained(renderer, tmp_path / "whole", judging=judging, **settings)[1])
    assert [step for step, _ in whole] == [3, 4, 5, 6, 8]
    for step in (4, 5):
        checkpoint = tmp_path / "whole" / f"checkpoint-{step}"
        _, rest = trained(renderer, tmp_path / f"from-{step}", judging=judging, resume=checkpoint, **settings)
        assert losses(rest) == [line for line in whole if line[0] > step]


def test_training_ends_when_patience_does(renderer: Renderer, tmp_path: Path) -> None:
    values = (0.3, 0.1, None, 0.9)
    trainer, lines = trained(renderer, tmp_path, judging=scripted(*values), callbacks=[Patience(2)], save_steps=1)
    assert judged_lines(lines) == [(2, 0.3), (4, 0.1), (6, None)] and trainer.state.global_step == 6
    assert not (tmp_path / "checkpoint-6").exists(), "a kill right after the stop would go on from there"
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-2"


def test_what_came_before_training_is_neither_best_nor_counted_by_patience(renderer: Renderer, tmp_path: Path) -> None:
    values = (0.9, 0.3, 0.4, 0.1, 0.2)
    trainer, lines = trained(
        renderer, tmp_path, judging=scripted(*values), callbacks=[Patience(2)], eval_on_start=True, save_steps=100
    )
    assert [step for step, _ in judged_lines(lines)] == [0, 2, 4, 6, 8]
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4"


def test_a_killed_run_goes_on_to_the_same_best_and_the_same_stop(renderer: Renderer, tmp_path: Path) -> None:
    """Judged after steps 2, 4, 6, 8 with the best after 2; patience 3 would end at 8. Killed within step 6 (the checkpoint is
    of step 3): a history kept in memory would start again and know neither the best nor how long it has been."""
    script = {2: 0.5, 4: 0.1, 6: 0.2, 8: 0.3}

    class At(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.step = state.global_step

    def run(out: Path, **more: Any) -> tuple[WatchedTrainer, list[dict[str, Any]]]:
        at = At()
        judging = lambda model: {"loss": 1.0, "kendall": script[at.step]}  # noqa: E731
        return trained(renderer, out, judging=judging, callbacks=[at, Patience(3)], **more)

    whole, lines = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", stop_at=5)
    resumed, rest = run(tmp_path / "killed", resume=tmp_path / "killed" / "checkpoint-3")
    assert [line for line in losses(lines) if line[0] > 3] == losses(rest)
    assert judged_lines(rest) == [(4, 0.1), (6, 0.2), (8, 0.3)]
    assert best_checkpoint(resumed.state, tmp_path / "killed") == tmp_path / "killed" / "checkpoint-2"
    files = [tmp_path / run / "checkpoint-2" / "adapter_model.safetensors" for run in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.state.best_metric == resumed.state.best_metric == 0.5
    assert not (tmp_path / "whole" / "checkpoint-8").exists() and not (tmp_path / "killed" / "checkpoint-8").exists()


def test_judging_that_takes_too_long_is_said_once_with_the_remedy(
    renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import time

    def slow(model: Any) -> dict[str, float | None]:
        time.sleep(0.3)
        return {"loss": 1.0, "kendall": 0.1}

    _, lines = trained(renderer, tmp_path, judging=slow)
    said = [record.getMessage() for record in caplog.records if "judging takes" in record.getMessage()]
    assert len(said) == 1 and "set watch=null to have it under 5%" in said[0]
    assert all(line["eval_share"] > 0.05 for line in lines if "eval_seconds" in line)


# Not a number


def test_a_loss_that_is_no_number_stops_before_the_optimizer_and_names_step_and_examples(
    renderer: Renderer, tmp_path: Path
) -> None:
    """The second row of step 3 is spoilt: its loss is NaN, its neighbour's is not."""
    calls = []

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        calls.append(labels)
        return answer_loss(outputs, labels, num_items_in_batch) * (math.nan if len(calls) == 6 else 1.0)

    class Weights(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.model, self.step = model, state.global_step + 1
            self.before = [weight.detach().clone() for weight in model.parameters()]

    seen = Weights()
    named = ", ".join(rows_to_train(renderer).step_rows(3)[1].example_ids)
    with pytest.raises(
        BadInput,
        match=rf"the loss of examples? {named} is nan in step 3, expected a finite number; look at.* in a new output folder; the",
    ):
        trained(renderer, tmp_path, callbacks=[seen], loss=loss, rows=2, save_steps=100)
    assert seen.step == 3
    assert all(torch.equal(*pair) for pair in zip(seen.before, seen.model.parameters(), strict=True))


def test_a_gradient_that_is_no_number_stops_before_the_optimizer(renderer: Renderer) -> None:
    plan = rows_to_train(renderer)
    model = torch.nn.Linear(2, 1)
    callback, state = FiniteGradients(plan), TrainerState(global_step=2)
    model.weight.grad, model.bias.grad = torch.ones(1, 2), torch.ones(1)
    callback.on_pre_optimizer_step(None, state, None, model=model)  # type: ignore[arg-type]
    model.bias.grad = torch.tensor([math.inf])
    first = plan.step_rows(3)[0].example_ids[0]
    with pytest.raises(
        BadInput, match=rf"the gradient of examples {first}, .* is not finite in step 3; look at these examples"
    ):
        callback.on_pre_optimizer_step(None, state, None, model=model)  # type: ignore[arg-type]


def test_only_the_row_whose_loss_is_no_number_is_named(renderer: Renderer) -> None:
    plan = rows_to_train(renderer)
    _, row = plan.step_rows(3)
    ids = torch.tensor([row.ids])
    check_loss(torch.tensor(1.5), schedule=plan, step=3, input_ids=ids)
    named = ", ".join(row.example_ids)
    with pytest.raises(BadInput, match=rf"the loss of examples {named} is nan in step 3, expected a finite number; look at"):
        check_loss(torch.tensor(math.nan), schedule=plan, step=3, input_ids=ids)


# Curves and trackers


def test_curves_are_drawn_into_the_run_folder(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    (tmp_path / "log.jsonl").write_text(
        '{"step": 1, "loss": 3.5}\n{"step": 2, "loss": 3.0}\n{"step": 2, "eval_kendall": 0.1}\n'
    )
    path = write_curves(tmp_path)
    assert path == tmp_path / "curves.png" and path.read_bytes()[:4] == b"\x89PNG"
    first = path.read_bytes()
    write_curves(tmp_path)
    assert path.read_bytes() == first


def test_a_missing_matplotlib_is_a_sentence_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import sys

    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 3.5}\n')
    for name in ("matplotlib", "matplotlib.backends.backend_svg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level("INFO"):
        assert write_curves(tmp_path) is None
    assert "pip install 'perse-judge[report]'" in caplog.text and not (tmp_path / "curves.png").exists()


def test_unknown_and_missing_trackers_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracker_names(()) == ()
    with pytest.raises(BadInput, match=r"train.report_to names 'tensorbord'; choose from tensorboard, wandb, trackio, mlflow"):
        tracker_names(("tensorbord",))
    monkeypatch.setattr("perse.training.trackers.find_spec", lambda name: None if name == "wandb" else object())
    assert tracker_names(None) == ("tensorboard",) and tracker_names(("mlflow", "mlflow")) == ("mlflow",)
    with pytest.raises(BadInput, match="names wandb, which is not installed; pip install wandb, or leave it out"):
        tracker_names(("wandb",))


def test_tensorboard_gets_what_the_run_log_gets(renderer: Renderer, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trained(
        renderer,
        tmp_path / "checkpoints",
        judging=scripted(0.1, 0.4, None, 0.2),
        callbacks=trackers(("tensorboard",), tmp_path),
    )
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(one.step, round(one.value, 3)) for one in events.Scalars("eval/kendall")] == [(2, 0.1), (4, 0.4), (8, 0.2)]
    assert [one.step for one in events.Scalars("train/loss")] == list(range(1, 9))
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["checkpoints", "tensorboard"]'


def test_tensorboard_forgets_a_run_that_begins_again(renderer: Renderer, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def steps(name: str) -> list[int]:
        events = EventAccumulator(str(tmp_path / "tensorboard"))
        events.Reload()
        return [one.step for one in events.Scalars(name)]

    with pytest.raises(KeyboardInterrupt):
        trained(renderer, tmp_path / "killed", stop_at=3, callbacks=trackers(("tensorboard",), tmp_path), save_steps=100)
    assert steps("train/loss") == [1, 2, 3]
    trained(renderer, tmp_path / "again", callbacks=trackers(("tensorboard",), tmp_path), logging_steps=4, save_steps=4)
    assert steps("train/loss") == [4, 8]
