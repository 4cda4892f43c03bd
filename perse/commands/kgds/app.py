"""`perse kgds ...`: knowledge-grounded discussion summaries, from the benchmark to the report."""

from __future__ import annotations

import typer

from perse.commands.kgds.agreement import agreement
from perse.commands.kgds.ask import errors, generate, verify
from perse.commands.kgds.build import build, feedback
from perse.commands.kgds.importing import import_
from perse.commands.kgds.numbers import metrics, stats
from perse.commands.kgds.report import report

app = typer.Typer(no_args_is_help=True, help="Discussion summaries for outsiders: generate, verify and score them (KGDS).")
for command in (stats, generate, verify, errors, metrics, report, build, feedback, agreement):
    app.command()(command)
app.command("import")(import_)
