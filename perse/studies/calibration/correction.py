"""Predictions corrected by how the judge misjudges a reader's past reviews, and by nothing else.

The judge scores each review of an example's profile with the others as the profile. How far it is off there says how to correct
what it predicts for the query:

    corrected = predicted + g + s (predicted - m) + sum of r / (n + penalty),    r = true - predicted - g - s (predicted - m)

The sum is over the n past reviews of the example, so that few of them move little. The common offset g and slope s (0 unless
asked for), the mean prediction m and the penalty are fitted on the past reviews of *other* readers: readers are dealt into
folds, and each fold is corrected by what the others gave. The penalty is the one that best predicts each of their past
reviews from the rest of the same profile.

So the answer to the query that is corrected is never looked at: the reviews of the reader's profile for it and of other
readers' profiles are all that is used (these hold answers to other queries, where data is built of one table of reviews). Profiles of the most recent reviews are earlier than their query; of profiles drawn at random some reviews may be later,
which an example does not tell, as it does not hold the query's time. The price is a penalty that is fitted to profiles shorter
by one; profiles of one review allow the common offset only.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf

import numpy as np

from perse.data.examples_file import shown_query
from perse.evaluation.predictions import expected_value
from perse.identity import shuffled
from perse.judgement import Judgement, Status
from perse.records import PointwiseExample, ProfileReview, ReviewReference
from perse.scale import SCORES

PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, inf)
FOLDS = 10


@dataclass(frozen=True)
class Past:
    """Which questions about the past stand behind each example."""

    examples: tuple[PointwiseExample, ...]
    """Each past review as a query, the others of its profile as the profile; a profile that several share is asked once."""
    of_example: Mapping[str, tuple[str, ...]]
    """Example id -> ids of the questions about its profile."""
    left_out: int
    """Past reviews that stand nearly word for word in the rest of their profile: the answer would be given away."""


def past_examples(examples: Iterable[PointwiseExample]) -> Past:
    """The leave-one-out questions of the examples' profiles. Nothing of an example but its reviewer and its profile is used."""
    asked: dict[str, PointwiseExample] = {}
    of_example: dict[str, tuple[str, ...]] = {}
    unfit: set[str] = set()
    for example in examples:
        own = [_left_out(example.reviewer_id, example.profile, nth) for nth in range(len(example.profile))]
        unfit |= {one.id for one in own if one.id not in asked and shown_query(one)}
        fitting = [one for one in own if one.id not in unfit]
        asked |= {one.id: one for one in fitting}
        of_example[example.id] = tuple(one.id for one in fitting)
    return Past(tuple(asked.values()), of_example, len(unfit))


def _left_out(reviewer: str, profile: Sequence[ProfileReview], nth: int) -> PointwiseExample:
    rest, past = (*profile[:nth], *profile[nth + 1 :]), profile[nth]
    shown = "\x1e".join(one.model_dump_json() for one in (*rest, past))
    digest = hashlib.blake2b(f"{reviewer}\x1f{shown}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return PointwiseExample(
        id=f"past-{digest}",
        reviewer_id=reviewer,
        item_id=past.item_id or f"past-{digest}",
        profile=rest,
        query=past.text,
        reference=ReviewReference(review=past.review or "", score=past.score),
    )


@dataclass(frozen=True)
class PastScore:
    """A past review: the true score and the one that the judge gave it."""

    reviewer: str
    true: float
    predicted: float


def past_scores(past: Past, judgements: Mapping[str, Judgement]) -> dict[str, tuple[PastScore, ...]]:
    """Example id -> its past reviews, of those that the judge could score."""
    known: dict[str, PastScore] = {}
    for example in past.examples:
        given = judgements.get(example.id)
        if given is not None and given.status is Status.OK and example.reference is not None:
            known[example.id] = PastScore(example.reviewer_id, float(example.reference.score), expected_value(given))
    return {one: tuple(known[n] for n in ids if n in known) for one, ids in past.of_example.items()}


@dataclass(frozen=True)
class Correction:
    """What is common to all readers; `penalty` is how many past reviews the common correction is worth."""

    offset: float
    slope: float
    centre: float
    penalty: float

    def apply(self, prediction: float, past: Sequence[PastScore]) -> float:
        """The prediction, corrected by a reader's past reviews and kept on the scale."""
        assert SCORES.values is not None
        common = self._common(prediction)
        return min(max(common + self._own(past), SCORES.values[0]), SCORES.values[-1])

    def _common(self, prediction: float) -> float:
        return prediction + self.offset + self.slope * (prediction - self.centre)

    def _own(self, past: Sequence[PastScore]) -> float:
        return fsum(one.true - self._common(one.predicted) for one in past) / (len(past) + self.penalty) if past else 0.0


NO_CORRECTION = Correction(0.0, 0.0, 0.0, inf)


def fit(profiles: Iterable[Sequence[PastScore]], *, slope: bool = False) -> Correction:
    """The correction that fits these readers' past reviews; none where there are no past reviews.

    Args:
        profiles: the past reviews of each example; equal ones count once.
        slope: also fit how far predictions are to be spread or drawn together (least squares).
    """
    distinct = list(dict.fromkeys(tuple(profile) for profile in profiles if profile))
    every = [one for profile in distinct for one in profile]
    if not every:
        return NO_CORRECTION
    given = np.array([one.predicted for one in every])
    wrong = np.array([one.true - one.predicted for one in every])
    centre, offset = float(given.mean()), float(wrong.mean())
    spread = float(((given - centre) ** 2).sum())
    steep = float(((given - centre) * (wrong - offset)).sum() / spread) if slope and spread > 1e-9 else 0.0
    several = [profile for profile in distinct if len(profile) > 1]
    trials = [Correction(offset, steep, centre, penalty) for penalty in PENALTIES]
    losses = [_loss(trial, several) for trial in trials]
    return trials[min(range(len(trials)), key=lambda n: (losses[n], -PENALTIES[n]))]


def _loss(trial: Correction, profiles: Sequence[Sequence[PastScore]]) -> float:
    """Sum of squared errors at each past review, corrected by the others of its profile."""
    return fsum(
        (one.true - trial.apply(one.predicted, [*profile[:n], *profile[n + 1 :]])) ** 2
        for profile in profiles
        for n, one in enumerate(profile)
    )


@dataclass(frozen=True)
class Corrected:
    """Corrected predictions by example id, and the corrections that the folds were given."""

    predictions: Mapping[str, float]
    by_others: Mapping[str, float]
    """With what other readers' past reviews say alone."""
    corrections: tuple[Correction, ...]

    @property
    def fitted(self) -> bool:
        """Whether there was anything to fit a correction on."""
        return any(correction != NO_CORRECTION for correction in self.corrections)


def correct(
    predictions: Mapping[str, float],
    scores: Mapping[str, tuple[PastScore, ...]],
    *,
    reviewer: Mapping[str, str],
    seed: int = 0,
    slope: bool = False,
) -> Corrected:
    """Corrects every prediction by its own past reviews and by what other readers' past reviews say is common.

    Args:
        predictions: example id -> the judge's prediction for its query.
        scores: example id -> its past reviews, as the judge scored them.
        reviewer: example id -> whose it is.
    """
    readers = shuffled(sorted({reviewer[one] for one in predictions}), seed=seed, purpose="calibration folds")
    fold = {reader: n % min(FOLDS, max(2, len(readers))) for n, reader in enumerate(readers)}
    members: defaultdict[int, list[str]] = defaultdict(list)
    for one in predictions:
        members[fold[reviewer[one]]].append(one)
    found: dict[str, float] = {}
    by_others: dict[str, float] = {}
    corrections = []
    for nth, own in sorted(members.items()):
        correction = fit((scores.get(one, ()) for one in sorted(predictions) if fold[reviewer[one]] != nth), slope=slope)
        corrections.append(correction)
        found |= {one: correction.apply(predictions[one], scores.get(one, ())) for one in own}
        by_others |= {one: correction.apply(predictions[one], ()) for one in own}
    ordered, alone = ({one: of[one] for one in predictions} for of in (found, by_others))
    return Corrected(ordered, alone, tuple(corrections))
