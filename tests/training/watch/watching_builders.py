"""What is watched, a model as the trainer makes it, and small runs of the Trainer that judge while they train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from builders import pairwise_examples, pointwise_examples, tiny_llama
from peft import LoraConfig, get_peft_model
from transformers import PrinterCallback, TrainerCallback, TrainingArguments

from perse.questions import QUESTIONS
from perse.records import Example
from perse.rendering.prompt import Renderer
from perse.settings.training import Train
from perse.settings.watching import Watch
from perse.training.finite import FiniteGradients
from perse.training.launched import ALONE
from perse.training.rows.attention import use_tree_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import training_branches
from perse.training.rows.schedule import RowDataset, Schedule, schedule
from perse.training.watch.sample import Watched, watched
from perse.training.watch.trainer import Kept, WatchedTrainer

TRAIN = Train(learning_rate=0.01, batch_size=4, max_shared_examples=4)


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


def rows_to_train(renderer: Renderer, rows: int = 2) -> Schedule:
    examples = pointwise_examples(4, 4, k=1)
    branches = training_branches(renderer, QUESTIONS["pointwise_score"], examples, answer_tokens=64).fitting
    return schedule(
        lambda _: branches, epochs=1, steps=8, rows_per_step=rows, row_tokens=1024, batch_size=2, max_shared_examples=2, seed=0
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
    keep: int = 1,
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
        **{"logging_steps": 1, "save_steps": 3, **watching, **more},
    )
    trainer = WatchedTrainer(
        model=model_in_training(renderer.tokenizer),
        args=arguments,
        train_dataset=RowDataset(plan),
        data_collator=collate,
        compute_loss_func=loss,
        callbacks=[lines, FiniteGradients(plan), *([Kill(stop_at)] if stop_at else []), *callbacks],
        kept=Kept(out, keep, ALONE, {}),
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


def scripted(*values: float | None) -> Any:
    left = iter(values)
    return lambda model: {"loss": 1.0, "kendall": next(left)}


def losses(lines: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def judged_lines(lines: list[dict[str, Any]]) -> list[tuple[int, float | None]]:
    return [(line["step"], line.get("eval_kendall")) for line in lines if "eval_seconds" in line]
