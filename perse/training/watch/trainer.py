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
from pathlib import Path
from typing import Any, Protocol

from accelerate.utils import broadcast_object_list
from torch import Tensor
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.training.accounting import Throughput
from perse.training.finite import check_loss
from perse.training.watch.plan import SHARE

log = logging.getLogger(__name__)

_NOT_WEIGHTS = (
    "optimizer*",
    "scheduler*",
    "scaler*",
    "rng_state*",
    "trainer_state.json",
    "training_args.bin",
    "global_step*",
    "latest",
)


class Judging(Protocol):
    """The numbers of the model as it is now, without prefix; None where undefined."""

    def __call__(self, model: Any) -> dict[str, float | None]: ...


class WatchedTrainer(Trainer):
    """Judges by `judging` wherever the Trainer evaluates, and stops at a loss that is not finite.

    Every rank judges all of the sample alike, so that all compute equally many forwards; the first rank's numbers count.
    The `train_dataset` is a `RowDataset`.
    """

    def __init__(self, *, judging: Judging | None = None, throughput: Throughput | None = None, **settings: Any) -> None:
        # The Trainer wants an evaluation set wherever it evaluates, and hands it to nobody but `evaluate`.
        super().__init__(**settings, eval_dataset=None if judging is None else [])
        self.judging = judging
        self.throughput = throughput
        self._began = time.monotonic()
        self._watching = 0.0
        self._watches = 0
        self._begun_at: int | None = None
        self._warned = False

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        ids = inputs["input_ids"]
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        check_loss(loss, schedule=self.train_dataset.schedule, step=self.state.global_step + 1, input_ids=ids)  # type: ignore[union-attr]
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """The Trainer's, with how fast the steps since the last logged loss were."""
        fast = self.throughput.numbers() if self.throughput is not None and "loss" in logs else {}
        super().log({**logs, **fast}, start_time)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Judge, log, and have a new best saved. What is undefined is left out of the log and is never the best."""
        assert self.judging is not None
        started = time.monotonic()
        (found,) = broadcast_object_list([self.judging(self.model)])
        metrics = {f"eval_{name}": value for name, value in found.items() if value is not None}
        metrics |= self._times(time.monotonic() - started)
        self.log(metrics)
        if self.is_world_process_zero():
            said = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in found.items() if value is not None)
            log.info("judged after step %d: %s", self.state.global_step, said)
        best = f"eval_{self.args.metric_for_best_model}"
        metrics.setdefault(best, math.nan)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self.state.global_step and self._improves(metrics[best]):
            self.control.should_save = True
        return metrics

    def _improves(self, value: float) -> bool:
        """What the Trainer finds right after, when it writes the best into its state."""
        known = self.state.best_metric
        return not math.isnan(value) and (known is None or (value > known if self.args.greater_is_better else value < known))

    def _times(self, seconds: float) -> dict[str, float]:
        """Seconds of this judging, and the share of all seconds so far; warns once if the whole run will be above `SHARE`."""
        step = self.state.global_step
        self._watching += seconds
        self._watches += 1
        self._begun_at = step if self._begun_at is None else self._begun_at
        passed = time.monotonic() - self._began
        if step > self._begun_at and not self._warned and self.is_world_process_zero():
            every = (step - self._begun_at) / (self._watches - 1)
            training = (passed - self._watching) / (step - self._begun_at) * every
            share = self._watching / self._watches / (self._watching / self._watches + training)
            if share > SHARE:
                self._warned = True
                enough = math.ceil(every * share * (1 - SHARE) / (SHARE * (1 - share)))
                remedy = f"set watch.every={enough}" if enough < self.state.max_steps else "set watch=null"
                log.warning(
                    "judging takes %.0f%% of the time; %s to have it under %.0f%%, or lower watch.examples or watch.generated",
                    *(100 * share, remedy, 100 * SHARE),
                )
        return {"eval_seconds": round(seconds, 3), "eval_share": round(self._watching / passed, 4)}


class Patience(TrainerCallback):
    """Ends training after `patience` judgings without a better one.

    It counts in the Trainer's own history, which is in every checkpoint, so a kill loses nothing. A stop leaves no checkpoint
    behind: killed right after it, the run goes on from an earlier one and comes to the same stop.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        key, sign = f"eval_{args.metric_for_best_model}", 1.0 if args.greater_is_better else -1.0
        lines = [line for line in state.log_history if "eval_seconds" in line and line["step"] > 0]
        values = [sign * line[key] if key in line else -math.inf for line in lines]
        if not lines:
            return
        since = values.index(max(values)) if max(values) > -math.inf else -1
        if len(values) - 1 - since >= self.patience:
            control.should_training_stop, control.should_save = True, False
            if state.is_world_process_zero:
                name = str(args.metric_for_best_model).replace("_", " ")
                log.info("training ends at step %d: %d judgings without a better %s", state.global_step, self.patience, name)


def best_checkpoint(state: TrainerState, checkpoints: Path) -> Path | None:
    """Where the best judged weights lie; None if nothing was judged, or never with a number."""
    if not state.best_global_step:
        return None
    found = checkpoints / f"checkpoint-{state.best_global_step}"
    if not found.is_dir():
        log.warning("%s, the best judged, is gone; the last weights are kept in its place", found)
        return None
    return found


def take_weights(checkpoint: Path, into: Path) -> None:
    """Copy the model's or the adapter's files of a checkpoint, without what only training goes on from."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(checkpoint, into, ignore=shutil.ignore_patterns(*_NOT_WEIGHTS))
