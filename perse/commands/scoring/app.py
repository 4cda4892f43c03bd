"""`perse score`, which judges, and `perse score ...`: a run as CSV; and for runs in shards: plan them, work on them, look after them."""

from __future__ import annotations

import typer

from perse.commands.scoring import exporting, finishing, planning, sharded
from perse.commands.scoring.score import score

app = typer.Typer(rich_markup_mode="rich")
app.callback(invoke_without_command=True)(score)
for command in (planning.plan, sharded.work, finishing.status, finishing.audit, finishing.merge, exporting.export):
    app.command()(command)
app.command(hidden=True)(sharded.worker)
