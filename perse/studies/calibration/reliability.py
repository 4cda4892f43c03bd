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
from perse.records import ChoiceReference, Example
from perse.results.result import Estimate, Point, Table
from perse.scale import Scale

BINS = 10
SIMULATIONS = 200


@dataclass(frozen=True)
class Promised:
    """The distributions of one judge: `probability` (n, L), the place of the true label in it (n,), and whose item it is."""

    labels: tuple[str, ...]
    probability: FloatArray
    truth: IntArray
    reviewer: IntArray


def promised(examples: Sequence[Example], judgements: Sequence[Judgement], *, scale: Scale) -> Promised | None:
    """The answered items with a distribution whose true label is on the scale; None if there are none.

    A label that a distribution does not name has the probability 0.
    """
    given = {one.id: one for one in judgements if one.status is Status.OK and one.distribution}
    rows: list[tuple[FloatArray, int, str]] = []
    labels = scale.labels
    for example in examples:
        judgement = given.get(example.id)
        if judgement is None or judgement.distribution is None or example.reference is None:
            continue
        reference = example.reference
        true = reference.preference if isinstance(reference, ChoiceReference) else f"{reference.score:g}"
        if true in labels:
            probability = np.array([judgement.distribution.get(label, 0.0) for label in labels])
            rows.append((probability, labels.index(true), example.reviewer_id or example.id))
    if not rows:
        return None
    _, reviewer = np.unique(np.array([row[2] for row in rows], dtype=object), return_inverse=True)
    truth = np.array([row[1] for row in rows], dtype=np.int64)
    return Promised(labels, np.stack([row[0] for row in rows]), truth, reviewer.astype(np.int64))


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
    of_bin = _bin(probability)
    inside = np.bincount(of_bin.ravel(), weights=probability.ravel(), minlength=BINS)
    found = []
    for truth in truths:
        true = np.bincount(of_bin[np.arange(len(truth)), np.minimum(truth, probability.shape[1] - 1)], minlength=BINS)
        found.append(np.abs(inside - true).sum() / probability.size)
    return np.array(found, dtype=np.float64)


def _bin(probability: FloatArray) -> IntArray:
    """Equal widths: [0, 0.1), ..., [0.9, 1]."""
    place: IntArray = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    return place


@dataclass(frozen=True)
class Reliability:
    """What one judge's probabilities were worth: points of the plot, the table, and a sentence."""

    points: tuple[Point, ...]
    tables: tuple[Table, ...]
    sentence: str


def reliability(name: str, given: Promised, *, seed: int = 0, resamples: int = 1000) -> Reliability:
    """The reliability of all labels, and the calibration error beside that of chance."""
    n, size = given.probability.shape
    hit = np.zeros((n, size))
    hit[np.arange(n), given.truth] = 1.0
    bootstrap = Bootstrap.over(np.repeat(given.reviewer, size), resamples=resamples, seed=seed)
    of_bin = _bin(given.probability).ravel()
    points: list[Point] = []
    rows: list[tuple[Estimate | str | None, ...]] = []
    for place in range(BINS):
        tick, inside = f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}", of_bin == place
        if not inside.any():
            rows.append((tick, "0", None, None))
            continue
        mean = bootstrap.mean(given.probability.ravel(), inside)
        share = bootstrap.mean(hit.ravel(), inside)
        points.append(Point(series=f"{name}: share that is true", x=tick, metric="reliability", estimate=share))
        points.append(Point(series="mean P(label)", x=tick, metric="reliability", estimate=mean, baseline=True))
        rows.append((tick, str(int(inside.sum())), mean, share))
    error = calibration_error(given.probability, given.truth)
    chance = chance_errors(given.probability, seed=seed)
    usual = float(np.quantile(chance, 0.95))
    right = "not shown to be wrong" if error <= usual else "not right"
    sentence = (
        f"The probabilities of {name} are {right}: over all labels they are off by {error:.3f} on average (ECE), where a judge "
        f"whose probabilities are right would be off by {chance.mean():.3f}, and in 95 of 100 cases by at most {usual:.3f}."
    )
    bins = Table(
        title=f"Reliability of {name}: {n} items, {size} labels each",
        header=("P(label)", "labels", "mean P(label)", "share that is true"),
        rows=tuple(rows),
    )
    errors = Table(
        title="Expected calibration error, all labels",
        header=("judge", "ECE", "if its probabilities were right: mean", "95 of 100 are below"),
        rows=((name, f"{error:.3f}", f"{chance.mean():.3f}", f"{usual:.3f}"),),
        notes=(
            "if right: true labels drawn from the judge's own distributions, item by item, as if items were independent",
            "no interval: resampled items make the error larger than it is; what chance makes of it stands beside it",
        ),
    )
    return Reliability(tuple(points), (errors, bins), sentence)
