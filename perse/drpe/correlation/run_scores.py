"""What runs of `perse drpe vote` gave the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perse.drpe.selection import Key
from perse.drpe.votes.scoring import decisions, scores_by_name
from perse.drpe.votes.voting import Run, read_run
from perse.errors import BadInput


def methods_of(runs: Sequence[Path]) -> dict[str, Mapping[Key, float | None]]:
    """Every score of every run, by the run's folder and the score's name.

    Raises:
        BadInput: a folder is no run, or two runs have one name.
    """
    found: dict[str, Mapping[Key, float | None]] = {}
    for run in runs:
        for column, scores in scores_of(run).items():
            name = f"{run.name} {column}"
            if name in found:
                raise BadInput(f"two runs are called {run.name}; rename a folder, so that their rows can be told apart")
            found[name] = scores
    return found


def scores_of(run: Path) -> Mapping[str, Mapping[Key, float | None]]:
    """A run's scores by name, of each candidate; None where it has none, and without a name that has none at all.

    Raises:
        BadInput: the folder is no run.
    """
    named = scores_by_name(read_run(run).decisions)
    return {name: of_one for name, of_one in named.items() if any(value is not None for value in of_one.values())}


def of_wordings(runs: Sequence[Path]) -> dict[str, dict[int, Mapping[Key, float | None]]]:
    """Of runs in several wordings: each of the methods of `methods_of` by wording."""
    found: dict[str, dict[int, Mapping[Key, float | None]]] = {}
    for folder in runs:
        run = read_run(folder)
        wordings = sorted({ballot.wording for ballot in run.ballots})
        for wording in wordings if len(wordings) > 1 else ():
            for name, scores in _in_wording(run, wording).items():
                found.setdefault(f"{folder.name} {name}", {})[wording] = scores
    return found


def _in_wording(run: Run, wording: int) -> dict[str, dict[Key, float | None]]:
    return scores_by_name(decisions([one for one in run.ballots if one.wording == wording], run.answers))
