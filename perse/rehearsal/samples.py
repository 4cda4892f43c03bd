"""The samples of a PerSum folder, and the digest that says which they are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from perse.data.persum.folder import Sample, load_persum
from perse.errors import BadInput


@dataclass(frozen=True)
class Samples:
    """In the order of the folder; `digest` is of these alone."""

    samples: tuple[Sample, ...]
    digest: str


def read_samples(folder: Path, *, limit: int | None = None) -> Samples:
    """The samples, or the first so many.

    Raises:
        BadInput: no PerSum folder, an empty one, or a damaged line.
    """
    found = load_persum(folder)[:limit]
    if not found:
        raise BadInput(f"{folder} has no samples; build them with `perse data persum`, with more reviews or other thresholds")
    lines = "".join(sample.model_dump_json() + "\n" for sample in found)
    return Samples(tuple(found), hashlib.sha256(lines.encode()).hexdigest())
