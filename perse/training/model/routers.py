"""Leaves a mixture's router logits out: the loss that spreads tokens over experts is of a row, and not of its examples.

A configuration that asks for it (`output_router_logits`) has transformers work that loss out from a mask of another shape than a
row's, and fail. Ours is the answers' loss alone, so it would count nowhere.
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


def leave_out_router_logits(model: Any) -> None:
    """Let every call of `model` leave them out; its configuration stays as it came, and is saved so."""
    if not getattr(model.config.get_text_config(), "output_router_logits", False):
        return
    model.register_forward_pre_hook(_without, with_kwargs=True)
    log.warning(
        "the configuration of %s asks for router logits (output_router_logits), and with them a loss that spreads tokens over experts; only "
        "answers are learned here, and it is left out",
        type(model).__name__,
    )


def _without(module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return args, {**kwargs, "output_router_logits": False}
