"""What others build on is all there: every command with its options, and what the library's pages import.

`surface.json` is the list; a removal or a new name changes it, and a removal needs a line in CHANGELOG.md that says why:

    python tests/test_surface.py        (writes the list anew)
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import typer

from perse.installing import extra_for

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_name("surface.json")


def surface() -> dict[str, dict[str, list[str]]]:
    """Commands with the names of their options and arguments; modules with what is imported of them in the docs."""
    from perse.commands.app import app

    return {"commands": _commands(typer.main.get_command(app), "perse"), "library": _library()}


def _commands(command: Any, path: str) -> dict[str, list[str]]:
    inner = getattr(command, "commands", {})
    found = {path: sorted(map(_name, command.params))} if command.params or not inner else {}
    for name, one in inner.items():
        found |= _commands(one, f"{path} {name}")
    return found


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return re.sub(r"[^A-Z_=]", "", (parameter.metavar or parameter.name).upper())
    return "/".join([*parameter.opts, *parameter.secondary_opts])


def _library() -> dict[str, list[str]]:
    import perse

    found = {"perse": set(perse.__all__)}
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for module, names in re.findall(r"^\s*from (perse[\w.]*) import ([\w, ]+)$", page.read_text(encoding="utf-8"), re.M):
            found.setdefault(module, set()).update(name.strip() for name in names.split(","))
    return {module: sorted(found[module]) for module in sorted(found)}


def test_no_command_option_or_entry_point_came_or_went_unnoticed() -> None:
    listed, now = json.loads(LIST.read_text(encoding="utf-8")), surface()
    gone = [f"{path} {name}" for path, name in _names(listed) - _names(now)]
    new = [f"{path} {name}" for path, name in _names(now) - _names(listed)]
    assert not gone, f"gone: {', '.join(sorted(gone))}; put it back, or say why in CHANGELOG.md and run {Path(__file__).name}"
    assert not new, f"new: {', '.join(sorted(new))}; run python tests/{Path(__file__).name}, so that it is noticed when it goes"


def test_what_the_pages_import_is_there() -> None:
    for module, names in json.loads(LIST.read_text(encoding="utf-8"))["library"].items():
        for name in names:
            try:
                assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
            except ModuleNotFoundError as error:  # of an extra that is not installed
                assert error.name and not error.name.startswith("perse") and extra_for(error.name), error


def test_the_list_has_every_kind_of_thing() -> None:
    """A walk that finds nothing would notice nothing."""
    now = surface()["commands"]
    assert len(now) > 40 and sum(map(len, now.values())) > 500
    assert {"--judge", "--review-text/--no-review-text"} <= set(now["perse score"])
    assert {"KEY=VALUE", "--recipes"} <= set(now["perse train"]) and "RUNS" in now["perse compare"]


def _names(tree: dict[str, dict[str, list[str]]]) -> set[tuple[str, str]]:
    return {(path, name) for part in tree.values() for path, names in part.items() for name in ["", *names]}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    LIST.write_text(json.dumps(surface(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
