"""The judge of PerSum: how well a review agrees with the product's other reviews and its writer's own, 1 to 5 (Rehearsal, 4.1, A).

Three questions a candidate: coverage of the history, coverage of the product's reviews, and sentiment against those; a person's
sentiment need not be that of their history, so it is not asked. Answers are kept in a work folder, which the same command
resumes from after a kill, and to which other thresholds are applied without asking again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING

from perse.data.persum.card import Unseen
from perse.data.persum.filters import Candidate
from perse.data.persum.folder import Scores
from perse.data.persum.options import PersumOptions
from perse.files.runlog import RunLog
from perse.progress import OnProgress
from perse.records import example_lines

if TYPE_CHECKING:
    from perse.judgement import Judgement
    from perse.judging.judge import Judge

ASKED = (("history", "coverage"), ("product", "coverage"), ("product", "sentiment"))
"""(reviews, question). The two about the product follow each other, since their prompts begin alike."""

JUDGEMENTS = "judgements.jsonl"

_CHUNK = 16
"""Candidates asked about at a time: the embedded engine's cache holds about 27 of the longest prompts."""

Answers = Mapping[tuple[str, str], "Judgement"]
"""(reviews, question) -> judgement, of one candidate."""


def ask(
    judge: Judge, candidates: Sequence[Candidate], options: PersumOptions, *, on_progress: OnProgress
) -> dict[str, dict[tuple[str, str], Judgement]]:
    """candidate id -> (reviews, question) -> judgement, from the work folder as far as it has them.

    What the engine failed at is asked again by the next command; the later answer counts.

    Raises:
        RunMismatch: the work folder has answers to other questions or by another judge.
        EngineLost: the engine is gone for good.
    """
    from perse.answering.base import JudgeSettings
    from perse.judging.loop import answer_all, read_judgements
    from perse.questions import QUESTIONS

    settings = JudgeSettings(temperature=0, seed=options.seed)
    context = judge.renderer.context
    examples = {
        against: {one.id: one.example(against, context=context) for one in candidates} for against in ("history", "product")
    }
    lines = "".join(example_lines(one for asked in examples.values() for one in asked.values()))
    shown = {
        f"{against} {name}": judge.prompt_digest(QUESTIONS[name], list(examples[against].values())[:_CHUNK], settings)
        for against, name in ASKED
    }
    identity = {
        "kind": "persum",
        "examples": {"count": len(candidates), "sha256": hashlib.sha256(lines.encode()).hexdigest()},
        "prompts_sha256": shown,
        "judge": judge.for_manifest,
        "settings": asdict(settings),
    }
    together = max(_CHUNK, judge.engine.capabilities.at_once)
    asked = [
        (QUESTIONS[name], [examples[against][one.id] for one in candidates[start : start + together]])
        for start in range(0, len(candidates), together)
        for against, name in ASKED
    ]
    with RunLog(options.work, identity, lines=JUDGEMENTS) as runlog:
        answer_all(judge, asked, runlog, settings=settings, on_progress=on_progress)
        found = read_judgements(runlog.path)
    return {
        one.id: {(against, name): found[name, examples[against][one.id].id] for against, name in ASKED} for one in candidates
    }


def failure(answers: Answers) -> str | None:
    """Why a candidate has no scores: the first question that has no answer."""
    for against, name in ASKED:
        status = answers[against, name].status
        if status != "ok":
            return f"judge: {status} at {against} {name}"
    return None


def scores_of(answers: Answers) -> Scores:
    """Expected scores, or the labels of a judge that has no distribution. Rounded: in float32 the
    last digits depend on which prompts were computed before (in bfloat16 more than these do)."""
    found = {}
    for against, name in ASKED:
        judgement = answers[against, name]
        assert judgement.label is not None, judgement
        value = float(judgement.label) if judgement.expected is None else judgement.expected
        found[f"{against}_{name}"] = round(value, 4)
    return Scores(**found)


def ranges(judged: Mapping[str, Answers]) -> dict[str, list[float]]:
    """Score -> [least, median, largest] over the candidates that have all."""
    scores = [scores_of(answers).model_dump() for answers in judged.values() if failure(answers) is None]
    columns = {name: [row[name] for row in scores] for name in Scores.model_fields}
    return {name: [min(values), round(median(values), 4), max(values)] for name, values in columns.items() if values}


def unseen_reviews(candidates: Sequence[Candidate], judged: Mapping[str, Answers]) -> dict[str, Unseen]:
    """What the judge's context left out of the prompts: reviews -> in how many sets, and how much of those."""
    found = {}
    for against, question in (("history", "coverage"), ("product", "coverage")):
        shares = [
            1 - judged[one.id][against, question].k_effective / len(one.beside(against))
            for one in candidates
            if judged[one.id][against, question].status == "ok"
        ]
        cut = [share for share in shares if share > 0]
        found[against] = Unseen(
            sets=len(shares),
            cut=len(cut),
            share=round(sum(cut) / len(cut), 4) if cut else 0.0,
            largest=round(max(cut, default=0.0), 4),
        )
    return found


def notes(judge: Judge) -> tuple[str, ...]:
    from perse.models.finding import EMBEDDED

    if judge.identity.model not in EMBEDDED or judge.identity.adapter is not None:
        return ()
    return (
        f"the judge {judge.identity.model} is an embedded base model that was never trained to judge: its scores show that the "
        "steps run, not which samples are good",
    )
