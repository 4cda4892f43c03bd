"""One training run: examples -> rows -> the Hugging Face Trainer -> adapter and merged model in a run folder.

The Trainer brings devices, accumulation, checkpoints and resumption; ours are the rows, the collator and the loss. A run
folder holds manifest.json, log.jsonl, checkpoints/, adapter/ (LoRA) and merged/, which any engine loads.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from perse import models
from perse.data.load import load_examples
from perse.questions import question_for
from perse.rendering import Renderer
from perse.runlog import RunLog
from perse.training.config import Lora, TrainConfig
from perse.training.examples import RowDataset, Rows, answer_loss, collate, training_rows

log = logging.getLogger(__name__)

LOG = "log.jsonl"


class RunLogCallback(TrainerCallback):
    """Writes what the Trainer logs as lines of the run log: step, loss, gradient norm, learning rate."""

    def __init__(self, runlog: RunLog) -> None:
        self.runlog = runlog

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        self.runlog.append([json.dumps({"step": state.global_step, **(logs or {})}) + "\n"])


def train(config: TrainConfig, *, show: Callable[[Rows], None] = lambda _: None) -> Path:
    """Train as `config` says, or go on where the same run stopped. Under `accelerate launch` every rank calls this.

    Args:
        show: is given the rows before training begins (the command line prints how many fit).
    Returns:
        the run folder.
    Raises:
        BadInput, ModelNotFound: before anything is trained.
        RunMismatch: the output folder holds a run with other settings.
    """
    base = models.find(config.model.path)
    loaded = load_examples(config.data.path, split=config.data.split, fold=config.data.fold)
    question = question_for(loaded.examples, config.data.question)
    examples = loaded.examples
    if config.data.max_examples is not None and config.data.max_examples < len(examples):
        examples = random.Random(config.train.seed).sample(examples, config.data.max_examples)
    tokenizer = AutoTokenizer.from_pretrained(base)
    out = Path(config.output)
    arguments = _arguments(config, out)
    rows = training_rows(_renderer(config, base, tokenizer), question, examples)
    if not arguments.should_save:
        _fit(config, base, tokenizer, rows, arguments, [])
        return out
    identity = {
        "kind": "train",
        "config": config.model_dump(mode="json", exclude={"output"}),
        "question": question.name,
        "data_digest": loaded.digest,
        "model_digest": models.weights_digest(base),
        "world_size": arguments.world_size,
    }
    with RunLog(out, identity, lines=LOG) as runlog:
        show(rows)
        if (out / "merged" / "config.json").exists():
            log.info("%s is already trained", out)
            return out
        checkpoint = last_checkpoint(out / "checkpoints")
        step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
        if checkpoint:
            log.info("going on from %s", checkpoint)
        runlog.keep(lambda line: line["step"] <= step)
        model = _fit(config, base, tokenizer, rows, arguments, [RunLogCallback(runlog)], checkpoint)
        if config.lora is None:
            models.save_model(model, base, out / "merged")
        else:
            model.save_pretrained(out / "adapter")
            models.merge(base, out / "adapter", out / "merged", dtype=config.model.dtype)
    return out


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint. The Trainer writes its state file last, so one without it was torn by a kill."""

    def step(path: Path) -> int:
        return int(path.name.rpartition("-")[2])

    for path in sorted(folder.glob("checkpoint-*"), key=step, reverse=True):
        try:
            json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            continue
        return path
    return None


def _fit(
    config: TrainConfig,
    base: Path,
    tokenizer: Any,
    rows: Rows,
    arguments: TrainingArguments,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None = None,
) -> Any:
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    trainer = Trainer(
        model=_model(config, base),
        args=arguments,
        train_dataset=RowDataset(rows.rows),
        data_collator=partial(collate, pad_id=pad_id),
        compute_loss_func=answer_loss,
        callbacks=list(callbacks),
    )
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return trainer.accelerator.unwrap_model(trainer.model)


def _model(config: TrainConfig, base: Path) -> Any:
    torch.manual_seed(config.train.seed)  # the adapter's first weights
    model = models.load(base, dtype=config.model.dtype)
    model.config.use_cache = False
    return model if config.lora is None else _with_adapter(model, config.lora, config.train.gradient_checkpointing)


def _with_adapter(model: Any, lora: Lora, checkpointing: bool) -> Any:
    from peft import LoraConfig, get_peft_model

    if checkpointing:
        model.enable_input_require_grads()
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    return get_peft_model(
        model,
        LoraConfig(
            r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets, task_type="CAUSAL_LM"
        ),
    )


def _renderer(config: TrainConfig, base: Path, tokenizer: Any) -> Renderer:
    longest = models.context_length(base)
    context = min(config.model.context or longest, longest)
    return Renderer(tokenizer, context, answer_tokens=config.data.answer_tokens, max_words=config.data.max_words)


def _arguments(config: TrainConfig, out: Path) -> TrainingArguments:
    settings = config.train
    return TrainingArguments(
        output_dir=str(out / "checkpoints"),
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        num_train_epochs=settings.epochs,
        max_steps=settings.steps or -1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.scheduler,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16",
        gradient_checkpointing=settings.gradient_checkpointing,
        seed=settings.seed,
        data_seed=settings.seed,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=settings.keep_checkpoints,
        logging_steps=settings.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to="none",
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
    )
