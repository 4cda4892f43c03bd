"""`perse drpe ...`: role-players vote on texts, from the roles on."""

from __future__ import annotations

import typer

from perse.commands.drpe.roles import roles

app = typer.Typer(no_args_is_help=True, help="Many role-players vote on texts against a reference (DRPE).")
for command in (roles,):
    app.command()(command)


@app.callback()
def _several() -> None:
    """Keeps the command's name while there is one alone."""
