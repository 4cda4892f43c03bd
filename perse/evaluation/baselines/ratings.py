"""Baselines: predictions that read no text, fitted on training data only.

`random` and the ties of `copy the example` draw from (seed, example id), so an example's prediction depends neither on the
order of the examples nor on which others there are.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Generic, TypeVar, cast

from perse.evaluation.baselines.bias import fit_bias_model, training_reviews
from perse.evaluation.baselines.factors import fit_factor_model
from perse.records import Choice, Example, PairwiseExample, PointwiseExample
from perse.scale import CHOICES, SCORES, Scale

NO_TRAINING_DATA = "no training data at hand"

Prediction = TypeVar("Prediction", float, Choice)


@dataclass(frozen=True)
class Baseline(Generic[Prediction]):
    """One prediction per example, in order; or why the baseline is unavailable."""

    name: str
    predictions: tuple[Prediction, ...] | None = None
    unavailable: str | None = None


def training_mean(train: Sequence[PointwiseExample] | None) -> float | None:
    """Mean score of the training reviews, each once; None without any."""
    reviews = training_reviews(train or ())
    return fsum(review.score for review in reviews) / len(reviews) if reviews else None


def pointwise_baselines(
    examples: Sequence[PointwiseExample], train: Sequence[PointwiseExample] | None, *, seed: int = 0
) -> tuple[Baseline[float], ...]:
    """Baselines for scores.

    `profile average` (an empty profile: the training mean); `user+item bias` and `matrix factorization`, the reader known by
    their profile (see `bias` and `factors`); `majority`: the commonest training score, of several the least; `random`: 1-10,
    uniform.
    """
    reviews = training_reviews(train or ())
    mean = fsum(review.score for review in reviews) / len(reviews) if reviews else None
    without_profile = sum(not example.profile for example in examples)
    average: Baseline[float]
    if mean is None and without_profile:
        reason = f"{NO_TRAINING_DATA} for the {without_profile} examples with an empty profile"
        average = Baseline("profile average", unavailable=reason)
    else:
        average = Baseline("profile average", tuple(_profile_average(example, otherwise=mean) for example in examples))

    bias = Baseline[float]("user+item bias", unavailable=NO_TRAINING_DATA)
    factors = Baseline[float]("matrix factorization", unavailable=NO_TRAINING_DATA)
    majority = Baseline[float]("majority", unavailable=NO_TRAINING_DATA)
    if train and mean is not None:
        biases = fit_bias_model(train, reviews=reviews)
        bias = Baseline(bias.name, tuple(biases.predict(examples).tolist()))
        predicted = fit_factor_model(train, seed=seed, biases=biases, reviews=reviews).predict(examples)
        factors = Baseline(factors.name, tuple(predicted.tolist()))
        counts = Counter(review.score for review in reviews)
        commonest = min(counts, key=lambda score: (-counts[score], score))
        majority = Baseline(majority.name, (float(commonest),) * len(examples))
    return average, bias, factors, majority, _random_label([example.id for example in examples], scale=SCORES, seed=seed)


def mean_truth(train: Sequence[Example] | None) -> float | None:
    """Mean of the true scores of the training examples; None without any."""
    known = [example.truth for example in train or () if isinstance(example.truth, int | float)]
    return fsum(known) / len(known) if known else None


def score_baselines(
    examples: Sequence[Example], train: Sequence[Example] | None, *, scale: Scale, seed: int = 0
) -> tuple[Baseline[float], ...]:
    """Of examples whose profile holds no scores: `training mean` (of the true ones) and `random` (a label of `scale`, uniform)."""
    mean = Baseline[float]("training mean", unavailable=NO_TRAINING_DATA)
    if (known := mean_truth(train)) is not None:
        mean = Baseline(mean.name, (known,) * len(examples))
    return mean, _random_label([example.id for example in examples], scale=scale, seed=seed)


def past_review(example: PointwiseExample, *, seed: int = 0) -> str:
    """A review that the reader wrote of another text, drawn from those shown: how far their own words go. Empty without any."""
    written = [past.review for past in example.profile if past.review]
    return written[_draw(example.id, seed, sides=len(written))] if written else ""


def pairwise_baselines(
    examples: Sequence[PairwiseExample], train: Sequence[PairwiseExample] | None, *, seed: int = 0
) -> tuple[Baseline[Choice], ...]:
    """`copy the example`, `majority` (of the training references, per aspect) and `random`."""
    copy = Baseline[Choice]("copy the example", unavailable="no example has a profile to copy from")
    if any(example.profile for example in examples):
        copy = Baseline("copy the example", tuple(_copy(example, seed=seed) for example in examples))
    drawn: tuple[Choice, ...] = tuple(_coin(example.id, seed) for example in examples)
    majority = Baseline[Choice]("majority", unavailable=NO_TRAINING_DATA)
    known = [(example.aspect, example.reference.preference) for example in train or () if example.reference]
    if known:
        majority = Baseline[Choice]("majority", tuple(map(_fit_majority(known), examples)))
    return copy, majority, Baseline[Choice]("random", drawn)


def joined(of_parts: Sequence[Sequence[Baseline[Prediction]]]) -> list[Baseline[Prediction]]:
    """The same baselines of several parts, predictions concatenated.

    A baseline that is unavailable in one part is unavailable in all: every row of a table covers the same items.
    """
    return [_join(same) for same in zip(*of_parts, strict=True)]


def _join(same: Sequence[Baseline[Prediction]]) -> Baseline[Prediction]:
    name = same[0].name
    reasons = [baseline.unavailable or "" for baseline in same if baseline.predictions is None]
    if reasons:
        where = f"in {len(reasons)} of {len(same)} folds: " if len(same) > 1 else ""
        return Baseline(name, unavailable=where + "; ".join(dict.fromkeys(reasons)))
    return Baseline(name, tuple(prediction for baseline in same for prediction in baseline.predictions or ()))


def _random_label(ids: Sequence[str], *, scale: Scale, seed: int) -> Baseline[float]:
    labels = scale.values or ()
    return Baseline("random", tuple(labels[_draw(id_, seed, sides=len(labels))] for id_ in ids))


def _profile_average(example: PointwiseExample, *, otherwise: float | None) -> float:
    if example.profile:
        return fsum(past.score for past in example.profile) / len(example.profile)
    if otherwise is None:
        raise ValueError(f"example '{example.id}' has an empty profile and there is no training mean")
    return otherwise


def _copy(example: PairwiseExample, *, seed: int) -> Choice:
    """The profile's answer on the same aspect, else on all its aspects; a coin flip on a tie or without any."""
    same_aspect = [past.preference[example.aspect] for past in example.profile if example.aspect in past.preference]
    all_aspects = [answer for past in example.profile for answer in past.preference.values()]
    return _most(same_aspect) or _most(all_aspects) or _coin(example.id, seed)


def _fit_majority(known: Sequence[tuple[str, Choice]]) -> Callable[[PairwiseExample], Choice]:
    """The most frequent answer of an aspect; of an unknown or tied aspect, that of all; "A" if these tie too."""
    answers: defaultdict[str, list[Choice]] = defaultdict(list)
    for aspect, answer in known:
        answers[aspect].append(answer)
    overall = _most([answer for _, answer in known]) or "A"
    of_aspect = {aspect: _most(given) or overall for aspect, given in answers.items()}
    return lambda example: of_aspect.get(example.aspect, overall)


def _most(answers: Iterable[Choice]) -> Choice | None:
    """The more frequent answer; None for a tie or no answers."""
    count = Counter(answers)
    if count["A"] == count["B"]:
        return None
    return "A" if count["A"] > count["B"] else "B"


def _coin(example_id: str, seed: int) -> Choice:
    labels = CHOICES.labels
    return cast(Choice, labels[_draw(example_id, seed, sides=len(labels))])


def _draw(example_id: str, seed: int, *, sides: int) -> int:
    """0 to `sides` - 1, a function of id and seed on every machine (Python's own `hash` differs between processes)."""
    digest = hashlib.sha256(f"{seed}\0{example_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % sides
