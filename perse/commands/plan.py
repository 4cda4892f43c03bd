"""`perse plan`: whether a training run fits a GPU, and for how long it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.options.training import Gpu, Overrides, TrainingConfig
from perse.commands.showing import show_result


@grouped
def plan(
    *,
    overrides: Overrides = None,
    config: TrainingConfig = "embedded_lora",
    gpu: Gpu = None,
    gpus: Annotated[int, typer.Option(min=1, help="How many of them train together.")] = 1,
    mfu: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Share of the GPU's peak that is assumed to be reached; short runs on one H100 reached 0.28 to 0.32 with all weights, 0.21 to 0.24 with adapters, 0.16 to 0.18 on packed weights.",
        ),
    ] = 0.4,
    tflops: Annotated[
        float | None, typer.Option(min=0.001, help="Peak of one device in 10^12 operations a second, if not the data sheet's.")
    ] = None,
    medium: Medium,
) -> None:
    """Predict what a training run needs, before anything is trained: memory, steps, hours, and the settings that fit.

    Without --gpu this machine is planned for; where no data sheet says its speed, a short row is timed.

    Example:  perse plan --config embedded_lora data.path=work/data
    Example:  perse plan --config llama2_7b_lora data.path=work/data --gpu a100-80gb --gpus 8
    """
    from rich.console import Console

    from perse.settings.training import load_config
    from perse.training.planning.hardware import device

    settings, named = load_config(config, overrides or []), gpu and device(gpu)
    from perse.training.planning.plan import plan as planned
    from perse.training.planning.speed import device_here
    from perse.training.planning.telling import plan_result

    console = Console(stderr=True)
    with console.status("planning"):
        found = planned(
            settings, device=named or device_here(), devices=gpus, mfu=mfu, peak=tflops and tflops * 1e12, measure=True
        )
    show_result(plan_result(found, checkpointing=settings.train.gradient_checkpointing), medium)
