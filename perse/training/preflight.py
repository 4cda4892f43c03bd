"""Checks everything about a run that can be known without its GPUs, before they are requested.

A job on a cluster waits for hours and then holds GPUs that others wait for; a mistyped path must not be found there. So the same
functions that training begins with are called on any machine that sees the files: the settings are read, the model is
opened, the rows are made (and kept in the run folder, where training finds them), memory and disk are counted, and a run that is
already there is compared. All problems are listed at once. What it cannot see is said by the job itself, in its first minute:
whether every node sees the files, and whether the GPUs are there.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput, PerseError
from perse.files.runlog import MANIFEST, refuse_other_run
from perse.installing import install
from perse.models import finding as models
from perse.models.opening import check_model, tokenizer
from perse.secrets import printable, redact
from perse.settings.training import TrainConfig
from perse.training.identity import made_of, run_id_of, run_identity
from perse.training.launched import ALONE, Sharding
from perse.training.model.quantized import check_undivided
from perse.training.optimizers import check_whole, in_8_bits
from perse.training.planning.disk import check_disk
from perse.training.planning.hardware import Device
from perse.training.planning.placement import optimizer_divided
from perse.training.planning.plan import plan
from perse.training.planning.telling import measured_words, time_words
from perse.training.rows.prepare import Prepared, renderer_for
from perse.training.saving.checkpoints import CHECKPOINTS, whole_checkpoint
from perse.training.trainer import prepared_once


@dataclass(frozen=True)
class Checked:
    """One check: its finding or its problem."""

    what: str
    found: str
    problem: str | None = None


def preflight(config: TrainConfig, *, device: Device, devices: int, sharding: Sharding) -> list[Checked]:
    """Look at all that a run of `config` on `devices` devices needs; nothing is trained, and the rows are kept.

    Checks that need something missing are skipped: without a model there are no rows.
    """
    seen: list[Checked] = []

    def look(what: str, at: Callable[[], str]) -> bool:
        try:
            seen.append(Checked(what, printable(redact(at()))))  # a path of the user's is in it
        except PerseError as error:
            seen.append(Checked(what, "", str(error)))
        except OSError as error:
            seen.append(Checked(what, "", printable(redact(f"{error.filename}: {error.strerror}"))))
        return seen[-1].problem is None

    prepared: list[Prepared] = []

    def rows() -> str:
        trust = config.model.trust_remote_code
        base = models.find(config.model.path, trust_remote_code=trust)
        renderer = renderer_for(config, base, tokenizer(base, trust_remote_code=trust))
        prepared.append(prepared_once(config, renderer, base, ALONE))
        planned = prepared[0].schedule
        examples, left = prepared[0].examples, prepared[0].left_out
        return (
            f"{examples:,} examples ({left:,} too long); {planned.epochs:.3g} epochs of them in {len(planned.rows):,} rows, {planned.steps:,} "
            "steps, kept for the run"
        )

    divides = look("world size", lambda: _world(config, devices))
    look("libraries", lambda: _libraries(config, sharding))
    there = look("model", lambda: _model(config))
    if there:
        look("disk", lambda: _disk(config, sharding))
    if there and look("data", rows):
        if divides:
            look("memory", lambda: _memory(config, prepared[0], device=device, devices=devices, sharding=sharding))
        look("run folder", lambda: _run(config, prepared[0]))
    return seen


def _disk(config: TrainConfig, sharding: Sharding) -> str:
    needed = check_disk(config, sharding)
    there = next(path for path in (Path(config.output), *Path(config.output).absolute().parents) if path.exists())
    if not os.access(there, os.W_OK):
        raise BadInput(f"{there} cannot be written to; choose another output")
    return f"{needed / 1e9:,.2f} GB at most for {config.output}"


def _world(config: TrainConfig, devices: int) -> str:
    if config.train.world_size not in (None, devices):
        raise BadInput(
            f"train.world_size is {config.train.world_size}, and {devices} devices are asked for; leave it out, or ask for as many"
        )
    rows = config.train.accumulation(devices)
    return f"devices: {devices}; of a step's {config.train.rows_per_step} rows each computes {rows}"


def _libraries(config: TrainConfig, sharding: Sharding) -> str:
    wanted = {
        "deepspeed": sharding.startswith("zero"),
        "bitsandbytes": config.model.quantize is not None or in_8_bits(config.train.optimizer),
        "peft": config.lora is not None,
    }
    missing = [name for name, needed in wanted.items() if needed and importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(f"{', '.join(missing)} is not installed; {install('cluster')}")
    return ", ".join(name for name, needed in wanted.items() if needed) or "none beyond the Trainer's"


def _model(config: TrainConfig) -> str:
    trust = config.model.trust_remote_code
    base = models.find(config.model.path, trust_remote_code=trust)
    check_model(base, trust_remote_code=trust)
    size = sum(path.stat().st_size for path in base.glob("*.safetensors"))
    return f"{base} ({size / 1e9:,.2f} GB)"


def _memory(config: TrainConfig, prepared: Prepared, *, device: Device, devices: int, sharding: Sharding) -> str:
    check_undivided(config.model, sharding=sharding)
    check_whole(config.train.optimizer, sharding=sharding)
    found = plan(config, device=device, devices=devices, prepared=prepared, measure=True)
    sharded, checkpointing = sharding in ("fsdp2", "zero3"), config.train.gradient_checkpointing
    if sharding in ("zero1", "zero2"):
        bf16 = config.train.precision == "bf16"
        way = optimizer_divided(
            found.needs, devices=devices, checkpointing=checkpointing, gradients=sharding == "zero2", bf16=bf16
        )
    else:
        [way] = [way for way in found.ways if way.sharded == (sharded and devices > 1) and way.checkpointing == checkpointing]
    usable = found.device.usable
    if way.total > usable:
        raise BadInput(
            f"about {way.total / 1e9:.1f} GB are needed on each device ({device.name}) with {sharding} and train.gradient_checkpointing="
            f"{str(checkpointing).lower()}, and {usable / 1e9:.1f} GB can be filled; `perse plan` says what would do"
        )
    hours = found.hours_with(checkpointing=checkpointing)  # as it is set, which need not be the way that the plan would choose
    if hours is None:
        time = "time not known"
    elif found.reached is None:
        time = f"about {time_words(hours)} at {found.mfu:.0%} of the peak (assumed); {measured_words(found, hours)}"
    else:
        time = f"about {time_words(hours)} (measured on a short row)"
    return f"{way.total / 1e9:.1f} of {usable / 1e9:.1f} GB on each device ({device.name}), as predicted; {time}"


def _run(config: TrainConfig, prepared: Prepared) -> str:
    out = Path(config.output)
    if not (out / MANIFEST).exists():
        return "new"
    facts: dict[str, Any] = made_of(prepared, models.find(config.model.path))
    refuse_other_run(out, run_identity(config, prepared, facts))
    if (out / "merged" / "config.json").exists():
        return "trained already: the command would end at once"
    checkpoint = whole_checkpoint(out / CHECKPOINTS, facts=facts, run_id=run_id_of(out))
    return "begun, without a checkpoint" if checkpoint is None else f"resumes from {checkpoint.name}"
