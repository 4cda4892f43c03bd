"""What a verdict stands on: a judge's value minus that of every rule that it must beat, on the same items and resamples.

Scores are compared by Kendall's tau-b, of which chance and every constant have 0, and pairs by accuracy, of which a constant may have much
more than chance (`best_constant`). Of taste, Kendall's tau-b within readers is compared with the unpersonalized row, which knows no reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from perse.evaluation.baselines.ratings import UNPERSONALIZED
from perse.evaluation.pointwise_rows import Scores
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import EVEN, Bootstrap
from perse.evaluation.stats.results import Difference
from perse.evaluation.stats.within import vary_in_all
from perse.evaluation.verdict import (
    CHANCE,
    COMPARED,
    CONSTANT,
    CORRECT,
    EVENED,
    OFF,
    PROFILE_AVERAGE,
    ROUNDED,
    ROUNDED_MEAN,
    WITHIN,
    WITHIN_OF_ALL,
)
from perse.results.result import Estimate

COPY = "copy the example"
"""The baseline of the paper for pairs, as `PROFILE_AVERAGE` is for scores."""
MAJORITY = "majority"
COIN = 0.5


def score_differences(judge: str, values: Mapping[str, FloatArray], scores: Scores, *, profiles: bool) -> list[Difference]:
    """From chance, from the profile average (of its errors, too), and within readers from the unpersonalized row, as far as there are these.

    A difference that ties may have made is looked at again: of a judge that gives labels alone and is ahead, from the average told as coarsely; of
    any other, where ties count for neither (`EVEN`), which stands in place of a difference that is not shown so. Within readers a judge that says fewer
    different things than the row has to be ahead of the row told as coarsely, too, and one that says the same of all that a reader read has to be
    ahead over all readers, those counted as 0: else saying nothing where it knows nothing would be knowing taste.

    Args:
        values: by row, (n,), NaN where an item is not compared.
        profiles: whether any was shown. Without, nothing orders texts: the training means of folds are even negatively
            correlated with the scores.
    """
    row = f"{judge} (expected)"
    mine = values[row]

    def difference(column: str, baseline: str) -> Difference:
        theirs = np.where(np.isnan(mine), np.nan, values.get(baseline, 0.0))
        estimate = scores.bootstrap.difference(column, scores.gold, mine, theirs)
        return Difference(judge=judge, row=row, baseline=baseline, column=column, estimate=estimate)

    found = [
        Difference(
            judge=judge, row=row, baseline=CHANCE, column=COMPARED, estimate=scores.bootstrap.one(COMPARED, scores.gold, mine)
        )
    ]
    average = difference(COMPARED, PROFILE_AVERAGE) if profiles and PROFILE_AVERAGE in values else None
    if average and average.estimate.value is not None:
        apart = average.estimate.above_zero or average.estimate.below_zero
        told_alike = average.estimate.above_zero and labels_alone(mine)  # and so held against the average told as coarsely
        even = difference(EVEN, PROFILE_AVERAGE).estimate if apart and not told_alike else average.estimate
        if not same_side(even, average.estimate):
            average = Difference(judge=judge, row=row, baseline=EVENED, column=COMPARED, estimate=even)
        found += [average, difference(OFF, PROFILE_AVERAGE)]
    if average and average.baseline == PROFILE_AVERAGE and average.estimate.above_zero and labels_alone(mine):
        estimate = least_ahead(COMPARED, scores.gold, mine, values[PROFILE_AVERAGE], scores.bootstrap)
        if estimate is not None and not estimate.above_zero:
            found.append(Difference(judge=judge, row=row, baseline=ROUNDED, column=COMPARED, estimate=estimate))
    if UNPERSONALIZED in values:
        taste = difference(WITHIN, UNPERSONALIZED)
        if taste.estimate.above_zero and coarser(mine, values[UNPERSONALIZED]):
            estimate = least_ahead(WITHIN, scores.gold, mine, values[UNPERSONALIZED], scores.bootstrap)
            if estimate is not None and not estimate.above_zero:
                taste = Difference(judge=judge, row=row, baseline=ROUNDED_MEAN, column=WITHIN, estimate=estimate)
        found.append(taste)
        if taste.estimate.above_zero and orders_fewer_readers(mine, scores):
            of_all = difference(WITHIN_OF_ALL, UNPERSONALIZED)
            found += [] if of_all.estimate.above_zero else [of_all]
    return found


def same_side(one: Estimate, other: Estimate) -> bool:
    """Whether both are shown to be above 0, or both below it, or neither of either."""
    return (one.above_zero, one.below_zero) == (other.above_zero, other.below_zero)


def labels_alone(values: FloatArray) -> bool:
    """Whether a judge's answers are labels, and not expected scores between them: more than half are whole numbers, so that a few
    that are not do not hide what the others are."""
    known = values[~np.isnan(values)]
    return bool(2 * np.count_nonzero(known == np.round(known)) > len(known)) or not len(known)


def least_ahead(column: str, gold: FloatArray, mine: FloatArray, theirs: FloatArray, bootstrap: Bootstrap) -> Estimate | None:
    """How far `mine`, (n,), is ahead of `theirs` told as coarsely (`as_coarse`), where that is least; None where it then hardly orders anything."""
    return least([bootstrap.difference(column, gold, mine, one) for one in as_coarse(theirs, mine)])


def least(found: Sequence[Estimate]) -> Estimate | None:
    """The lowest of those that have an interval."""
    known = [(one.interval.low, one) for one in found if one.interval.low is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def as_coarse(theirs: FloatArray, mine: FloatArray) -> list[FloatArray]:
    """`theirs`, (n,), told as coarsely as `mine`: in its values and, where these are labels, rounded to labels. NaN where either is.

    Ties are no disorder to tau-b, so what is told more coarsely, and knows less, may be ahead of itself: a coarse judge has to be ahead of all of it.
    """
    rounded = np.where(np.isnan(mine), np.nan, as_labels(theirs))
    return [tied_alike(theirs, mine), *([rounded] if labels_alone(mine) else [])]


def as_labels(values: FloatArray) -> FloatArray:
    """Averages rounded to labels, halves up."""
    rounded: FloatArray = np.floor(values + 0.5)
    return rounded


def orders_fewer_readers(mine: FloatArray, scores: Scores) -> bool:
    """Whether some reader scores texts differently that `mine`, (n,), scores all alike."""
    known = ~np.isnan(mine)
    reader, gold = scores.reviewer[known], scores.gold[known]
    return bool((vary_in_all(reader, gold) & ~vary_in_all(reader, mine[known])).any())


def coarser(mine: FloatArray, theirs: FloatArray) -> bool:
    """Whether `mine`, (n,), says fewer different things than `theirs` of the items where neither is NaN."""
    known = ~np.isnan(mine) & ~np.isnan(theirs)
    ours, others = (len(np.unique(side[known])) for side in (mine, theirs))
    return labels_alone(mine) or ours < others


def tied_alike(theirs: FloatArray, mine: FloatArray) -> FloatArray:
    """`theirs`, (n,), in the values of `mine`, in their own order: as coarse as `mine`. NaN where either is."""
    known = ~np.isnan(mine) & ~np.isnan(theirs)
    place = np.searchsorted(np.sort(theirs[known]), theirs[known])
    found = np.full(len(theirs), np.nan)
    found[known] = np.sort(mine[known])[place]
    return found


def choice_differences(
    judge: str, hits: Mapping[str, FloatArray], gold: Sequence[str], bootstrap: Bootstrap
) -> list[Difference]:
    """From a coin, from the best rule that always answers alike (`best_constant`), and from copying.

    Args:
        hits: by row, (n,), 1 where it is right.
        gold: the readers' answers.
    """
    row = f"{judge} (likeliest)"
    rules = dict([best_constant(hits.get(MAJORITY), gold)])
    rules |= {COPY: hits[COPY]} if COPY in hits else {}
    everything = np.ones(len(gold), dtype=bool)
    found = {CHANCE: above_coin(bootstrap.share(hits[row], everything))}
    found |= {name: bootstrap.shares_apart(hits[row] - theirs, everything) for name, theirs in rules.items()}
    return [
        Difference(judge=judge, row=row, baseline=name, column=CORRECT, estimate=estimate) for name, estimate in found.items()
    ]


def best_constant(majority: FloatArray | None, gold: Sequence[str]) -> tuple[str, FloatArray]:
    """The rule of pairs that needs no look at a text: the majority answer of the training side, or the commonest answer to these very pairs
    where that is right more often, as it is where the training side has another majority or is not at hand.

    Args:
        majority: (n,) 1 where the training side's majority answer is right; None without a training side.
        gold: the readers' answers.
    Returns:
        Its name, and (n,) 1 where it is right.
    """
    [(commonest, _)] = Counter(sorted(gold)).most_common(1)
    constant = np.array([answer == commonest for answer in gold], dtype=np.float64)
    if majority is not None and majority.mean() >= constant.mean():
        return MAJORITY, majority
    return CONSTANT, constant


def above_coin(accuracy: Estimate) -> Estimate:
    """An accuracy minus that of a coin, which is known: its interval is that of the accuracy, and undefined where that is."""
    interval = accuracy.interval
    if accuracy.value is None:
        return accuracy
    ends = {name: None if end is None else end - COIN for name, end in (("low", interval.low), ("high", interval.high))}
    moved = {"value": accuracy.value - COIN, "interval": interval.model_copy(update=ends), "difference": True}
    return accuracy.model_copy(update=moved)
