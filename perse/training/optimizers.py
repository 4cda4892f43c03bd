"""The optimizers that `train.optimizer` names: what each keeps of a trained weight, and where it cannot be.

AdamW keeps two moments of every weight. In 8 bits (Dettmers et al. 2022, bitsandbytes) they take a quarter, and those of
embeddings and of parameters of fewer than 4,096 weights stay in float32; paged, the driver moves them to the machine's memory
while a row needs the room. Adafactor (Shazeer and Stern 2018) keeps the mean of the squares by row and by column alone. The
trade-off is rounding, or a coarser step, for memory that LoRA hardly needs and full fine-tuning does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from math import prod
from typing import Any

from perse.environment import wrong
from perse.errors import BadInput
from perse.installing import install
from perse.settings.training import Optimizer

_OPTIM: Mapping[Optimizer, str] = {
    "adamw_8bit": "adamw_bnb_8bit",
    "paged_adamw_8bit": "paged_adamw_8bit",
    "adafactor": "adafactor",
}
_BLOCK = 256
"""Moments that share a scale."""
_WHOLE = 4096
"""Parameters of fewer weights keep moments of float32."""
_CODES = 2 * 256 * 4
"""Bytes of the tables that say what the codes of the two moments mean."""
_AS_PARAMETER = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "state1", "state2")
_KERNEL = "bitsandbytes::optimizer_update_8bit_blockwise"


def optimizer_arguments(name: Optimizer) -> dict[str, Any]:
    """Of `TrainingArguments`; AdamW is the Trainer's own choice, torch's fused one."""
    return {"optim": _OPTIM[name]} if name in _OPTIM else {}


def in_8_bits(name: Optimizer) -> bool:
    """Whether bitsandbytes keeps its moments."""
    return name.endswith("_8bit")


def device_kind() -> str:
    """The kind of device that trains: `cpu`, `cuda`, ..."""
    import torch

    if named := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        try:
            return torch.device(named).type
        except RuntimeError:
            raise wrong("ACCELERATE_TORCH_DEVICE", named, "a device of torch, as cpu or cuda:0") from None
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_optimizer(name: Optimizer, *, sharding: str, device: str) -> None:
    """Refuse an optimizer that cannot be here, before anything is loaded.

    Args:
        sharding: as `Launched.sharding`.
        device: as `device_kind`.
    Raises:
        BadInput: its state would be divided, bitsandbytes is not here, or it computes nothing on this device.
    """
    check_whole(name, sharding=sharding)
    if not in_8_bits(name):
        return
    what = f"train.optimizer is {name}, which bitsandbytes computes"
    if find_spec("bitsandbytes") is None:
        raise BadInput(f"{what}, and it is not installed; {install('cluster')}, or set train.optimizer=adamw")
    import bitsandbytes
    import torch

    known = torch._C._dispatch_has_kernel_for_dispatch_key(_KERNEL, device.upper())
    if not known or (device == "cuda" and not bitsandbytes.cextension.lib.compiled_with_cuda):
        raise BadInput(
            f"{what}, and its version {bitsandbytes.__version__} does so on no {device} device; set train.optimizer=adamw or adafactor"
        )
    if name.startswith("paged") and device == "cpu":
        raise BadInput(
            f"train.optimizer is {name}, and training is on a CPU, which has no other memory to move moments to; set "
            "train.optimizer=adamw_8bit"
        )


def check_whole(name: Optimizer, *, sharding: str) -> None:
    """Refuse to divide a state other than AdamW's: pieces of a weight have other blocks, rows and columns than the whole.

    Raises:
        BadInput: it would be divided.
    """
    if name != "adamw" and sharding != "none":
        raise BadInput(
            f"train.optimizer is {name}, whose state every device must hold whole, and the launch asks for {sharding}; start with "
            "configs/accelerate/ddp.yaml, or set train.optimizer=adamw"
        )


def faster_second(optimizer: Any, model: Any, *, times: float) -> None:
    """Give the second matrix of every adapter, B, so many times the learning rate of the others (LoRA+, Hayou et al. 2024)."""
    second = {id(each) for name, each in model.named_parameters() if ".lora_B." in name or ".lora_embedding_B." in name}
    for group in list(optimizer.param_groups):
        chosen = [each for each in group["params"] if id(each) in second]
        group["params"] = [each for each in group["params"] if id(each) not in second]
        if chosen:
            optimizer.add_param_group({**group, "params": chosen, "lr": times * group["lr"]})
    # One that is empty has lost its settings when torch reads a divided checkpoint again.
    optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]


def state_bytes(model: Any, name: Optimizer) -> int:
    """Bytes that the optimizer keeps of a model's trained weights once it has stepped; of paged ones wherever they lie."""
    from torch import nn

    trained = [each for each in model.parameters() if each.requires_grad]
    if name == "adamw":  # moments in each parameter's own type, and a float32 count of steps
        return sum(2 * int(each.nbytes) + 4 for each in trained)
    if name == "adafactor":  # in float32, and the root mean square
        return sum(4 * _factors(tuple(each.shape)) + 4 for each in trained)
    # Moments of what is looked up stay whole by transformers' choice.
    looked_up = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    small = [each.numel() for each in trained if each.numel() < _WHOLE or id(each) in looked_up]
    packed = [each.numel() for each in trained if not (each.numel() < _WHOLE or id(each) in looked_up)]
    kept: int = 8 * sum(small) + sum(2 * n + 8 * -(-n // _BLOCK) for n in packed)
    return kept + (_CODES if packed else 0)


def _factors(shape: tuple[int, ...]) -> int:
    """Numbers that stand for a weight's squares: of its rows and columns; of a vector all."""
    numel = prod(shape)
    return numel if len(shape) < 2 else numel // shape[-1] + numel // shape[-2]


def check_shapes(optimizer: Any) -> None:
    """That what an optimizer keeps of a parameter has the shape it must have: fused steps write beyond the end of smaller ones.

    Raises:
        ValueError: one differs.
    """
    state = getattr(optimizer, "optimizer", optimizer).state  # accelerate's is around the real one
    for parameter, kept in state.items():
        for name, value in kept.items():
            shape, expected = tuple(getattr(value, "shape", ())), _shape(name, tuple(parameter.shape))
            if expected is not None and shape != expected:
                raise ValueError(f"'{name}' of the optimizer has shape {shape}, its parameter {tuple(parameter.shape)}")


def _shape(name: str, of: tuple[int, ...]) -> tuple[int, ...] | None:
    """Of a part of the state of a parameter of shape `of`; None for what is no such part."""
    if name in _AS_PARAMETER:
        return of
    if name in ("absmax1", "absmax2"):
        return (-(-prod(of) // _BLOCK),)
    if name in ("qmap1", "qmap2"):
        return (256,)
    return {"exp_avg_sq_row": of[:-1], "exp_avg_sq_col": of[:-2] + of[-1:]}.get(name)
