"""The Hugging Face Trainer with our judging in place of its evaluation loop, and what follows from it.

Only `evaluate`, `training_step` and what `log` adds are ours, so what is judged goes the way of the Trainer's own numbers: into its state (and
with it into checkpoints), the run log, TensorBoard and other trackers, as `eval_...`. A new best is saved at once, and its
checkpoint is never deleted for newer ones, because `metric_for_best_model` is set. At the end its weights are taken from there;
`load_best_model_at_end` would do it, too, but only for judgings that fall on the save interval.
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from accelerate.utils import broadcast_object_list
from torch import Tensor
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput, SaveFailed
from perse.files.own_files import fresh_folder
from perse.models.opening import one_sentence
from perse.training.finite import check_loss, not_finite
from perse.training.launched import Launched, wait_for_all
from perse.training.optimizers import check_shapes, faster_second
from perse.training.rows.row_loss import RowLoss
from perse.training.saving.checkpoints import (
    ASIDE,
    FOR_ANY,
    LATEST,
    LIST,
    WITH_STATE,
    check_copied,
    made_by,
    remove_others,
    saving,
    seal,
    sealed_files,
)
from perse.training.saving.gather_weights import gather_weights, write_weights
from perse.training.saving.loaded_state import check_loaded, check_weights, settings_of, weights_with_state
from perse.training.saving.reshard import give_groups_their_own
from perse.training.watch.plan import SHARE

log = logging.getLogger(__name__)

_NOT_WEIGHTS = (
    "optimizer*",
    "scheduler*",
    "scaler*",
    "rng_state*",
    "pytorch_model_fsdp*",
    "trainer_state.json",
    "global_step*",
    "latest",
    "zero_to_*.py",
    f"{FOR_ANY}*",
    LATEST,
    LIST,
)


@dataclass(frozen=True)
class Kept:
    """How checkpoints are kept: the newest `keep` and the best in `folder`; `facts` and `run_id` say what run they are of."""

    folder: Path
    keep: int
    process: Launched
    facts: Mapping[str, str]
    run_id: str | None = None


class Judging(Protocol):
    """The numbers of the model as it is now, without prefix; None where undefined."""

    def __call__(self, model: Any) -> dict[str, float | None]: ...


class WatchedTrainer(Trainer):
    """Judges by `judging` wherever the Trainer evaluates, and stops at a loss that is not finite.

    Every rank judges all of the sample alike, so that all compute equally many forwards; the first rank's numbers count.
    The `train_dataset` is a `RowDataset`; `speed` tells how fast the steps since its last call were. Weights are gathered and checked, and checkpoints sealed.
    """

    def __init__(
        self,
        *,
        kept: Kept,
        judging: Judging | None = None,
        speed: Callable[[], Mapping[str, float]] = dict,
        lora_plus: float | None = None,
        row_loss: RowLoss | None = None,
        **settings: Any,
    ) -> None:
        # The Trainer wants an evaluation set wherever it evaluates, and only passes it to `evaluate`.
        super().__init__(**settings, eval_dataset=None if judging is None else [])
        self.judging = judging
        self.speed = speed
        self.kept = kept
        self.lora_plus = lora_plus
        self.row_loss = row_loss
        self._decays: list[float] = []
        self._began = time.monotonic()
        self._watching = 0.0
        self._watches = 0
        self._first: tuple[int, float] | None = None
        self._warned = False
        self.add_callback(LogWhereItStops())

    def create_optimizer(self, model: Any = None) -> Any:
        """The Trainer's, with `lora_plus` times the learning rate for the second matrix of adapters."""
        is_there = self.optimizer is not None
        optimizer = super().create_optimizer(model)
        if self.lora_plus is not None and not is_there:
            faster_second(optimizer, self.model if model is None else model, times=self.lora_plus)
        if not is_there:
            # Without the empty groups, which DeepSpeed leaves out: an adapter has nothing that is not to decay.
            self._decays = [group["weight_decay"] for group in optimizer.param_groups if group["params"]]
        return optimizer

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The Trainer's; where a row's labels are read is told to the loss, and not to the model."""
        if self.row_loss is not None:
            self.compute_loss_func = partial(self.row_loss, reading=inputs.pop("reading", None))
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        ids = inputs["input_ids"]
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        engine: Any = self.deepspeed
        if engine is not None and engine.skipped_steps:  # the optimizer steps in the line above, or not at all
            raise not_finite(self.train_dataset.schedule, step=self.state.global_step + 1)  # type: ignore[union-attr]
        check_loss(loss, schedule=self.train_dataset.schedule, step=self.state.global_step + 1, input_ids=ids)  # type: ignore[union-attr]
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """The Trainer's, with how fast the steps since the last logged loss were, and `epoch` as passes over the data."""
        fast = self.speed() if "loss" in logs else {}
        if "loss" in logs and self.row_loss is not None:
            rows: int = self.train_dataset.schedule.rows_per_step  # type: ignore[union-attr]
            fast = {**self.row_loss.numbers(rows, self._over_devices), **fast}
        share = self.state.epoch  # of the run, which is one long epoch to the Trainer
        if share is not None:
            self.state.epoch = share * self.train_dataset.schedule.epochs  # type: ignore[union-attr]
        try:
            super().log({**logs, **fast}, start_time)
        finally:
            self.state.epoch = share

    def _over_devices(self, numbers: Tensor) -> Tensor:
        found: Tensor = self.accelerator.reduce(numbers.to(self.accelerator.device), "sum")
        return found

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Whole weights, however they are divided, written by the first process and compared with what is in memory."""
        is_main_process = self.is_world_process_zero()
        weights = gather_weights(self.model, is_main_process=is_main_process)
        if is_main_process:
            folder = Path(output_dir or str(self.args.output_dir))
            with saving("the weights", folder.parent):
                write_weights(self.accelerator.unwrap_model(self.model, keep_torch_compile=False), weights, folder)

    @property
    def _is_whole(self) -> bool:
        """Whether this process has all of the model and of the optimizer's state."""
        return not self.is_deepspeed_enabled and not self.is_fsdp_enabled

    # What a checkpoint holds is read with `weights_only=True` (but for sharded ones), so a pickle's code is refused, and that is a sentence.

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        with _gone_on_from(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            if self._is_whole:
                check_weights(self.model)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        before = settings_of(self.optimizer, self.lr_scheduler) if checkpoint is not None and self._is_whole else None
        with _gone_on_from(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
            if checkpoint is not None and before is not None:
                check_shapes(self.optimizer)
                with_state = made_by(Path(checkpoint)).get(WITH_STATE)
                check_loaded(before, self.optimizer, self.lr_scheduler, with_state=with_state)
            if checkpoint is not None and self.is_deepspeed_enabled:
                rates: Any = self.lr_scheduler.get_last_lr()  # type: ignore[union-attr]
                give_groups_their_own(self.optimizer, rates=rates, decays=self._decays)

    def _load_scaler(self, checkpoint: str | None) -> None:
        with _gone_on_from(checkpoint):
            super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with _gone_on_from(checkpoint):
            super()._load_rng_state(checkpoint)

    def _get_output_dir(self, trial: Any) -> str:
        """Checkpoints are written aside."""
        return str(self.kept.folder / ASIDE)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """The Trainer's, sealed and put in its place; then those that are not kept are deleted."""
        aside, process = self.kept.folder / ASIDE, self.kept.process
        facts, run_id = self.kept.facts, self.kept.run_id
        if process.is_main_process:
            fresh_folder(aside)
        wait_for_all(process)
        name = f"checkpoint-{self.state.global_step}"
        try:
            with saving(name, self.kept.folder):
                super()._save_checkpoint(model, trial)
                wait_for_all(process)
                if process.is_main_process:
                    kept = {WITH_STATE: weights_with_state(self.optimizer)} if self._is_whole else {}
                    maker = {"world_size": process.world_size, "sharding": process.sharding, **kept}
                    seal(aside / name, self.kept.folder, facts=facts, made_by=maker, run_id=run_id)
        except SaveFailed:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        if process.is_main_process:
            aside.rmdir()
            newest, best = self.state.global_step, self.state.best_global_step
            remove_others(self.kept.folder, newest=newest, keep=self.kept.keep, best=best, facts=facts, run_id=run_id)
        wait_for_all(process)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Judge, log, and have a new best saved. Undefined numbers are not logged and are never the best.

        The best is found here and not by the Trainer, which knows no ties; asked next, it finds nothing better.
        """
        assert self.judging is not None
        started = time.monotonic()
        (found,) = broadcast_object_list([self.judging(self.model)])
        metrics = {f"eval_{name}": value for name, value in found.items() if value is not None}
        metrics |= self._times(time.monotonic() - started)
        self.log(metrics)
        if self.is_world_process_zero():
            said = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in found.items() if value is not None)
            log.info("judged after step %d: %s", self.state.global_step, said)
        number = deciding(metrics, self.args)
        metrics[f"eval_{self.args.metric_for_best_model}"] = math.nan if number is None else number
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if number is not None and self.state.global_step and since_best(self.state, self.args) == 0:
            self.state.best_metric, self.state.best_global_step = number, self.state.global_step
            self.control.should_save = True
        return metrics

    def _times(self, seconds: float) -> dict[str, float]:
        """Seconds of this judging, and the share of all seconds so far; warns once if the whole run will be above `SHARE`."""
        step = self.state.global_step
        self._watching += seconds
        self._watches += 1
        passed = time.monotonic() - self._began
        training = passed - self._watching
        if self._first is None:  # the time before may be loading, or steps without a judging
            self._first = step, training
        steps = step - self._first[0]
        if steps and not self._warned and self.is_world_process_zero():
            every, between = steps / (self._watches - 1), (training - self._first[1]) / (self._watches - 1)
            judging = self._watching / self._watches
            share = judging / (judging + between)
            if share > SHARE:
                self._warned = True
                enough = math.ceil(every * judging / between * (1 - SHARE) / SHARE)
                remedy = f"set watch.every={enough}" if enough < self.state.max_steps else "set watch=null"
                log.warning(
                    "judging takes %.0f%% of the time; %s to have it under %.0f%%, or lower watch.examples or watch.generated",
                    *(100 * share, remedy, 100 * SHARE),
                )
        return {"eval_seconds": round(seconds, 3), "eval_share": round(self._watching / passed, 4)}


@contextmanager
def _gone_on_from(checkpoint: str | None) -> Iterator[None]:
    what, remedy = f"the checkpoint {checkpoint}", "move it away, and the same command resumes from the one before"
    with one_sentence(what, remedy=remedy):
        try:
            yield
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # whose words are about Python, not about the file
            why = f"it lacks {error}" if isinstance(error, KeyError) else "a part of it is not what the Trainer saves"
            raise BadInput(f"{what} cannot be used ({why}); {remedy}") from error


def deciding(line: Mapping[str, float], args: TrainingArguments) -> float | None:
    """The deciding number of a judging; None if it is undefined. Where nothing was answered only the loss, which is of true answers, decides."""
    if args.metric_for_best_model != "loss" and line.get("eval_parse_rate") == 0:
        return None
    return line.get(f"eval_{args.metric_for_best_model}")


def since_best(state: TrainerState, args: TrainingArguments) -> int:
    """Judgings since the best that decide; of equal ones that with the lower loss counts, else the first. 0, where none decides.

    It counts in the Trainer's own history, which is in every checkpoint, so a kill loses nothing. The judging before training
    is ignored.
    """
    sign = 1.0 if args.greater_is_better else -1.0
    lines = [line for line in state.log_history if "eval_seconds" in line and line["step"] > 0]
    ranks = [
        None if number is None else (sign * number, -line.get("eval_loss", math.inf))
        for line, number in ((line, deciding(line, args)) for line in lines)
    ]
    deciding_ranks = [rank for rank in ranks if rank is not None]
    return len(deciding_ranks) - 1 - deciding_ranks.index(max(deciding_ranks)) if deciding_ranks else 0


class LogWhereItStops(TrainerCallback):
    """Logs the loss wherever a run may go on from: a mean over steps on both sides of a checkpoint would be lost with a kill.

    A new best is saved after a judging, so that is such a place, too.
    """

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if control.should_save or control.should_evaluate:
            control.should_log = True


class Patience(TrainerCallback):
    """Ends training after `patience` judgings without an improvement.

    A stop leaves no checkpoint behind: killed right after it, the run resumes from an earlier one and stops at the same step.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if since_best(state, args) >= self.patience:
            control.should_training_stop, control.should_save = True, False
            if state.is_world_process_zero:
                name = str(args.metric_for_best_model).replace("_", " ")
                log.info("training ends at step %d: %d judgings without a better %s", state.global_step, self.patience, name)


def best_checkpoint(state: TrainerState, checkpoints: Path) -> Path | None:
    """The folder of the best judged weights; None if no judging gave a number."""
    if not state.best_global_step:
        return None
    found = checkpoints / f"checkpoint-{state.best_global_step}"
    if not found.is_dir():
        log.warning("%s, the best judged, is gone; the last weights are kept in its place", found)
        return None
    return found


def take_weights(checkpoint: Path, into: Path) -> None:
    """Copy the model's or the adapter's files that a checkpoint was sealed with, without what only training goes on from.

    Raises:
        BadInput: `into` is a link.
        SaveFailed: the copy has not the digests that the checkpoint was sealed with.
    """
    fresh_folder(into)
    for name in sealed_files(checkpoint):
        if not any(fnmatch(part, pattern) for part in Path(name).parts for pattern in _NOT_WEIGHTS):
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkpoint / name, into / name)
    check_copied(checkpoint, into)
