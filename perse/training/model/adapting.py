"""Chooses the trained weights: a LoRA or DoRA adapter's, or all; checks that there are some.

The planner and the trainer take a model through here, so what is planned is what is trained.
"""

from __future__ import annotations

import re
from typing import Any

from perse.errors import BadInput
from perse.settings.training import Lora


def adapted(model: Any, lora: Lora | None, *, checkpointing: bool) -> Any:
    """`model` with a fresh adapter on it, its other weights frozen; without `lora`, the model as it is.

    The adapter is float32 over weights of 16 bits or 4 (peft's way), so that small updates are not lost. With gradient
    checkpointing the embeddings' output asks for gradients, without which a frozen layer would have none.

    Raises:
        BadInput: `lora.targets` or `lora.modules_to_save` name nothing in the model, the latter something that is tied to another
            module, or no weight of it is trainable.
    """
    if lora is None:
        check_trainable(model)
        return model
    from peft import LoraConfig, get_peft_model

    linear = _linear_names(model)
    # A string is a pattern of whole names to peft, which the name of a layer in every block matches nowhere.
    targets = (
        [lora.targets] if lora.targets in linear else lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    )
    settings = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        use_dora=lora.dora,
        use_rslora=lora.rslora,
        modules_to_save=None if lora.modules_to_save is None else list(lora.modules_to_save),
        task_type="CAUSAL_LM",
    )
    # peft passes over a name that fits nothing as long as another fits, and would train less than was asked for.
    wrong = [] if isinstance(targets, str) else [name for name in targets if name.rpartition(".")[2] not in linear]
    if wrong or not targets:
        raise BadInput(_no_such_target(wrong, linear))
    for name in lora.modules_to_save or ():
        _check_module(model, name)
    if checkpointing:
        model.enable_input_require_grads()
    try:
        model = get_peft_model(model, settings)
    except (ValueError, re.error):  # an invalid pattern; or a pattern or name that matches nothing
        raise BadInput(_no_such_target([targets] if isinstance(targets, str) else targets, linear)) from None
    check_trainable(model)
    return model


def without_adapter(model: Any) -> Any:
    """The model below an adapter, or the model itself without one."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def check_trainable(model: Any) -> None:
    """Refuse a model without trainable weights.

    Raises:
        BadInput: all its parameters are frozen.
    """
    if not any(each.requires_grad for each in model.parameters()):
        raise BadInput(
            f"0 of {sum(each.numel() for each in model.parameters()):,} parameters are trainable, expected at least 1; give lora.targets "
            "that the model has, or lora=null to train all weights"
        )


def _check_module(model: Any, name: str) -> None:
    """Refuse what peft would train otherwise than was asked for: it takes every module whose name ends so, in the middle of a word
    too, and a copy of what is tied, so that the other stays behind."""
    taken = [full for full, _ in model.named_modules() if full.endswith(name)]
    meant = [full for full in taken if f".{full}".endswith(f".{name}")]
    if not name or not any(
        parameter.is_floating_point() for full in meant for parameter in model.get_submodule(full).parameters()
    ):
        raise BadInput(
            f"lora.modules_to_save has '{name}', which is no module of this model with weights; expected such as embed_tokens or lm_head"
        )
    if others := sorted(set(taken) - set(meant)):
        raise BadInput(
            f"lora.modules_to_save has '{name}', with which '{others[0]}' ends, too, and it would be trained as well; write more of the "
            f"name, such as {meant[0]}"
        )
    names: dict[int, list[str]] = {}
    for full, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(full)
    for tied in (some for some in names.values() if len(some) > 1):
        if any(full.startswith(f"{module}.") for full in tied for module in meant):
            raise BadInput(
                f"lora.modules_to_save has '{name}', and this model has {' and '.join(tied)} in one, of which a copy alone would be trained; "
                "leave it out, or train all weights (lora=null model.dtype=float32)"
            )


def _no_such_target(wrong: list[str], linear: list[str]) -> str:
    return (
        f"lora.targets has {', '.join(map(repr, wrong)) or 'no name'}, which is no layer of this model that can take an "
        f"adapter, so nothing would be trained there; choose among {', '.join(linear)}, or all-linear"
    )


def _linear_names(model: Any) -> list[str]:
    from torch.nn import Linear
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer, with its weight turned

    names = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, (Linear, Conv1D))}
    return sorted(names)
