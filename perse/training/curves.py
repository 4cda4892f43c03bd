"""The curves of a training run as a picture in its folder: loss, and what judging found meanwhile."""

from __future__ import annotations

import logging
from pathlib import Path

from perse.errors import BadInput
from perse.own_files import write_own_bytes

log = logging.getLogger(__name__)

CURVES = "curves.png"


def write_curves(run: Path, *, lines: str = "log.jsonl") -> Path | None:
    """Draw the run's log as `CURVES`; without matplotlib there is a sentence in the log and no picture."""
    from perse.reporting.study_figures import training_figure

    try:
        figure = training_figure(run / lines)
    except BadInput as error:
        log.info("no %s: %s", CURVES, error)
        return None
    write_own_bytes(run / CURVES, figure.png)
    return run / CURVES
