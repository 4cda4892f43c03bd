"""A note for each arm of a study in which not every question was answered, with what became of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from perse.judgement import Status
from perse.studies.frame.arms import Answers


def coverage(answers: Mapping[str, Answers]) -> list[str]:
    """One sentence for each arm, by name, that lacks an answer."""
    notes = []
    for name, given in answers.items():
        statuses = Counter(str(judgement.status) for judgement in given.values())
        if statuses[Status.OK] < len(given):
            others = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()) if status != Status.OK)
            notes.append(f"{name}: {statuses[Status.OK]} of {len(given)} answered ({others})")
    return notes
