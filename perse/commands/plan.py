"""`perse plan`: whether a training run fits a GPU, and for how long it runs, as a table or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perse.commands import options
from perse.commands.options.training import Gpu, Overrides, TrainingConfig

if TYPE_CHECKING:
    from rich.table import Table

    from perse.training.planning.plan import Plan

GB = 1e9
WHOLE, SHARDED = "configs/accelerate/ddp.yaml", "configs/accelerate/fsdp2.yaml"
"""What `accelerate launch` must be given for either way of training."""


def plan(
    overrides: Overrides = None,
    config: TrainingConfig = "embedded_lora",
    gpu: Gpu = "a100-80gb",
    gpus: Annotated[int, typer.Option(min=1, help="How many of them train together.")] = 1,
    mfu: Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of the GPU's peak that is assumed to be reached.")] = 0.4,
    tflops: Annotated[
        float | None, typer.Option(min=0.001, help="Peak of one device in 10^12 operations a second, if not the data sheet's.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict what a training run needs, before anything is trained: memory, steps, hours, and the settings that fit.

    Example:  perse plan --config llama2_7b_lora data.path=work/data --gpu a100-80gb --gpus 8
    """
    from rich.console import Console

    from perse.settings.training import load_config
    from perse.training.planning.hardware import device

    settings, named = load_config(config, overrides or []), device(gpu)
    from perse.training.planning.plan import plan as planned

    console = Console(stderr=True)
    with console.status("planning"):
        found = planned(settings, device=named, devices=gpus, mfu=mfu, peak=tflops and tflops * 1e12)
    if as_json:
        typer.echo(json.dumps(plan_json(found), indent=2))
        return
    for table in plan_tables(found):
        console.print(table)
    for line in plan_words(found, checkpointing=settings.train.gradient_checkpointing):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def plan_json(found: Plan) -> dict[str, Any]:
    """Everything in a plan, with totals, bytes as whole numbers."""
    from dataclasses import asdict

    whole = asdict(found)
    whole["shared"] = found.shared
    whole["usable"] = found.device.usable
    for shown, way in zip(whole["ways"], found.ways, strict=True):
        shown["total"], shown["fits"] = way.total, way.total <= found.device.usable
    whole["way"] = found.ways.index(found.way) if found.way else None
    return whole


def plan_tables(found: Plan) -> tuple[Table, Table]:
    """What is trained, and what it takes of a device in each way of training."""
    from rich.markup import escape
    from rich.table import Table

    from perse.training.planning.hardware import RESERVED

    work = found.work
    run = Table(title="What is trained", show_header=False, title_justify="left")
    share = f"{found.trainable / found.parameters:.2%}"
    run.add_row("parameters, trainable", f"{found.parameters:,}, {found.trainable:,} ({share})")
    run.add_row("examples, too long (left out)", f"{found.examples:,}, {found.too_long:,}")
    run.add_row("epochs, rows, optimizer steps", f"{found.epochs:.3g}, {found.rows:,}, {found.steps:,}")
    run.add_row("tokens an epoch, shared", f"{work.tokens / found.epochs:,.0f}")
    run.add_row("tokens an epoch, one by one", f"{work.unshared / found.epochs:,.0f} ({found.shared:.2f} times as many)")
    run.add_row("tokens learned an epoch", f"{work.learned / found.epochs:,.0f}")
    run.add_row("largest row, learned of it", f"{found.row_off[0]:,}, {found.row_off[1]:,} tokens")
    run.add_row("operations", f"{found.flops:.2e}")
    run.add_row("time", _time(found))

    where = found.device.name if found.devices == 1 else f"each of {found.devices} x {found.device.name}"
    memory = Table("", title=escape(f"GB on {where}"), title_justify="left")
    for way in found.ways:
        memory.add_column("sharded" if way.sharded else "whole", justify="right")
    memory.add_row("gradient checkpointing", *("on" if way.checkpointing else "off" for way in found.ways))
    for part in ("weights", "gradients", "optimizer", "communication", "activations", "total"):
        memory.add_row(part, *(f"{getattr(way, part) / GB:.2f}" for way in found.ways), end_section=part == "activations")
    room = f"room: {1 - RESERVED:.0%} of {found.device.memory / GB:.0f}"
    memory.add_row(room, *(f"{found.device.usable / GB:.2f}" for _ in found.ways))
    memory.add_row("", *("fits" if way.total <= found.device.usable else "does not fit" for way in found.ways))
    return run, memory


def plan_words(found: Plan, *, checkpointing: bool) -> list[str]:
    """What to set, or what would make it fit; then what the plan rests on.

    Args:
        checkpointing: what the settings say now.
    """
    lines = []
    if found.way is None:
        best = min(found.ways, key=lambda way: way.total)
        lines.append(
            f"does not fit: at least {best.total / GB:.1f} GB are needed on each device and {found.device.usable / GB:.1f} GB can be filled"
            + ("; what would do:" if found.remedies else "; a device with more memory or a smaller model would do")
        )
        lines += [f"  - {remedy}" for remedy in found.remedies]
    else:
        setting = f"train.gradient_checkpointing={str(found.way.checkpointing).lower()}"
        now = "as it is set" if found.way.checkpointing == checkpointing else f"now {str(checkpointing).lower()}"
        launch = f"accelerate launch --config_file {SHARDED if found.way.sharded else WHOLE} --num_processes {found.devices}"
        lines.append(f"fits: set {setting} ({now})" + (f", and start with {launch}" if found.devices > 1 else ""))
    lines += [f"note: {note}" for note in found.notes]
    return lines


def _time(found: Plan) -> str:
    if found.hours is None or found.peak is None:
        return "not known: no data sheet says this machine's peak; give it with --tflops"
    shown = f"{found.hours:.1f} hours" if found.hours >= 1 else f"{found.hours * 60:.1f} minutes"
    return f"{shown}, if {found.mfu:.0%} of {found.peak / 1e12:g} TFLOP/s are reached (assumed)"
