"""How samples are named where some of them are told apart: runs of numbers drawn together."""

from __future__ import annotations

from collections.abc import Sequence


def named(numbers: Sequence[int]) -> str:
    """ "sample 3", "samples 1, 2, 5 to 9": of increasing numbers, one or more."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [", ".join(map(str, run)) if len(run) < 3 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"sample{'s' if len(numbers) > 1 else ''} {', '.join(words)}"
