"""Predictions of judges and baselines for each item, as arrays.

A judge has two rows: what its exact distribution says (the expected score), and the label that it gave, at a temperature
above 0 one random draw. Where an engine gives no distribution, the label stands for it. Where a stacking (`perse.stacking`) was applied, a
third row is what it told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeVar

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Fold, Items
from perse.evaluation.baselines.content import content_baselines
from perse.evaluation.baselines.factors import ANY, Factorization
from perse.evaluation.baselines.ratings import (
    Baseline,
    joined,
    mean_truth,
    pointwise_baselines,
    score_baselines,
    training_mean,
)
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.ordinal import label_distributions
from perse.judgement import Judgement, Status
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.questions import QUESTIONS, why_no_truth
from perse.records import Example, PointwiseExample
from perse.scale import Scale

Kind = TypeVar("Kind", bound=Example)


@dataclass(frozen=True)
class Prediction:
    """One row of a table of scores: `values` (n,), NaN where not answered; None with a reason where there are none."""

    name: str
    judge: str | None
    values: FloatArray | None
    distributions: FloatArray | None = None
    """(n, L); None: sure of the label nearest to the value."""
    unavailable: str | None = None
    note: str | None = None


def only(kind: type[Kind], examples: Iterable[Example] | None) -> list[Kind]:
    """`examples`, checked to be of one kind."""
    return [example for example in examples or () if isinstance(example, kind)]


def gold_scores(items: Items) -> FloatArray:
    """The reviewers' true scores, (n,)."""
    given = (example.truth for example in items.examples)
    return np.array([score if isinstance(score, int | float) else np.nan for score in given], dtype=np.float64)


def label_values(judgements: Sequence[Judgement]) -> FloatArray:
    """The labels as numbers, (n,); NaN where a judgement is not ok."""
    return np.array([_label(judgement) for judgement in judgements], dtype=np.float64)


def expected_values(judgements: Sequence[Judgement]) -> FloatArray:
    """Sums of label times probability, or the label where there is no distribution, (n,); NaN where a judgement is not ok."""
    return np.array([expected_value(judgement) for judgement in judgements], dtype=np.float64)


def expected_value(judgement: Judgement) -> float:
    """The sum of label times probability, or the label where there is no distribution; NaN where a judgement is not ok."""
    if judgement.status is not Status.OK or not judgement.distribution:
        return _label(judgement)
    if judgement.expected is not None:
        return judgement.expected
    return fsum(float(label) * probability for label, probability in judgement.distribution.items())


def answer_scale(items: Items) -> Scale:
    """The scale of the answers: that of the true answers, or of the question that was asked, if they are on it.

    Raises:
        BadInput: a question was asked whose answers are on another scale than the true ones; or examples whose true answers are on
            the scale of a question were asked several, or another kind's.
    """
    kind = type(items.examples[0])
    asked = sorted({judgement.question for given in items.judgements.values() for judgement in given})
    for name in asked:
        if why := why_no_truth(name, kind):
            raise BadInput(why)
    if kind.scale is not None:
        return kind.scale
    if len(asked) > 1:
        raise BadInput(f"the judges were asked different questions ({', '.join(asked)}); give the runs of each apart")
    known = {name: question for name, question in QUESTIONS.items() if question.example_type is kind}
    if asked[0] not in known:
        raise BadInput(f"{kind.plural} were asked '{asked[0]}', which is no question about them; these are: {', '.join(known)}")
    return known[asked[0]].scale


def score_predictions(
    items: Items,
    *,
    scale: Scale,
    seed: int,
    factorization: Factorization = ANY,
    vectors: Vectors | None = None,
    on_progress: OnProgress = unseen,
) -> list[Prediction]:
    """Two rows of each judge, a third where a stacking told something, then the baselines, each fitted on the training side of its part."""
    rows = []
    for judge, judgements in items.judgements.items():
        distributions = label_distributions(judgements, scale=scale)
        rows.append(Prediction(f"{judge} (expected)", judge, expected_values(judgements), distributions))
        rows.append(Prediction(f"{judge} (label)", judge, label_values(judgements)))
        if any(judgement.stacked for judgement in judgements):
            rows.append(_stacked(judge, judgements, scale=scale))
    return [
        *rows,
        *baseline_predictions(
            items, scale=scale, seed=seed, factorization=factorization, vectors=vectors, on_progress=on_progress
        ),
    ]


def _stacked(judge: str, judgements: Sequence[Judgement], *, scale: Scale) -> Prediction:
    told = [judgement.stacked for judgement in judgements]
    values = np.array([np.nan if one is None else one.expected for one in told])
    rows = [[np.nan if one is None else one.distribution.get(label, 0.0) for label in scale.labels] for one in told]
    return Prediction(f"{judge} (stacked)", judge, values, np.array(rows))


def baseline_predictions(
    items: Items,
    *,
    scale: Scale,
    seed: int,
    factorization: Factorization = ANY,
    vectors: Vectors | None = None,
    on_progress: OnProgress = unseen,
) -> list[Prediction]:
    """The baselines; judges are compared with the first. `vectors` are the embeddings of texts, for those that read them."""
    rows = []
    given = (
        _baselines(fold, scale=scale, seed=seed, factorization=factorization, vectors=vectors, on_progress=on_progress)
        for fold in items.folds
    )
    for baseline in joined([*given]):
        said = baseline.predictions
        values = None if said is None else np.array(said, dtype=np.float64)
        spread = None if baseline.distributions is None else np.array(baseline.distributions, dtype=np.float64)
        rows.append(Prediction(baseline.name, None, values, spread, baseline.unavailable, baseline.note))
    return rows


def training_means(items: Items) -> tuple[float | None, ...]:
    """The mean training score of each part; None where there is none."""
    return tuple(_training_mean(fold.train) for fold in items.folds)


def of_items(items: Items, of_parts: Sequence[float | None]) -> FloatArray:
    """Each item's value of its part, (n,); NaN for None."""
    values = np.array([np.nan if value is None else value for value in of_parts], dtype=np.float64)
    return np.repeat(values, [len(fold.examples) for fold in items.folds])


def check_labels(judgements: Mapping[str, Sequence[Judgement]], *, scale: Scale) -> None:
    """Raises:
    BadInput: an ok judgement with a label, or a probability of one, that is not on the scale.
    """
    for name, given in judgements.items():
        for judgement in given:
            strangers = [label for label in (judgement.label, *(judgement.distribution or ())) if label not in scale.labels]
            if judgement.status is Status.OK and strangers:
                raise BadInput(
                    f"judgement '{judgement.id}' of {name} is ok with label {strangers[0]!r}, expected one of "
                    f"{', '.join(scale.labels)}; was another question asked ('{judgement.question}')?"
                )


def _baselines(
    fold: Fold,
    *,
    scale: Scale,
    seed: int,
    factorization: Factorization,
    vectors: Vectors | None,
    on_progress: OnProgress,
) -> Sequence[Baseline[float]]:
    if isinstance(fold.examples[0], PointwiseExample):
        of_scores = only(PointwiseExample, fold.examples), only(PointwiseExample, fold.train)
        found = pointwise_baselines(*of_scores, seed=seed, factorization=factorization)
        constants = next(at for at, one in enumerate(found) if one.name == "training mean")
        return (
            *found[:constants],
            *content_baselines(*of_scores, vectors, seed=seed, on_progress=on_progress),
            *found[constants:],
        )
    return score_baselines(fold.examples, fold.train, scale=scale, seed=seed)


def _training_mean(train: Sequence[Example] | None) -> float | None:
    reviewed = only(PointwiseExample, train)
    return training_mean(reviewed) if reviewed else mean_truth(train)


def _label(judgement: Judgement) -> float:
    return float(judgement.label) if judgement.status is Status.OK and judgement.label else np.nan
