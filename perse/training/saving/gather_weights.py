"""Whole weights of a model that is divided among devices, on the first of them; written, opened again and compared.

Each way of sharding has its own trap: ZeRO-3 leaves empty tensors in the module, FSDP2 leaves every process its own part, and the
libraries save either silently. So one function gathers the weights tensor by tensor, one writes them, and what
is on the disk must equal what was in memory, name by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from perse.errors import BadInput, SaveFailed
from perse.training.model.dropout import dropout_as_it_came


def gather_weights(model: Any, *, is_main_process: bool) -> dict[str, Tensor]:
    """The model's tensors by name, whole and on the CPU; of a model with an adapter those of the adapter alone.

    Every process must call it, for they put the pieces together. One tensor is gathered at a time, so that no device holds
    more than that beside its own part.

    Returns:
        on the first process (`is_main_process`) the tensors, tied ones as one object; elsewhere an empty result.
    Raises:
        SaveFailed: a tensor has another shape than the model's.
    """
    found: dict[str, Tensor] = {}
    gathered: dict[int, Tensor] = {}
    for name, tensor in _wanted(model):
        if id(tensor) not in gathered:
            whole = _gathered(tensor, is_main_process=is_main_process)
            if is_main_process:
                if tuple(whole.shape) != _shape(tensor):
                    raise SaveFailed(
                        f"{name} was gathered with shape {tuple(whole.shape)}, expected {_shape(tensor)}; nothing was saved of it"
                    )
                gathered[id(tensor)] = whole
        if is_main_process:
            found[name] = gathered[id(tensor)]
    return found


def write_weights(model: Any, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write the `gather_weights` as the model (or its adapter) is saved, open the files again, and compare.

    Raises:
        BadInput: a weight is no finite number: the last step went too far.
        SaveFailed: what is on the disk is not what was in memory.
    """
    for name, weight in weights.items():
        if not bool(torch.isfinite(weight).all()):
            raise BadInput(
                f"{name} has weights that are no finite numbers after this step, and nothing was saved of it; lower train.learning_rate, "
                "and begin another output, or go on from the last checkpoint"
            )
    with dropout_as_it_came(model):
        model.save_pretrained(folder, state_dict=dict(weights))
    (folder / "README.md").unlink(missing_ok=True)  # peft's card, of blanks to fill in
    check_written(folder, _saved_names(model, weights))


def check_written(folder: Path, expected: Mapping[str, Tensor]) -> None:
    """Compare every tensor of the safetensors files in `folder` with the `expected` one.

    Raises:
        SaveFailed: one is missing, empty, of another shape or type, or has other numbers. Of tied tensors one is enough.
    """
    from safetensors import safe_open

    seen: set[int] = set()
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 (no mapping)
                if name not in expected:
                    raise SaveFailed(f"{file} holds {name}, which the model has not")
                written, known = opened.get_tensor(name), expected[name]
                if written.numel() == 0 or written.shape != known.shape or written.dtype != known.dtype:
                    raise SaveFailed(
                        f"{file} holds {name} as {tuple(written.shape)} of {written.dtype}, expected {tuple(known.shape)} of "
                        f"{known.dtype}; the disk or its file system is not to be trusted"
                    )
                if not torch.equal(written, known):
                    raise SaveFailed(f"{file} holds other numbers for {name} than were written; check the disk")
                seen.add(id(known))
    missing = [name for name, tensor in expected.items() if id(tensor) not in seen]
    if missing or not expected:
        raise SaveFailed(
            f"{folder} lacks {len(missing)} tensors of the model, the first {missing[:1]}; nothing may be judged with it"
        )


def _wanted(model: Any) -> Iterator[tuple[str, Any]]:
    """The parameters to save: all, or with an adapter the trained ones."""
    adapter = hasattr(model, "peft_config")
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not adapter or tensor.requires_grad:
            yield name, tensor


def _shape(tensor: Any) -> tuple[int, ...]:
    """Of the whole tensor; ZeRO-3 keeps it aside."""
    return tuple(getattr(tensor, "ds_shape", tensor.shape))


def _gathered(tensor: Any, *, is_main_process: bool) -> Tensor:
    if hasattr(tensor, "ds_id") or hasattr(tensor, "_hp_mapping"):  # where DeepSpeed computes in bfloat16 it learns in float32
        from deepspeed.utils import safe_get_full_fp32_param

        master = safe_get_full_fp32_param(tensor)
        if master is not None:
            return master.detach().to("cpu", copy=True) if is_main_process else torch.empty(0)
    with _zero_gathers(tensor):
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        # What ZeRO gathers is gone after this, so it is copied also where it is on the CPU already.
        return whole.detach().to("cpu", copy=hasattr(tensor, "ds_id")) if is_main_process else torch.empty(0)


def _zero_gathers(tensor: Any) -> Any:
    if not hasattr(tensor, "ds_id"):
        return nullcontext()
    from deepspeed import zero

    return zero.GatheredParameters([tensor])


def _saved_names(model: Any, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The names that files have: of an adapter without the adapter's own name."""
    if not hasattr(model, "peft_config"):
        return weights
    from peft import get_peft_model_state_dict

    saved: Mapping[str, Tensor] = get_peft_model_state_dict(model, state_dict=dict(weights))
    return saved
