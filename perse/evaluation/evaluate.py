"""How well judges predict readers: correlations or accuracy with intervals, beside baselines, on the same items.

Failures never vanish: pairs that were not answered are wrong; correlations are of the items that every judge answered, and
beside them stand those of all items, failures imputed by the training mean (DESIGN.md, promise 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import numpy as np

from perse.errors import BadInput
from perse.evaluation.agreement import correct
from perse.evaluation.alignment import Items, align
from perse.evaluation.baselines import NO_TRAINING_DATA, pairwise_baselines, pointwise_baselines, training_mean
from perse.evaluation.correlation import BoolArray, Convention, FloatArray
from perse.evaluation.estimates import Bootstrap
from perse.evaluation.intervals import Interval
from perse.evaluation.results import Estimate, Evaluation, JudgeSummary, Row
from perse.judgement import Judgement, Status
from perse.records import Example, PairwiseExample, PointwiseExample
from perse.scale import CHOICES, SCORES, Scale

__all__ = ["Estimate", "Evaluation", "Interval", "JudgeSummary", "Row", "evaluate", "evaluate_many"]


def evaluate(
    examples: Sequence[Example],
    judgements: Sequence[Judgement],
    *,
    train: Sequence[Example] | None,
    seed: int = 0,
    resamples: int = 1000,
    convention: Convention = Convention.SKIP_CONSTANT,
) -> Evaluation:
    """`evaluate_many` of one judge, which must have judged every example."""
    judges = {"judge": judgements}
    return evaluate_many(judges, examples, train=train, seed=seed, resamples=resamples, convention=convention)


def evaluate_many(
    judges: Mapping[str, Sequence[Judgement]],
    examples: Sequence[Example],
    *,
    train: Sequence[Example] | None,
    seed: int = 0,
    resamples: int = 1000,
    convention: Convention = Convention.SKIP_CONSTANT,
) -> Evaluation:
    """Judges by name, side by side with the baselines, on the items common to all.

    Args:
        judges: the judgements of each.
        examples: what was judged, all of one kind.
        train: what the baselines and the training mean are fitted on; None if it is not at hand.
        seed: of the resamples and of the random baseline.
        resamples: bootstrap resamples of the reviewers.
        convention: what reviewers without a coefficient do to the within-reviewer means.
    Raises:
        BadInput: see `align`; or an ok judgement whose label is not on the scale; or training examples of the other kind.
    """
    if resamples < 1:
        raise BadInput(f"{resamples} resamples; give at least 1")
    items = align(examples, judges)
    kind = type(items.examples[0])
    if any(type(example) is not kind for example in train or ()):
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
    notes = [*items.notes, *_seen_in_training(items, train)]
    mean: float | None = None
    if kind is PointwiseExample:
        known = [example for example in train or () if isinstance(example, PointwiseExample)]
        mean = training_mean(known)
        if not ok.all() and mean is None:
            notes.append(f"failures are not imputed: {NO_TRAINING_DATA}")
        rows = _pointwise_rows(items, known, ok=ok, mean=mean, bootstrap=bootstrap, convention=convention, seed=seed)
        notes += _without_distribution(items)
    else:
        pairs = [example for example in train or () if isinstance(example, PairwiseExample)]
        rows = _pairwise_rows(items, pairs, bootstrap=bootstrap, seed=seed)
    return Evaluation(
        kind="pointwise" if kind is PointwiseExample else "pairwise",
        examples=len(examples),
        without_reference=items.without_reference,
        items=len(items.examples),
        ok_items=int(ok.sum()),
        reviewers=bootstrap.counts.shape[1],
        judges=items.summaries(),
        rows=tuple(rows),
        training_mean=mean,
        convention=convention,
        resamples=resamples,
        seed=seed,
        notes=tuple(notes),
    )


def _pointwise_rows(
    items: Items,
    train: Sequence[PointwiseExample],
    *,
    ok: BoolArray,
    mean: float | None,
    bootstrap: Bootstrap,
    convention: Convention,
    seed: int,
) -> list[Row]:
    examples = items.pointwise()
    gold = np.array([example.reference.score for example in examples if example.reference], dtype=np.float64)
    summaries = items.summaries()

    def row(name: str, predicted: FloatArray, judge: str | None) -> Row:
        imputed = None
        if not ok.all() and mean is not None:
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
    for baseline in pointwise_baselines(examples, train, seed=seed):
        if baseline.predictions is None:
            rows.append(Row(name=baseline.name, judge=None, unavailable=baseline.unavailable, asked=len(gold), ok=0))
        else:
            rows.append(row(baseline.name, np.array(baseline.predictions, dtype=np.float64), None))
    return rows


def _pairwise_rows(items: Items, train: Sequence[PairwiseExample], *, bootstrap: Bootstrap, seed: int) -> list[Row]:
    examples = items.pairwise()
    gold = [example.reference.preference for example in examples if example.reference]
    everything = np.ones(len(gold), dtype=bool)
    asked_aspect = np.array([example.aspect for example in examples], dtype=object)
    aspects = list(dict.fromkeys(example.aspect for example in examples))
    summaries = items.summaries()

    def row(name: str, answers: Sequence[str | None], judge: str | None) -> Row:
        hits = correct(gold, answers)
        columns = {"accuracy": bootstrap.mean(hits, everything)}
        if judge:
            gaps = np.array([_order_gap(judgement) for judgement in items.judgements[judge]])
            columns["order_gap"] = bootstrap.mean(gaps, ~np.isnan(gaps))
        of_aspects = {aspect: bootstrap.mean(hits, asked_aspect == aspect) for aspect in aspects}
        ok = summaries[judge].ok if judge else len(gold)
        return Row(name=name, judge=judge, asked=len(gold), ok=ok, columns=columns, aspects=of_aspects)

    rows = [row(name, [judgement.label for judgement in judgements], name) for name, judgements in items.judgements.items()]
    for baseline in pairwise_baselines(examples, train, seed=seed):
        if baseline.predictions is None:
            rows.append(Row(name=baseline.name, judge=None, unavailable=baseline.unavailable, asked=len(gold), ok=0))
        else:
            rows.append(row(baseline.name, baseline.predictions, None))
    return rows


def _label(judgement: Judgement) -> float:
    """The label as a number; NaN if the judgement is not ok."""
    return float(judgement.label) if judgement.status is Status.OK and judgement.label else np.nan


def _expected(judgement: Judgement) -> float:
    """Sum of label times probability, or the label where there is no distribution; NaN if the judgement is not ok."""
    if judgement.status is not Status.OK or judgement.distribution is None:
        return _label(judgement)
    if judgement.expected is not None:
        return judgement.expected
    return fsum(float(label) * probability for label, probability in judgement.distribution.items())


def _order_gap(judgement: Judgement) -> float:
    ok = judgement.status is Status.OK and judgement.order_gap is not None
    return float(judgement.order_gap or 0) if ok else np.nan


def _check_labels(name: str, judgements: Sequence[Judgement], *, scale: Scale) -> None:
    for judgement in judgements:
        if judgement.status is Status.OK and judgement.label not in scale.labels:
            raise BadInput(
                f"judgement '{judgement.id}' of {name} is ok with label {judgement.label!r}, expected one of "
                f"{', '.join(scale.labels)}; was another question asked ('{judgement.question}')?"
            )


def _seen_in_training(items: Items, train: Sequence[Example] | None) -> list[str]:
    trained = {example.reviewer_id for example in train or ()}
    asked = {example.reviewer_id for example in items.examples}
    if not trained & asked:
        return []
    return [
        f"{len(trained & asked)} of {len(asked)} reviewers are also in the training data; this is no test on unseen readers"
    ]


def _without_distribution(items: Items) -> list[str]:
    notes = []
    for name, judgements in items.judgements.items():
        answered = [judgement for judgement in judgements if judgement.status is Status.OK]
        without = sum(judgement.distribution is None for judgement in answered)
        if without:
            notes.append(
                f"{name} (expected): {without} of {len(answered)} answers have no distribution, their label stands for it"
            )
    return notes
