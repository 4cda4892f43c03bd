"""Fused kernels of liger-kernel for a model's norms and MLPs: one kernel where torch runs several, and less to keep.

They are put into one model and nowhere else: liger-kernel also exchanges classes and functions of transformers' module, so that
any model made later in the process would have them, the merged one that is checked on a CPU among them; that is undone here. So
the rotation of queries and keys, a function of the whole module, stays torch's; the loss stays ours, which computes logits at
learned tokens only. The trade-off: fused results differ from torch's by rounding, as a different order of summation would.
"""

from __future__ import annotations

import logging
import sys
from importlib.util import find_spec
from typing import Any

from perse.errors import BadInput
from perse.installing import install

log = logging.getLogger(__name__)

_LEFT_OUT = {"rope": False, "cross_entropy": False, "fused_linear_cross_entropy": False}


def fuse(model: Any, *, asked: bool | None) -> bool:
    """Put fused kernels into `model` (without its adapter), if `train.liger` asks for them; returns whether it did.

    Args:
        asked: `train.liger`; None where they can be had: liger-kernel is installed, knows the model, and training is on CUDA.
    Raises:
        BadInput: they are asked for and cannot be had.
    """
    why = None if asked is False else _hindrance(model)
    if asked and why:
        raise BadInput(
            f"train.liger is true, and {why}; or leave train.liger out, which uses fused kernels where they can be had"
        )
    if asked is False or why:
        if _on_cuda():
            log.info("kernels: torch's (%s)", why or "train.liger is false")
        return False
    exchange(model)
    log.info("kernels: liger-kernel's for norms and MLPs, torch's for the rest")
    return True


def exchange(model: Any) -> None:
    """Put the kernels into `model`; its class and transformers' module stay as they are."""
    from liger_kernel.transformers import _apply_liger_kernel_to_instance

    module = sys.modules[type(model).__module__]
    before = dict(vars(module))
    try:
        _apply_liger_kernel_to_instance(model=model, **_LEFT_OUT)
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _on_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _hindrance(model: Any) -> str | None:
    """Why the kernels are not available, and what would help."""
    if not _on_cuda():
        return "there is no CUDA device, which they are written for: train on one"
    if find_spec("liger_kernel") is None:
        return f"liger-kernel is not installed: {install('cluster')}"
    from liger_kernel.transformers.monkey_patch import MODEL_TYPE_TO_APPLY_LIGER_FN as known

    kind = model.config.model_type
    return None if kind in known else f"liger-kernel has none for a model of type '{kind}': set train.liger=false"
