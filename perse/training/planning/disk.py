"""Checks the free disk space for a whole run before it begins."""

from __future__ import annotations

from pathlib import Path

from perse.settings.training import TrainConfig
from perse.training.launched import Sharding
from perse.training.model.architecture import architecture, meta_model
from perse.training.planning.memory import static_memory
from perse.training.saving.checkpoints import CHECKPOINTS, check_room, size


def check_disk(config: TrainConfig, sharding: Sharding) -> int:
    """Bytes that a run writes at most at one time: the checkpoints that are kept, one more while it is written, and the model.

    Raises:
        BadInput: there is no room for them.
    """
    model = meta_model(
        config, architecture(config.model.path, trust_remote_code=config.model.trust_remote_code), checkpointing=False
    )
    held = static_memory(model, optimizer=config.train.optimizer)
    # The trained weights, and what AdamW keeps of them; FSDP2, ZeRO-1 and -2 write their pieces of the weights once more.
    twice = sharding in ("fsdp2", "zero1", "zero2")
    parts = held.gradients * (2 if twice else 1) + held.optimizer
    kept = config.train.keep_checkpoints + 1 + (config.watch is not None)
    itemsize = 4 if config.model.dtype == "float32" else 2
    whole = sum(each.numel() for each in model.parameters()) * itemsize
    out = Path(config.output)
    needed = kept * parts + (whole if config.lora is not None else 0)
    there = sum(path.stat().st_size for path in (out / CHECKPOINTS).rglob("*") if path.is_file()) if out.exists() else 0
    check_room(out, max(0, needed - there), what=f"a run with {kept} checkpoints of {size(parts)}")
    return needed
