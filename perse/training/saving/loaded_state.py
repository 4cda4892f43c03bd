"""What a checkpoint put into an optimizer and a scheduler is of the kind that was there before: torch takes whatever a file has.

A number stays a number and a pair a pair; nothing is missing, and nothing takes the place of a method. So what a stranger sealed into a checkpoint is
found here, and not at a later step by torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.optim import AdamW

Settings = dict[str, Any]

_ADAMW = frozenset({"step", "exp_avg", "exp_avg_sq"})
"""What torch's keeps of a weight; bitsandbytes' of the same name keeps other things."""


def settings_of(optimizer: Any, scheduler: Any) -> tuple[list[Settings], Settings]:
    """The settings of each group of weights, and all that the scheduler has; before a checkpoint is read, and after."""
    groups = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    return groups, dict(vars(_inner(scheduler, "scheduler")))


def weights_with_state(optimizer: Any) -> int:
    """Of how many weights an optimizer keeps something. It has nothing of one that no example has reached yet, such as an expert's."""
    return sum(bool(kept) for kept in _inner(optimizer, "optimizer").state.values())


def check_weights(model: Any) -> None:
    """
    Raises:
        ValueError: what is trained of a model has become no finite numbers.
    """
    for name, weight in model.named_parameters():
        if weight.requires_grad and not bool(weight.detach().isfinite().all()):
            raise ValueError(f"its weights {name} are no finite numbers")


def check_loaded(
    before: tuple[list[Settings], Settings], optimizer: Any, scheduler: Any, *, with_state: int | None = None
) -> None:
    """
    Args:
        before: `settings_of` these two before a checkpoint was read.
        with_state: the `weights_with_state` when it was saved; None of an older one.
    Raises:
        ValueError: something has become what it cannot be.
    """
    groups, schedule = settings_of(optimizer, scheduler)
    if len(groups) != len(before[0]):
        raise ValueError(f"the optimizer has {len(groups)} groups of weights, expected {len(before[0])}")
    for known, found in zip(before[0], groups, strict=True):
        _compare(known, found, "the optimizer")
    _compare(before[1], schedule, "the scheduler")
    if strange := sorted(
        name for name in schedule.keys() - before[1].keys() if hasattr(type(_inner(scheduler, "scheduler")), name)
    ):
        raise ValueError(f"the scheduler's {strange[0]} is none of its numbers")
    inner = _inner(optimizer, "optimizer")
    for kept in inner.state.values():
        if kept and isinstance(inner, AdamW) and (lacking := sorted(_ADAMW - kept.keys())):
            raise ValueError(f"the optimizer lacks the {lacking[0]} of a weight")
        if "step" in kept and not _is_number(kept["step"]):
            raise ValueError("the optimizer has a step of a weight that is no number")
        if odd := next((name for name, value in kept.items() if not _can_be(name, value)), None):
            raise ValueError(f"the optimizer has numbers in the {odd} of a weight that cannot be there, such as NaN")
    if with_state is not None and (number := weights_with_state(optimizer)) != with_state:
        raise ValueError(f"the optimizer keeps something of {number} weights, expected {with_state}")


def _compare(known: Settings, found: Settings, whose: str) -> None:
    for name, value in known.items():
        if name not in found or not _alike(value, found[name]):
            told = repr(found[name])[:40] if name in found else "missing"
            raise ValueError(f"{name} of {whose} is {told}, expected one like {repr(value)[:40]}")


def _alike(known: object, found: object) -> bool:
    if known is None or isinstance(known, bool):
        return found is None or isinstance(found, bool)
    if isinstance(known, int | float | Tensor):
        return _is_number(found)
    if isinstance(known, list | tuple):
        return isinstance(found, Sequence) and len(found) == len(known) and all(map(_alike, known, found))
    return found is known or found == known


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.is_complex() and math.isfinite(value.item())
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _can_be(name: str, value: object) -> bool:
    """Whether what an optimizer keeps of a weight is finite, and of squares not below 0."""
    if not (isinstance(value, Tensor) and value.is_floating_point() and value.numel()):
        return True
    low, high = (each.item() for each in value.aminmax())
    return math.isfinite(low) and math.isfinite(high) and (low >= 0 or not name.startswith("exp_avg_sq"))


def _inner(one: Any, name: str) -> Any:
    """accelerate's is around the real one."""
    return getattr(one, name, one) if type(one).__name__.startswith("Accelerated") else one
