"""Rows of choices between two texts: accuracy over all pairs and by aspect, with what was not answered a class of its own.

A pair that was not answered is wrong. Order gap and consistency are of a judge's distributions, so they stand in its
likeliest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.alignment import Items
from perse.evaluation.baselines.ratings import Baseline, joined, pairwise_baselines
from perse.evaluation.baselines.strengths import strength_baselines
from perse.evaluation.metrics import Chosen, computed, metrics_of
from perse.evaluation.predictions import only
from perse.evaluation.stats.accuracy import aspect_confusion, correct, likeliest_answers, likeliest_correct
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Row
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import Choice, PairwiseExample


@dataclass(frozen=True)
class Choices:
    """One row of a table of choices: right or wrong, (n,), and what was answered; None with a reason where there is none."""

    name: str
    judge: str | None
    hits: FloatArray | None
    answers: Sequence[str | None] = ()
    unavailable: str | None = None
    note: str | None = None


def true_choices(items: Items) -> list[str]:
    """The reviewers' true answers, n of them."""
    return [example.reference.preference for example in only(PairwiseExample, items.examples) if example.reference]


def choice_predictions(
    items: Items, *, seed: int, vectors: Vectors | None = None, on_progress: OnProgress = unseen
) -> list[Choices]:
    """Two rows of each judge, then the baselines, each fitted on the training side of its part."""
    gold = true_choices(items)
    rows = []
    for judge, judgements in items.judgements.items():
        likeliest, labels = likeliest_answers(judgements), [judgement.label for judgement in judgements]
        rows.append(Choices(f"{judge} (likeliest)", judge, likeliest_correct(gold, judgements), likeliest))
        rows.append(Choices(f"{judge} (label)", judge, correct(gold, labels), labels))
    return [*rows, *baseline_choices(items, seed=seed, vectors=vectors, on_progress=on_progress)]


def baseline_choices(
    items: Items, *, seed: int, vectors: Vectors | None = None, on_progress: OnProgress = unseen
) -> list[Choices]:
    """What needs no judge; the first is what judges are compared with.

    Args:
        vectors: embeddings of texts, for the one that reads them.
        on_progress: told how many models are fitted.
    """
    gold = true_choices(items)
    of_parts: list[Sequence[Baseline[Choice]]] = []
    for fold in items.folds:
        of_fold = only(PairwiseExample, fold.examples), only(PairwiseExample, fold.train)
        *informed, majority, drawn = pairwise_baselines(*of_fold, seed=seed)
        strengths = strength_baselines(*of_fold, vectors, seed=seed, on_progress=on_progress)
        of_parts.append([*informed, *strengths, majority, drawn])
    rows = []
    for one in joined(of_parts):
        hits = None if one.predictions is None else correct(gold, one.predictions)
        rows.append(Choices(one.name, None, hits, one.predictions or (), one.unavailable, one.note))
    return rows


def pairwise_rows(items: Items, predictions: Sequence[Choices], *, bootstrap: Bootstrap) -> list[Row]:
    """One row a prediction."""
    examples = only(PairwiseExample, items.examples)
    gold = true_choices(items)
    asked_aspect = [example.aspect for example in examples]
    masks = {aspect: np.array([one == aspect for one in asked_aspect], dtype=bool) for aspect in dict.fromkeys(asked_aspect)}
    summaries = items.summaries()
    rows = []
    for given in predictions:
        if given.hits is None:
            rows.append(Row(name=given.name, judge=None, unavailable=given.unavailable, asked=len(gold), ok=0))
            continue
        sample = Chosen(
            bootstrap=bootstrap,
            gold=gold,
            answers=given.answers,
            hits=given.hits,
            aspects=asked_aspect,
            judgements=items.judgements[given.judge] if given.judge and given.name.endswith("(likeliest)") else None,
        )
        columns = {metric.name: computed(metric, sample) for metric in metrics_of("choices")}
        rows.append(
            Row(
                name=given.name,
                judge=given.judge,
                asked=len(gold),
                ok=summaries[given.judge].ok if given.judge else len(gold),
                columns={name: estimate for name, estimate in columns.items() if estimate is not None},
                aspects={aspect: bootstrap.share(given.hits, mask) for aspect, mask in masks.items()},
                counts=aspect_confusion(gold, given.answers, aspects=asked_aspect),
            )
        )
    return rows
