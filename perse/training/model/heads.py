"""How wide a model's attention heads are, layer by layer: some models have layers of other widths than the rest."""

from __future__ import annotations

from typing import Any


def head_widths(model: Any) -> list[int]:
    """Of each attention layer, as its module says; where none does, as the configuration says for all."""
    told = [
        module.head_dim
        for module in model.modules()
        if "Attention" in type(module).__name__ and isinstance(getattr(module, "head_dim", None), int)
    ]
    config = model.config.get_text_config()
    if len(told) >= config.num_hidden_layers:
        return told
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return [width] * config.num_hidden_layers
