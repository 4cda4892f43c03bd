"""Our own metrics as modules of Hugging Face's `evaluate`, loadable by path without a network.

    evaluate.load(perse.evaluation.hub.path("within_reviewer"))

Each is thin over a function of `perse.evaluation`. `evaluate` copies a module's file into its cache before it runs it, so the
modules import perse by its full name and nothing from beside them.
"""

from __future__ import annotations

from pathlib import Path

from perse.errors import BadInput

NAMES = ("within_reviewer", "tie_calibrated_pairs", "ranked_probability")


def path(name: str) -> str:
    """The folder that `evaluate.load` takes for the metric `name`, one of `NAMES`.

    Raises:
        BadInput: there is no such metric.
    """
    if name not in NAMES:
        raise BadInput(f"no metric '{name}' is shipped; expected one of {', '.join(NAMES)}")
    return str(Path(__file__).parent / name)
