"""How well judges predict readers: correlations or accuracy with intervals, beside baselines, on the same items.

Failures never vanish: pairs that were not answered are wrong; correlations are of the items that every judge answered, and
beside them stand those of all items, failures imputed by the training mean (DESIGN.md, promise 3).

A judge has two rows: what its exact distribution says (expected score, likeliest choice), and the label that it gave, at a
temperature above 0 one random draw. The folds of a small data set are evaluated together, so that there are reviewers enough
for an interval; baselines and training means are each fold's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TypeVar

import numpy as np

from perse.errors import BadInput
from perse.evaluation.agreement import correct, likeliest_correct
from perse.evaluation.alignment import Items, Part, align
from perse.evaluation.baselines import NO_TRAINING_DATA, joined, pairwise_baselines, pointwise_baselines, training_mean
from perse.evaluation.correlation import BoolArray, Convention, FloatArray
from perse.evaluation.estimates import Bootstrap
from perse.evaluation.intervals import Interval
from perse.evaluation.results import Estimate, Evaluation, JudgeSummary, Row
from perse.judgement import Judgement, Status
from perse.records import Example, PairwiseExample, PointwiseExample
from perse.scale import CHOICES, SCORES, Scale

__all__ = ["Estimate", "Evaluation", "Interval", "JudgeSummary", "Part", "Row", "evaluate", "evaluate_many"]

Kind = TypeVar("Kind", PointwiseExample, PairwiseExample)


def evaluate(
    examples: Sequence[Example],
    judgements: Sequence[Judgement],
    *,
    train: Sequence[Example] | None,
    seed: int = 0,
    resamples: int = 1000,
    convention: Convention = Convention.SKIP_CONSTANT,
) -> Evaluation:
    """`evaluate_many` of one judge on one part; the judge must have judged every example."""
    judges, parts = {"judge": judgements}, [Part(examples, train)]
    return evaluate_many(judges, parts, seed=seed, resamples=resamples, convention=convention)


def evaluate_many(
    judges: Mapping[str, Sequence[Judgement]],
    parts: Sequence[Part],
    *,
    seed: int = 0,
    resamples: int = 1000,
    convention: Convention = Convention.SKIP_CONSTANT,
) -> Evaluation:
    """Judges by name, side by side with the baselines, on the items common to all.

    Args:
        judges: the judgements of each, over all parts.
        parts: what was judged, all of one kind, with the training side; one part, or the folds of a data set. Baselines are
            fitted and failures imputed part by part, everything else is of all items together.
        seed: of the resamples and of the random baseline.
        resamples: bootstrap resamples of the reviewers.
        convention: what reviewers without a coefficient do to the within-reviewer means.
    Raises:
        BadInput: see `align`; or an ok judgement whose label is not on the scale; or training examples of the other kind.
    """
    if resamples < 1:
        raise BadInput(f"{resamples} resamples; give at least 1")
    items = align(parts, judges)
    kind = type(items.examples[0])
    if any(type(example) is not kind for part in items.parts for example in part.train or ()):
        raise BadInput(
            "training and evaluated examples differ in kind (pointwise, pairwise); give the training split of the same data"
        )
    scale = SCORES if kind is PointwiseExample else CHOICES
    for name, judgements in items.judgements.items():
        _check_labels(name, judgements, scale=scale)

    bootstrap = Bootstrap.over(items.reviewer(), resamples=resamples, seed=seed)
    answered = (
        all(judgement.status is Status.OK for judgement in same) for same in zip(*items.judgements.values(), strict=True)
    )
    ok = np.array(list(answered), dtype=bool)
    notes = [*items.notes, *_cross_fitted(items), *_seen_in_training(items)]
    means: tuple[float | None, ...] = ()
    if kind is PointwiseExample:
        means = tuple(training_mean(_only(PointwiseExample, part.train)) for part in items.parts)
        mean = _of_items(items, means)
        if np.isnan(mean[~ok]).any():
            notes.append(f"failures are not imputed: {NO_TRAINING_DATA}")
        rows = _pointwise_rows(items, ok=ok, mean=mean, bootstrap=bootstrap, convention=convention, seed=seed)
        notes += _without_distribution(items, "expected")
    else:
        rows = _pairwise_rows(items, bootstrap=bootstrap, seed=seed)
        notes += _without_distribution(items, "likeliest")
    return Evaluation(
        kind="pointwise" if kind is PointwiseExample else "pairwise",
        examples=sum(len(part.examples) for part in parts),
        without_reference=items.without_reference,
        items=len(items.examples),
        ok_items=int(ok.sum()),
        reviewers=bootstrap.counts.shape[1],
        judges=items.summaries(),
        rows=tuple(rows),
        training_means=means,
        convention=convention,
        resamples=resamples,
        seed=seed,
        notes=tuple(notes),
    )


def _pointwise_rows(
    items: Items,
    *,
    ok: BoolArray,
    mean: FloatArray,
    bootstrap: Bootstrap,
    convention: Convention,
    seed: int,
) -> list[Row]:
    """`mean` (n,): the training mean of each item's part, NaN where there is none."""
    examples = _only(PointwiseExample, items.examples)
    gold = np.array([example.reference.score for example in examples if example.reference], dtype=np.float64)
    imputable = not ok.all() and not np.isnan(mean[~ok]).any()
    summaries = items.summaries()

    def row(name: str, predicted: FloatArray, judge: str | None) -> Row:
        imputed = None
        if imputable:
            filled = np.where(np.isnan(predicted), mean, predicted)
            imputed = bootstrap.correlations(gold, filled, convention=convention)
        return Row(
            name=name,
            judge=judge,
            asked=len(gold),
            ok=summaries[judge].ok if judge else len(gold),
            columns=bootstrap.correlations(gold, np.where(ok, predicted, np.nan), convention=convention),
            imputed=imputed,
        )

    rows = []
    for judge, judgements in items.judgements.items():
        rows.append(row(f"{judge} (expected)", np.array([_expected(judgement) for judgement in judgements]), judge))
        rows.append(row(f"{judge} (label)", np.array([_label(judgement) for judgement in judgements]), judge))
    of_parts = [
        pointwise_baselines(_only(PointwiseExample, part.examples), _only(PointwiseExample, part.train), seed=seed)
        for part in items.parts
    ]
    for baseline in joined(of_parts):
        if baseline.predictions is None:
            rows.append(Row(name=baseline.name, judge=None, unavailable=baseline.unavailable, asked=len(gold), ok=0))
        else:
            rows.append(row(baseline.name, np.array(baseline.predictions, dtype=np.float64), None))
    return rows


def _pairwise_rows(items: Items, *, bootstrap: Bootstrap, seed: int) -> list[Row]:
    examples = _only(PairwiseExample, items.examples)
    gold = [example.reference.preference for example in examples if example.reference]
    everything = np.ones(len(gold), dtype=bool)
    asked_aspect = np.array([example.aspect for example in examples], dtype=object)
    aspects = list(dict.fromkeys(example.aspect for example in examples))
    summaries = items.summaries()

    def row(name: str, hits: FloatArray, judge: str | None, *, gaps: FloatArray | None = None) -> Row:
        columns = {"accuracy": bootstrap.mean(hits, everything)}
        if gaps is not None:
            columns["order_gap"] = bootstrap.mean(gaps, ~np.isnan(gaps))
        of_aspects = {aspect: bootstrap.mean(hits, asked_aspect == aspect) for aspect in aspects}
        ok = summaries[judge].ok if judge else len(gold)
        return Row(name=name, judge=judge, asked=len(gold), ok=ok, columns=columns, aspects=of_aspects)

    rows = []
    for judge, judgements in items.judgements.items():
        gaps = np.array([_order_gap(judgement) for judgement in judgements])
        rows.append(row(f"{judge} (likeliest)", likeliest_correct(gold, judgements), judge, gaps=gaps))
        rows.append(row(f"{judge} (label)", correct(gold, [judgement.label for judgement in judgements]), judge))
    of_parts = [
        pairwise_baselines(_only(PairwiseExample, part.examples), _only(PairwiseExample, part.train), seed=seed)
        for part in items.parts
    ]
    for baseline in joined(of_parts):
        if baseline.predictions is None:
            rows.append(Row(name=baseline.name, judge=None, unavailable=baseline.unavailable, asked=len(gold), ok=0))
        else:
            rows.append(row(baseline.name, correct(gold, baseline.predictions), None))
    return rows


def _only(kind: type[Kind], examples: Iterable[Example] | None) -> list[Kind]:
    """`examples` as the one kind that they all are."""
    return [example for example in examples or () if isinstance(example, kind)]


def _of_items(items: Items, of_parts: Sequence[float | None]) -> FloatArray:
    """Each item's value of its part, (n,); NaN for None."""
    values = np.array([np.nan if value is None else value for value in of_parts], dtype=np.float64)
    return np.repeat(values, [len(part.examples) for part in items.parts])


def _label(judgement: Judgement) -> float:
    """The label as a number; NaN if the judgement is not ok."""
    return float(judgement.label) if judgement.status is Status.OK and judgement.label else np.nan


def _expected(judgement: Judgement) -> float:
    """Sum of label times probability, or the label where there is no distribution; NaN if the judgement is not ok."""
    if judgement.status is not Status.OK or not judgement.distribution:
        return _label(judgement)
    if judgement.expected is not None:
        return judgement.expected
    return fsum(float(label) * probability for label, probability in judgement.distribution.items())


def _order_gap(judgement: Judgement) -> float:
    ok = judgement.status is Status.OK and judgement.order_gap is not None
    return float(judgement.order_gap or 0) if ok else np.nan


def _check_labels(name: str, judgements: Sequence[Judgement], *, scale: Scale) -> None:
    for judgement in judgements:
        strangers = [label for label in (judgement.label, *(judgement.distribution or ())) if label not in scale.labels]
        if judgement.status is Status.OK and strangers:
            raise BadInput(
                f"judgement '{judgement.id}' of {name} is ok with label {strangers[0]!r}, expected one of "
                f"{', '.join(scale.labels)}; was another question asked ('{judgement.question}')?"
            )


def _cross_fitted(items: Items) -> list[str]:
    if len(items.parts) == 1:
        return []
    return [f"cross-fitted over {len(items.parts)} folds: baselines and training means are those of each fold's training side"]


def _seen_in_training(items: Items) -> list[str]:
    """A reviewer may be in the training side of another fold, not in that of their own."""
    asked = {example.reviewer_id for example in items.examples}
    seen: set[str | None] = set()
    for part in items.parts:
        trained = {example.reviewer_id for example in part.train or ()}
        seen |= trained & {example.reviewer_id for example in part.examples}
    if not seen:
        return []
    return [f"{len(seen)} of {len(asked)} reviewers are also in the training data; this is no test on unseen readers"]


def _without_distribution(items: Items, row: str) -> list[str]:
    """`row` is what the name of the judge's row says that stands on distributions."""
    notes = []
    for name, judgements in items.judgements.items():
        answered = [judgement for judgement in judgements if judgement.status is Status.OK]
        without = sum(not judgement.distribution for judgement in answered)
        if without:
            notes.append(
                f"{name} ({row}): {without} of {len(answered)} answers have no distribution, their label stands for it"
            )
    return notes
