"""Outcomes of any folders: our runs, or the authors' release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perse.errors import BadInput
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import VERIFIED, read_outcomes
from perse.kgds.outcomes import Outcomes
from perse.kgds.released.reader import is_released, read_released


def unverified(runs: Sequence[Path], outcomes: Sequence[Outcomes]) -> list[Path]:
    """The runs of ours of which nothing is verified. Released outcomes lie deeper than the folder that was given."""
    own = {run: [one for one in outcomes if one.source == str(run)] for run in runs}
    return [
        run
        for run, here in own.items()
        if here and all(outcome.opinions is None or outcome.failed for one in here for outcome in one.samples.values())
    ]


def load_outcomes(benchmark: Benchmark, runs: Sequence[Path], *, name: str = VERIFIED) -> list[Outcomes]:
    """All outcomes in `runs`, in their order.

    Args:
        benchmark: the one that they were made from.
        runs: RUN folders, or folders in the authors' layout, which may hold many models.
        name: the verification of the RUN folders; folders without it count as not verified.
    Raises:
        BadInput: no such folder, or what the readers refuse.
    """
    found: list[Outcomes] = []
    for run in runs:
        if not run.is_dir():
            raise BadInput(f"there is no folder {run}; give a RUN folder of `perse kgds generate`, or the authors' `outputs`")
        found += read_released(run, benchmark) if is_released(run) else read_outcomes(run, benchmark, name=name)
    return found
