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
from statistics import median_low
from typing import Generic, TypeVar, cast

from perse.evaluation.baselines.bias import fit_bias_model, training_reviews
from perse.evaluation.baselines.factors import ANY, Factorization, fit_factor_model
from perse.evaluation.stats.correlation import FloatArray
from perse.records import Choice, Example, PairwiseExample, PointwiseExample
from perse.scale import CHOICES, SCORES, Scale

NO_TRAINING_DATA = "no training data at hand"
NO_TEXT_KNOWN = "none of these texts is in the training data"
NO_PAIR_KNOWN = "no other training reader was asked about any of these pairs, or they are even"
FACTORIZATIONS = {
    "matrix factorization": "knows what training readers gave each text on average, as user+item bias does",
    "plain matrix factorization": "without such means",
}
"""Name -> what it knows of texts; the first with biases."""
KNOWS_READERS = "knows of readers what their profiles show, and of these texts nothing, for none is in the training data"
UNPERSONALIZED = "unpersonalized"
"""What other readers said of the same text: what a judge that knows texts, but no reader, could say."""

Prediction = TypeVar("Prediction", float, Choice)


@dataclass(frozen=True)
class Baseline(Generic[Prediction]):
    """One prediction per example, in order; or why the baseline is unavailable."""

    name: str
    predictions: tuple[Prediction, ...] | None = None
    unavailable: str | None = None
    note: str | None = None
    """What must be known of it beside its numbers."""
    distributions: tuple[tuple[float, ...], ...] | None = None
    """Of scores, the probability of every label, one row per example; None: sure of the label nearest to the prediction."""


def training_mean(train: Sequence[PointwiseExample] | None) -> float | None:
    """Mean score of the training reviews, each once; None without any."""
    reviews = training_reviews(train or ())
    return fsum(review.score for review in reviews) / len(reviews) if reviews else None


def pointwise_baselines(
    examples: Sequence[PointwiseExample],
    train: Sequence[PointwiseExample] | None,
    *,
    seed: int = 0,
    factorization: Factorization = ANY,
) -> tuple[Baseline[float], ...]:
    """Baselines for scores.

    `profile average` (an empty profile: the training mean); `user+item bias`, `matrix factorization` and the plain one, the reader
    known by their profile (see `bias` and `factors`, which `factorization` sets); `unpersonalized`: the item's part of user+item bias, of the texts that training knows;
    `training mean` with the histogram of training scores, `training median` and `majority`, the commonest (of several the least);
    `random`: 1-10, uniform.
    """
    reviews = training_reviews(train or ())
    scores = [review.score for review in reviews]
    mean = fsum(scores) / len(scores) if scores else None
    without_profile = sum(not example.profile for example in examples)
    average: Baseline[float]
    if mean is None and without_profile:
        reason = f"{NO_TRAINING_DATA} for the {without_profile} examples with an empty profile"
        average = Baseline("profile average", unavailable=reason)
    else:
        bare = f"profile average: the training mean in {without_profile} of {len(examples)} examples, whose profile is empty"
        average = Baseline(
            "profile average",
            tuple(_profile_average(example, otherwise=mean) for example in examples),
            note=bare if without_profile else None,
        )

    bias = Baseline[float]("user+item bias", unavailable=NO_TRAINING_DATA)
    factors = [Baseline[float](name, unavailable=NO_TRAINING_DATA) for name in FACTORIZATIONS]
    of_text = Baseline[float](UNPERSONALIZED, unavailable=NO_TRAINING_DATA)
    if train and scores:
        biases = fit_bias_model(train, reviews=reviews)
        given = biases.predict(examples)
        known = sum(example.item_id in biases.row_of for example in examples)
        some = "" if known == len(examples) else f", in {known} of {len(examples)} examples"
        bias = Baseline(bias.name, tuple(given.tolist()), distributions=_rows(biases.distributions(given)))
        for at, (name, knows) in enumerate(FACTORIZATIONS.items()):
            model = fit_factor_model(train, settings=factorization, plain=at == 1, seed=seed, biases=biases, reviews=reviews)
            note = f"{name} (factors: {model.factors}, penalty {model.factor_penalty:g}): {knows + some if known else KNOWS_READERS}"
            factors[at] = Baseline(name, tuple(model.predict(examples).tolist()), note=note)
        alone = biases.predict([example.model_copy(update={"profile": ()}) for example in examples])
        of_text = Baseline(of_text.name, tuple(alone.tolist())) if known else Baseline(of_text.name, unavailable=NO_TEXT_KNOWN)
    drawn = _random_label([example.id for example in examples], scale=SCORES, seed=seed)
    return average, bias, *factors, of_text, *_constants(scores, len(examples), scale=SCORES), drawn


def _constants(scores: Sequence[float], number: int, *, scale: Scale) -> tuple[Baseline[float], ...]:
    """The best that can be said of `number` texts without looking at reader or text, in each sense of best."""
    names = ("training mean", "training median", "majority")
    if not scores:
        return tuple(Baseline(name, unavailable=NO_TRAINING_DATA) for name in names)
    counts = Counter(scores)
    commonest = min(counts, key=lambda score: (-counts[score], score))
    histogram = tuple(counts[value] / len(scores) for value in scale.values or ())
    on_scale = None if abs(fsum(histogram) - 1) > 1e-9 else (histogram,) * number  # means of several people lie between labels
    mean = Baseline(names[0], (fsum(scores) / len(scores),) * number, distributions=on_scale)
    return mean, Baseline(names[1], (float(median_low(scores)),) * number), Baseline(names[2], (float(commonest),) * number)


def mean_truth(train: Sequence[Example] | None) -> float | None:
    """Mean of the true scores of the training examples; None without any."""
    known = [example.truth for example in train or () if isinstance(example.truth, int | float)]
    return fsum(known) / len(known) if known else None


def score_baselines(
    examples: Sequence[Example], train: Sequence[Example] | None, *, scale: Scale, seed: int = 0
) -> tuple[Baseline[float], ...]:
    """Of examples whose profile holds no scores: `training mean`, `training median` and `majority` as of scores, and `random` (a
    label of `scale`, uniform)."""
    known = [float(example.truth) for example in train or () if isinstance(example.truth, int | float)]
    drawn = _random_label([example.id for example in examples], scale=scale, seed=seed)
    return *_constants(known, len(examples), scale=scale), drawn


def past_review(example: PointwiseExample, *, seed: int = 0) -> str:
    """A review that the reader wrote of another text, drawn from those shown: how far their own words go. Empty without any."""
    written = [past.review for past in example.profile if past.review]
    return written[_draw(example.id, seed, sides=len(written))] if written else ""


def pairwise_baselines(
    examples: Sequence[PairwiseExample], train: Sequence[PairwiseExample] | None, *, seed: int = 0
) -> tuple[Baseline[Choice], ...]:
    """`copy the example`, `unpersonalized` (most other readers' training answer to the same pair and aspect, else `majority`),
    `majority` (of the training references, per aspect) and `random`."""
    copy = Baseline[Choice]("copy the example", unavailable="no example has a profile to copy from")
    if any(example.profile for example in examples):
        copy = Baseline("copy the example", tuple(_copy(example, seed=seed) for example in examples))
    drawn: tuple[Choice, ...] = tuple(_coin(example.id, seed) for example in examples)
    majority = Baseline[Choice]("majority", unavailable=NO_TRAINING_DATA)
    known = [(example.aspect, example.reference.preference) for example in train or () if example.reference]
    of_pair = Baseline[Choice](UNPERSONALIZED, unavailable=NO_TRAINING_DATA)
    if known:
        usual = fit_majority(known)
        majority = Baseline(majority.name, tuple(map(usual, examples)))
        of_pair = _of_pairs(examples, train or (), usual)
    return copy, of_pair, majority, Baseline[Choice]("random", drawn)


def _of_pairs(
    examples: Sequence[PairwiseExample], train: Sequence[PairwiseExample], usual: Callable[[PairwiseExample], Choice]
) -> Baseline[Choice]:
    """What most other readers chose of the same two texts, in whichever order they were shown."""
    chosen: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for one in train:
        if one.reference:
            text = one.query.text_a if one.reference.preference == "A" else one.query.text_b
            chosen[one.work, one.aspect].append((one.reviewer_id, text))

    def most(example: PairwiseExample) -> Choice | None:
        texts = [text for who, text in chosen.get((example.work, example.aspect), ()) if who != example.reviewer_id]
        return _most("A" if text == example.query.text_a else "B" for text in texts)

    found = [most(example) for example in examples]
    if not any(found):
        return Baseline(UNPERSONALIZED, unavailable=NO_PAIR_KNOWN)
    return Baseline(UNPERSONALIZED, tuple(one or usual(example) for one, example in zip(found, examples, strict=True)))


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
    predictions = tuple(prediction for baseline in same for prediction in baseline.predictions or ())
    sure = any(baseline.distributions is None for baseline in same)
    distributions = None if sure else tuple(row for baseline in same for row in baseline.distributions or ())
    notes = dict.fromkeys(baseline.note for baseline in same if baseline.note)
    return Baseline(name, predictions, note="; ".join(notes) or None, distributions=distributions)


def _rows(values: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))


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


def fit_majority(known: Sequence[tuple[str, Choice]]) -> Callable[[PairwiseExample], Choice]:
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
