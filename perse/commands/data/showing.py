"""Prints a built data set for a person or a script."""

from __future__ import annotations

import typer

from perse.commands.terminal import err, say
from perse.data.build import Summary, dropped_lines, summary_table
from perse.data.dataset.table1 import table1


def show(summary: Summary, *, as_json: bool, paper: bool = False) -> None:
    """A build's table, what it left out, and its notes; `paper` adds PerSE's Table 1."""
    err.print(summary_table(summary), highlight=False)
    if paper:
        err.print(table1(summary), highlight=False, soft_wrap=True)
    for line in dropped_lines(summary):
        say(line)
    for note in summary.notes:
        say(f"note: {note}")
    say(f"written: {summary.out}")
    if as_json:
        typer.echo(summary.model_dump_json(indent=2))
