"""What the launcher started: how many processes train together and how they hold the model, checked against what was asked.

Launchers and libraries fall back silently: to one process where several were meant, and to a whole model on every
device where a sharded one was. Both would spoil a run after hours of waiting in a queue, so both are checked here, before
anything is loaded.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from perse.environment import wrong
from perse.errors import BadInput
from perse.formats.json_text import read_object
from perse.formats.yaml_text import read_yaml
from perse.settings.training import Train, TrainConfig

Sharding = Literal["none", "fsdp2", "zero1", "zero2", "zero3"]
"""How the model is held: whole on every device, or divided among them by FSDP2 or a stage of DeepSpeed's ZeRO."""

PATIENCE = timedelta(hours=2)
"""How long processes wait for the first one, which fetches the model and prepares the data for all of them."""
STEP_PATIENCE = timedelta(minutes=30)
"""How long they wait for each other afterwards: for the slowest to load the model, or the first to write and seal a checkpoint. A device
that fails in silence holds all others up so long."""


WHOLE, SHARDED = "configs/accelerate/ddp.yaml", "configs/accelerate/fsdp2.yaml"
"""The options of `accelerate launch` for each way of training."""


def launch_file(config: TrainConfig) -> str:
    """The one that the recipes are meant for: what trains an adapter fits on each device whole, what trains all weights does not, and only
    AdamW's state can be divided. `perse plan` looks closer."""
    divided = config.lora is None and config.model.quantize is None and config.train.optimizer == "adamw"
    return SHARDED if divided else WHOLE


@dataclass(frozen=True)
class Launched:
    """One process of a run: `rank` of `world_size`, `sharding` as the launcher was told."""

    world_size: int
    rank: int
    sharding: Sharding

    @property
    def is_main_process(self) -> bool:
        return self.rank == 0

    @property
    def sharded_weights(self) -> bool:
        """Whether no device holds the whole model (ZeRO-1 and -2 divide what the optimizer keeps)."""
        return self.sharding in ("fsdp2", "zero3")


ALONE = Launched(1, 0, "none")
"""One process without a launcher."""


def launched(environment: Mapping[str, str] = os.environ) -> Launched:
    """As the launcher's environment variables say.

    Raises:
        BadInput: FSDP in its first version, or several processes of which no launcher was.
    """
    asked: Sharding = "none"
    if _is_set(environment, "ACCELERATE_USE_FSDP"):
        if environment.get("FSDP_VERSION", "1") != "2":
            raise BadInput(
                "the launcher asks for version 1 of FSDP, whose flattened weights cannot be saved by name; expected fsdp_version: 2, as "
                "in configs/accelerate/fsdp2.yaml"
            )
        asked = "fsdp2"
    elif _is_set(environment, "ACCELERATE_USE_DEEPSPEED"):
        asked = _zero(environment)
    size, rank = int(environment.get("WORLD_SIZE", "1")), int(environment.get("RANK", "0"))
    if size > 1 and not environment.get("MASTER_ADDR"):
        raise BadInput(
            f"WORLD_SIZE in the environment is {size}, and MASTER_ADDR, where the processes meet, is not set: begin with `accelerate launch "
            "train.py`, which sets both, or unset WORLD_SIZE to train in one process"
        )
    if not 0 <= rank < size:
        raise wrong("RANK", str(rank), f"0 to {size - 1}, for WORLD_SIZE is {size}")
    return Launched(size, rank, asked)


def told_in(file: Path) -> Sharding:
    """How a configuration file of accelerate says that the model is held.

    Raises:
        BadInput: it cannot be read, or says FSDP in its first version.
    """
    try:
        said = read_yaml(file)
        kind = said["distributed_type"]
        fsdp, deepspeed = ({**(said.get(name) or {})} for name in ("fsdp_config", "deepspeed_config"))
    except (BadInput, KeyError, TypeError) as error:
        raise BadInput(f"{file} is no configuration of accelerate ({error}); give one of configs/accelerate") from None
    if kind == "FSDP":
        version = fsdp.get("fsdp_version", 1)
        return launched({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": str(version)}).sharding
    if kind == "DEEPSPEED":
        return _zero(
            {
                "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(deepspeed.get("deepspeed_config_file", "none")),
                "ACCELERATE_DEEPSPEED_ZERO_STAGE": str(deepspeed.get("zero_stage", 2)),
            }
        )
    return "none"


def _zero(environment: Mapping[str, str]) -> Sharding:
    """The stage that DeepSpeed's file says, or the launcher where there is no file."""
    remedy = "give one of configs/deepspeed"
    file = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
    if file in ("none", ""):
        stage = environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
    else:
        try:
            stage = str(read_object(Path(file), remedy=remedy).get("zero_optimization", {}).get("stage", 0))
        except AttributeError:
            raise BadInput(f"{file} has no object zero_optimization; {remedy}") from None
    stages: dict[str, Sharding] = {"0": "none", "1": "zero1", "2": "zero2", "3": "zero3"}
    if stage not in stages:
        raise BadInput(f"DeepSpeed's settings ask for stage {stage[:40]} of ZeRO, expected 0 to 3; {remedy}")
    return stages[stage]


def check_launcher(settings: Train, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a launcher that would compute otherwise than `settings` say, and than the run's manifest would.

    Raises:
        BadInput: another precision than `train.precision`, or a compiler.
    """
    asked = environment.get("ACCELERATE_MIXED_PRECISION", "no").lower() or "no"
    meant = "bf16" if settings.precision == "bf16" else "no"
    if asked not in ("no", meant):
        raise BadInput(
            f"the launcher asks for mixed precision {asked}, and train.precision is {settings.precision}, which decides; start without "
            f"--mixed_precision{', or set train.precision=bf16' if asked == 'bf16' else ''}"
        )
    compiler = environment.get("ACCELERATE_DYNAMO_BACKEND", "no").lower() or "no"
    if compiler != "no":
        raise BadInput(
            f"the launcher asks for --dynamo_backend {compiler}, and rows have a new shape in every step, which would be compiled anew in "
            "each; start without it"
        )


def join(process: Launched, settings: Train) -> None:
    """Meet the other processes, and check their number and that the model will be held as asked.

    Raises:
        BadInput: another number of processes than `train.world_size`, one that does not divide `train.rows_per_step`, or
            sharding without a device that can shard.
    """
    from accelerate import PartialState

    if settings.world_size is not None and settings.world_size != process.world_size:
        raise BadInput(
            f"found {process.world_size} processes, expected train.world_size={settings.world_size}; start as many "
            f"(accelerate launch --config_file configs/accelerate/ddp.yaml --num_processes {settings.world_size}; with --cpu it starts "
            "one, whatever is asked for), or change train.world_size"
        )
    settings.accumulation(process.world_size)
    if process.sharding != "none" and on_cpu():
        raise BadInput(
            f"the launcher asks for {process.sharding}, and no GPU is found here, where it would be ignored in silence; start with "
            "configs/accelerate/ddp.yaml"
        )
    met = PartialState(cpu=on_cpu(), timeout=PATIENCE) if process.world_size > 1 else None
    if met is not None and met.num_processes != process.world_size:
        raise BadInput(
            f"{met.num_processes} processes have met, expected {process.world_size}; start them with one launcher, such as "
            "accelerate launch"
        )


def wait_less(process: Launched) -> None:
    """From now on wait `STEP_PATIENCE` for each other."""
    if process.world_size > 1:
        from torch.distributed import distributed_c10d

        distributed_c10d._set_pg_timeout(STEP_PATIENCE)  # torch has no public name for it


def check_sharded(trainer: Any, process: Launched) -> None:
    """Check that the Trainer holds the model as the launcher was told.

    Raises:
        BadInput: it does not.
    """
    does = "fsdp2" if trainer.is_fsdp_enabled else "zero" if trainer.is_deepspeed_enabled else "none"
    if not process.sharding.startswith(does):
        raise BadInput(
            f"the Trainer would train with sharding {does}, expected {process.sharding} as the launcher was told; start with one of "
            "configs/accelerate"
        )


def sum_in_float32(trainer: Any, process: Launched) -> None:
    """Let FSDP2 add the devices' gradients up in float32; accelerate would in what is computed in, and lose small ones of many devices."""
    if process.sharding == "fsdp2":
        import torch

        plugin = trainer.accelerator.state.fsdp_plugin
        if plugin.mixed_precision_policy is not None:
            plugin.mixed_precision_policy = replace(plugin.mixed_precision_policy, reduce_dtype=torch.float32)


def on_cpu() -> bool:
    """Whether training computes on CPUs. ACCELERATE_TORCH_DEVICE names another device to accelerate, and so to us."""
    import torch

    return not torch.cuda.is_available() and "ACCELERATE_TORCH_DEVICE" not in os.environ


def leave_process_group(process: Launched) -> None:
    """End the process group: what the first one loads now is not divided among all, as ZeRO-3
    would, and the others end without it, which gloo aborts over unless they have taken leave."""
    import torch.distributed
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    if torch.distributed.is_initialized():
        wait_for_all(process)
        torch.distributed.destroy_process_group()
    unset_hf_deepspeed_config()  # type: ignore[no-untyped-call]


def wait_for_all(process: Launched) -> None:
    """Wait for every process."""
    if process.world_size > 1:
        import torch.distributed

        torch.distributed.barrier()


def broadcast_from_main(process: Launched, said: Any) -> Any:
    """The first process's value, in every process."""
    if process.world_size == 1:
        return said
    from accelerate.utils import broadcast_object_list

    return broadcast_object_list([said])[0]


def host() -> str:
    """This machine's name, for messages of one process among many."""
    return socket.gethostname()


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in ("1", "true", "yes")
