"""The memory of a device in each way of training, and which way to choose.

In order of preference: every device holds everything, without and then with gradient checkpointing; then weights, gradients
and optimizer state are divided among the devices (ZeRO-3 or fully sharded data parallel). The first that fits is chosen, for
each costs time that the one before does not: checkpointing a third to half more operations, sharding the traffic of all
weights in every pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perse.training.planning.memory import Activations, StaticMemory

MOST_DEVICES = 1024
"""The most devices that are suggested."""
ROW_STEP = 64
"""Suggested row lengths are multiples of this."""


@dataclass(frozen=True)
class Needs:
    """What decides the memory of one device: `off`, `on` are the passes without and with gradient checkpointing; `gathered`
    as `memory.gathered`; `whole`: every device must hold all weights and their state, as `check_undivided` and `check_whole` say."""

    static_memory: StaticMemory
    off: Activations
    on: Activations
    gathered: int
    whole: bool = False


@dataclass(frozen=True)
class Placement:
    """One way of training, in bytes of one device.

    `communication`: buffers in which gradients are summed over devices, or whole weights of the layers at work when sharded.
    `activations`: the most that a forward and backward pass holds.
    """

    sharded: bool
    checkpointing: bool
    weights: int
    gradients: int
    optimizer: int
    communication: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.communication + self.activations


def placement(needs: Needs, *, devices: int, sharded: bool, checkpointing: bool) -> Placement:
    """Bytes of one of `devices`."""
    static, rows = needs.static_memory, needs.on if checkpointing else needs.off
    if sharded:
        parts = [-(-whole // devices) for whole in (static.weights, static.gradients, static.optimizer)]
        return Placement(True, checkpointing, parts[0], parts[1], parts[2], needs.gathered, rows.peak_sharded)
    buckets = static.gradients if devices > 1 else 0
    return Placement(False, checkpointing, static.weights, static.gradients, static.optimizer, buckets, rows.peak)


def optimizer_divided(needs: Needs, *, devices: int, checkpointing: bool, gradients: bool, bf16: bool) -> Placement:
    """Bytes of one of `devices` under ZeRO-1, or with `gradients` ZeRO-2: the weights whole, what AdamW keeps of them divided.

    Args:
        bf16: float32 weights are computed in bfloat16. DeepSpeed then holds them so, and float32 ones beside AdamW's moments.
    """
    static, rows = needs.static_memory, needs.on if checkpointing else needs.off
    share = 2 if bf16 else 1
    held = static.gradients // share
    return Placement(
        sharded=False,
        checkpointing=checkpointing,
        weights=static.weights // share,
        gradients=-(-held // devices) if gradients else held,
        optimizer=-(-(static.optimizer + (static.gradients if bf16 else 0)) // devices),
        communication=2 * 500_000_000 * (4 // share),  # two buckets, as configs/deepspeed/zero2.json has them
        activations=rows.peak_sharded,
    )


def placements(needs: Needs, *, devices: int) -> tuple[Placement, ...]:
    """Every way that training has, the preferred one first; a single device cannot shard."""
    return tuple(
        placement(needs, devices=devices, sharded=sharded, checkpointing=checkpointing)
        for sharded in ((False, True) if devices > 1 and not needs.whole else (False,))
        for checkpointing in (False, True)
    )


def chosen(ways: Sequence[Placement], usable: int) -> Placement | None:
    """The first way that takes at most `usable` bytes."""
    return next((way for way in ways if way.total <= usable), None)


def remedies(
    needs: Needs,
    *,
    devices: int,
    usable: int,
    row: int,
    shortest_row: int,
    least: tuple[int, Needs],
    rows_per_step: int,
    lora_weights: int | None,
) -> tuple[str, ...]:
    """Suggestions that would make it fit, if nothing does.

    Args:
        row: tokens of the row that was planned with. A row of `shortest_row` holds the longest example and cannot be shorter.
        least: tokens of a row as short as can be with as many learned ones, and the needs with it: a part of what a pass holds,
            such as weights in the type they are computed in, is the same for every row.
        rows_per_step: as set now; devices must divide it.
        lora_weights: bytes of the weights in bfloat16, when all of them are trained now. With LoRA little else would be held.
    """
    found: list[str] = []
    count = devices
    while count < MOST_DEVICES and not needs.whole:
        count *= 2
        if placement(needs, devices=count, sharded=True, checkpointing=True).total <= usable:
            rows = -(-rows_per_step // count) * count
            also = "" if rows == rows_per_step else f" and train.rows_per_step={rows}"
            found.append(f"--gpus {count}, fully sharded, with train.gradient_checkpointing=true{also}")
            break
    if lora_weights is not None and lora_weights + needs.on.peak_sharded <= usable:
        found.append(
            f"a lora section and model.dtype=bfloat16: the weights then take {lora_weights / 1e9:.1f} GB and the optimizer little"
        )
    best = min(placements(needs, devices=devices), key=lambda way: way.total)
    fitting = _fitting_row(best, usable, row=row, devices=devices, least=least)
    if fitting >= shortest_row:
        found.append(f"train.row_tokens={fitting}, with train.gradient_checkpointing={str(best.checkpointing).lower()}")
    elif fitting >= ROW_STEP:
        found.append(f"model.context={fitting} or less and rows as short: the longest example takes {shortest_row} tokens")
    return tuple(found)


def _fitting_row(way: Placement, usable: int, *, row: int, devices: int, least: tuple[int, Needs]) -> int:
    """The longest row that fits, on the straight line from the least row to `row`; 0 if none does. A peak is the largest of
    several sums that grow with the row, so that between two rows it is never above the line."""
    tokens, needs = least
    short = placement(needs, devices=devices, sharded=way.sharded, checkpointing=way.checkpointing)
    if short.total > usable or tokens >= row:
        return 0
    fitting = tokens + (row - tokens) * (usable - short.total) / (way.total - short.total)
    return int(fitting) // ROW_STEP * ROW_STEP
