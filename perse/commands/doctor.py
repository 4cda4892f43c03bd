"""`perse doctor`: what is installed, on which versions perse was tested, what is missing and what for, and on what machine.

Only what is needed and broken makes the exit code 1: an extra that is not installed is none of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from perse.commands import options

if TYPE_CHECKING:
    from perse.installation import Installation


def doctor(as_json: options.AsJson = False) -> None:
    """What is installed, tested and missing, and on what machine. Exit code 1 if something that is needed is broken.

    No key and no token is read. Where torch is installed it is imported, which takes a second or more.

    Example:  perse doctor
    """
    from perse.installation import installation

    found = installation()
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        _show(Console(soft_wrap=True, highlight=False), found)
    if found.problems:
        raise typer.Exit(1)


def _show(console: Console, found: Installation) -> None:
    console.print(f"perse {found.version} at {found.folder}", markup=False)
    for group in (found.machine, found.cache):
        for name, value in group.items():
            shown = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
            if isinstance(value, dict):
                shown = ", ".join(f"{key} {size}" for key, size in value.items()) or "none"
            console.print(f"  {name.replace('_', ' ')}: {'not set' if shown is None else shown}", markup=False)
    for part in found.parts:
        state = "complete" if part.complete else f"not complete; {part.install}"
        console.print(f"\n{part.extra or 'core'}: {part.enables} ({state})", markup=False)
        table = Table("package", "installed", "tested", "allowed", "", box=None, padding=(0, 2))
        for package in part.packages:
            table.add_row(
                package.name, package.installed or "-", package.tested or "-", package.allowed or "any", package.state
            )
        console.print(table)
    console.print()
    for sentence in found.problems or ("nothing that is needed is broken",):
        console.print(sentence, markup=False)
