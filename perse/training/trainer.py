"""One training run: examples -> packed rows -> the Hugging Face Trainer -> adapter and merged model in a run folder.

The Trainer brings devices, accumulation, checkpoints and resumption; ours are the rows, the collator and the loss. A run
folder holds manifest.json, log.jsonl, checkpoints/, adapter/ (LoRA) and merged/, which any engine loads.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    PrinterCallback,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from perse import models
from perse.runlog import RunLog
from perse.training.accounting import Throughput, device_peak
from perse.training.adapting import adapted
from perse.training.attention import takes_tree, use_tree_attention
from perse.training.batches import answer_loss, collate
from perse.training.callbacks import ProgressCallback, RunLogCallback
from perse.training.config import Attention, TrainConfig
from perse.training.curves import write_curves
from perse.training.finite import FiniteGradients
from perse.training.flops import passed
from perse.training.prepare import Prepared, prepare, renderer_for
from perse.training.schedule import RowDataset
from perse.training.trackers import tracker_names, trackers
from perse.training.watch.judging import judged_now
from perse.training.watch.run import Watching, watching_for
from perse.training.watch.trainer import Patience, WatchedTrainer, best_checkpoint, take_weights

log = logging.getLogger(__name__)

LOG = "log.jsonl"
ADAPTER = "adapter"
MERGED = "merged"


def train(config: TrainConfig, *, show: Callable[[Prepared], None] = lambda _: None) -> Path:
    """Train as `config` says, or go on where the same run stopped. Under `accelerate launch` every rank calls this.

    Args:
        show: is given what will be trained on before training begins (the command line prints how much fits).
    Returns:
        the run folder.
    Raises:
        BadInput, ModelNotFound: before anything is trained, such as an aspect that no example has.
        RunMismatch: the output folder holds a run with other settings.
    """
    base = models.find(config.model.path)
    tokenizer = AutoTokenizer.from_pretrained(base)
    out = Path(config.output)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    leads = int(os.environ.get("RANK", "0")) == 0
    prepared = prepare(config, renderer_for(config, base, tokenizer), ranks=ranks, quiet=not leads)
    names = tracker_names(config.train.report_to)
    watching = watching_for(
        config.data,
        config.watch,
        train=config.train,
        renderer=prepared.renderer,
        question=prepared.question,
        schedule=prepared.schedule,
        trained=prepared.reviewers,
    )
    # Every rank looks before any writes, so that all of them go on from the same place.
    finished = (out / MERGED / "config.json").exists()
    checkpoint = last_checkpoint(out / "checkpoints")
    arguments = _arguments(config, out, steps=prepared.schedule.steps, watching=watching, begun=checkpoint is not None)
    with ExitStack() as open_files:
        callbacks: list[TrainerCallback] = []
        if arguments.should_save:
            identity = {
                "kind": "train",
                "config": config.model_dump(mode="json", exclude={"output"}),
                "question": prepared.question.name,
                "data_digest": prepared.data_digest,
                "model_digest": models.weights_digest(base),
                "rows_sha256": prepared.digest,
                "world_size": arguments.world_size,
            }
            runlog = open_files.enter_context(RunLog(out, identity, lines=LOG))
            show(prepared)
            if not finished:
                step = _step(checkpoint) if checkpoint else -1  # step 0 has the judging before training
                runlog.cut(lambda line: line["step"] <= step)
                callbacks += [
                    RunLogCallback(runlog),
                    ProgressCallback(),
                    *trackers(names, out, step=max(step, 0)),
                ]
        if finished:
            log.info("%s is already trained", out)
            return out
        if checkpoint:
            log.info("going on from %s", checkpoint)
        trained, state = _fit(config, base, prepared, watching, arguments, callbacks, checkpoint)
        if arguments.should_save:
            if state.best_global_step:
                best = {"step": state.best_global_step, "best": arguments.metric_for_best_model, "value": state.best_metric}
                runlog.append([json.dumps(best) + "\n"])
            write_curves(out)
            _finish(config, base, trained, out)
    return out


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
    prepared: Prepared,
    watching: Watching | None,
    arguments: TrainingArguments,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> tuple[Path, TrainerState]:
    """Train and write the trained weights (the adapter's, or all), which takes every rank where they are sharded."""
    model = load_model(config, base, shared=prepared.schedule.share)
    attention = set_attention(model, config.train.attention)
    computed = torch.bfloat16 if arguments.bf16 else model.dtype
    peak = device_peak(computed)
    throughput = Throughput(prepared.schedule, passed(model), peak=peak and peak * arguments.world_size)
    trainer = WatchedTrainer(
        model=model,
        args=arguments,
        train_dataset=RowDataset(prepared.schedule),
        data_collator=partial(collate, attention=attention),
        compute_loss_func=answer_loss,
        callbacks=[
            *callbacks,
            FiniteGradients(prepared.schedule),
            throughput,
            *([Patience(config.watch.patience)] if watching and config.watch and config.watch.patience else []),
        ],
        throughput=throughput,
        judging=None
        if watching is None
        else partial(judged_now, what=watching.what, renderer=prepared.renderer, attention=attention),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trained = Path(config.output) / "checkpoints" / "trained"
    best = best_checkpoint(trainer.state, trained.parent)
    if best is None:
        trainer.save_model(str(trained))
    elif arguments.should_save:
        log.info("the weights of step %d are kept: best %s", trainer.state.best_global_step, arguments.metric_for_best_model)
        take_weights(best, trained)
    return trained, trainer.state


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


def load_model(config: TrainConfig, base: Path, *, shared: bool) -> Any:
    """The model to train, with a fresh adapter where LoRA is asked for.

    Args:
        shared: branches share tokens, so that one draw of a dropout would serve all of them: there is none then.
    """
    torch.manual_seed(config.train.seed)  # the adapter's first weights
    model = models.load(base, dtype=config.model.dtype)
    model.config.use_cache = False
    lora = config.lora
    if lora is not None and lora.dropout and shared:
        log.warning(
            "lora.dropout=%g is not applied: branches share their profile's tokens, and with them one dropout mask; "
            "train.branches=1 shares nothing and applies it",
            lora.dropout,
        )
        lora = lora.model_copy(update={"dropout": 0.0})
    return adapted(model, lora, checkpointing=config.train.gradient_checkpointing)


def set_attention(model: Any, asked: Attention | None) -> Attention:
    """Make `model` attend as `asked`, or in the way it can; returns which.

    Raises:
        BadInput: tree attention was asked of a model that cannot.
    """
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    if asked == "mask" or (asked is None and not takes_tree(inner)):
        return "mask"
    use_tree_attention(inner)
    return "tree"


def _arguments(config: TrainConfig, out: Path, *, steps: int, watching: Watching | None, begun: bool) -> TrainingArguments:
    settings = config.train
    judging: dict[str, Any] = {"save_total_limit": settings.keep_checkpoints}
    if watching is not None:
        judging = watching.arguments(begun=begun, kept=settings.keep_checkpoints)
    return TrainingArguments(
        output_dir=str(out / "checkpoints"),
        per_device_train_batch_size=1,  # one packed row
        train_sampling_strategy="sequential",  # the schedule has shuffled
        gradient_accumulation_steps=settings.accumulation,
        max_steps=steps,
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
        logging_steps=settings.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        **judging,
    )
