"""Rows of choices between two texts: accuracy over all pairs and by aspect, with what was not answered a class of its own.

A pair that was not answered is wrong. Order gap and consistency are of a judge's distributions, so they stand in its
likeliest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.alignment import Items
from perse.evaluation.baselines.ratings import joined, pairwise_baselines
from perse.evaluation.predictions import only
from perse.evaluation.stats.accuracy import aspect_confusion, correct, likeliest_answers, likeliest_correct, order_consistency
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Row
from perse.judgement import Judgement, Status
from perse.records import PairwiseExample
from perse.results.result import Estimate, Interval

NO_DISTRIBUTIONS = "undefined (no answer has probabilities of both orders)"


@dataclass(frozen=True)
class Choices:
    """One row of a table of choices: right or wrong, (n,), and what was answered; None with a reason where there is none."""

    name: str
    judge: str | None
    hits: FloatArray | None
    answers: Sequence[str | None] = ()
    unavailable: str | None = None


def true_choices(items: Items) -> list[str]:
    """The reviewers' true answers, n of them."""
    return [example.reference.preference for example in only(PairwiseExample, items.examples) if example.reference]


def choice_predictions(items: Items, *, seed: int) -> list[Choices]:
    """Two rows of each judge, then the baselines, each fitted on the training side of its part."""
    gold = true_choices(items)
    rows = []
    for judge, judgements in items.judgements.items():
        likeliest, labels = likeliest_answers(judgements), [judgement.label for judgement in judgements]
        rows.append(Choices(f"{judge} (likeliest)", judge, likeliest_correct(gold, judgements), likeliest))
        rows.append(Choices(f"{judge} (label)", judge, correct(gold, labels), labels))
    return [*rows, *baseline_choices(items, seed=seed)]


def baseline_choices(items: Items, *, seed: int) -> list[Choices]:
    """What needs no judge; the first is what judges are compared with."""
    gold = true_choices(items)
    of_parts = [
        pairwise_baselines(only(PairwiseExample, part.examples), only(PairwiseExample, part.train), seed=seed)
        for part in items.parts
    ]
    rows = []
    for baseline in joined(of_parts):
        given = baseline.predictions
        hits = None if given is None else correct(gold, given)
        rows.append(Choices(baseline.name, None, hits, given or (), baseline.unavailable))
    return rows


def pairwise_rows(items: Items, predictions: Sequence[Choices], *, bootstrap: Bootstrap) -> list[Row]:
    """One row a prediction."""
    examples = only(PairwiseExample, items.examples)
    gold = true_choices(items)
    asked_aspect = [example.aspect for example in examples]
    masks = {aspect: np.array([one == aspect for one in asked_aspect], dtype=bool) for aspect in dict.fromkeys(asked_aspect)}
    everything = np.ones(len(gold), dtype=bool)
    summaries = items.summaries()
    rows = []
    for given in predictions:
        if given.hits is None:
            rows.append(Row(name=given.name, judge=None, unavailable=given.unavailable, asked=len(gold), ok=0))
            continue
        columns = {"accuracy": bootstrap.mean(given.hits, everything)}
        if given.judge and given.name.endswith("(likeliest)"):
            columns |= _both_orders(items.judgements[given.judge], bootstrap=bootstrap)
        rows.append(
            Row(
                name=given.name,
                judge=given.judge,
                asked=len(gold),
                ok=summaries[given.judge].ok if given.judge else len(gold),
                columns=columns,
                aspects={aspect: bootstrap.mean(given.hits, mask) for aspect, mask in masks.items()},
                counts=aspect_confusion(gold, given.answers, aspects=asked_aspect),
            )
        )
    return rows


def _both_orders(judgements: Sequence[Judgement], *, bootstrap: Bootstrap) -> dict[str, Estimate]:
    gaps = np.array([_order_gap(judgement) for judgement in judgements], dtype=np.float64)
    same = order_consistency(judgements)
    return {"order_gap": _mean(gaps, bootstrap=bootstrap), "order_consistency": _mean(same, bootstrap=bootstrap)}


def _mean(values: FloatArray, *, bootstrap: Bootstrap) -> Estimate:
    """Of the values that are not NaN."""
    known = ~np.isnan(values)
    if not known.any():
        return Estimate(value=None, interval=Interval(reason=NO_DISTRIBUTIONS), items=0)
    return bootstrap.mean(values, known)


def _order_gap(judgement: Judgement) -> float:
    ok = judgement.status is Status.OK and judgement.order_gap is not None
    return float(judgement.order_gap or 0) if ok else np.nan
