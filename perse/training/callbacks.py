"""What a training run writes while it runs: lines of the run log, and progress for a person."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.progress import shown_on
from perse.training.heap import give_back
from perse.training.launched import Launched, broadcast_from_main


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
        told = {
            name: value for name, value in (logs or {}).items() if name != "train_loss"
        }  # of the steps since the last resume alone
        self.runlog.append([json.dumps({"step": state.global_step, **told}) + "\n"])


class StopFile(TrainerCallback):
    """Ends a run after the step in which a file `stop` appears in its folder, with a checkpoint of that step.

    A file and not a signal, because it reaches a run on many machines through any launcher, and a batch script or a person can
    make it; it is removed when the run goes on, if it is empty. The first process checks and tells the others, so that all stop at the same step.
    """

    def __init__(self, folder: Path, process: Launched) -> None:
        self.file = folder / "stop"
        self.process = process
        self.asked = False

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        if self.process.is_main_process:
            if self.file.is_dir() or (self.file.exists() and self.file.stat().st_size):
                raise BadInput(f"{self.file} stops the run and is no empty file, so it is not removed; move it away")
            self.file.unlink(missing_ok=True)  # it stopped the run before

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if broadcast_from_main(self.process, self.file.exists()) and state.global_step < state.max_steps:
            self.asked = True
            control.should_save = control.should_training_stop = True

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.asked:  # patience that ends in the same step would leave the checkpoint out
            control.should_save = True


class LastSaved(TrainerCallback):
    """The step of the newest checkpoint of this run, 0 without any."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.step = state.global_step

    def words(self, step: int, stop: Path) -> str:
        """What of a run is kept that Ctrl-C ended after `step`; `stop`: the file that would have ended it."""
        kept = f"the checkpoint of step {self.step} is kept" if self.step else "no checkpoint was written yet"
        lost = max(0, step - self.step)  # before it is resumed, a run is at step 0
        again = f"; steps to compute again: {lost} (an empty file {stop} ends a run without that)" if lost else ""
        return f"stopped in step {max(step, self.step) + 1}: {kept}{again}"


class SaveByMinutes(TrainerCallback):
    """A checkpoint after the first step that ends `minutes` after the last one or the beginning: what a kill can lose is known in time.

    The first process looks at its clock and tells the others, so that all save the same step.

    Args:
        clock: seconds; what tests set.
    """

    def __init__(self, minutes: float, process: Launched, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.minutes = minutes
        self.process = process
        self.clock = clock
        self.last = clock()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.last = self.clock()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        due = self.clock() - self.last >= 60 * self.minutes
        if broadcast_from_main(self.process, due) and state.global_step < state.max_steps:
            control.should_save = True

    def on_save(self, *_: Any, **__: Any) -> None:
        self.last = self.clock()


class GiveBack(TrainerCallback):
    """Gives memory that is free back to the system after every step (`perse.training.heap`)."""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        give_back()


class ProgressCallback(TrainerCallback):
    """Progress of training, with rate, time left and the latest loss."""

    def __init__(self) -> None:
        self.showing = ExitStack()
        self.note = ""

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.shown = self.showing.enter_context(shown_on(Console(stderr=True)))
        self.shown("training", state.global_step, state.max_steps)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step < state.max_steps:  # the last step is shown once its loss is known
            self.shown("training", state.global_step, state.max_steps, self.note)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if logs is None or "loss" not in logs:
            return
        self.note = f"loss {logs['loss']:.3f}"
        if "tokens_per_second" in logs:
            self.note += (
                f", {logs['tokens_per_second']:.0f} tokens/s ({logs['unshared_tokens_per_second']:.0f} without sharing)"
            )

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.shown("training", state.global_step, state.max_steps, self.note)
        self.showing.close()
