"""Is P(score at most k) right? Where it is said to be about p, the score should be at most k in a share of about p, for each k.

Labels are ordered, so a distribution is its probabilities of at most k, for every k but the last; of two labels that is the
probability of the first. Each k is looked at by itself: with all labels in one heap, 0.1 for each of ten would be right of any
data, and shares of the data that fall into one bin could change places.

The expected calibration error (ECE) of a k is the mean distance between probability and share over ten bins of equal width,
weighted by how many items fall into each; that of a judge is the mean over the k. It is above 0 even for a judge whose
probabilities are right, since shares are of few items; so beside it stands what chance would make of it. One reader's answers
stray together, so they are drawn together: in each draw what was promised minus what came true changes its sign for a random half
of the readers (the wild cluster bootstrap, Cameron, Gelbach and Miller, 2008, with the null imposed). Where readers share texts, what
was said of a text strays together, too: signs of readers and signs of texts are drawn, and each bin is brought to the variance of
both, which is theirs less that of the items (Cameron, Gelbach and Miller, 2011), and no less than the larger of the two.

Signs know nothing of what was never seen: of ten items that a judge is sure of to 0.99 most often all are as it said, and all gaps are small
and alike. So truths are drawn from the probabilities, too, item by item, and a judge is held against the way that makes more of chance.

Notation: n items, C reviewers, W texts, L labels, B bins, T draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from perse.evaluation.shared_texts import to_draw, works
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import LEVEL
from perse.identity import draw
from perse.judgement import Judgement, Status
from perse.records import Example
from perse.results.result import Estimate
from perse.scale import Scale

_SAME = 1e-9
BINS = 10
DRAWS = 999
_DIGITS = 12
"""Sums of probabilities that should be equal may differ behind these decimals."""


@dataclass(frozen=True)
class Promised:
    """The distributions of one judge: `probability` (n, L), the place of the true label in it (n,), and whose item it is (n,);
    where readers share texts, and so many that these stray, too, also which text it is about (n,)."""

    labels: tuple[str, ...]
    probability: FloatArray
    truth: IntArray
    reviewer: IntArray
    text: IntArray | None = None

    @property
    def at_most(self) -> FloatArray:
        """(n, L - 1) the probability of each label but the last or one below it."""
        sums = self.probability.cumsum(axis=1)[:, :-1]
        return np.clip(np.round(sums, _DIGITS), 0.0, 1.0)

    @property
    def was_at_most(self) -> FloatArray:
        """(n, L - 1) 1 where the true label is that one or one below it, else 0."""
        return (self.truth[:, None] <= np.arange(len(self.labels) - 1)).astype(np.float64)


def promised(examples: Sequence[Example], judgements: Sequence[Judgement], *, scale: Scale) -> Promised | None:
    """The answered items with a distribution whose true answer is known; None if there are none, or if true scores lie between labels, as the means of
    several people do: of those no probability of a label is right.

    A label that a distribution does not name has the probability 0.
    """
    if not on_labels([one.truth for one in examples], scale):
        return None
    given = {one.id: one for one in judgements if one.status is Status.OK and one.distribution}
    rows: list[FloatArray] = []
    truths: list[int] = []
    known: list[Example] = []
    for example in examples:
        truth = _place(example.truth, scale)
        if example.id not in given or truth is None:
            continue
        told = given[example.id].distribution or {}
        rows.append(np.array([told.get(label, 0.0) for label in scale.labels]))
        truths.append(truth)
        known.append(example)
    if not rows:
        return None
    reviewer = _numbered([example.reviewer_id or example.id for example in known])
    text = works(known) if to_draw(known, "auto") == "two-way" else None
    return Promised(scale.labels, np.stack(rows), np.array(truths, dtype=np.int64), reviewer, text)


def _numbered(names: Sequence[str]) -> IntArray:
    found: IntArray = np.unique(np.array(names, dtype=object), return_inverse=True)[1].astype(np.int64)
    return found


def on_labels(truths: Sequence[float | str | None], scale: Scale) -> bool:
    """Whether no true score lies between labels."""
    values = np.array(scale.values or (), dtype=np.float64)
    numbers = np.array([one for one in truths if isinstance(one, float | int)], dtype=np.float64)
    return not len(values) or bool((np.abs(numbers[:, None] - values).min(axis=1, initial=np.inf) < _SAME).all())


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


def calibration_error(given: Promised) -> float:
    """ECE: over the k the mean of sum over the bins of (share of the items in it) * |mean P(at most k) - share that is|."""
    return float(_errors(gaps(given, given.reviewer).sum(axis=0, keepdims=True), given)[0])


def off_by_chance(given: Promised, chance: FloatArray) -> bool:
    """Whether a right judge has at least the error in more than 5 of 100 draws (`chance_errors`)."""
    return calibration_error(given) <= float(np.quantile(chance, LEVEL)) + 10.0**-_DIGITS


def chance_errors(given: Promised, *, seed: int, draws: int = DRAWS) -> FloatArray:
    """(T,) calibration errors that a judge whose probabilities are right may have of these readers, and texts; of the two ways to draw
    them the one whose 95 of 100 are below more."""
    ways = (_of_strays(given, seed=seed, draws=draws), _of_truths(given, seed=seed, draws=draws))
    return max(ways, key=lambda errors: float(np.quantile(errors, LEVEL)))


def _of_truths(given: Promised, *, seed: int, draws: int) -> FloatArray:
    """(T,) errors where each item's truth is drawn from its probabilities, by itself."""
    promise = given.at_most
    items, steps = promise.shape
    cells = (np.arange(steps) * BINS + bin_of(promise)).ravel()
    said = np.bincount(cells, weights=promise.ravel())
    generator = np.random.default_rng(draw(seed, "truths", "reliability").getrandbits(128))
    drawn = (np.bincount(cells, weights=(generator.random((items, 1)) < promise).ravel()) for _ in range(draws))
    return _errors(np.stack([said - came for came in drawn]), given)


def _of_strays(given: Promised, *, seed: int, draws: int) -> FloatArray:
    """(T,) errors where what was promised minus what came true changes its sign at random, with all of a reader, and of a text."""
    of_readers = gaps(given, given.reviewer)
    strayed = _signed(of_readers, draws, draw(seed, "readers", "reliability").getrandbits(128))
    if given.text is None:
        return _errors(strayed, given)
    of_texts = gaps(given, given.text)
    strayed = strayed + _signed(of_texts, draws, draw(seed, "texts", "reliability").getrandbits(128))
    readers, texts = ((gaps**2).sum(axis=0) for gaps in (of_readers, of_texts))
    items = (gaps(given, np.arange(len(given.truth))) ** 2).sum(axis=0)
    both = np.maximum(readers + texts - items, np.maximum(readers, texts))
    scale = np.sqrt(np.divide(both, readers + texts, out=np.zeros_like(both), where=readers + texts > 0))
    return _errors(strayed * scale, given)


def _signed(gaps: FloatArray, draws: int, seed: int) -> FloatArray:
    """(T, (L - 1) B) the sums of gaps (C, (L - 1) B) with signs drawn for each row."""
    signs = 2.0 * np.random.default_rng(seed).integers(0, 2, size=(draws, len(gaps))) - 1
    # By a sparse matrix, since the order of BLAS's additions changes with the number of threads.
    return (sparse.csr_matrix(gaps.T) @ signs.T).T  # type: ignore[no-any-return]


def gaps(given: Promised, group: IntArray) -> FloatArray:
    """(C, (L - 1) B) what was promised minus what came true, summed over each group's items of each k and bin; a group is a reader's
    items, or a text's."""
    promise = given.at_most
    steps = promise.shape[1]
    cells = (group[:, None] * steps + np.arange(steps)) * BINS + bin_of(promise)
    size = (int(group.max()) + 1) * steps * BINS
    found = np.bincount(cells.ravel(), weights=(promise - given.was_at_most).ravel(), minlength=size)
    of_groups: FloatArray = found.reshape(-1, steps * BINS).astype(np.float64)
    return of_groups


def _errors(gaps: FloatArray, given: Promised) -> FloatArray:
    """(T, (L - 1) B) gaps of all items -> (T,) errors."""
    errors: FloatArray = np.abs(gaps).sum(axis=1) / given.at_most.size
    return errors


@dataclass(frozen=True)
class Bin:
    """What was predicted of the rows of one bin, and what came true, each the mean with its interval over reviewers."""

    place: int
    predicted: Estimate
    true: Estimate


def binned(
    predicted: FloatArray,
    true: FloatArray,
    place: IntArray,
    *,
    reviewer: IntArray,
    text: IntArray | None,
    resamples: int,
    seed: int,
) -> list[Bin]:
    """The bins that hold something, in order.

    Args:
        predicted, true: (n,) what was said of each row, and what is.
        place: (n,) its bin.
        reviewer: (n,) whose row it is; reviewers are resampled.
        text: (n,) which text it is about, where texts are resampled, too.
    """
    if not len(predicted):
        return []
    _, compact = np.unique(reviewer, return_inverse=True)
    item = None if text is None else np.unique(text, return_inverse=True)[1].astype(np.int64)
    bootstrap = Bootstrap.over(compact.astype(np.int64), resamples=resamples, seed=seed, item=item)
    return [
        Bin(int(one), bootstrap.mean(predicted, place == one), bootstrap.mean(true, place == one)) for one in np.unique(place)
    ]


def reliability_bins(given: Promised, *, resamples: int, seed: int) -> list[Bin]:
    """The probabilities of at most k, of all k, in ten bins, and how often it was so."""
    return _binned_steps(given, bin_of(given.at_most), resamples=resamples, seed=seed)


def reliability_by_label(given: Promised, *, resamples: int, seed: int) -> list[Bin]:
    """For each k, over all items: the mean probability of at most k, and how often it was so."""
    items, steps = given.at_most.shape
    return _binned_steps(given, np.tile(np.arange(steps), (items, 1)), resamples=resamples, seed=seed)


def _binned_steps(given: Promised, place: IntArray, *, resamples: int, seed: int) -> list[Bin]:
    """The probabilities of at most k and what came true, by `place` (n, L - 1).

    How often it was so is a share: where few differ, or none, resamples know too little (`perse.evaluation.stats.shares`). What the k of one
    item say counts as one item, as often as they fall into the bin.
    """
    promise, was = given.at_most, given.was_at_most
    steps = promise.shape[1]
    found = binned(
        promise.ravel(),
        was.ravel(),
        place.ravel(),
        reviewer=np.repeat(given.reviewer, steps),
        text=None if given.text is None else np.repeat(given.text, steps),
        resamples=resamples,
        seed=seed,
    )
    if not found:
        return []
    of_items = Bootstrap.over(given.reviewer, resamples=resamples, seed=seed, item=given.text)
    told = []
    for one in found:
        here = place == one.place
        times = here.sum(axis=1)
        share = of_items.share((was * here).sum(axis=1) / np.maximum(times, 1), times)
        told.append(replace(one, true=one.true.model_copy(update={"interval": share.interval})))
    return told
