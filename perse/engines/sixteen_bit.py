"""Whether this CPU has instructions for 16 bits: without any, bfloat16 takes half the memory and many times the time of float32."""

from __future__ import annotations

import logging
import platform
from typing import Any

import torch

log = logging.getLogger(__name__)

LARGE = 10_000_000
"""From so many parameters on a person would notice."""


def slow_in_16_bit() -> bool:
    """On an x86 CPU without AVX-512, where torch computes a product of bfloat16 element by element (docs/results.md)."""
    return platform.machine() in ("x86_64", "AMD64") and torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")


def warn_if_slow(model: Any, *, setting: str) -> None:
    """Warn about a large model on the CPU; `setting` is the alternative."""
    if model.dtype == torch.float32 or model.device.type != "cpu" or model.num_parameters() < LARGE or not slow_in_16_bit():
        return
    log.warning(
        "this CPU has no instructions for %s (AVX-512 or AMX): training takes some 20 times as long as in float32, judging some 5 "
        "times; %s is faster, and takes twice the memory",
        str(model.dtype).removeprefix("torch."),
        setting,
    )
