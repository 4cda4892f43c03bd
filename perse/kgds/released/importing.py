"""Runs of ours made from released summaries, so that another judge can verify them.

Each model becomes a run folder, as if `perse kgds generate` had written it. What the model's answer has instead of a summary is a failure
with its reason; the authors' verifications stay where they are, since they are another judge's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.formats.plain_files import own_bytes
from perse.kgds.asking.reading import content_of
from perse.kgds.benchmark import Benchmark, Paradigm, Pattern
from perse.kgds.folder import SUMMARIES, Summary, read_summaries
from perse.kgds.released.files import WrongBenchmark
from perse.kgds.released.layout import models_of, outputs_of, summary_files
from perse.kgds.released.summaries import summary_object
from perse.writing.loop import Kind

Found = dict[tuple[Pattern, Paradigm], dict[int, Path]]
"""The files of a model's summaries."""


@dataclass(frozen=True)
class Imported:
    """A run that was made, or was there already."""

    model: str
    run: Path
    summaries: int
    failed: int
    """Of them, how many are none."""
    notes: tuple[str, ...]
    """Patterns and paradigms that are left out, and why."""


def import_released(root: Path, benchmark: Benchmark, out: Path, *, models: Sequence[str] | None = None) -> list[Imported]:
    """Make OUT/MODEL of each model's released summaries; what is there already stays.

    Raises:
        BadInput: no such release or model, a model without a summary that can be read, or samples that the benchmark does not have.
        RunMismatch: OUT/MODEL holds something else.
    """
    outputs = outputs_of(root)
    given = []
    for model, ways in models_of(outputs, models=models).items():
        found, notes = _files(outputs, benchmark, model=model, ways=ways)
        if not found:
            raise BadInput(f"{outputs} has no summaries of '{model}': {'; '.join(notes) or 'there is no folder'}")
        run = out / model
        if run.is_dir() and any(run.iterdir()):  # all are looked at before one is made
            with _opened(run, benchmark, found, model=model):
                pass
        given.append((model, found, notes))
    return [_run(out / model, benchmark, found, model=model, notes=notes) for model, found, notes in given]


def _files(
    outputs: Path, benchmark: Benchmark, *, model: str, ways: Sequence[tuple[Pattern, Paradigm]]
) -> tuple[Found, list[str]]:
    found: Found = {}
    notes: list[str] = []
    for pattern, paradigm in ways:
        try:
            files = summary_files(outputs, benchmark, model=model, pattern=pattern, paradigm=paradigm)
        except WrongBenchmark:
            raise
        except BadInput as error:
            notes.append(f"{pattern} {paradigm} is left out: {error}")
            continue
        if files:
            found[pattern, paradigm] = files
    return found, notes


def _run(run: Path, benchmark: Benchmark, found: Found, *, model: str, notes: Sequence[str]) -> Imported:
    with _opened(run, benchmark, found, model=model) as log:
        known: Mapping[tuple[Pattern, Paradigm], Mapping[int, Summary]] = read_summaries(run) if log.read() else {}
        log.append(
            _summary(path, number, pattern, paradigm, model).line
            for (pattern, paradigm), files in found.items()
            for number, path in files.items()
            if number not in known.get((pattern, paradigm), {})
        )
    every = [one for of_pattern in read_summaries(run).values() for one in of_pattern.values()]
    return Imported(model, run, len(every), sum(one.status != "ok" for one in every), tuple(notes))


def _opened(run: Path, benchmark: Benchmark, found: Found, *, model: str) -> RunLog:
    identity = {"kind": "kgds-import", "benchmark": benchmark.digest, "model": model, "sources": _digest(found)}
    return RunLog(run, identity, lines=SUMMARIES)


def _digest(found: Found) -> str:
    """Of all files, so that a run is not continued from others."""
    digest = hashlib.sha256()
    for way, files in found.items():
        for number, path in files.items():
            digest.update(json.dumps([*way, number, hashlib.sha256(own_bytes(path)).hexdigest()]).encode())
    return digest.hexdigest()


def _summary(path: Path, number: int, pattern: Pattern, paradigm: Paradigm, model: str) -> Summary:
    try:
        content = content_of(summary_object(path), pattern)
    except ValueError as error:
        return Summary(
            sample=number,
            pattern=pattern,
            paradigm=paradigm,
            model=model,
            status=str(Kind.BAD_JSON),
            error=f"the model's answer: {error}",
        )
    return Summary(
        sample=number,
        pattern=pattern,
        paradigm=paradigm,
        model=model,
        paragraphs=content.paragraphs,
        odd=content.odd,
        background=content.background,
        opinions=content.opinions,
    )
