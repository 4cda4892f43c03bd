"""Switches every dropout of a model off, wherever its code keeps the rate, and gives its configuration back when it is saved.

Where branches share their profile's tokens, one mask would serve all of them, so no dropout is applied. Rates stand in three places:
in dropout modules, in numbers that layers keep (OPT, Llama, Phi), and in the configuration, which some layers read as
they compute (Falcon).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CAME_WITH = "_perse_dropouts"


def switch_off_dropout(model: Any) -> tuple[str, ...]:
    """Set every dropout to 0.

    Returns:
        what was not 0, each as `name=rate`, sorted.
    """
    found: set[str] = set()
    for module in model.modules():
        # A dropout module keeps its rate as `p`; the names of other modules' numbers say what they are.
        for name, rate in list(vars(module).items()):
            if _is_rate(name, rate) or (name == "p" and "Dropout" in type(module).__name__ and rate):
                found.add(f"dropout={rate:g}" if name == "p" else f"{name}={rate:g}")
                setattr(module, name, 0.0)
    came_with = {}
    for part in {id(each): each for each in (model.config, model.config.get_text_config())}.values():
        rates = {name: rate for name, rate in vars(part).items() if _is_rate(name, rate)}
        came_with[id(part)] = (part, rates)
        for name in rates:
            setattr(part, name, 0.0)
    if not hasattr(model, _CAME_WITH):  # the second time all are 0
        setattr(model, _CAME_WITH, list(came_with.values()))
    return tuple(sorted(found))


@contextmanager
def dropout_as_it_came(model: Any) -> Iterator[None]:
    """Meanwhile the configuration says the rates that the model came with, as it should where it is saved."""
    came_with = getattr(model, _CAME_WITH, [])
    try:
        for part, rates in came_with:
            for name, rate in rates.items():
                setattr(part, name, rate)
        yield
    finally:
        for part, rates in came_with:
            for name in rates:
                setattr(part, name, 0.0)


def _is_rate(name: str, value: Any) -> bool:
    return ("drop" in name.lower()) and type(value) is float and 0 < value < 1
