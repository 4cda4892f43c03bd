"""What the commands take that read settings from a recipe: train, plan, preflight, serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer


def _training_recipes(incomplete: str) -> Iterator[str]:
    """For completion."""
    from perse.settings.training import recipes

    return (name for name in recipes() if name.startswith(incomplete))


def _serving_recipes(incomplete: str) -> Iterator[str]:
    """For completion."""
    from perse.settings.serving import recipes

    return (name for name in recipes() if name.startswith(incomplete))


def _devices(incomplete: str) -> Iterator[str]:
    """For completion."""
    from perse.training.planning.hardware import CPU, GPUS

    return (name for name in (*GPUS, CPU) if name.startswith(incomplete))


_CONFIG = "A YAML file, or the name of a packaged recipe."
TrainingConfig = Annotated[str, typer.Option("--config", help=_CONFIG, autocompletion=_training_recipes)]
ServingConfig = Annotated[str, typer.Option("--config", help=_CONFIG, autocompletion=_serving_recipes)]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings that differ from the file's.", show_default=False)
]
ShowRecipes = Annotated[bool, typer.Option("--recipes", help="List the packaged recipes and stop.")]
ShowSettings = Annotated[bool, typer.Option("--settings", help="Print every setting, its default and meaning, and stop.")]
Gpu = Annotated[
    str | None,
    typer.Option(
        help="a10, a100-40gb, a100-80gb, h100-80gb, h200, l4, l40s, or cpu (by default what this machine has).",
        autocompletion=_devices,
    ),
]
