"""A frozen base in 4 bits (QLoRA, Dettmers et al. 2023): what it takes, how it is loaded, where it is refused.

bitsandbytes holds every linear layer but the LM head as NF4, 64 weights to a block, the blocks' scales in 8 bits again, and
unpacks one layer at a time to compute in `model.dtype`. Embeddings, norms and LM head stay in `model.dtype`, where others lift
them to float32 (peft's prepare_model_for_kbit_training): transformers' norms compute in float32 anyway, adapters are float32,
and lifting would take back half a gigabyte of a 7B model's. The trade-off: time to unpack a layer at every use, and an
adapter that is trained on rounded weights and merged into whole ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.installing import install
from perse.models import finding as models
from perse.settings.training import Model

BLOCK = 64
"""Weights that share a scale."""
SCALES = 256
"""Scales of 8 bits that share one of float32."""


def load_base(settings: Model, folder: Path) -> Any:
    """The model to start from, its weights held as `settings` say.

    Raises:
        BadInput: bitsandbytes is not installed.
    """
    if settings.quantize is None:
        return models.load(folder, dtype=settings.dtype, trust_remote_code=settings.trust_remote_code)
    if find_spec("bitsandbytes") is None:
        raise BadInput(
            f"model.quantize is {settings.quantize}, which bitsandbytes does, and it is not installed; "
            f"{install('cluster')}, or set model.quantize=null"
        )
    import torch
    from transformers import BitsAndBytesConfig

    from perse.models.opening import causal_lm

    dtype = getattr(torch, settings.dtype)
    packing = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type=settings.quantize,
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
    # Weights are packed on the device where they stay.
    device = int(os.environ.get("LOCAL_RANK", "0")) if torch.cuda.is_available() else "cpu"
    model = causal_lm(
        folder,
        trust_remote_code=settings.trust_remote_code,
        dtype=dtype,
        quantization_config=packing,
        device_map={"": device},
    )
    # On a CPU with AVX-512 a layer that has judged is repacked for reading, and gives no gradient when training goes on.
    for layer in model.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False
    return model


def check_undivided(settings: Model, *, sharding: str) -> None:
    """Refuse to divide packed weights among devices.

    Args:
        sharding: as `Launched.sharding`; `none` where every device holds the whole model.
    Raises:
        BadInput: they would be divided.
    """
    if settings.quantize is not None and sharding != "none":
        raise BadInput(
            f"model.quantize is {settings.quantize}, whose packed weights every device must hold whole, and the launch asks for "
            f"{sharding}; start with configs/accelerate/ddp.yaml, or set model.quantize=null"
        )


def mark_packed(model: Any) -> None:
    """Note on the weights of a model on the meta device what each will take once it is packed: `held_bytes` reads it."""
    for weight in _packable(model):
        weight.packed_bytes = packed_bytes(weight.numel())


def packed_bytes(weights: int) -> int:
    """Bytes of so many weights of one layer: two to a byte, a byte for each block's scale, four for each 256 of those. The
    tables of what the codes mean, a thousandth of it, are left out."""
    blocks = -(-weights // BLOCK)
    return -(-weights // 2) + blocks + 4 * -(-blocks // SCALES)


def held_bytes(parameter: Any) -> int:
    """Bytes that a parameter takes on a device."""
    return int(getattr(parameter, "packed_bytes", parameter.nbytes))


def count_weights(parameter: Any) -> int:
    """Weights of a parameter: bitsandbytes holds two of 4 bits in an element, and remembers the shape they had."""
    state = getattr(parameter, "quant_state", None)
    return int(parameter.numel() if state is None else prod(state.shape))


def unpacked_bytes(model: Any) -> int:
    """Bytes of the largest layer that is unpacked to compute with it, one at a time; 0 where none is packed."""
    return max((int(each.nbytes) for each in model.parameters() if hasattr(each, "packed_bytes")), default=0)


def _packable(model: Any) -> Iterator[Any]:
    """The weights that transformers has bitsandbytes pack."""
    from torch.nn import Linear
    from transformers.quantizers.base import get_keys_to_not_convert
    from transformers.quantizers.quantizers_utils import should_convert_module

    kept = get_keys_to_not_convert(model)
    for name, module in model.named_modules():
        if isinstance(module, Linear) and should_convert_module(name, kept):
            yield module.weight
