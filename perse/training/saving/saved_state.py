"""Validates the Trainer's own state in a checkpoint before the Trainer uses it.

It says at which step the run goes on and which checkpoint was the best: another step than the checkpoint's own would skip training, and
a name in place of a number would lead to another folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from perse.formats.json_text import parsed, shortened
from perse.formats.plain_files import own_bytes

STATE = "trainer_state.json"

_NUMBERS = (
    "epoch",
    "max_steps",
    "logging_steps",
    "eval_steps",
    "save_steps",
    "num_train_epochs",
    "num_input_tokens_seen",
    "total_flos",
)
_OPTIONAL_NUMBERS = ("train_batch_size", "best_metric")


def state_problem(checkpoint: Path, step: int) -> str | None:
    """What is wrong with the Trainer's state in a checkpoint of `step`, in a few words, or None."""
    from transformers import TrainerState

    try:
        found = parsed(own_bytes(checkpoint / STATE))
    except FileNotFoundError:
        return f"{STATE} is missing"
    except (OSError, ValueError) as error:
        return f"{STATE} cannot be read ({error})"
    if not isinstance(found, dict):
        return f"{STATE} holds no JSON object"
    if strange := sorted(found.keys() - {field.name for field in fields(TrainerState)}):
        return f"{STATE} has '{strange[0][:40]}', which the Trainer does not know"
    if not _is_step(found.get("global_step"), step, step):
        return f"{STATE} is of step {shortened(found.get('global_step'))}, expected {step}"
    wrong = [name for name in _NUMBERS if name in found and not _is_number(found[name])]
    wrong += [name for name in _OPTIONAL_NUMBERS if found.get(name) is not None and not _is_number(found[name])]
    wrong += ["best_global_step"] if not _is_step(found.get("best_global_step", 0), 0, step, or_none=True) else []
    wrong += ["best_model_checkpoint"] if not isinstance(found.get("best_model_checkpoint"), str | None) else []
    wrong += ["log_history"] if not _is_history(found.get("log_history"), step) else []
    wrong += ["stateful_callbacks"] if not _are_callbacks(found.get("stateful_callbacks")) else []
    return f"{STATE} has {wrong[0]} {shortened(found.get(wrong[0]))}, which the Trainer did not write" if wrong else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_step(value: object, low: int, high: int, *, or_none: bool = False) -> bool:
    return (type(value) is int and low <= value <= high) or (or_none and value is None)


def _is_history(lines: object, step: int) -> bool:
    """Whether it is what was logged so far, each line with its step and what judging found in numbers."""
    return isinstance(lines, list) and all(
        isinstance(line, dict)
        and _is_step(line.get("step"), 0, step)
        and all(_is_number(value) for name, value in line.items() if name.startswith("eval_"))
        for line in lines
    )


def _are_callbacks(told: object) -> bool:
    """Whether these are states by the callback's name, the Trainer's own control among them, which it looks up when it saves."""
    return (
        isinstance(told, Mapping)
        and isinstance(told.get("TrainerControl"), dict)
        and all(isinstance(one, Mapping) for state in told.values() for one in (state if isinstance(state, list) else [state]))
    )
