"""Is P(label) right? Of all labels that were given a probability of about p, a share of about p should be the true one.

Every label of every item counts, not only the likeliest: the exact distribution promises something of each of them. The
expected calibration error (ECE) is the mean distance between probability and share over ten bins of equal width, weighted by
how many labels fall into each. It is above 0 even for a judge whose probabilities are right, since shares are of few items;
so beside it stands what such a judge would have, found by drawing true labels from the judge's own distributions.

Notation: n items, L labels, B bins, T simulated truths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.identity import draw
from perse.judgement import Judgement, Status
from perse.records import Example
from perse.results.result import Estimate
from perse.scale import Scale

BINS = 10
SIMULATIONS = 200


@dataclass(frozen=True)
class Promised:
    """The distributions of one judge: `probability` (n, L), the place of the true label in it (n,), and whose item it is (n,)."""

    labels: tuple[str, ...]
    probability: FloatArray
    truth: IntArray
    reviewer: IntArray

    @property
    def came_true(self) -> FloatArray:
        """(n, L) 1 at the true label, 0 elsewhere."""
        return np.eye(len(self.labels))[self.truth]


def promised(examples: Sequence[Example], judgements: Sequence[Judgement], *, scale: Scale) -> Promised | None:
    """The answered items with a distribution whose true answer is known; None if there are none.

    A label that a distribution does not name has the probability 0.
    """
    given = {one.id: one for one in judgements if one.status is Status.OK and one.distribution}
    rows: list[FloatArray] = []
    truths: list[int] = []
    who: list[str] = []
    for example in examples:
        truth = _place(example.truth, scale)
        if example.id not in given or truth is None:
            continue
        told = given[example.id].distribution or {}
        rows.append(np.array([told.get(label, 0.0) for label in scale.labels]))
        truths.append(truth)
        who.append(example.reviewer_id or example.id)
    if not rows:
        return None
    _, reviewer = np.unique(np.array(who, dtype=object), return_inverse=True)
    return Promised(scale.labels, np.stack(rows), np.array(truths, dtype=np.int64), reviewer.astype(np.int64))


def _place(truth: float | str | None, scale: Scale) -> int | None:
    if truth is None or isinstance(truth, str):
        return scale.labels.index(truth) if truth in scale.labels else None
    values = np.array([float(label) for label in scale.labels])
    return int(nearest_label(np.array([truth], dtype=np.float64), values)[0])


def nearest_label(truth: FloatArray, values: FloatArray) -> IntArray:
    """(n,) the place of each true answer among the labels' `values` (L,): a truth between two labels, as the mean of several
    readers may be, counts for the nearest, and midway for the lower."""
    place: IntArray = np.abs(truth[:, None] - values).argmin(axis=1)
    return place


def bin_of(probability: FloatArray) -> IntArray:
    """The bin of each probability, of any shape; equal widths: [0, 0.1), ..., [0.9, 1]."""
    place: IntArray = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    return place


def calibration_error(probability: FloatArray, truth: IntArray) -> float:
    """ECE over all labels: sum over the bins of (share of the labels in it) * |mean probability - share that is true|.

    Args:
        probability: (n, L), each row sums to 1.
        truth: (n,), the place of the true label.
    """
    return float(_errors(probability, truth[None, :])[0])


def chance_errors(probability: FloatArray, *, seed: int, simulations: int = SIMULATIONS) -> FloatArray:
    """(T,) the calibration error of a judge whose probabilities are right, with truths drawn from them item by item."""
    generator = np.random.default_rng(draw(seed, "truths", "reliability").getrandbits(128))
    steps = probability.cumsum(axis=1)
    found = [
        _errors(probability, (generator.random((1, len(steps), 1)) * steps[:, -1:] >= steps[None]).sum(axis=2))
        for _ in range(simulations)
    ]
    return np.concatenate(found)


def _errors(probability: FloatArray, truths: IntArray) -> FloatArray:
    """(T, n) true labels -> (T,) errors."""
    place = bin_of(probability)
    inside = np.bincount(place.ravel(), weights=probability.ravel(), minlength=BINS)
    found = []
    for truth in truths:
        true = np.bincount(place[np.arange(len(truth)), np.minimum(truth, probability.shape[1] - 1)], minlength=BINS)
        found.append(np.abs(inside - true).sum() / probability.size)
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class Bin:
    """What was predicted of the rows of one bin, and what came true, each the mean with its interval over reviewers."""

    place: int
    predicted: Estimate
    true: Estimate


def binned(
    predicted: FloatArray, true: FloatArray, place: IntArray, *, reviewer: IntArray, resamples: int, seed: int
) -> list[Bin]:
    """The bins that hold something, in order.

    Args:
        predicted, true: (n,) what was said of each row, and what is.
        place: (n,) its bin.
        reviewer: (n,) whose row it is; reviewers are resampled.
    """
    if not len(predicted):
        return []
    _, compact = np.unique(reviewer, return_inverse=True)
    bootstrap = Bootstrap.over(compact.astype(np.int64), resamples=resamples, seed=seed)
    return [
        Bin(int(one), bootstrap.mean(predicted, place == one), bootstrap.mean(true, place == one)) for one in np.unique(place)
    ]


def reliability_bins(given: Promised, *, resamples: int, seed: int) -> list[Bin]:
    """The probabilities of all labels in ten bins, and how often what they were of came true."""
    flat = given.probability.ravel()
    reviewer = np.repeat(given.reviewer, given.probability.shape[1])
    return binned(flat, given.came_true.ravel(), bin_of(flat), reviewer=reviewer, resamples=resamples, seed=seed)
