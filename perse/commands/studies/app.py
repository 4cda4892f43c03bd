"""`perse study ...`: every study is one command, resumable, with its numbers, tables and plots in one folder."""

from __future__ import annotations

import typer

from perse.commands.studies import judging, reading

app = typer.Typer(
    no_args_is_help=True,
    help="Ask a judge in several ways, or read what it answered: does it know the reader, is it steady, does it know when it "
    "does not know, has it seen the texts before?",
)
asks = [judging.k_curve, judging.order, judging.aspects, judging.review_text, judging.counterfactual, judging.decoding]
for command in (*asks, reading.calibration, reading.contamination):
    app.command(epilog=judging.GOES_ON)(command)
for command in (reading.risk_coverage, reading.paper):
    app.command()(command)
