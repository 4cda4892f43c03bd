"""Stops training at a loss or gradient that is not finite, before the optimizer can spoil the weights.

Checked in every forward pass, so that with accumulation the failing row and its examples can be named. The cost is
one number fetched from the device per forward pass, as with the Trainer's own filter, and one norm over
the gradients per step. That filter is off (`logging_nan_inf_filter`), since it would replace the loss by an average and continue.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput
from perse.training.rows.schedule import Schedule
from perse.training.rows.trie import PackedRow


def check_loss(loss: Tensor, *, schedule: Schedule, step: int, input_ids: Tensor) -> None:
    """Let a finite `loss` pass.

    Args:
        step: the optimizer step that the loss belongs to, counted from 1.
        input_ids: (1, L), the row it was computed of.
    Raises:
        BadInput: it is not finite; names the step and the row's examples.
    """
    if bool(torch.isfinite(loss)):
        return
    ids = tuple(input_ids[0].tolist())
    rows = [row for row in schedule.step_rows(step) if row.ids == ids]
    raise BadInput(f"the loss of {_named(rows)} is {float(loss)} in step {step}, expected a finite number; {_REMEDY}")


def not_finite(schedule: Schedule, *, step: int) -> BadInput:
    """Of the gradient of a step."""
    return BadInput(f"the gradient of {_named(schedule.step_rows(step))} is not finite in step {step}; {_REMEDY}")


class FiniteGradients(TrainerCallback):
    """Stops before an optimizer step with a gradient that is not finite, on every device that has it.

    DeepSpeed keeps gradients to itself and leaves such a step out; `WatchedTrainer` stops at that.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Raises:
        BadInput: names the step and its examples.
        """
        grads = [each.grad for each in model.parameters() if each.grad is not None]
        if grads and not bool(torch.isfinite(torch.nn.utils.get_total_norm(grads))):
            raise not_finite(self.schedule, step=state.global_step + 1)


_REMEDY = (
    "look at these examples, or lower train.learning_rate or compute in another type (model.dtype=float32) in a new output "
    "folder; the same command resumes from the last checkpoint"
)
_NAMED = 8


def _named(rows: list[PackedRow]) -> str:
    ids = [one for row in rows for one in row.example_ids]
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"example{'s' if len(ids) > 1 else ''} {', '.join(ids[:_NAMED])}{more}" if ids else "a row"
