"""A Plan as a Result: what is trained, what it takes of a device in each way of training, and what to set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from perse.results.result import Result, Table
from perse.training.launched import SHARDED, WHOLE
from perse.training.planning.hardware import RESERVED
from perse.training.planning.plan import MEASURED, Plan

GB = 1e9


def plan_result(found: Plan, *, checkpointing: bool) -> Result:
    """The whole plan.

    Args:
        checkpointing: gradient checkpointing as the settings have it now.
    """
    return Result(
        name="plan",
        asks="Does the training run fit, and for how long does it run?",
        answer=plan_words(found, checkpointing=checkpointing),
        tables=(_trained(found), _memory(found)),
        notes=found.notes,
        details=_details(found),
    )


def plan_words(found: Plan, *, checkpointing: bool) -> str:
    """Settings to choose, or changes that would make it fit.

    Args:
        checkpointing: what the settings say now.
    """
    if found.way is None:
        best = min(found.ways, key=lambda way: way.total)
        remedy = (
            f"what would do: {'; '.join(found.remedies)}"
            if found.remedies
            else "a device with more memory or a smaller model would do"
        )
        return (
            f"does not fit: at least {best.total / GB:.1f} GB are needed on each device and {found.device.usable / GB:.1f} GB can be "
            f"filled; {remedy}"
        )
    setting = f"train.gradient_checkpointing={str(found.way.checkpointing).lower()}"
    now = "as it is set" if found.way.checkpointing == checkpointing else f"now {str(checkpointing).lower()}"
    launch = f"accelerate launch --config_file {SHARDED if found.way.sharded else WHOLE} --num_processes {found.devices}"
    return f"fits: set {setting} ({now})" + (f", and start with {launch}" if found.devices > 1 else "")


def _trained(found: Plan) -> Table:
    work = found.work
    row = found.row_on if found.way is None or found.way.checkpointing else found.row_off
    share = f"{found.trainable / found.parameters:.2%}"
    rows = (
        ("parameters, trainable", f"{found.parameters:,}, {found.trainable:,} ({share})"),
        ("examples, too long (left out)", f"{found.examples:,}, {found.too_long:,}"),
        ("epochs, rows, optimizer steps", f"{found.epochs:.3g}, {found.rows:,}, {found.steps:,}"),
        ("tokens an epoch, shared", f"{work.tokens / found.epochs:,.0f}"),
        ("tokens an epoch, one by one", f"{work.unshared / found.epochs:,.0f} ({found.shared:.2f} times as many)"),
        ("tokens learned an epoch", f"{work.learned / found.epochs:,.0f}"),
        ("row that should take the most memory, predicted of it", f"{row[0]:,}, {row[1]:,} tokens"),
        ("operations", f"{found.flops:.2e}"),
        ("judged while it trains", _judged(found)),
        ("time", _time(found)),
        (
            "on disk, a checkpoint of it",
            f"{found.disk.most / GB:,.1f} GB at most at a time, {found.disk.checkpoint / GB:,.1f} GB",
        ),
    )
    return Table(title="What is trained", header=("", ""), rows=rows)


def _memory(found: Plan) -> Table:
    where = found.device.name if found.devices == 1 else f"each of {found.devices} x {found.device.name}"
    parts = ("weights", "gradients", "optimizer", "communication", "activations", "total")
    rows = (
        ("gradient checkpointing", *("on" if way.checkpointing else "off" for way in found.ways)),
        *((part, *(f"{getattr(way, part) / GB:.2f}" for way in found.ways)) for part in parts),
        (
            f"room: {1 - RESERVED:.0%} of {found.device.memory / GB:.0f}",
            *(f"{found.device.usable / GB:.2f}" for _ in found.ways),
        ),
        ("", *("fits" if way.total <= found.device.usable else "does not fit" for way in found.ways)),
    )
    header = ("", *("sharded" if way.sharded else "whole" for way in found.ways))
    return Table(title=f"GB on {where}", header=header, rows=rows, breaks=(len(parts),))


def _details(found: Plan) -> dict[str, Any]:
    """Everything in a plan, with totals, bytes as whole numbers."""
    whole = asdict(found)
    whole["shared"] = found.shared
    whole["usable"] = found.device.usable
    for shown, way in zip(whole["ways"], found.ways, strict=True):
        shown["total"], shown["fits"] = way.total, way.total <= found.device.usable
    whole["way"] = found.ways.index(found.way) if found.way else None
    return whole


def _judged(found: Plan) -> str:
    if found.watch is None:
        return "never"
    times = found.watch.count(found.steps)
    return f"every {found.watch.every:,} steps, {times} times: about {found.watch.share:.1%} of the time"


def _time(found: Plan) -> str:
    if found.hours is None:
        return "not known: no data sheet says this device's peak; give it with --tflops"
    shown = time_words(found.hours)
    if found.peak is not None:
        return f"{shown}, if {found.mfu:.0%} of {found.peak / 1e12:g} TFLOP/s are reached (assumed); {measured_words(found, found.hours)}"
    return f"{shown}, at {(found.reached or 0) / 1e9:,.0f} GFLOP/s, as just measured here on a short row; other work makes it longer"


def measured_words(found: Plan, hours: float) -> str:
    """`hours`, which are assumed, at the shares of the peak that were measured."""
    least, most = MEASURED[found.trains]
    soon, late = (time_words(hours * found.mfu / share) for share in (most, least))
    return f"{soon} to {late} at the {most:.0%} to {least:.0%} that short runs of {found.trains} reached on one H100"


def time_words(hours: float) -> str:
    """In the unit in which it is above 1: "2.5 hours", "12 minutes", "40 seconds"."""
    if hours >= 1:
        return f"{hours:,.1f} hours"
    return f"{hours * 60:.0f} minutes" if hours * 60 >= 1.5 else f"{max(1, round(hours * 3600))} seconds"
