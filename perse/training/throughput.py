"""Logs training speed: tokens computed, tokens they stand for, and the share of the device's peak.

Counted from the schedule, not from the tensors, so that it costs nothing; only the seconds of optimizer steps are measured,
without judging and saving between them.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import TrainerCallback

from perse.training.planning.flops import Passed, training_flops
from perse.training.planning.hardware import reported
from perse.training.rows.batches import filler
from perse.training.rows.schedule import Schedule

FILLER = len(filler().ids)
"""Tokens of an empty row."""


class Throughput(TrainerCallback):
    """Adds up steps and their seconds until they are asked for.

    Args:
        weights: None if it is not known which of them a token passes.
        peak: operations a second that all devices together could do; None if unknown.
    """

    def __init__(self, schedule: Schedule, weights: Passed | None, *, peak: float | None) -> None:
        self.schedule = schedule
        self.weights = weights
        self.peak = peak
        self._steps: list[int] = []
        self._seconds = 0.0
        self._began = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._seconds += time.monotonic() - self._began
        self._steps.append(state.global_step)

    def numbers(self) -> dict[str, float]:
        """Of the optimizer steps since the last call, over all devices; none where there was no step.

        Returns:
            `tokens_per_second`: tokens computed; `unshared_tokens_per_second`: tokens of the examples one by one;
            `share_ratio`: the second by the first; `padding_share`: of the tokens computed, those that teach nothing;
            `mfu`: operations that training needs (nothing counted twice) by what the devices could do, where that is known.
        """
        per_step = self.schedule.rows_per_step
        rows = [self.schedule.size(at) for step in self._steps for at in range((step - 1) * per_step, step * per_step)]
        seconds = self._seconds
        self._steps, self._seconds = [], 0.0
        if not rows or not seconds:
            return {}
        tokens, unshared = sum(row.tokens for row in rows), sum(row.unshared for row in rows)
        padding = FILLER * sum(not row.tokens for row in rows)
        found = {
            "tokens_per_second": tokens / seconds,
            "unshared_tokens_per_second": unshared / seconds,
            "share_ratio": unshared / tokens if tokens else 1.0,
            "padding_share": padding / (tokens + padding),
        }
        if self.peak is not None and self.weights is not None:
            pairs, read = sum(row.pairs for row in rows), sum(row.read for row in rows)
            flops = training_flops(self.weights, tokens=tokens, pairs=pairs, learned=read)
            found["mfu"] = flops / seconds / self.peak
        return {name: float(f"{value:.4g}") for name, value in found.items()}


def device_peak(dtype: torch.dtype) -> float | None:
    """Operations a second of one device in `dtype`: by the data sheet of a GPU we have it of, None of another; of a CPU, what a
    large matrix product reaches now, which no data sheet says."""
    if torch.cuda.is_available():
        sheet = reported(torch.cuda.get_device_name())
        return None if sheet is None else (sheet.float32 if dtype == torch.float32 else sheet.bfloat16)
    peak = 0.0
    for side in (256, 512, 1024):  # the larger the faster, until one takes long: 16 bit without instructions for it
        left, right = (torch.randn(side, side).to(dtype) for _ in range(2))
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            left @ right
            seconds.append(time.perf_counter() - began)
        peak = max(peak, 2 * side**3 / min(seconds))
        if sum(seconds) > 0.1:
            break
    return peak
