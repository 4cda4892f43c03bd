"""`perse drpe ...`: role-players vote on texts, from the roles to the report."""

from __future__ import annotations

import typer

from perse.commands.drpe.ablate import ablate
from perse.commands.drpe.correlate import correlate
from perse.commands.drpe.plan import plan
from perse.commands.drpe.report import report
from perse.commands.drpe.roles import roles
from perse.commands.drpe.vote import vote

app = typer.Typer(no_args_is_help=True, help="Many role-players vote on texts against a reference (DRPE).")
for command in (roles, plan, vote, correlate, ablate, report):
    app.command()(command)
