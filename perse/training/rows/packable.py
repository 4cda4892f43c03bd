"""Refuses, before anything is trained, a model whose examples would not be in a packed row what they are alone.

A row holds several examples, and each must see its own path and nothing else, at its own positions, whatever stands beside it.
That holds for attention over keys and values, where position goes in through `position_ids` alone. It does not for layers that carry something
from token to token (states, convolutions), for distances counted along the row, nor for a rotation or a choice of keys that
depends on how long the longest of the row is. What the configuration says is checked here; what it does not, `proof` finds out
on the model itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perse.errors import BadInput

ATTENDS = {"full_attention", "sliding_attention", "chunked_attention"}
"""Kinds of layers, as transformers names them, through which a mask or a tree keeps examples apart."""


def check_packable(model: Any, *, longest: int) -> None:
    """Refuse a model whose examples would differ in a packed row from what they are alone, whichever way it attends.

    Args:
        longest: tokens of the longest example.
    Raises:
        BadInput: says what the model does, and what to change.
    """
    config, name = model.config.get_text_config(), type(model).__name__
    kinds = getattr(config, "layer_types", None) or ("full_attention",)
    reaches = _reaching(model, kinds)
    if reaches:
        raise BadInput(
            f"{name} {reaches}, through which examples of a row would see each other; expected a model with attention alone, so set "
            "model.path to another"
        )
    counts = "position_ids" not in inspect.signature(model.forward).parameters or getattr(config, "alibi", False)
    if counts or "local" in getattr(config, "attention_layers", ()):  # ALiBi, and GPT-Neo's windows
        raise BadInput(
            f"{name} counts distances along the row, which holds several examples; expected a model that takes position_ids for "
            "them, so set model.path to another"
        )
    for length, why in _limits(config, kinds):
        if length < longest:
            raise BadInput(f"{why} {length} tokens and an example has {longest}; set model.context={length}")


def looks_back(window: int, longest: int) -> str:
    """What is said of a window that an example is longer than."""
    return f"a layer of this model looks back {window} tokens and an example has {longest}; set model.context={window}"


def _limits(config: Any, kinds: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lengths up to which an example does not depend on what stands beside it, and why not beyond."""
    if set(kinds) != {"full_attention"} or not getattr(config, "layer_types", None):
        for key in ("sliding_window", "attention_chunk_size"):
            if window := getattr(config, key, None):
                yield window, "a layer of this model looks back"
    if chosen := getattr(config, "keep_window_size", None):
        yield chosen, "a layer of this model chooses what it sees where there are more than"
    for rope in _ropes(config):
        kind = rope.get("rope_type", rope.get("type"))
        if kind in ("longrope", "dynamic"):
            length = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
            within = config.max_position_embeddings if kind == "dynamic" or not length else length
            yield within, f"positions of this model are scaled ({kind}) by the longest example of a row, from"


def _ropes(config: Any) -> Iterator[Mapping[str, Any]]:
    """How positions are rotated: one way for all layers, or one for each kind of them."""
    said = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if isinstance(said, Mapping):
        yield said
        yield from (each for each in said.values() if isinstance(each, Mapping))


def _reaching(model: Any, kinds: Iterable[str]) -> str:
    """By what, in words, one token reaches others beside attention; empty if by nothing."""
    from torch.nn import Conv1d

    other = sorted(set(kinds) - ATTENDS)
    if model._is_stateful:
        return "carries a state from token to token"
    if other:
        return f"has layers of the kind {other[0]}"
    return "has convolutions along the row" if any(isinstance(each, Conv1d) for each in model.modules()) else ""
