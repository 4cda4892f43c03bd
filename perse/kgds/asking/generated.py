"""Counts what `generate` has written so far: summaries of each kind by outcome, and those missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from perse.kgds.benchmark import Benchmark, Paradigm, Pattern
from perse.kgds.folder import read_summaries
from perse.kgds.scoring.formulas import strange


@dataclass(frozen=True)
class Counted:
    """The summaries of one pattern and paradigm."""

    pattern: Pattern
    paradigm: Paradigm
    statuses: Mapping[str, int]
    strange: int
    """How many cite paragraphs that do not exist."""


@dataclass(frozen=True)
class Generated:
    """A run folder of summaries."""

    combinations: tuple[Counted, ...]
    missing: int
    """Missing because the engine failed; the same command asks for them again."""


def generated(run: Path, benchmark: Benchmark, *, patterns: Collection[Pattern], paradigms: Collection[Paradigm]) -> Generated:
    """What `run` holds, of which `patterns` and `paradigms` of this benchmark were asked for.

    Raises:
        BadInput: a damaged line.
    """
    found = read_summaries(run)
    combinations = []
    for (pattern, paradigm), summaries in found.items():
        statuses = Counter(str(one.status) for one in summaries.values())
        cited = [
            (one.paragraphs, benchmark.samples[one.sample]) for one in summaries.values() if one.sample in benchmark.samples
        ]
        odd = sum(strange(paragraphs or (), sample) > 0 for paragraphs, sample in cited)
        combinations.append(Counted(pattern, paradigm, dict(statuses.most_common()), odd))
    asked = {(pattern, paradigm) for pattern in patterns for paradigm in paradigms}
    have = sum(number in benchmark.samples for key in asked for number in found.get(key, ()))
    return Generated(tuple(combinations), len(asked) * len(benchmark.samples) - have)
