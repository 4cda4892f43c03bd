"""The error types in the authors' release, given back to the samples whose opinions they are about.

A file's name may tell its sample (between `aos-` and `_`). Files that do not are taken for the opinions that are not covered, one
each, in order of both; where there are more files than such opinions, the rest goes to the last sample. The shares of all samples
together are the same wherever a file goes; only a comparison on fewer samples depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from perse.errors import BadInput
from perse.formats.json_text import read_json
from perse.kgds.benchmark import Benchmark
from perse.kgds.outcomes import NUMBERED, ErrorType, Outcome
from perse.kgds.released.files import AGAIN, no_sample, numbered, part_of

_KIND = re.compile(r"Error\s*Type\s*([0-9]+)", re.IGNORECASE)


def with_errors(
    folder: Path, benchmark: Benchmark, *, outcomes: Mapping[int, Outcome], names: Mapping[str, int]
) -> tuple[dict[int, Outcome], list[str]]:
    """`outcomes` with the errors in `folder`, and notes on what was odd.

    A conclusion that names none of the five types, or more than one, is none, and said in a note.

    Args:
        names: the samples that parts of names stand for, as in the verification of opinions.
    Raises:
        BadInput: no files, one that is not JSON or has no Detection_Conclusion, or a name that tells a sample which there is not.
    """
    errors: dict[int, list[ErrorType]] = {number: [] for number in outcomes}
    notes: list[str] = []
    nameless, elsewhere, unclear = 0, 0, 0
    places = _places(outcomes)
    for _, path in numbered(folder):
        kind = _kind(path)
        number = _sample(path, benchmark, names)
        if number is None:
            nameless += 1
            number = next(places, max(outcomes, default=None))
        if number is None or number not in outcomes:
            elsewhere += 1
        elif kind is None:
            unclear += 1
        else:
            errors[number].append(kind)
    if nameless:
        notes.append(f"{nameless} detected errors tell no sample and are matched in order with the opinions not covered")
    if elsewhere:
        notes.append(f"{elsewhere} detected errors are about samples that are left out")
    if unclear:
        detections = "1 detection names" if unclear == 1 else f"{unclear} detections name"
        notes.append(f"{detections} none, or more than one, of the five error types: not counted")
    found = {number: replace(outcome, errors=tuple(errors[number])) for number, outcome in outcomes.items()}
    return found, notes


def _sample(path: Path, benchmark: Benchmark, names: Mapping[str, int]) -> int | None:
    """The sample that a file's name tells, if it does."""
    key = part_of(path, "aos-")
    if key is None or key in names:
        return None if key is None else names[key]
    if not (key.isascii() and key.isdigit()):
        return None
    if int(key) not in benchmark.samples:
        raise BadInput(no_sample(int(key), benchmark, path=path))
    return int(key)


def _places(outcomes: Mapping[int, Outcome]) -> Iterator[int]:
    """The sample of each opinion that is not covered, in order."""
    for number, outcome in outcomes.items():
        yield from (number for covered in outcome.opinions or () if not covered)


def _kind(path: Path) -> ErrorType | None:
    entry = read_json(path, remedy=AGAIN)
    if not isinstance(entry, dict) or "Detection_Conclusion" not in entry:
        raise BadInput(f"{path}: expected an object with Detection_Conclusion, found {str(entry)[:80]}")
    named = set(_KIND.findall(str(entry["Detection_Conclusion"])))
    return NUMBERED.get(named.pop()) if len(named) == 1 else None
