"""Judges that follow a script, and what the tests of judging studies ask of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge, JudgeSettings
from perse.rendering.prompt import TextRenderer
from perse.results.result import Point, Result
from perse.studies.frame.running import Asking


def scripted(reply: Callable[[str, int], str]) -> Callable[[str], Judge]:
    """Loads, under any name, a judge that says `reply(message, seed)`."""
    return lambda name: Judge(ScriptedEngine(reply), TextRenderer(), name=name)


def shown_scores(message: str) -> list[int]:
    """The scores of the profile, in the order shown."""
    return [int(score) for score in re.findall(r"(?m)^\[Score\] (\d+)$", message)]


def average(message: str, _seed: int) -> str:
    """What the reader gives on average: all that can be known of them without reading."""
    scores = shown_scores(message)
    return f"[Review] as ever\n[Score] {round(sum(scores) / len(scores)) if scores else 5}"


def last(message: str, _seed: int) -> str:
    """The score shown last: a judge that depends on the order and on nothing else."""
    return f"[Review] as before\n[Score] {(shown_scores(message) or [5])[-1]}"


def asking(examples: Path, **changed: object) -> Asking:
    """One that costs little."""
    usual = {"judge": "script", "settings": JudgeSettings(max_new_tokens=8), "resamples": 200, "dtype": "float32"}
    return Asking(examples=examples, **(usual | changed))  # type: ignore[arg-type]


def point(result: Result, series: str, x: str, metric: str = "kendall") -> Point:
    """The one point there."""
    (found,) = [p for p in result.points if (p.series, p.x, p.metric) == (series, x, metric)]
    return found
