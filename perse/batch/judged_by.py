"""Who judged a scoring run, where that judge lay, and by which digests its answers are known: the same of a run in shards as of any.

What one process judged says it in its manifest; of a run in shards the manifest is written before a judge is loaded, and the first worker
writes what it met beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perse.batch.local import EXAMPLES
from perse.batch.sharded.reading import is_sharded, read_sharded
from perse.batch.sharded.starting import JUDGE
from perse.files.path_names import place_named
from perse.files.runlog import file_digest, read_manifest
from perse.formats.json_text import read_object
from perse.judgement import judgement_line
from perse.judging.loading import parse_judge
from perse.judging.loop import JUDGEMENTS


def judged_by(folder: Path) -> Mapping[str, Any]:
    """Model, adapter, weights and engine of a run's judge, as far as the run tells them.

    Raises:
        BadInput: no manifest, or a damaged one.
    """
    manifest = read_manifest(folder)
    if is_sharded(manifest):
        told = read_object(folder / JUDGE, remedy="score again").get("judge") if (folder / JUDGE).is_file() else None
    else:
        told = manifest.get("run", {}).get("judge")
    if not isinstance(told, Mapping):
        return {}
    if "model" not in told and isinstance(told.get("name"), str):  # as an older perse wrote it
        model, _, adapter = told["name"].partition("+")
        return {**told, "model": model, "adapter": adapter or None}
    return told


def weights_of(judge: Mapping[str, Any]) -> str | None:
    """The digest of the weights that answered; None where nobody told."""
    digest = judge.get("digest") or judge.get("sha256")  # as an older perse called it
    return digest if isinstance(digest, str) else None


def judge_places(folder: Path) -> list[Path]:
    """Where model and adapter of a run's judge lay when it was asked; nothing for one behind a server."""
    told = read_manifest(folder).get("context", {}).get("judge")
    if isinstance(told, str):
        return list(parse_judge(told).folders)
    if not isinstance(told, Mapping):  # an older perse named the judge by its places
        told = judged_by(folder)
    parts = [told.get(part) for part in ("model", "adapter")]
    return [place_named(part) for part in parts if isinstance(part, str) and part]


def answers_digest(folder: Path) -> str:
    """sha256 of a run's `judgements.jsonl`; of a run in shards that of the file which `perse score merge` writes."""
    if not is_sharded(read_manifest(folder)):
        return file_digest(folder / JUDGEMENTS)
    return _of_lines(map(judgement_line, read_sharded(folder)[1]))


def digests(folder: Path) -> dict[str, str]:
    """Of what a run asked, and of what was answered."""
    if not is_sharded(read_manifest(folder)):
        return {name: file_digest(folder / name) for name in (EXAMPLES, JUDGEMENTS)}
    examples, judgements = read_sharded(folder)
    asked = (f"{example.model_dump_json()}\n" for example in examples)
    return {EXAMPLES: _of_lines(asked), JUDGEMENTS: _of_lines(map(judgement_line, judgements))}


def _of_lines(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
