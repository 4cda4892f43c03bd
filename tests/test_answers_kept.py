"""Killed more often than it used to write, a run comes to its end, and asks again only what was in flight."""

from __future__ import annotations

import json
import os
from pathlib import Path

from builders import pointwise_examples

from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering import TextRenderer


def killed_after(answers: int, out: Path, calls: Path) -> bool:
    """Score in a process of its own that dies at the question after so many answers, as of kill -9; whether it came to its end."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asked = 0

    def reply(message: str, seed: int) -> str:
        nonlocal asked
        with calls.open("a") as file:
            file.write("asked\n")
        if asked == answers:
            os._exit(9)
        asked += 1
        return "[Review] fine\n[Score] 7"

    try:
        loaded = LoadedExamples(pointwise_examples(5, 4), digest="d", folder=None, fold=None)
        judge = Judge(ScriptedEngine(reply), TextRenderer(), name="j")
        score(judge, QUESTIONS["pointwise"], loaded, out, settings=JudgeSettings())
    finally:
        os._exit(0)


def test_a_scoring_killed_after_every_third_answer_ends_and_asks_again_only_what_was_in_flight(tmp_path: Path) -> None:
    kills = 0
    while not killed_after(3, tmp_path / "run", tmp_path / "calls"):
        kills += 1
        assert kills < 20, "no progress"
    lines = [json.loads(line) for line in (tmp_path / "run" / "judgements.jsonl").read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines) == 20
    assert kills == 6 and len((tmp_path / "calls").read_text().splitlines()) == 20 + kills
