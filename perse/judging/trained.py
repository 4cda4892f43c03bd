"""What made a judge, as far as it lies on this machine: its training run, and the question that is its own.

Its own question is asked where nobody names one: asked another, a judge answers prompts of a kind that it never saw, and no stacking
combines the answers. `own_question` reads it from the judge's files before the judge is loaded, and agrees with `Judge.own_question`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perse.engines.kind import Identity
from perse.errors import BadInput
from perse.files.path_names import run_around
from perse.files.runlog import MANIFEST, read_manifest
from perse.judging.loading import parse_judge, weights_digest
from perse.stacking.beside import stacking_beside
from perse.stacking.file import StackedJudge, read_stacking


def own_question(judge: str, stacking: Path | bool = True) -> str | None:
    """The question that a judge, named as on the command line, is asked where nobody names one: what its stacking was fitted on, else what
    it was trained on; None where neither is known here.

    Args:
        stacking: as in `Judge.load`.
    Raises:
        BadInput: the judge's name has another form, or the stacking that was given cannot be read.
    """
    if isinstance(stacking, Path):
        return read_stacking(stacking).question
    parts = parse_judge(judge)
    if stacking and (found := stacking_beside(parts.folders)):
        who = Identity(parts.model, parts.adapter, weights_digest(judge)).portable
        if not found.judge.differs(StackedJudge(model=who.model, adapter=who.adapter, sha256=who.digest)):
            return found.question
    return trained_question(parts.folders)


def trained_question(judge: Sequence[Path]) -> str | None:
    """The name of the question that the judge of these folders was trained on: of a model with an adapter, the adapter. None where that is not
    known here, as of a server, or of a model beside which something else has a manifest: a default may not cost a judge."""
    try:
        for _, manifest in trainings(judge[-1:]):
            name = manifest["run"].get("question")
            return name if isinstance(name, str) else None
    except BadInput:
        return None
    return None


def trained_profile(judge: str) -> int | None:
    """The most reviews of a profile that were shown when a judge, named as on the command line, was trained; None where that is not known here, as of a
    server, or of a judge of pairs or of prompts whose profiles are not told apart."""
    try:
        for _, manifest in trainings(parse_judge(judge).folders[-1:]):
            if not str(manifest["run"].get("question")).startswith("pointwise"):
                return None
            asked = manifest["run"].get("config", {}).get("data", {}).get("k")  # None: as the data set was built
            told = manifest.get("context", {}).get("longest_profile", asked)
            return told if isinstance(told, int) and told > 0 else None
    except BadInput:
        return None
    return None


def trainings(judge: Sequence[Path]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The training runs that a judge's folders are, or that lie around its merged model or adapter, with their manifests."""
    for folder in judge:
        for place in filter(None, (folder, run_around(folder))):
            manifest = read_manifest(place) if (place / MANIFEST).exists() else {}
            if manifest.get("run", {}).get("kind") == "train":
                yield place, manifest
