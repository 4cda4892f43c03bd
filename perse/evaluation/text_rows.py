"""What the written reviews share with the readers' own, for tables: BLEU, ROUGE and, with a model at hand, two learned scores.

Over all items whose reader wrote a review. An item that was not answered is an empty text, as an answer that is missing is
wrong: a judge that answers only what is easy does not look better for it. Beside the judges stands a past review of the same
reader, drawn from the profile: what a reader always says is no credit to a judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Items
from perse.evaluation.baselines.ratings import past_review
from perse.evaluation.metrics import Written, computed, metrics_of, title_of
from perse.evaluation.predictions import only
from perse.evaluation.stats.correlation import BoolArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Row
from perse.judgement import Judgement, Status
from perse.questions import QUESTIONS
from perse.records import PointwiseExample
from perse.results.result import Estimate

PAST_REVIEW = "a past review"


@dataclass(frozen=True)
class Texts:
    """How written reviews are compared with the readers' own: not at all, by words, by models given as folders too."""

    compared: bool = True
    bertscore_model: Path | None = None
    bartscore_model: Path | None = None


def writes_reviews(judgements: Mapping[str, Sequence[Judgement]]) -> bool:
    """Whether any judge was asked for a review and wrote one; other questions write other things, or nothing."""
    return any(judgement.text and _asks_for_one(judgement) for given in judgements.values() for judgement in given)


def _asks_for_one(judgement: Judgement) -> bool:
    question = QUESTIONS.get(judgement.question)
    return question is None or question.writes_review


def text_rows(
    items: Items, rows: Sequence[Row], *, bootstrap: Bootstrap, texts: Texts, seed: int
) -> tuple[list[Row], dict[str, str], list[str]]:
    """The rows, `Row.text` of judges' label rows filled, and one more, of past reviews; columns skipped and why; notes."""
    if not isinstance(items.examples[0], PointwiseExample) or not writes_reviews(items.judgements):
        return [*rows], {}, []
    if not texts.compared:
        return [*rows], {}, ["the written reviews were not compared with the readers' own, as asked"]
    examples = only(PointwiseExample, items.examples)
    references = [example.written or "" for example in examples]
    chosen = np.array([bool(review.strip()) for review in references], dtype=bool)
    if not chosen.any():
        return [*rows], {}, ["the written reviews cannot be compared: no example tells what its reader wrote"]
    skipped: dict[str, str] = {}
    settings: dict[str, str] = {}

    def columns(hypotheses: Sequence[str]) -> dict[str, Estimate]:
        sample = Written(
            bootstrap=bootstrap.only(chosen),
            hypotheses=_those(hypotheses, chosen),
            references=_those(references, chosen),
            models={"bertscore": texts.bertscore_model, "bartscore": texts.bartscore_model},
            settings=settings,
        )
        found: dict[str, Estimate] = {}
        for metric in metrics_of("texts"):
            try:
                estimate = computed(metric, sample)
            except BadInput as missing:
                skipped[metric.name] = str(missing)
            else:
                found |= {metric.name: estimate} if estimate is not None else {}
        return found

    found = []
    unasked = [name for name, given in items.judgements.items() if not any(map(_asks_for_one, given))]
    for row in rows:
        if row.judge and row.name.endswith("(label)") and row.judge not in unasked:
            given = items.judgements[row.judge]
            row = row.model_copy(update={"text": columns([one.text if one.status is Status.OK else "" for one in given])})
        found.append(row)
    past = [past_review(example, seed=seed) for example in examples]
    notes = [f"no review was asked for of {', '.join(unasked)}"] if unasked else []
    wrote = sum(bool(review) for review, use in zip(past, chosen, strict=True) if use)
    if 0 < wrote < chosen.sum():
        notes.append(f"{PAST_REVIEW}: {wrote} of {chosen.sum()} profiles hold one; of the others it is an empty text")
    if any(past):
        found.append(Row(name=PAST_REVIEW, judge=None, asked=len(past), ok=len(past), text=columns(past)))
    else:
        notes.append("no past review stands beside the written ones: the profiles show none")
    notes += [f"{title_of(name)}: {setting}" for name, setting in settings.items()]
    return found, skipped, notes


def _those(given: Sequence[str], chosen: BoolArray) -> list[str]:
    return [text for text, use in zip(given, chosen, strict=True) if use]
