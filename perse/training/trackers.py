"""Trackers of a training run, besides its log: TensorBoard by default, others by name.

Whichever of the Trainer's integrations is asked for is used as it is, with its own environment variables (WANDB_PROJECT,
MLFLOW_TRACKING_URI, ...). TensorBoard's files lie in the run folder; what a killed run had written beyond its last checkpoint, or
without one, is not shown after it resumes or restarts.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perse.errors import BadInput

log = logging.getLogger(__name__)

PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "trackio": "trackio", "mlflow": "mlflow"}
"""Trackers by name, and the package that each needs."""

FOLDER = "tensorboard"
"""In the run folder."""


def tracker_names(asked: tuple[str, ...] | None) -> tuple[str, ...]:
    """Which trackers a run writes to.

    Args:
        asked: names out of `PACKAGES`; None: TensorBoard if it is installed.
    Raises:
        BadInput: an unknown name, or its package is not installed.
    """
    if asked is None:
        if find_spec(PACKAGES["tensorboard"]) is not None:
            return ("tensorboard",)
        log.info("the curves are in log.jsonl alone; pip install tensorboard to have them there, too")
        return ()
    for name in asked:
        if name not in PACKAGES:
            shown = re.split(r"[:=@/]", name)[0]  # a key behind it belongs into the tracker's own variable
            raise BadInput(f"train.report_to names '{shown}'; choose from {', '.join(PACKAGES)}, or [] for none")
        if find_spec(PACKAGES[name]) is None:
            raise BadInput(
                f"train.report_to names {name}, which is not installed; pip install {PACKAGES[name]}, or leave it out"
            )
    return tuple(dict.fromkeys(asked))


def trackers(names: tuple[str, ...], run: Path, *, step: int = 0) -> list[Any]:
    """The Trainer's callbacks that write to `names`, for the main process alone.

    Args:
        run: the run folder.
        step: the optimizer step that the run resumes from; 0 for a new run.
    """
    return [_callback(name, run, step) for name in names]


def _callback(name: str, run: Path, step: int) -> Any:
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK, TensorBoardCallback

    if name != "tensorboard":
        return INTEGRATION_TO_CALLBACK[name]()
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(log_dir=str(run / FOLDER), purge_step=step + 1 if step else 0)
    return TensorBoardCallback(writer)  # type: ignore[no-untyped-call]
