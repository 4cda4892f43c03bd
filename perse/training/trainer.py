"""One training run: examples -> packed rows -> the Hugging Face Trainer -> adapter and merged model in a run folder.

The Trainer brings devices, accumulation, checkpoints and resumption; ours are the rows, the collator and the loss. A run
folder holds manifest.json, log.jsonl, checkpoints/, adapter/ (LoRA) and merged/, which any engine loads.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PrinterCallback,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from perse.errors import BadInput
from perse.files.belongings import keep_changed
from perse.files.disk import aside
from perse.files.own_files import fresh_folder, put_back, refuse_stage, replace_folder
from perse.files.path_names import place_named
from perse.files.runlog import (
    MANIFEST,
    RunLog,
    make_folder,
    refuse_open_run,
    refuse_other_run,
    refuse_strangers,
    run_closed,
)
from perse.formats.json_text import read_object
from perse.judgement import Judgement
from perse.models import finding as models
from perse.models.model_files import ADAPTER_CONFIG
from perse.models.opening import check_model
from perse.models.opening import tokenizer as opened_tokenizer
from perse.publishing import merging
from perse.publishing.card import write_card
from perse.publishing.merging import ship_tokenizer
from perse.records import Example
from perse.rendering.prompt import Renderer
from perse.settings.training import Model, Train, TrainConfig
from perse.training.callbacks import GiveBack, LastSaved, ProgressCallback, RunLogCallback, SaveByMinutes, StopFile
from perse.training.curves import write_curves
from perse.training.finite import FiniteGradients
from perse.training.identity import made_of, run_id_of, run_identity
from perse.training.launched import (
    Launched,
    broadcast_from_main,
    check_launcher,
    check_sharded,
    join,
    launched,
    leave_process_group,
    on_cpu,
    sum_in_float32,
    wait_for_all,
    wait_less,
)
from perse.training.learning_rates import learning_rate_arguments
from perse.training.model.quantized import check_undivided
from perse.training.optimizers import check_optimizer, device_kind, optimizer_arguments
from perse.training.planning.disk import check_disk
from perse.training.planning.flops import passed
from perse.training.ready import ReadyModel, ready_model
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.deal import FOLDER, needed, read_rows, rows_key, write_rows
from perse.training.rows.prepare import Prepared, renderer_for
from perse.training.rows.proof import ProveFirst
from perse.training.rows.row_loss import row_loss_for
from perse.training.rows.schedule import RowDataset
from perse.training.saving.checkpoints import ASIDE, CHECKPOINTS, recover, saving, step_of, whole_checkpoint
from perse.training.saving.reshard import reshard
from perse.training.throughput import Throughput, device_peak
from perse.training.trackers import tracker_names, trackers
from perse.training.watch.apart import rows_apart
from perse.training.watch.judging import judged_now
from perse.training.watch.run import Watching, watching_for
from perse.training.watch.shown import ShownAnswers
from perse.training.watch.trainer import Kept, Patience, WatchedTrainer, best_checkpoint, take_weights

log = logging.getLogger(__name__)

LOG = "log.jsonl"
ADAPTER = "adapter"
MERGED = "merged"
MANY_TIMES = 20
"""That an example is shown, beyond which a run was hardly meant so."""
TRAINED = ".trained.perse-tmp"
"""Beside the checkpoints, where the trained weights are before they are put in their place."""


def train(config: TrainConfig, *, show: Callable[[Prepared], None] = lambda _: None) -> Path:
    """Train as `config` says, or resume the same run. Under `accelerate launch` every rank calls this.

    Args:
        show: is given what will be trained on before training begins (the command line prints how much fits).
    Returns:
        the run folder.
    Raises:
        BadInput, ModelNotFound: before anything is trained or written, such as an aspect that no example has.
        RunMismatch: the output folder holds a run with other settings.
    """
    trust = config.model.trust_remote_code
    names = tracker_names(config.train.report_to)
    out = Path(config.output)
    process = launched()
    check_launcher(config.train)
    check_undivided(config.model, sharding=process.sharding)
    check_optimizer(config.train.optimizer, sharding=process.sharding, device=device_kind())
    join(process, config.train)
    base = found_once(config.model, process)
    tokenizer = opened_tokenizer(base, trust_remote_code=trust)
    prepared = prepared_once(config, renderer_for(config, base, tokenizer), base, process)
    wait_less(process)
    watching = watching_for(config, prepared, process=process)
    if process.is_main_process:
        _warn_of_many_times(prepared)
        _warn_of_no_warmup(config.train)
        with run_closed(out / LOG):
            recover(out / CHECKPOINTS)
            put_back(out / ADAPTER)
            put_back(out / MERGED)
        for stage in (out / CHECKPOINTS / ASIDE, out / CHECKPOINTS / TRAINED, aside(out / MERGED)):
            refuse_stage(stage)  # not only when it is needed, which may be hours later
    if process.is_main_process and not (out / MERGED / "config.json").exists():
        if (out / MERGED).exists():
            raise BadInput(
                f"{out / MERGED} is there and holds no model, and the trained one is to be written there; move it away"
            )
        check_disk(config, process.sharding)
    facts = broadcast_from_main(process, made_of(prepared, base) if process.is_main_process else None)
    # The first process looks for all, so that they resume from the same place and the bytes are read once.
    finished = broadcast_from_main(process, _is_whole(out / MERGED))
    looked = process.is_main_process and not finished
    found = whole_checkpoint(out / CHECKPOINTS, facts=facts, run_id=run_id_of(out)) if looked else None
    checkpoint = broadcast_from_main(process, found)
    arguments = training_arguments(
        config, out, steps=prepared.schedule.steps, watching=watching, begun=checkpoint is not None, process=process
    )
    # What the model refuses is refused before the folder is begun, which takes no other settings afterwards.
    ready = None if finished else ready_model(config, base, prepared, watching, arguments, process=process)
    with ExitStack() as open_files:
        callbacks: list[TrainerCallback] = []
        run_id, shown = None, None
        if arguments.should_save:
            identity = run_identity(config, prepared, facts)
            local = place_named(config.model.path).is_dir()
            context = {"world_size": process.world_size, "sharding": process.sharding, "model_is_folder": local}
            choosers = [] if watching is None else watching.choosers(prepared.schedule.steps)
            longest = max(branch.k_effective for branch in prepared.branches.fitting)
            told = {"choosers": choosers, "longest_profile": longest}
            begun = context | told | {"id": secrets.token_hex(8)}  # a run that is resumed has its own
            runlog = open_files.enter_context(RunLog(out, identity, lines=LOG, context=begun))
            run_id = run_id_of(out)
            show(prepared)
            if ready is not None:
                step = step_of(checkpoint) if checkpoint else -1  # step 0 has the judging before training
                whole = step == prepared.schedule.steps
                runlog.cut(lambda line: line["step"] <= step and "best" not in line and (whole or "train_runtime" not in line))
                callbacks += [RunLogCallback(runlog), ProgressCallback(), *trackers(names, out, step=max(step, 0))]
                if watching is not None and config.watch is not None and config.watch.shown:
                    shown = ShownAnswers(out, prepared.question, most=config.watch.shown, step=step)
                    callbacks.append(shown)
        if ready is None:
            log.info("%s is already trained", out)
            leave_process_group(process)
            return out
        if checkpoint and process.is_main_process:
            log.info("going on from %s", checkpoint)
        kept = Kept(out / CHECKPOINTS, config.train.keep_checkpoints, process, facts, run_id)
        made = _fit(
            config, ready, prepared, watching, arguments, callbacks, checkpoint, kept=kept, take=shown.take if shown else None
        )
        leave_process_group(process)
        if made is None:
            log.info("stopped as asked; the same command resumes from here")
            return out
        trained, state, is_best = made
        if arguments.should_save:
            if is_best:
                best = {"step": state.best_global_step, "best": arguments.metric_for_best_model, "value": state.best_metric}
                runlog.append([json.dumps(best) + "\n"])
            write_curves(out)
            with saving("the trained model", out):
                _finish(config, base, trained, out)
    return out


def _warn_of_no_warmup(train: Train) -> None:
    """`constant` has none; it is said where one was asked for."""
    if train.scheduler == "constant" and train.warmup and "warmup" in train.model_fields_set:
        log.warning("train.warmup is %g, which train.scheduler=constant does not read; constant_with_warmup does", train.warmup)


def _warn_of_many_times(prepared: Prepared) -> None:
    """`train.steps` counts steps, of which a small data set fills few."""
    if prepared.times > MANY_TIMES:
        log.warning(
            "%d steps show each of the %d examples about %.0f times, and a model learns so many times shown by heart; lower train.steps, or give "
            "train.epochs in its place",
            *(prepared.schedule.steps, prepared.examples, prepared.times),
        )


def found_once(settings: Model, process: Launched) -> Path:
    """The model's folder. The first process fetches what is not here yet, and the others find it, on machines with a disk of their own fetch it, then.

    Raises:
        BadInput, ModelNotFound: it is not there, or cannot be used.
    """
    if not process.is_main_process:
        wait_for_all(process)
    base = models.find(settings.path, trust_remote_code=settings.trust_remote_code)
    check_model(base, trust_remote_code=settings.trust_remote_code)
    if process.is_main_process:
        wait_for_all(process)
    return base


def prepared_once(config: TrainConfig, renderer: Renderer, base: Path, process: Launched) -> Prepared:
    """The rows of the run, made by the first process if they are not in the run folder yet, and read by all.

    Raises:
        BadInput: as `prepare`; or the run folder is not seen by all processes.
    """
    folder = Path(config.output) / FOLDER
    if process.is_main_process and os.path.lexists(folder.parent):  # before the rows are made, which may take minutes
        make_folder(folder.parent)
        refuse_strangers(folder.parent, LOG)
    key = rows_key(config, base) if process.is_main_process else ""
    if process.is_main_process and read_rows(folder, renderer, key=key) is None:
        prepared = rows_apart(config, renderer, quiet=False)
        if (folder.parent / MANIFEST).exists():  # rows of a run that has begun, which may be running, are not taken from it
            refuse_other_run(folder.parent, run_identity(config, prepared, made_of(prepared, base)))
            refuse_open_run(folder.parent / LOG)
        make_folder(folder.parent)
        refuse_strangers(folder.parent, LOG)
        with saving("the training rows", folder.parent):
            write_rows(prepared, folder, key=key)
    return needed(read_rows(folder, renderer, key=broadcast_from_main(process, key)), folder)


def _fit(
    config: TrainConfig,
    ready: ReadyModel,
    prepared: Prepared,
    watching: Watching | None,
    arguments: TrainingArguments,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
    *,
    kept: Kept,
    take: Callable[[Sequence[Example], Sequence[Judgement]], None] | None = None,
) -> tuple[Path, TrainerState, bool] | None:
    """Train, and write the trained weights (the adapter's, or all), which takes every rank where they are sharded.

    Returns:
        where they are, the Trainer's state, and whether they are the best judged and not the last; None where the run was asked to stop before its end.
    """
    process, trained = kept.process, kept.folder / TRAINED
    if checkpoint is not None and step_of(checkpoint) == prepared.schedule.steps:  # killed after the last step
        state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
        best = best_checkpoint(state, trained.parent)
        if arguments.should_save:
            with saving("the trained weights", trained.parent):
                take_weights(best or checkpoint, trained)
        return trained, state, best is not None
    computed = torch.bfloat16 if arguments.bf16 else ready.model.dtype
    peak = device_peak(computed)
    throughput = Throughput(prepared.schedule, passed(ready.model), peak=peak and peak * arguments.world_size)
    stop, saved = StopFile(Path(config.output), process), LastSaved(step_of(checkpoint) if checkpoint else 0)
    trainer = WatchedTrainer(
        model=ready.model,
        args=arguments,
        train_dataset=RowDataset(prepared.schedule),
        data_collator=partial(collate, attention=ready.attention),
        compute_loss_func=answer_loss,
        callbacks=[
            *callbacks,
            FiniteGradients(prepared.schedule),
            *([GiveBack()] if arguments.use_cpu else []),
            throughput,
            *([ProveFirst(prepared.schedule, ready.attention, computed)] if process.sharding != "none" else []),
            *([SaveByMinutes(config.train.save_minutes, process)] if config.train.save_minutes else []),
            *([Patience(config.watch.patience)] if watching and config.watch and config.watch.patience else []),
            stop,
            saved,
        ],
        speed=throughput.numbers,
        judging=None
        if watching is None
        else partial(judged_now, what=watching.what, renderer=prepared.renderer, attention=ready.attention, take=take),
        kept=kept,
        lora_plus=config.lora.plus if config.lora else None,
        row_loss=row_loss_for(config.train),
    )
    trainer.remove_callback(PrinterCallback)
    check_sharded(trainer, process)
    sum_in_float32(trainer, process)
    if checkpoint is not None:
        reshard(checkpoint, trainer, process)
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except KeyboardInterrupt:
        if arguments.should_save:
            log.info(saved.words(trainer.state.global_step, stop.file))
        raise
    if stop.asked:
        return None
    best = best_checkpoint(trainer.state, trained.parent)
    if best is None:
        if arguments.should_save:
            fresh_folder(trained)
        trainer.save_model(str(trained))
    elif arguments.should_save:
        log.info(
            "the weights of step %d are kept: no other trained ones were judged to have a better %s",
            trainer.state.best_global_step,
            arguments.metric_for_best_model,
        )
        with saving("the trained weights", trained.parent):
            take_weights(best, trained)
    return trained, trainer.state, best is not None


def _is_whole(merged: Path) -> bool:
    """Whether the trained model is there, which marks a run's end.

    Raises:
        BadInput: it was, and its weights are gone.
    """
    if not (merged / "config.json").exists():
        return False
    if not any(merged.glob("*.safetensors")):
        raise BadInput(
            f"{merged} has lost its weights (*.safetensors); move the folder away, and the same command makes it again from the last checkpoint"
        )
    return True


def _finish(config: TrainConfig, base: Path, trained: Path, out: Path) -> None:
    """Put adapter and merged model in their places, each whole or not at all; merged/ comes last and marks the end."""
    # A run does not begin while there is one, so it is a person's. The folder is kept whole: in a folder of weights engines load all.
    keep_changed(out / MERGED, ())
    ship_tokenizer(base, trained, trust_remote_code=config.model.trust_remote_code)
    if config.lora is None:
        write_card(out)
        replace_folder(trained, out / MERGED)
        return
    _name_base(trained / ADAPTER_CONFIG, config.model.path)
    replace_folder(trained, out / ADAPTER, listed_in=out)
    write_card(out)
    trust = config.model.trust_remote_code
    merging.merge(base, out / ADAPTER, out / MERGED, dtype=config.model.dtype, trust_remote_code=trust)


def _name_base(settings: Path, name: str) -> None:
    """Of an adapter: its base as the run's settings have it; peft writes the folder of this machine that was loaded."""
    said = {**read_object(settings, remedy="train again in another folder"), "base_model_name_or_path": name}
    settings.write_text(json.dumps(said, indent=2, sort_keys=True), encoding="utf-8")


def _accumulating(process: Launched) -> dict[str, Any]:
    """FSDP2 that waits for a step's last row to divide gradients keeps them whole on every device until then: 13.5 GB of 7B in
    bfloat16. So it divides those of each row."""
    return {"gradient_accumulation_kwargs": {"sync_each_batch": True}} if process.sharding == "fsdp2" else {}


def training_arguments(
    config: TrainConfig, out: Path, *, steps: int, watching: Watching | None, begun: bool, process: Launched
) -> TrainingArguments:
    settings = config.train
    judging = watching.arguments(begun=begun) if watching is not None else {}
    return TrainingArguments(
        output_dir=str(out / CHECKPOINTS),
        per_device_train_batch_size=1,  # one packed row
        train_sampling_strategy="sequential",  # the schedule has shuffled
        gradient_accumulation_steps=settings.accumulation(process.world_size),
        max_steps=steps,
        **optimizer_arguments(settings.optimizer),
        **learning_rate_arguments(settings, steps=steps),
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
        use_cpu=on_cpu(),
        accelerator_config=_accumulating(process),
        **judging,
    )
