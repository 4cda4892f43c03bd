"""`perse ...`: every command by its name.

A command reads options, calls one function of the library and shows what it gives: human words on stderr, machine output on stdout.
What needs torch or transformers is imported inside it, so that help is quick and the core works without them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from perse import __version__
from perse.commands.ask import ask
from perse.commands.consumer import Consumer
from perse.commands.data.build import app as data_app
from perse.commands.doctor import doctor
from perse.commands.drpe.app import app as drpe_app
from perse.commands.keys import app as keys_app
from perse.commands.kgds.app import app as kgds_app
from perse.commands.measuring.agreement import agreement
from perse.commands.measuring.compare import compare
from perse.commands.measuring.evaluate import evaluate
from perse.commands.measuring.fit import fit
from perse.commands.measuring.report import report
from perse.commands.models import app as models_app
from perse.commands.plan import plan
from perse.commands.preflight import preflight
from perse.commands.quickstart import quickstart
from perse.commands.rehearsal.app import app as rehearsal_app
from perse.commands.scoring.app import app as score_app
from perse.commands.serve import EXAMPLES as OF_SERVING
from perse.commands.serve import serve
from perse.commands.studies.app import app as study_app
from perse.commands.terminal import run_app
from perse.commands.train import EXAMPLES as OF_TRAINING
from perse.commands.train import train
from perse.registry import Registry

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Would [i]this[/i] reader like this text, and what would they say?"
)
app.add_typer(data_app, name="data")
app.add_typer(models_app, name="models")
app.add_typer(keys_app, name="keys")
app.add_typer(study_app, name="study")
app.add_typer(score_app, name="score")
app.command(epilog=OF_TRAINING)(train)
app.command(epilog=OF_SERVING)(serve)
for command in (quickstart, ask, evaluate, compare, fit, agreement, report, plan, preflight, doctor):
    app.command()(command)
_OWN = [str(group.name) for group in app.registered_groups] + [
    str(each.callback.__name__) for each in app.registered_commands if each.callback
]
CONSUMERS: Registry[Consumer] = Registry(
    "perse.consumers",
    (Consumer("kgds", kgds_app), Consumer("rehearsal", rehearsal_app), Consumer("drpe", drpe_app)),
    kind=Consumer,
    reserved=_OWN,
)
"""The consumers of the judge. A new consumer is its room and one line here."""
for consumer in CONSUMERS.values():
    app.add_typer(consumer.app, name=consumer.name)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point of the `perse` command."""
    run_app(app)


if __name__ == "__main__":
    main()
