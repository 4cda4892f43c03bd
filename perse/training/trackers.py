"""Trackers of a training run, besides its log: TensorBoard by default, others by name.

Whichever of the Trainer's integrations is asked for is used as it is, with its own environment variables (WANDB_PROJECT,
MLFLOW_TRACKING_URI, ...). One that cannot begin is refused before the first step; one that fails later is left out from then on, for
log.jsonl has everything. TensorBoard's files lie in the run folder; what a killed run had written beyond its last checkpoint, or
without one, is not shown after it resumes or restarts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from perse.errors import BadInput
from perse.files.disk import refuse_link, writing
from perse.secrets import printable, redact

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
        if find_spec(PACKAGES["tensorboard"]) is None:
            log.info("the curves are in log.jsonl alone; pip install tensorboard to have them there, too")
            return ()
        try:
            with _loading("tensorboard"):
                import torch.utils.tensorboard  # noqa: F401
        except BadInput as error:
            log.warning("the curves are in log.jsonl alone: %s", error)
            return ()
        return ("tensorboard",)
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
    Raises:
        BadInput: the folder of one is a link, which may lead out of the run; or its library cannot be loaded.
        SaveFailed: it cannot be written.
    """
    return [_callback(name, run, step) for name in names]


def _callback(name: str, run: Path, step: int) -> Any:
    with _loading(name):
        from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK, TensorBoardCallback

        if name != "tensorboard":
            return guarded(name, INTEGRATION_TO_CALLBACK[name]())
        from torch.utils.tensorboard import SummaryWriter

    folder = run / FOLDER
    refuse_link(folder)
    with writing(folder):
        writer: Any = SummaryWriter(log_dir=str(folder), purge_step=step + 1 if step else 0)
    return guarded(name, TensorBoardCallback(writer))  # type: ignore[no-untyped-call]


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Whatever an installation that is not whole raises when it is imported, an exit too, is a sentence.

    Raises:
        BadInput: that sentence.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a sentence, whatever it is
        raise BadInput(
            f"{name} cannot be loaded ({_said(error)}); install it anew, or leave it out of train.report_to"
        ) from None


def _said(error: BaseException) -> str:
    """The first line of what a library says, without a key."""
    return printable(redact(f"{type(error).__name__}: {error}".splitlines()[0])[:300])


def guarded(name: str, callback: TrainerCallback) -> TrainerCallback:
    """`callback`, whose failures end training in a sentence before its first step, and afterwards end the tracker alone.

    Raises:
        BadInput: from `on_train_begin`, such as an address that nobody answers at.
    """
    failed: list[str] = []

    def around(event: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def told(*args: Any, **more: Any) -> Any:
            if failed:
                return None
            try:
                return do(*args, **more)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - whatever a tracker's library raises; an exit would end training as if it were done
                failed.append(event)
                said = _said(error)
                if event == "on_train_begin":
                    raise BadInput(
                        f"{name} cannot follow this run ({said}); set its own variables right (docs/training.md), or take it out of train.report_to"
                    ) from None
                log.warning("%s fails (%s), and is told nothing from here on; log.jsonl has all numbers", name, said)
                return None

        return told

    for event in (one for one in dir(callback) if one.startswith("on_")):
        setattr(callback, event, around(event, getattr(callback, event)))
    return callback
