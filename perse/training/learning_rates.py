"""How the learning rate goes over a run: transformers' schedules, each with the one value of its own that perse lets be set."""

from __future__ import annotations

from typing import Any

from perse.settings.training import MIN_LR_RATE, POWER, WSD_DECAY, Train


def learning_rate_arguments(settings: Train, *, steps: int) -> dict[str, Any]:
    """Of `TrainingArguments`, for a run of `steps` optimizer steps."""
    values: dict[str, dict[str, float]] = {
        "cosine_with_min_lr": {"min_lr_rate": settings.min_lr_rate or MIN_LR_RATE},
        "polynomial": {"power": settings.power or POWER, "lr_end": 0.0},
        "wsd": {"num_decay_steps": max(1, int((settings.decay or WSD_DECAY) * steps))},
    }
    name = "warmup_stable_decay" if settings.scheduler == "wsd" else settings.scheduler
    return {
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": name,
        "lr_scheduler_kwargs": values.get(settings.scheduler),
        "warmup_steps": settings.warmup
        if steps > 1
        else 0,  # its first step has a rate of 0: one step alone would train nothing
    }
