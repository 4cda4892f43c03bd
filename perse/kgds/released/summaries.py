"""A released summary as the summarizing model wrote it: what it extracts, and what is odd about that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes
from perse.kgds.asking.reading import EXTRACTIVE, paragraph_number
from perse.kgds.benchmark import Pattern
from perse.kgds.outcomes import Outcome
from perse.kgds.scoring.words import named


@dataclass(frozen=True)
class Extracted:
    """What a summary extracts, or why that cannot be read. Of abs-aos nothing is extracted."""

    cited: frozenset[int] | None = None
    tags: frozenset[str] | None = None
    odd: tuple[str, ...] = ()
    fault: str | None = None


def read_extracted(path: Path, pattern: Pattern) -> Extracted:
    """Only the extracted paragraphs are looked at: the rest of a summary is what the verification speaks about."""
    nothing = frozenset[int]() if pattern == "ebs-aos" else None
    try:
        summary = summary_object(path)
    except ValueError as error:
        return Extracted(nothing, fault=f"the model's answer {error}")
    if pattern == "abs-aos":
        return Extracted()
    tags = summary.get(EXTRACTIVE)
    if not isinstance(tags, list):
        return Extracted(nothing, fault=f"the model's answer has no list {EXTRACTIVE}")
    numbers = [paragraph_number(tag) for tag in tags]
    odd = tuple(json.dumps(tag)[:60] for tag, number in zip(tags, numbers, strict=True) if number is None)
    cited = frozenset(number for number in numbers if number is not None)
    return Extracted(cited, frozenset(tag if isinstance(tag, str) else json.dumps(tag) for tag in tags), odd)


def summary_object(path: Path) -> dict[str, Any]:
    """A released summary.

    Raises:
        ValueError: it cannot be read; the message says what it is instead.
    """
    try:
        summary: Any = parsed(own_bytes(path))
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(summary, dict):
        raise ValueError("is no JSON object")
    return summary


def odd_notes(extracted: Mapping[int, Extracted], outcomes: Mapping[int, Outcome]) -> list[str]:
    notes = []
    if odd := {number: one for number, one in extracted.items() if one.odd}:
        tags = [tag for one in odd.values() for tag in one.odd]
        notes.append(
            f"{len(tags)} extracted {'tag names' if len(tags) == 1 else 'tags name'} no paragraph ({named(list(odd))}), such as {tags[0]}"
        )
    standing = [number for number, one in extracted.items() if one.fault and outcomes[number].failed is None]
    for fault in dict.fromkeys(extracted[number].fault for number in standing):
        numbers = [number for number in standing if extracted[number].fault == fault]
        nothing = "" if extracted[numbers[0]].cited is None else ": nothing is extracted"
        notes.append(f"of {named(numbers)} what was verified stands, though {fault}{nothing}")
    return notes
