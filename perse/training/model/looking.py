"""Looks at a model in training and leaves it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def only_looking(model: Any) -> Iterator[None]:
    """Evaluation mode, and afterwards every module's own mode and torch's random state as before."""
    modes = [(module, module.training) for module in model.modules()]
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        model.eval()
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training
