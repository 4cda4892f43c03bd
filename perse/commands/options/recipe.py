"""`--config` of `perse score`: a YAML file whose keys are the command's options, which hold where the command line says nothing else.

A recipe serves `perse score`, `plan` and `work` alike: each takes of it what it has an option for.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from perse.errors import BadInput
from perse.formats.yaml_text import read_yaml
from perse.settings.config import named_recipe, packaged_recipes

KIND = "batch"
_OWN = frozenset({"config", "help"})


def recipes() -> dict[str, Path]:
    """The packaged recipes by name."""
    return packaged_recipes(KIND)


def _take(context: typer.Context, given: str | None) -> str | None:
    """Make the recipe's values the options' defaults.

    Raises:
        BadInput: there is no such file, or it has a key that is no option.
    """
    if given is None or context.resilient_parsing:
        return given
    file = named_recipe(given, recipes())
    found = read_yaml(file)
    if not isinstance(found, dict):
        raise BadInput(f"{file} holds no options; expected some such as 'shard_rows: 1024'")
    values = {str(name).replace("-", "_"): value for name, value in found.items()}
    score = context.command if isinstance(context.command, TyperGroup) or context.parent is None else context.parent.command
    commands = [score, *getattr(score, "commands", {}).values()]
    known = {one.name for command in commands for one in command.params if one.name} - _OWN
    for name in sorted(values.keys() - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"options are {', '.join(sorted(known))}"
        raise BadInput(f"{file}: there is no option '{name}'; {hint}")
    for name, value in values.items():
        if isinstance(value, dict | list) or value is None:
            raise BadInput(f"{file}: option '{name}': found {type(value).__name__}, expected a text or a number")
    flags = {one.name: bool(getattr(one, "is_flag", False)) for one in context.command.params}
    own = {name: _typed(value, flag=flags[name]) for name, value in values.items() if name in flags}
    context.default_map = {**(context.default_map or {}), **own}
    return given


def _typed(value: Any, *, flag: bool) -> Any:
    """As it would be typed, so that it is checked as that is."""
    return value if flag and isinstance(value, bool) else str(value)


BatchConfig = Annotated[
    str | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=_take,
        help=f"Options from a file (YAML), or of a packaged recipe: {', '.join(recipes())}. What is typed beside it counts.",
        show_default=False,
    ),
]
