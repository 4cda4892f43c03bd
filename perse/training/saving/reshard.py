"""Resumes from a checkpoint on another number of devices than wrote it.

Whole models need nothing, nor do FSDP2's pieces, which torch's own checkpoint format divides again. What DeepSpeed divided is put together parameter by parameter by its own converter first. What one way of holding the model wrote, another
cannot read: the Trainer would take the weights and begin with a new optimizer without a word, so that is refused.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.disk import aside
from perse.files.own_files import replace_folder
from perse.files.runlog import write_whole
from perse.training.launched import Launched, wait_for_all
from perse.training.saving.checkpoints import FOR_ANY, LATEST, LIST, made_by, step_of

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
    folder = checkpoint / f"{FOR_ANY}{step_of(checkpoint)}"
    if process.is_main_process and not (folder.exists() and (checkpoint / LATEST).exists()):
        log.info("putting together what %s processes wrote, for %s", wrote["world_size"], process.world_size)
        _together(checkpoint, folder)
    wait_for_all(process)
    trainer.accelerator.state.deepspeed_plugin.hf_ds_config.config["checkpoint"] = {"load_universal": True}


def _together(checkpoint: Path, folder: Path) -> None:
    pieces = checkpoint / f"global_step{step_of(checkpoint)}"
    making = aside(folder)
    shutil.rmtree(making, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "deepspeed.checkpoint.ds_to_universal",
        "--inject_missing_state",
    ]  # which stage 2 leaves out
    done = subprocess.run(
        [*command, "--input_folder", str(pieces), "--output_folder", str(making)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BadInput(
            f"DeepSpeed could not convert {pieces} for another number of processes ({last}); start as many as before"
        )
    files = sorted(str(path.relative_to(making)) for path in making.rglob("*") if path.is_file())
    write_whole(making / LIST, json.dumps({"files": files}) + "\n")  # what goes when the checkpoint goes
    replace_folder(making, folder)
    write_whole(checkpoint / LATEST, folder.name)
