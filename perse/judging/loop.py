"""The one loop that asks a judge about many examples: asks for missing judgements, and keeps each the moment it arrives.

A kill, also -9, loses what was in flight: an answer that is being computed (of the embedded engine a few reviews that are written
together), or the requests that a server had not answered. The same command asks only those again, so however often it is killed, it
comes to its end. Waiting for the disk takes milliseconds, so it is done at most once a second: a power cut, or a crash of the system, can lose
what came since. `timing.jsonl` beside the judgements says when they came.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from perse.errors import BadInput, EngineLost
from perse.files.disk import GrowingFile
from perse.files.runlog import RunLog, read_lines
from perse.formats.json_text import is_amount, shortened
from perse.judgement import Judgement, Status, judgement_line, parse_judgement
from perse.judging.judge import Judge, JudgeSettings
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.questions.base import ListedQuestion
from perse.records import Asked, SeveralAsked

JUDGEMENTS = "judgements.jsonl"
TIMING = "timing.jsonl"

SYNC_EVERY = 1.0
"""Seconds of answers that a power cut may lose; a kill loses none."""

Key = tuple[str, str]
"""The question's name and the judgement's id."""


def answer_all(
    judge: Judge,
    asked: Iterable[tuple[Question, Sequence[Asked]]],
    log: RunLog,
    *,
    settings: JudgeSettings,
    on_progress: OnProgress = unseen,
) -> None:
    """Ask each question about each of its examples of which `log` has no judgement; what the engine failed at is asked again.

    Args:
        asked: in this order; a question may come several times.
        on_progress: called with the number of finished questions and of all.
    Raises:
        EngineLost: the engine is gone for good, or failed at every question, and none was answered before.
        SaveFailed: a judgement could not be written.
    """
    wanted = list(asked)
    known = {key: one for key, one in read_judgements(log.path).items() if one.status is not Status.ENGINE_ERROR}
    keys = [(question.name, name) for question, examples in wanted for name in _ids(question, examples)]
    done, total = sum(key in known for key in keys), len(keys)
    on_progress(done, total)
    begun = synced = time.monotonic()
    answered = bool(known)
    failed: str | None = None
    with GrowingFile(log.folder / TIMING) as timing:
        timing.cut_torn_line()
        try:
            for judgements in _arriving(judge, wanted, known, settings):
                if not judgements:
                    continue
                now = time.monotonic()
                due = now - synced >= SYNC_EVERY
                log.append(map(judgement_line, judgements), sync=due)
                synced = now if due else synced
                timing.append([json.dumps({"judged": len(judgements), "seconds": round(now - begun, 3)}) + "\n"], sync=False)
                begun = now
                answered |= any(one.status is not Status.ENGINE_ERROR for one in judgements)
                failed = failed or next((one.error for one in judgements if one.error), None)
                done += len(judgements)
                on_progress(done, total)
        finally:
            log.sync()
    if total and not answered:
        raise EngineLost(
            f"the engine failed at every one of {total} questions, at the first because {failed or 'of no reason that it gave'}; look "
            "after it; the same command continues"
        )


def read_judgements(path: Path) -> dict[Key, Judgement]:
    """The judgements of a file that `answer_all` wrote; what the engine failed at was asked again, and an answer replaces a failure."""
    found: dict[Key, Judgement] = {}
    for line, row in enumerate(read_lines(path), start=1):
        judgement = parse_judgement(row, f"{path}, line {line}")
        key = judgement.question, judgement.id
        if key not in found or found[key].status is Status.ENGINE_ERROR:
            found[key] = judgement
    return found


def read_timing(path: Path) -> tuple[int, float]:
    """How many judgements were timed, and the seconds they took together.

    Raises:
        BadInput: an invalid line; the message names it.
    """
    judged, seconds = 0, 0.0
    for line, row in enumerate(read_lines(path), start=1):
        if not (is_amount(row.get("judged")) and type(row["judged"]) is int and is_amount(row.get("seconds"))):
            raise BadInput(f"{path}, line {line}: found {shortened(row)}, expected 'judged' and 'seconds'; remove the line")
        judged, seconds = judged + row["judged"], seconds + row["seconds"]
    return judged, seconds


def _arriving(
    judge: Judge, asked: Iterable[tuple[Question, Sequence[Asked]]], known: Mapping[Key, Judgement], settings: JudgeSettings
) -> Iterator[list[Judgement]]:
    for question, examples in asked:
        if _listed(question):
            lists = cast(Sequence[SeveralAsked], examples)
            mine = {name: one for (of, name), one in known.items() if of == question.name}
            yield from judge.stream_listed(cast(ListedQuestion, question), lists, settings, known=mine)
        else:
            rest = [one for one in examples if (question.name, one.id) not in known]
            yield from judge.stream(question, rest, settings)


def _listed(question: Any) -> bool:
    return hasattr(question.example_type, "each")


def _ids(question: Question, examples: Sequence[Asked]) -> Iterator[str]:
    """Of the judgements that there will be."""
    for example in examples:
        if _listed(question):
            yield from (one.id for one in cast(SeveralAsked, example).each())
        else:
            yield example.id
