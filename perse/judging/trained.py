"""What made a judge, as far as it lies on this machine: its training run, and the question that it learned there.

Asked another question, a judge answers prompts of a kind that it never saw; so its own is the usual one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.path_names import run_around
from perse.files.runlog import MANIFEST, read_manifest


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


def trainings(judge: Sequence[Path]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The training runs that a judge's folders are, or that lie around its merged model or adapter, with their manifests."""
    for folder in judge:
        for place in filter(None, (folder, run_around(folder))):
            manifest = read_manifest(place) if (place / MANIFEST).exists() else {}
            if manifest.get("run", {}).get("kind") == "train":
                yield place, manifest
