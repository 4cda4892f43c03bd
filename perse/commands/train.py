"""What `accelerate launch train.py` and `perse train` do around a training run: read settings, show what fits, report."""

from __future__ import annotations

import logging
import os
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from perse.commands.options.training import Overrides, ShowRecipes, ShowSettings, TrainingConfig
from perse.commands.terminal import err, list_recipes, run_app
from perse.data.dataset.folder import is_data_folder
from perse.files.runlog import read_manifest
from perse.installing import needing
from perse.secrets import printable, redact

if TYPE_CHECKING:
    from perse.settings.training import TrainConfig
    from perse.training.rows.prepare import Prepared

EXAMPLES = """
Examples:

  accelerate launch train.py --config configs/train/embedded_lora.yaml data.path=work/data output=runs/first

  perse plan --config embedded_lora data.path=work/data            (first: will it fit, and how long?)

  perse train --config embedded_lora data.path=work/data output=runs/first train.epochs=2 watch.every=50

The same command continues a run that was stopped.
"""


def train(
    overrides: Overrides = None,
    config: TrainingConfig = "embedded_lora",
    show_recipes: ShowRecipes = False,
    show_settings: ShowSettings = False,
    show_launch_file: Annotated[
        bool,
        typer.Option("--launch-file", help="Print the file of configs/accelerate that these settings are meant for, and stop."),
    ] = False,
) -> None:
    """Fine-tune a model on personalized examples; writes a run folder with the adapter and a merged model."""
    from perse.settings.training import load_config, recipes

    if show_recipes:
        list_recipes(recipes())
        return
    if show_settings:
        from perse.training.settings_page import settings_page

        typer.echo(settings_page(), nl=False)
        return
    if show_launch_file:
        from perse.training.launched import launch_file

        # Which file it is follows from the model and what is trained of it; what must be given else has no part in it.
        typer.echo(launch_file(load_config(config, ["data.path=any", "output=any", *(overrides or [])])))
        return
    settings = load_config(config, overrides or [])
    logging.getLogger("perse").setLevel(logging.INFO)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

    with needing("train"):
        folder = _run(settings)
    if int(os.environ.get("RANK", "0")) == 0 and (folder / "merged" / "config.json").exists():
        parts = [part for part in ("adapter", "merged", "log.jsonl", "manifest.json", "README.md") if (folder / part).exists()]
        err.print(f"trained: [bold]{escape(printable(redact(str(folder))))}[/bold]  ({', '.join(parts)})")
        if (Path(settings.data.path) / "manifest.json").is_file():
            err.print(
                f"next: {printable(redact(scoring_command(settings, folder)))}", markup=False, highlight=False, soft_wrap=True
            )


def scoring_command(settings: TrainConfig, folder: Path) -> str:
    """The command that judges the readers whom the run did not learn from, asked as it learned; "" where there are none to be known of."""
    data = settings.data
    if data.split != "train" or not (is_data_folder(Path(data.path)) and _holds_valid(Path(data.path), data.fold)):
        return ""
    options = {"--fold": data.fold, "--question": data.question, "--k": data.k, "--order-seed": data.order_seed}
    said = [part for name, value in options.items() if value is not None for part in (name, str(value))]
    said += [] if data.review_text else ["--no-review-text"]
    return shlex.join(["perse", "score", "--examples", data.path, *said, "--judge", str(folder), "--out", f"{folder}-valid"])


def _holds_valid(folder: Path, fold: int | None) -> bool:
    """Whether the data set says that it kept readers for validation; with folds, each is kept from the judges of the others."""
    parts = read_manifest(folder).get("counts", {}).get("parts", [])
    return fold is not None or any(part["name"] == "Valid" and part["examples"] for part in parts)


def _run(settings: TrainConfig) -> Path:
    import torch

    if not torch.cuda.is_available():  # else DeepSpeed, where it is installed, warns that it found none
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    from perse.training.trainer import train as run

    return run(settings, show=lambda prepared: err.print(rows_table(prepared)))


def rows_table(prepared: Prepared) -> Table:
    """How many examples fit and what sharing saves, with histograms of the profile entries kept and of the length in tokens: of
    all that is drawn, where epochs have profiles of their own."""
    branches, planned = prepared.branches.fitting, prepared.schedule
    lengths = [branch.tokens for branch in branches]
    learned = sum(len(branch.answer) for branch in branches)
    table = Table(title="Training rows", show_header=False, title_justify="left")
    table.add_row("examples that fit", f"{prepared.examples} of {prepared.examples + prepared.left_out}")
    table.add_row("too long (left out)", str(prepared.left_out))
    shortened = sum(branch.k_effective < branch.k for branch in branches)
    table.add_row("profiles shortened to fit", f"{shortened} of {len(branches)} drawn")
    table.add_row("their tokens, all / learned", f"{sum(lengths)} / {learned}")
    rows = [size for size in map(planned.size, range(len(planned.rows))) if size.tokens]
    alone, together = sum(size.unshared for size in rows), sum(size.tokens for size in rows)
    table.add_row("rows, optimizer steps", f"{len(rows)}, {planned.steps} ({planned.epochs:.3g} epochs)")
    table.add_row("tokens to compute", f"{together}, {alone / together:.2f} times fewer than examples one by one")
    for k, count in sorted(Counter(branch.k_effective for branch in branches).items()):
        table.add_row(f"k_effective {k}", _bar(count, len(branches)))
    low, high = min(lengths), max(lengths)
    width = max(1, -(-(high - low + 1) // 6))
    bins = Counter((length - low) // width for length in lengths)
    for at in range(-(-(high - low + 1) // width)):
        table.add_row(f"tokens {low + at * width}-{min(high, low + (at + 1) * width - 1)}", _bar(bins[at], len(branches)))
    return table


def _bar(count: int, total: int) -> str:
    return f"{'#' * round(30 * count / total)} {count}".lstrip()


def main() -> None:
    """Entry point of train.py."""
    app = typer.Typer(add_completion=False)  # of a script, which no shell completes
    app.command(epilog=EXAMPLES)(train)
    run_app(app)
