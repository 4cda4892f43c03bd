"""One training run: examples -> rows -> the Hugging Face Trainer -> adapter and merged model in a run folder.

The Trainer brings devices, accumulation, checkpoints and resumption; ours are the rows, the collator and the loss. A run
folder holds manifest.json, log.jsonl, checkpoints/, adapter/ (LoRA) and merged/, which any engine loads.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from transformers import (
    AutoTokenizer,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from perse import models
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.questions import question_for
from perse.records import Example, PairwiseExample
from perse.rendering import Renderer
from perse.runlog import RunLog
from perse.training.callbacks import ProgressCallback, RunLogCallback
from perse.training.config import Lora, TrainConfig
from perse.training.examples import RowDataset, Rows, answer_loss, collate, training_rows

log = logging.getLogger(__name__)

LOG = "log.jsonl"
ADAPTER = "adapter"
MERGED = "merged"


def train(config: TrainConfig, *, show: Callable[[Rows], None] = lambda _: None) -> Path:
    """Train as `config` says, or go on where the same run stopped. Under `accelerate launch` every rank calls this.

    Args:
        show: is given the rows before training begins (the command line prints how many fit).
    Returns:
        the run folder.
    Raises:
        BadInput, ModelNotFound: before anything is trained, such as an aspect that no example has.
        RunMismatch: the output folder holds a run with other settings.
    """
    base = models.find(config.model.path)
    loaded = load_examples(
        config.data.path,
        split=config.data.split,
        fold=config.data.fold,
        view=config.data.view,
        epochs=_epochs(config),
    )
    examples = _of_aspect(loaded.examples, config.data.aspect)
    question = question_for(examples, config.data.question)
    if config.data.max_examples is not None and (most := config.data.max_examples * loaded.epochs) < len(examples):
        examples = random.Random(config.train.seed).sample(examples, most)
    tokenizer = AutoTokenizer.from_pretrained(base)
    out = Path(config.output)
    arguments = _arguments(config, out, passes=config.train.epochs / loaded.epochs)
    seen = track(examples, "rendering", console=Console(stderr=True), disable=not arguments.should_save)
    rows = training_rows(_renderer(config, base, tokenizer), question, seen, answer_tokens=config.data.answer_tokens)
    # Every rank looks before any writes, so that all of them go on from the same place.
    finished = (out / MERGED / "config.json").exists()
    checkpoint = last_checkpoint(out / "checkpoints")
    with ExitStack() as open_files:
        callbacks: list[TrainerCallback] = []
        if arguments.should_save:
            identity = {
                "kind": "train",
                "config": config.model_dump(mode="json", exclude={"output"}),
                "question": question.name,
                "data_digest": loaded.digest,
                "model_digest": models.weights_digest(base),
                "rows_sha256": hashlib.sha256(repr(rows.rows).encode()).hexdigest(),
                "world_size": arguments.world_size,
            }
            runlog = open_files.enter_context(RunLog(out, identity, lines=LOG))
            show(rows)
            if not finished:
                step = _step(checkpoint) if checkpoint else 0
                runlog.cut(lambda line: line["step"] <= step)
                callbacks += [RunLogCallback(runlog), ProgressCallback()]
        if finished:
            log.info("%s is already trained", out)
            return out
        if checkpoint:
            log.info("going on from %s", checkpoint)
        trained = _fit(config, base, tokenizer, rows, arguments, callbacks, checkpoint)
        if arguments.should_save:
            _finish(config, base, trained, out)
    return out


def _of_aspect(examples: list[Example], aspect: str | None) -> list[Example]:
    """Those of one aspect, or all.

    Raises:
        BadInput: no example has it.
    """
    if aspect is None:
        return examples
    known = sorted({example.aspect for example in examples if isinstance(example, PairwiseExample)})
    if aspect not in known:
        found = f"aspects {', '.join(known)}" if known else "single texts, which have no aspects"
        raise BadInput(
            f"data.aspect is '{aspect}', and the training examples hold {found}; choose one of them, or leave it out"
        )
    return [example for example in examples if isinstance(example, PairwiseExample) and example.aspect == aspect]


def _epochs(config: TrainConfig) -> int:
    """How many passes over the data the run makes, begun ones included; data drawn by epoch is drawn so often."""
    if config.train.steps is None:
        return math.ceil(config.train.epochs)
    loaded = load_examples(config.data.path, split=config.data.split, fold=config.data.fold, view=config.data.view)
    once = len(_of_aspect(loaded.examples, config.data.aspect))
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    asked = config.train.steps * config.train.batch_size * config.train.accumulation * ranks
    return math.ceil(asked / min(once, config.data.max_examples or once))


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint. The Trainer writes its state file last, so one without it was torn by a kill."""
    for path in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        try:
            json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            continue
        return path
    return None


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _fit(
    config: TrainConfig,
    base: Path,
    tokenizer: Any,
    rows: Rows,
    arguments: TrainingArguments,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> Path:
    """Train and write the trained weights (the adapter's, or all), which takes every rank where they are sharded."""
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    trainer = Trainer(
        model=_model(config, base),
        args=arguments,
        train_dataset=RowDataset(rows.rows),
        data_collator=partial(collate, pad_id=pad_id),
        compute_loss_func=answer_loss,
        callbacks=list(callbacks),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trained = Path(config.output) / "checkpoints" / "trained"
    trainer.save_model(str(trained))
    return trained


def _finish(config: TrainConfig, base: Path, trained: Path, out: Path) -> None:
    """Put adapter and merged model in their places, each whole or not at all; merged/ comes last and marks the end."""
    (trained / "training_args.bin").unlink(missing_ok=True)  # a pickle that nobody should load
    if config.lora is None:
        models.save_tokenizer(base, trained)
        trained.rename(out / MERGED)
        return
    shutil.rmtree(out / ADAPTER, ignore_errors=True)
    trained.rename(out / ADAPTER)
    models.merge(base, out / ADAPTER, out / MERGED, dtype=config.model.dtype)


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
    return Renderer(tokenizer, context, max_words=config.data.max_words)


def _arguments(config: TrainConfig, out: Path, *, passes: float) -> TrainingArguments:
    settings = config.train
    return TrainingArguments(
        output_dir=str(out / "checkpoints"),
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        num_train_epochs=passes,
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
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
    )
