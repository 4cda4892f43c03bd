"""`perse rehearsal leniency`: ask a judge about graded summaries, and about summaries of other products."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, answer_all, read_judgements
from perse.progress import OnProgress, unseen
from perse.records import SummaryExample
from perse.rehearsal.judging import GREEDY, QUESTIONS, Aspect, value_of, who_judges
from perse.rehearsal.leniency.reading import Graded, Shown, hundred, related, unrelated
from perse.rehearsal.settings import WIDE, Labels

UNRELATED = 3
"""Summaries of other products that each product's reviews are shown with."""


@dataclass(frozen=True)
class Asked:
    """A summary with a product's reviews: what people gave it on the judge's scale (None: it is of another product), and what the judge gave."""

    product: int
    """Whose reviews, from 0."""
    summary: tuple[int, int]
    """Which summary: its product, and its place among that product's, both from 0."""
    people: dict[Aspect, float] | None
    judge: dict[Aspect, float | None]


def ask(judge: Judge, graded: Graded, folder: Path, *, labels: Labels = WIDE, on_progress: OnProgress = unseen) -> list[Asked]:
    """All that the judge says of the summaries; what the folder has is not asked again.

    Raises:
        RunMismatch: the folder has answers of another judge, or about other summaries.
        EngineLost: the engine is gone, or failed at some questions; the same command goes on.
    """
    shown = [*related(graded.products), *unrelated(graded.products, UNRELATED)]
    examples = {example.id: example for example in map(_example, shown)}
    ordered = sorted(examples.values(), key=lambda one: (int(one.reviewer_id), one.id))
    chunk = max(16, judge.engine.capabilities.at_once)
    questions = QUESTIONS[labels]
    asked = [
        (question, ordered[start : start + chunk]) for start in range(0, len(ordered), chunk) for question in questions.values()
    ]
    with RunLog(folder, identity(judge, graded, labels), lines=JUDGEMENTS) as log:
        answer_all(judge, asked, log, settings=GREEDY, on_progress=on_progress)
        answers = read_judgements(log.path)
    place = {product.id: at for at, product in enumerate(graded.products)}
    found = []
    for one in shown:
        name = _example(one).id
        given = {aspect: value_of(answers.get((question.name, name))) for aspect, question in questions.items()}
        own = one.product.id == one.reviews_of.id
        people = {aspect: hundred(grade) for aspect, grade in one.summary.people.items()} if own else None
        found.append(Asked(place[one.reviews_of.id], (place[one.product.id], one.place), people, given))
    if all(value is None for one in found for value in one.judge.values()):
        why = next((one.error for one in answers.values() if one.error), "it gave no reason")
        raise BadInput(
            f"{judge.identity.portable.model} gave no score to any of {len(examples)} questions about summaries ({why}); ask a judge that answers in the form that is "
            f"asked for, such as one that follows instructions{', or this one on the narrower scale (--scale 1-5)' if labels == WIDE else ''}"
        )
    return found


def identity(judge: Judge, graded: Graded, labels: Labels) -> dict[str, Any]:
    """Identifies answers of this judge about these summaries."""
    return {
        "kind": "rehearsal-leniency",
        "summaries": {"products": len(graded.products), "sha256": graded.digest, "unrelated": UNRELATED},
        **who_judges(judge, labels),
    }


def _example(shown: Shown) -> SummaryExample:
    text, product = shown.summary.text, shown.reviews_of
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return SummaryExample(id=f"{product.id}/{digest}", reviewer_id=product.id, reviews=product.reviews, summary=text)
