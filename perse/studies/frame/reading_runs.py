"""Runs that a study only reads, with what `perse evaluate` asks of them: what it refuses, no study reads either.

Runs of another data set, a run that is given twice or not finished, judgements of no example and labels that are on no scale
are found before anything is computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.batch.comparing import Gathered, gather
from perse.evaluation.alignment import Items, align
from perse.evaluation.predictions import answer_scale, check_labels
from perse.scale import Scale


@dataclass(frozen=True)
class ReadRuns:
    """Runs that may be looked at together: as they were read, and the items common to all of them."""

    gathered: Gathered
    items: Items
    scale: Scale

    @property
    def notes(self) -> list[str]:
        """What is known of the runs. Whose profiles a baseline would read is left away: in studies that only read runs none stands beside others' profiles."""
        return [*(note.partition("; baselines")[0] for note in self.gathered.notes), *self.items.notes]


def read_runs(folders: Sequence[Path]) -> ReadRuns:
    """Read and check runs of the same examples.

    Raises:
        BadInput: see `perse.batch.comparing.gather` and `perse.evaluation.alignment.align`; an ok judgement whose label is
            not on the scale; or summaries that were asked several questions, or one that is not about summaries.
    """
    gathered = gather(folders)
    items = align(gathered.folds, gathered.judges)
    scale = answer_scale(items)
    check_labels(items.judgements, scale=scale)
    return ReadRuns(gathered, items, scale)
