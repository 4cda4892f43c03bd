"""`perse rehearsal ...`: personalized opinion summaries with a role-played reader, from the samples to the report."""

from __future__ import annotations

import typer

from perse.commands.rehearsal.leniency import leniency
from perse.commands.rehearsal.plan import plan
from perse.commands.rehearsal.report import report
from perse.commands.rehearsal.run import run
from perse.commands.rehearsal.score import score
from perse.commands.rehearsal.trace import trace

app = typer.Typer(no_args_is_help=True, help="Opinion summaries for one reader, written with a role-played user (Rehearsal).")
for command in (plan, run, score, leniency, report, trace):
    app.command()(command)
