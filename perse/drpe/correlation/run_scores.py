"""What runs of `perse drpe vote` gave the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perse.drpe.selection import BEST, WORST, Item, Key, Selected
from perse.drpe.votes.run_folder import LEFT_OUT, Run, read_run
from perse.drpe.votes.scoring import decisions, scores_by_name
from perse.errors import BadInput
from perse.files.runlog import read_manifest


def methods_of(runs: Sequence[Path], selected: Selected | None) -> dict[str, Mapping[Key, float | None]]:
    """Every score of every run, by the run's folder and the score's name; without a name that has no value at all.

    Raises:
        BadInput: a folder is no run, two runs have one name, or one voted on other texts than `selected`, if it is given, has.
    """
    found: dict[str, Mapping[Key, float | None]] = {}
    for folder in runs:
        run = read_run(folder)
        _refuse_other_texts(folder, run, selected.items if selected else ())
        for column, scores in scores_by_name(run.decisions).items():
            name = f"{folder.name} {column}"
            if name in found:
                raise BadInput(f"two runs are called {folder.name}; rename a folder, so that their rows can be told apart")
            if any(value is not None for value in scores.values()):
                found[name] = scores
    return found


def of_extremes(runs: Sequence[Path]) -> str:
    """That runs voted on candidates which were chosen by the scores they are then held against; a sentence, or nothing."""
    names = [folder.name for folder in runs if read_manifest(folder).get("context", {}).get(LEFT_OUT)]
    if not names:
        return ""
    return (
        f"Candidates of {' and '.join(names)} are the {BEST} best and {WORST} worst of each document by people's own scores, and these alone are compared, which makes "
        "correlations as a rule higher than over all (perse drpe vote --candidates all)."
    )


def _refuse_other_texts(folder: Path, run: Run, items: Sequence[Item]) -> None:
    """The same ids may stand for other texts."""
    voted = {(one.id, each.system): (each.text, one.references) for one in run.documents.documents for each in one.candidates}
    for item in items:
        if item.key in voted and voted[item.key] != (item.candidate.text, item.document.references):
            raise BadInput(
                f"{folder} voted on other texts: of document '{item.document.id}' the candidate of {item.candidate.system}, or a reference, is not "
                "the one that is given; give the documents that were voted on"
            )


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
