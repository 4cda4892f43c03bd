"""`perse drpe ...`: role-players vote on texts, from the roles to the report."""

from __future__ import annotations

import typer

from perse.commands.drpe.correlate import correlate

app = typer.Typer(no_args_is_help=True, help="Role-players vote on texts against a reference (DRPE).")
for command in (correlate,):
    app.command()(command)


@app.callback()
def _several() -> None:
    """So that a command keeps its name while it is the only one."""
