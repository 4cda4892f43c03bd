"""What `accelerate launch train.py` and `perse train` do around a training run: read settings, show what fits, report."""

from __future__ import annotations

import logging
import os
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from perse.cli import list_recipes, run_app
from perse.training.config import load_config, recipes

app = typer.Typer(add_completion=False)

EXAMPLES = """
Examples:

  accelerate launch train.py --config configs/train/embedded_lora.yaml data.path=work/data output=runs/first

  perse train --config embedded_lora data.path=work/data output=runs/first train.epochs=2

The same command continues a run that was stopped.
"""


@app.command(epilog=EXAMPLES)
def train(
    config: Annotated[str, typer.Option(help="A YAML file, or the name of a packaged recipe.")] = "embedded_lora",
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings that differ from the file's.")
    ] = None,
    show_recipes: Annotated[bool, typer.Option("--recipes", help="List the packaged recipes and stop.")] = False,
) -> None:
    """Fine-tune a model on personalized examples; writes a run folder with the adapter and a merged model."""
    console = Console(stderr=True)
    if show_recipes:
        list_recipes(recipes())
        return
    settings = load_config(config, overrides or [])
    logging.getLogger("perse").setLevel(logging.INFO)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

    from perse.training.examples import Rows
    from perse.training.trainer import train as run

    def show(rows: Rows) -> None:
        console.print(rows_table(rows))

    folder = run(settings, show=show)
    if int(os.environ.get("RANK", "0")) == 0:
        parts = [part for part in ("adapter", "merged", "log.jsonl", "manifest.json") if (folder / part).exists()]
        console.print(f"trained: [bold]{folder}[/bold]  ({', '.join(parts)})")


def rows_table(rows: object) -> Table:
    """How many examples fit, with histograms of the profile entries kept and of the length in tokens."""
    from perse.training.examples import Rows

    assert isinstance(rows, Rows)
    lengths = [len(row.prompt) + len(row.answer) for row in rows.rows]
    learned = sum(len(row.answer) for row in rows.rows)
    asked = len(rows.rows) + len(rows.too_long)
    table = Table(title="Training rows", show_header=False, title_justify="left")
    table.add_row("examples that fit", f"{len(rows.rows)} of {asked}")
    table.add_row("too long (left out)", str(len(rows.too_long)))
    shortened = sum(row.k_effective < row.k for row in rows.rows)
    table.add_row("profiles shortened to fit", str(shortened))
    table.add_row("tokens, all / learned", f"{sum(lengths)} / {learned}")
    for k, count in sorted(Counter(row.k_effective for row in rows.rows).items()):
        table.add_row(f"k_effective {k}", _bar(count, len(rows.rows)))
    low, high = min(lengths), max(lengths)
    width = max(1, -(-(high - low + 1) // 6))
    bins = Counter((length - low) // width for length in lengths)
    for at in range(-(-(high - low + 1) // width)):
        table.add_row(f"tokens {low + at * width}-{min(high, low + (at + 1) * width - 1)}", _bar(bins[at], len(rows.rows)))
    return table


def _bar(count: int, total: int) -> str:
    return f"{'#' * round(30 * count / total)} {count}".lstrip()


def main() -> None:
    """Entry point of train.py."""
    run_app(app)
