"""`perse preflight`: whether a run could begin, as a list of what was looked at; exit code 2 where something is wrong."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.training import Gpu, Overrides, TrainingConfig
from perse.commands.terminal import err

if TYPE_CHECKING:
    from perse.training.preflight import Checked


def preflight(
    overrides: Overrides = None,
    config: TrainingConfig = "embedded_lora",
    gpu: Gpu = None,
    nodes: Annotated[int, typer.Option(min=1, help="How many machines train together.")] = 1,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="Devices of each.")] = 1,
    launch: Annotated[
        Path | None, typer.Option(help="The file that accelerate launch will be given; by default every device holds all.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only what is wrong.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Look at all that a training run needs, before GPUs are asked for: settings, model, data, memory, disk. No GPU is needed.

    Without --gpu this machine is looked at.

    The rows are made on the way and kept in the run folder, where training finds them.

    Example:  perse preflight --config llama2_7b_full data.path=work/data output=runs/judge --gpu a100-80gb --gpus-per-node 8 --launch configs/accelerate/fsdp2.yaml
    """
    import os

    from perse.settings.training import load_config
    from perse.training.launched import told_in
    from perse.training.planning.hardware import device

    settings, named, sharding = load_config(config, overrides or []), gpu and device(gpu), told_in(launch) if launch else "none"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from perse.training.planning.speed import device_here
    from perse.training.preflight import preflight as looked_at

    checks = looked_at(settings, device=named or device_here(), devices=nodes * gpus_per_node, sharding=sharding)
    for check in checks:
        if check.problem or not quiet:
            err.print(_line(check), soft_wrap=True)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    wrong = sum(check.problem is not None for check in checks)
    if wrong:
        err.print(f"perse: {wrong} of {len(checks)} checks failed; nothing was started", style="bold red")
        raise typer.Exit(2)
    if not quiet:
        err.print("ready: the run can begin")


def _line(check: Checked) -> str:
    from rich.markup import escape

    if check.problem:
        return f"[bold red]wrong[/bold red]  {escape(check.what)}: {escape(check.problem)}"
    return f"[green]ok[/green]     {escape(check.what)}: {escape(check.found)}"
