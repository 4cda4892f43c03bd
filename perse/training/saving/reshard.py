"""Resumes from a checkpoint on another number of devices than wrote it.

Whole models need nothing, nor do FSDP2's pieces, which torch's own checkpoint format divides again. What DeepSpeed divided is put together parameter by parameter by its own converter first. What one way of holding the model wrote, another
cannot read: the Trainer would take the weights and begin with a new optimizer without a word, so that is refused.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from perse.errors import BadInput
from perse.files.belongings import keep_changed
from perse.files.disk import aside
from perse.files.own_files import fresh_folder, replace_folder
from perse.training.launched import Launched, wait_for_all
from perse.training.saving.checkpoints import converted, is_converted, made_by, name_converted, step_of, write_list

log = logging.getLogger(__name__)


def reshard(checkpoint: Path, trainer: Any, process: Launched) -> None:
    """Let `trainer` resume from `checkpoint`, whichever devices wrote it.

    Raises:
        BadInput: it was written under another sharding, or cannot be converted.
    """
    wrote = made_by(checkpoint)
    if wrote["sharding"] != process.sharding:
        raise BadInput(
            f"{checkpoint} was written with sharding {wrote['sharding']}, expected {process.sharding} as the launcher is told now; "
            "the optimizer's state cannot be read by another: start as before, or choose another output folder"
        )
    if wrote["world_size"] == process.world_size or not process.sharding.startswith("zero"):
        return
    if process.is_main_process:
        if not is_converted(checkpoint):
            log.info("putting together what %s processes wrote, for %s", wrote["world_size"], process.world_size)
            _together(checkpoint)
        name_converted(checkpoint)
    wait_for_all(process)
    trainer.accelerator.state.deepspeed_plugin.hf_ds_config.config["checkpoint"] = {"load_universal": True}


def give_groups_their_own(optimizer: Any, *, rates: Sequence[float], decays: Sequence[float]) -> None:
    """Undo what ZeRO-3 does to an optimizer's groups when it reads what was put together for other devices: all get the first one's
    settings, and one count of steps between them, which each then raises.

    Args:
        rates, decays: learning rate and weight decay of each group.
    """
    for group, rate, decay in zip(optimizer.param_groups, rates, decays, strict=True):
        group["lr"], group["weight_decay"] = rate, decay
    for kept in optimizer.state.values():
        if isinstance(kept.get("step"), Tensor):
            kept["step"] = kept["step"].clone()


def _together(checkpoint: Path) -> None:
    folder = converted(checkpoint)
    pieces = checkpoint / f"global_step{step_of(checkpoint)}"
    making = aside(folder)
    fresh_folder(making)
    written = making / folder.name  # beside it the converter writes latest_universal, through a link if there is one
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepspeed.checkpoint.ds_to_universal",
        "--inject_missing_state",
    ]  # which stage 2 leaves out
    done = subprocess.run(
        [*command, "--input_folder", str(pieces), "--output_folder", str(written)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BadInput(
            f"DeepSpeed could not convert {pieces} for another number of processes ({last}); start as many as before"
        )
    write_list(written, {})  # of what goes when the checkpoint goes
    keep_changed(folder, ())  # what is there is not whole, or not perse's
    replace_folder(written, folder)
    shutil.rmtree(making)
