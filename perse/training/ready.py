"""The model of a run, made ready: loaded, with its adapter and attention, and proven on rows before anything is trained.

Whatever a model cannot do (packed rows, this device, this way of starting) is refused here, before the run's folder is begun.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainingArguments

from perse.engines.sixteen_bit import warn_if_slow
from perse.errors import BadInput
from perse.settings.training import Attention, TrainConfig
from perse.training.launched import Launched
from perse.training.model.adapting import adapted, without_adapter
from perse.training.model.dropout import switch_off_dropout
from perse.training.model.fused import fuse
from perse.training.model.quantized import load_base
from perse.training.model.routers import leave_out_router_logits
from perse.training.rows.attention import set_attention
from perse.training.rows.packable import check_packable
from perse.training.rows.prepare import Prepared
from perse.training.rows.proof import proven_attention, to_prove
from perse.training.watch.run import Watching

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadyModel:
    """A model that can be trained, and how its rows are kept to their paths."""

    model: Any
    attention: Attention


def ready_model(
    config: TrainConfig,
    base: Path,
    prepared: Prepared,
    watching: Watching | None,
    arguments: TrainingArguments,
    *,
    process: Launched,
) -> ReadyModel:
    """The model to train, with its adapter and attention; proven on two examples, where it is whole on this device.

    Raises:
        BadInput: it cannot be trained on these rows, or not as it was started.
    """
    if arguments.n_gpu > 1:
        raise BadInput(
            f"found {arguments.n_gpu} GPUs and one process; start with accelerate launch --num_processes {arguments.n_gpu}, or "
            "set CUDA_VISIBLE_DEVICES=0"
        )
    model = load_model(config, base, shared=prepared.schedule.share)
    warn_if_slow(model, setting="model.dtype=float32")
    rows = watching.what.rows if watching else ()
    longest = max([prepared.longest, *(row.tree.depth for row in rows)])
    check_packable(without_adapter(model), longest=longest)
    fuse(without_adapter(model), asked=config.train.liger)
    computed = torch.bfloat16 if arguments.bf16 else model.dtype
    attention = set_attention(model, config.train.attention, computed=computed)
    if process.sharding == "none":
        if config.model.quantize is None:  # packed weights are where they stay
            model.to(arguments.device)
        shown, share = to_prove(prepared.schedule), prepared.schedule.share
        attention = proven_attention(model, shown, attention, share=share, asked=config.train.attention, dtype=computed)
    return ReadyModel(model, attention)


def load_model(config: TrainConfig, base: Path, *, shared: bool) -> Any:
    """The model to train, with a fresh adapter where LoRA is asked for.

    Args:
        shared: branches share tokens, so that one draw of a dropout would serve all of them: it is switched off then.
    """
    torch.manual_seed(config.train.seed)  # the adapter's first weights
    model = load_base(config.model, base)
    leave_out_router_logits(model)
    lora = config.lora
    if shared:
        own = switch_off_dropout(model)
        asked = [f"lora.dropout={lora.dropout:g}"] if lora is not None and lora.dropout else []
        if own or asked:
            log.warning(
                "dropout (%s) is not applied: branches share their profile's tokens, and with them one dropout mask; "
                "train.max_shared_examples=1 shares nothing and applies it",
                ", ".join([*asked, *(f"the model's {each}" for each in own)]),
            )
        if lora is not None:
            lora = lora.model_copy(update={"dropout": 0.0})
    return adapted(model, lora, checkpointing=config.train.gradient_checkpointing)
