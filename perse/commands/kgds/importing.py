"""`perse kgds import`: runs of released summaries, so that another judge can verify them. Thin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.kgds import BenchmarkFile, Models
from perse.commands.terminal import say


def import_(
    benchmark: BenchmarkFile,
    outputs: Annotated[
        Path, typer.Argument(metavar="OUTPUTS", help="The `outputs` that the authors released.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", callback=options.here, help="Folder for the runs: each model's is OUT/MODEL.", show_default=False
        ),
    ],
    model: Models = None,
    as_json: options.AsJson = False,
) -> None:
    """Make runs of released summaries, so that another judge can verify them; what is there already stays.

    Example:  perse kgds import KGDS.json outputs --model gpt-4o --out runs/released

    Then:     perse kgds verify KGDS.json runs/released/gpt-4o --judge openai:http://127.0.0.1:8000/v1#llama
    """
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.released.importing import import_released

    made = import_released(outputs, read_benchmark(benchmark), out, models=model)
    for one in made:
        failed = f", of which {one.failed} cannot be read" if one.failed else ""
        say(f"{one.model}: {one.summaries} summaries{failed}: {one.run}")
        for note in one.notes:
            say(note)
    say(f"next: perse kgds verify {benchmark} {made[0].run} --judge JUDGE" if made else f"{outputs} has no models")
    if as_json:
        found = [
            {"model": one.model, "run": str(one.run), "summaries": one.summaries, "failed": one.failed, "notes": one.notes}
            for one in made
        ]
        typer.echo(json.dumps(found, indent=2))
