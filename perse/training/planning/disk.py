"""Checks the free disk space for a whole run before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.settings.training import TrainConfig
from perse.training.launched import Sharding
from perse.training.model.architecture import architecture, meta_model
from perse.training.planning.memory import static_memory
from perse.training.saving.checkpoints import CHECKPOINTS, check_room, size


@dataclass(frozen=True)
class Disk:
    """What a run writes, in bytes: `checkpoint` is of one, of which at most `checkpoints` are there at a time, `model` of the merged one."""

    checkpoint: int
    checkpoints: int
    model: int

    @property
    def most(self) -> int:
        """At one time."""
        return self.checkpoints * self.checkpoint + self.model


def disk(config: TrainConfig, model: Any, sharding: Sharding) -> Disk:
    """Of a run of `config`: the checkpoints that are kept, the best judged, one more while it is written, and the model.

    Args:
        model: on the meta device, with its adapter.
    """
    held = static_memory(model, optimizer=config.train.optimizer)
    # The trained weights, and what the optimizer keeps of them; FSDP2, ZeRO-1 and -2 write their pieces of the weights once more.
    twice = sharding in ("fsdp2", "zero1", "zero2")
    checkpoint = held.gradients * (2 if twice else 1) + held.optimizer
    itemsize = 4 if config.model.dtype == "float32" else 2
    whole = sum(each.numel() for each in model.parameters()) * itemsize
    kept = config.train.keep_checkpoints + 1 + (config.watch is not None)
    return Disk(checkpoint, kept, whole if config.lora is not None else 0)


def check_disk(config: TrainConfig, sharding: Sharding) -> int:
    """Bytes that a run writes at most at one time.

    Raises:
        BadInput: there is no room for them.
    """
    described = architecture(config.model.path, trust_remote_code=config.model.trust_remote_code)
    needed = disk(config, meta_model(config, described, checkpointing=False), sharding)
    out = Path(config.output)
    there = sum(path.stat().st_size for path in (out / CHECKPOINTS).rglob("*") if path.is_file()) if out.exists() else 0
    what = f"a run with {needed.checkpoints} checkpoints of {size(needed.checkpoint)}"
    check_room(out, max(0, needed.most - there), what=what)
    return needed.most
