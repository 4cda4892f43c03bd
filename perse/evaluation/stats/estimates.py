"""Values with their bootstrap intervals: the same resamples for every value of a table, so that values can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.stats.correlation import (
    COEFFICIENTS,
    BoolArray,
    Convention,
    FloatArray,
    IntArray,
    between_reviewers,
    kendall_a,
    kendall_c,
    reviewer_means,
)
from perse.evaluation.stats.departures import KNOWN, Departures, departing, departures, departures_within
from perse.evaluation.stats.intervals import (
    FEW_TEXTS,
    FEWEST_REVIEWERS,
    FEWEST_TEXTS,
    RESTS_ON_FEW,
    RESTS_ON_FEW_TEXTS,
    Behind,
    bootstrap_interval,
    too_few,
    two_way_interval,
    unless_alike,
)
from perse.evaluation.stats.pooled import RANKS, divide, resampled_pearson, resampled_ranks
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.evaluation.stats.shares import apart_interval, deciding, share_interval
from perse.evaluation.stats.unseen import of_correlation, of_correlations, of_error, of_errors
from perse.evaluation.stats.within import vary_in_all, within_every_reviewer
from perse.evaluation.stats.within_resampled import resampled_within
from perse.results.result import Estimate, Interval

NO_COEFFICIENT = Interval(reason="undefined (constant or too few items)")
NO_ITEMS = Interval(reason="undefined (no items)")
POOLED = {**COEFFICIENTS, "kendall_c": kendall_c}
EVEN = "kendall_a"
"""No column: by it differences of two predictions are looked at again that ties may have made."""
_ANY_POOLED = {**POOLED, EVEN: kendall_a}
WITHIN = {"within_": Convention.SKIP_CONSTANT, "within_zero_": Convention.CONSTANT_AS_ZERO}
SCORE_COLUMNS = (
    *POOLED,
    *(prefix + name for prefix in WITHIN for name in COEFFICIENTS),
    *(f"between_{name}" for name in COEFFICIENTS),
    "mae",
)
"""The columns of `Bootstrap.scores`."""
SKIPPING = {f"within_{name}": f"within_zero_{name}" for name in COEFFICIENTS}
"""Those that skip constant reviewers, and by which column these count 0."""
_OF_COLUMN = {prefix + name: name for prefix in WITHIN for name in COEFFICIENTS}
_SAME, _HARDLY = 1e-9, 0.1
"""What is no difference: of numbers, and of the largest that a reader's answers, or a text's, are apart. Distributions of two decimals, or weights in bfloat16, put expected scores that far apart."""


@dataclass(frozen=True)
class _Value:
    """A value with its resamples, (R,), and the numbers of items, reviewers and (where they are drawn) texts behind it."""

    value: float | None
    resampled: FloatArray
    items: int
    reviewers: int
    texts: int | None = None
    skipped: int | None = None
    of_items: bool = False
    """Whether it is a mean or of a table, which has no interval where all items are alike."""
    together: Departures = KNOWN
    """Of a correlation: how often both sides depart from their usual answers together."""


@dataclass(frozen=True)
class Bootstrap:
    """The resamples of the n rows of a table, the same for each of its values. Rows are items of reviewers."""

    resamples: Resamples

    @classmethod
    def over(cls, reviewer: IntArray, *, resamples: int, seed: int, item: IntArray | None = None) -> Bootstrap:
        """Resample the reviewers, or reviewers and items.

        Args:
            reviewer: (n,) whose row it is, 0 to C - 1.
            item: (n,) which item it is about, 0 to I - 1. Given, both are resampled (`Resamples.two_way`), so that an interval
                also speaks of other items, within reviewers, too. Of reviewers' means (between) only reviewers are resampled.
        """
        if item is not None:
            return cls(Resamples.two_way(reviewer, item, resamples=resamples, seed=seed))
        return cls(Resamples(reviewer, times_drawn(int(reviewer.max()) + 1, resamples=resamples, seed=seed)))

    def only(self, chosen: BoolArray) -> Bootstrap:
        """The same resamples of the `chosen` rows, (n,)."""
        return Bootstrap(self.resamples.only(chosen))

    @property
    def reviewers(self) -> int:
        """C."""
        return len(self.resamples.drawn)

    @property
    def reviewer(self) -> IntArray:
        """(n,) the reviewer of each row."""
        return self.resamples.reviewer

    @property
    def two_way(self) -> bool:
        """Whether items are resampled too."""
        return self.resamples.item is not None

    def interval(self, value: float | None, resampled: FloatArray, *, reviewers: int, texts: int | None = None) -> Interval:
        """The interval of any value of which `resampled`, (R,), are the values in each resample, NaN where undefined.

        Args:
            reviewers, texts: that stand behind the value; all texts by default.
        """
        if value is None:
            return NO_COEFFICIENT
        if self.resamples.item is not None and texts is None:
            texts = len(np.unique(self.resamples.item))
        if none := self._too_few(reviewers, texts):
            return none
        if texts is None:
            return bootstrap_interval(resampled, reviewers=reviewers)
        sizes = np.bincount(self.resamples.item) if self.resamples.item is not None else np.ones(texts, dtype=np.int64)
        both = self.resamples.both
        return two_way_interval(value, resampled, both=both, reviewers=reviewers, texts=texts, sizes=sizes)

    def _too_few(self, reviewers: int, texts: int | None = None) -> Interval | None:
        """Why a value that these stand behind has no interval; None if they are enough."""
        if reviewers < FEWEST_REVIEWERS <= len(np.unique(self.resamples.reviewer)):
            return Interval(reason=RESTS_ON_FEW)
        found, item = too_few(reviewers, texts=texts), self.resamples.item
        some = found is not None and found.reason == FEW_TEXTS and item is not None and len(np.unique(item)) >= FEWEST_TEXTS
        return Interval(reason=RESTS_ON_FEW_TEXTS) if some else found

    def mean(self, values: FloatArray, chosen: BoolArray) -> Estimate:
        """Mean of `values`, (n,), over the `chosen` rows, (n,)."""
        if not chosen.any():
            return Estimate(value=None, interval=NO_ITEMS, items=0)
        return self._estimate(self._mean(values, chosen))

    def share(self, values: FloatArray, counted: FloatArray | BoolArray) -> Estimate:
        """Mean of `values`, (n,), from 0 to 1, which are mostly 0 or 1; the interval is not resampled (`shares`).

        Args:
            counted: (n,) how much each row counts; 0 or False: not at all.
        """
        return self._of_share(values, counted, share_interval)

    def shares_apart(self, values: FloatArray, counted: FloatArray | BoolArray, *, most: float = 1.0) -> Estimate:
        """The same of differences from -`most` to `most`, such as of two judges' shares of right answers."""
        found = self._of_share(values / most, counted, apart_interval)
        if found.value is None:
            return found
        ends = {name: most * end for name in ("low", "high") if (end := getattr(found.interval, name)) is not None}
        interval = found.interval.model_copy(update=ends)
        return found.model_copy(update={"value": most * found.value, "interval": interval, "difference": True})

    def _of_share(self, values: FloatArray, counted: FloatArray | BoolArray, interval: Callable[..., Interval]) -> Estimate:
        chosen = counted > 0
        if not chosen.any():
            return Estimate(value=None, interval=NO_ITEMS, items=0)
        kept, weights = values[chosen], counted[chosen].astype(np.float64)
        clusters = self.only(chosen).clusters
        found = self._too_few(*(len(np.unique(cluster)) for cluster in clusters)) or interval(kept, weights, clusters=clusters)
        return Estimate(value=float(np.average(kept, weights=weights)), interval=found, items=len(kept))

    @property
    def clusters(self) -> tuple[IntArray, ...]:
        """What is drawn: the reviewer of each row, and its item, (n,) each."""
        return (self.reviewer,) if self.resamples.item is None else (self.reviewer, self.resamples.item)

    def resampled_mean(self, values: FloatArray, chosen: BoolArray) -> FloatArray:
        """The same mean in each resample: (R,), NaN where none of the `chosen` is in it."""
        return self._mean(values, chosen).resampled

    def ratio(
        self, numerator: FloatArray, denominator: FloatArray, *, sums: tuple[FloatArray, FloatArray] | None = None
    ) -> Estimate:
        """Sum of `numerator` over sum of `denominator`, both one value per reviewer, (C,). Undefined if the second is 0.

        The items behind it are the sum of `denominator`.

        Args:
            sums: both in each resample, (R,), where they are not those of the drawn reviewers.
        """
        value = float(numerator.sum() / denominator.sum()) if denominator.sum() > 0 else None
        of_reviewers = self.resamples.of_reviewers(np.arange(self.reviewers))
        resampled = divide(*(sums or of_reviewers.sums(np.stack([numerator, denominator]))))
        behind = int(np.count_nonzero(denominator))
        return self._estimate(_Value(value, resampled, int(denominator.sum()), behind, of_items=True))

    def of_tables(
        self, of_row: IntArray, cells: int, statistic: Callable[[FloatArray], FloatArray], chosen: BoolArray
    ) -> Estimate:
        """A statistic of a contingency table.

        Args:
            of_row: (n,) the cell that each row falls into, 0 to `cells` - 1.
            statistic: maps weighted counts (R, cells) to (R,), NaN where undefined.
            chosen: (n,) the rows that count.
        """
        rows, who = of_row[chosen], self.resamples.reviewer[chosen]
        plain = float(statistic(np.bincount(rows, minlength=cells).astype(np.float64)[None])[0]) if len(rows) else np.nan
        resampled = statistic(self.resamples.only(chosen).tables(rows, cells))
        value = None if np.isnan(plain) else plain
        return self._estimate(_Value(value, resampled, len(rows), len(np.unique(who)), of_items=True))

    def scores(self, gold: FloatArray, predicted: FloatArray) -> dict[str, Estimate]:
        """`SCORE_COLUMNS` of the rows whose prediction is not NaN. Both are (n,)."""
        return self._told(gold, predicted, SCORE_COLUMNS)

    def one(self, name: str, gold: FloatArray, predicted: FloatArray) -> Estimate:
        """Column `name` of `scores` alone."""
        return self._told(gold, predicted, (name,))[name]

    def difference(self, name: str, gold: FloatArray, one: FloatArray, other: FloatArray) -> Estimate:
        """Column `name` of `one` minus that of `other`, all (n,): over the rows where neither is NaN, on the same resamples, and with ends
        that know of answers so rare that there is none among these (`unseen`). It leaves out 0 only where ten readers or more make it (`unless_few_differ`).

        Within readers it is of those whose values vary on both sides: a mean over other readers is another question.
        """
        chosen = ~np.isnan(one) & ~np.isnan(other)
        if name in SKIPPING:
            chosen[chosen] = vary_in_all(self.resamples.reviewer[chosen], gold[chosen], one[chosen], other[chosen])
        rows = self.only(chosen)
        first, second = (rows._scores(gold[chosen], side[chosen], (name,))[name] for side in (one, other))
        value = None if first.value is None or second.value is None else first.value - second.value
        reviewers = min(first.reviewers, second.reviewers)
        texts = None if first.texts is None or second.texts is None else min(first.texts, second.texts)
        resampled = first.resampled - second.resampled
        interval = self.interval(value, resampled, reviewers=reviewers, texts=texts)
        if first.of_items:
            interval = unless_alike(interval, resampled)
        interval = second.together.allowed(first.together.allowed(interval), below=False)
        sides = ((1.0, one[chosen]), (-1.0, other[chosen]))
        interval = rows.with_unseen(interval, name, gold[chosen], sides=sides, values=(first.value, second.value))
        interval = rows.unless_few_differ(interval, name, gold[chosen], sides=sides)
        left_out = len(np.unique(self.resamples.reviewer)) - len(np.unique(rows.reviewer)) if name in SKIPPING else None
        return Estimate(value=value, interval=interval, items=first.items, skipped_reviewers=left_out, difference=True)

    def resampled(self, name: str, gold: FloatArray, predicted: FloatArray) -> FloatArray:
        """Column `name` of `scores` in each resample: (R,), NaN where undefined. For differences on the same resamples."""
        return self._scores(gold, predicted, (name,))[name].resampled

    def resampled_scores(self, gold: FloatArray, predicted: FloatArray) -> dict[str, FloatArray]:
        """All columns of `scores` in each resample; cheaper than one at a time."""
        return {name: value.resampled for name, value in self._scores(gold, predicted, SCORE_COLUMNS).items()}

    def standing_behind(self, names: tuple[str, ...], gold: FloatArray, predicted: FloatArray) -> dict[str, Behind]:
        """Reviewers and texts that decide each of `names`.

        A mean that skips constant reviewers counts only the others, a correlation only those whose gold or predicted scores are not
        all the one that most items have.
        """
        once = Bootstrap(Resamples(self.reviewer, np.ones((self.reviewers, 1), dtype=np.float32)))
        texts = self._deciding_texts(gold, predicted)
        return {
            name: Behind(value.reviewers, texts if name in _ANY_POOLED else None)
            for name, value in once._scores(gold, predicted, names).items()
        }

    def together(self, name: str, gold: FloatArray, predicted: FloatArray) -> Departures:
        """How often both sides of column `name`, (n,) without NaN, depart from their usual answers together."""
        if name in _ANY_POOLED:
            return departures(departing(gold), departing(predicted), clusters=self.clusters)
        if name.startswith("within_"):
            return departures_within(gold, predicted, reviewer=self.reviewer)
        if name.startswith("between_"):
            means = [departing(reviewer_means(side, self.reviewer)) for side in (gold, predicted)]
            return departures(*means, clusters=[np.unique(self.reviewer)])
        return KNOWN

    def unless_rare(
        self, interval: Interval, name: str, gold: FloatArray, *, sides: Sequence[tuple[float, FloatArray]]
    ) -> Interval:
        """The interval of a sum of column `name` over `sides`, each (weight, prediction (n,)), or none where one of them rests on too few
        items on which it departs from its usual answer where the gold side does (`departures`)."""
        for weight, predicted in sides:
            interval = self.together(name, gold, predicted).allowed(interval, below=weight > 0)
        return interval

    def unless_few_differ(
        self, interval: Interval, name: str, gold: FloatArray, *, sides: Sequence[tuple[float, FloatArray]]
    ) -> Interval:
        """The interval of a difference, or none where it leaves out 0 and fewer than 10 readers, or texts where these are drawn, make it: to
        the others both sides say the same but for a tenth of what they are furthest apart (`_HARDLY`), or within readers order the same.

        Resamples know of these few alone: between two equal judges, intervals left out 0 in up to 10.5 of 100 worlds (benchmarks/few_differ.py).

        Args:
            sides: each (weight, prediction (n,)), no NaN, whose weights sum to 0.
        """
        if interval.low is None or interval.high is None or interval.low <= 0 <= interval.high:
            return interval
        apart = _apart(sides)
        if name in _OF_COLUMN:
            every = [(weight, within_every_reviewer(gold, said, self.reviewer)[_OF_COLUMN[name]]) for weight, said in sides]
            otherwise = np.abs(np.sum([weight * np.nan_to_num(one.values) for weight, one in every], axis=0)) > _SAME
            who = np.unique(self.reviewer, return_inverse=True)[1]
            # What all of a reader's answers are apart orders nothing.
            centred = [(weight, said - (np.bincount(who, weights=said) / np.bincount(who))[who]) for weight, said in sides]
            apart = np.where(otherwise[who], _apart(centred), 0.0)
        item = None if name.startswith("between_") else self.resamples.item
        makers, texts = _makers(apart, self.reviewer), None if item is None else _makers(apart, item)
        return self._too_few(makers, texts) or interval

    def with_unseen(
        self,
        interval: Interval,
        name: str,
        gold: FloatArray,
        *,
        sides: Sequence[tuple[float, FloatArray]],
        values: Sequence[float | None],
    ) -> Interval:
        """The interval of a sum of column `name`, with ends that know of answers so rare that there is none among these (`unseen`).

        Args:
            sides: each (weight, prediction (n,)), no NaN; `values` what each has in the column.
        """
        known = [(weight, value) for (weight, _), value in zip(sides, values, strict=True) if value is not None]
        if len(known) < len(sides):
            return interval
        total = sum(weight * value for weight, value in known)
        if name == "mae":
            return of_errors(total, interval, gold, sides, items=len(gold))
        return of_correlations(total, interval, [(weight * value, len(gold)) for weight, value in known])

    def _deciding_texts(self, gold: FloatArray, predicted: FloatArray) -> int | None:
        item = self.resamples.item
        return None if item is None else min(deciding(side, item) for side in (gold, predicted))

    def _estimate(self, given: _Value) -> Estimate:
        interval = self.interval(given.value, given.resampled, reviewers=given.reviewers, texts=given.texts)
        if given.of_items:
            interval = unless_alike(interval, given.resampled)
        interval = given.together.allowed(interval)
        return Estimate(value=given.value, interval=interval, items=given.items, skipped_reviewers=given.skipped)

    def _told(self, gold: FloatArray, predicted: FloatArray, names: tuple[str, ...]) -> dict[str, Estimate]:
        """`_scores` with intervals that know of answers so rare that there is none among these (`unseen`)."""
        found = {name: self._estimate(value) for name, value in self._scores(gold, predicted, names).items()}
        known = ~np.isnan(predicted)
        return {
            name: of_error(one, gold[known], predicted[known]) if name == "mae" else of_correlation(one)
            for name, one in found.items()
        }

    def _scores(self, gold: FloatArray, predicted: FloatArray, names: tuple[str, ...]) -> dict[str, _Value]:
        """`names` of `SCORE_COLUMNS` and `EVEN`, in their order."""
        chosen = ~np.isnan(predicted)
        x, y, who = gold[chosen], predicted[chosen], self.resamples.reviewer[chosen]
        found: dict[str, _Value] = {}
        reviewers = np.unique(who)
        if not set(names).isdisjoint(_ANY_POOLED):
            behind = min(deciding(side, who) for side in (x, y))
            rows = self.only(chosen)
            texts, together = rows._deciding_texts(x, y), rows.together("pearson", x, y)
            resampled = _pooled(x, y, rows.resamples, names)
            for name, one in resampled.items():
                found[name] = _Value(_ANY_POOLED[name](x, y), one, len(x), behind, texts, together=together)
        if any(name.startswith("within_") for name in names):
            found |= self._within(x, y, self.resamples.only(chosen), names)
        if any(name.startswith("between_") for name in names):
            means = reviewer_means(x, who), reviewer_means(y, who)
            asked = tuple(name.removeprefix("between_") for name in names if name.startswith("between_"))
            behind, together = (
                min(deciding(side, reviewers) for side in means),
                self.only(chosen).together("between_pearson", x, y),
            )
            for name, one in _pooled(*means, self.resamples.of_reviewers(reviewers), asked).items():
                value = between_reviewers(COEFFICIENTS[name], x, predicted=y, reviewer=who)
                found[f"between_{name}"] = _Value(value, one, len(x), behind, together=together)
        if "mae" in names:
            found["mae"] = self._mean(np.abs(gold - predicted), chosen)
        return {name: found[name] for name in names}

    def _within(self, gold: FloatArray, predicted: FloatArray, rows: Resamples, names: tuple[str, ...]) -> dict[str, _Value]:
        asked = tuple(name for name in COEFFICIENTS if any(prefix + name in names for prefix in WITHIN))
        every = within_every_reviewer(gold, predicted, rows.reviewer)
        of_all = {name: every[name] for name in asked}
        reviewers = every["pearson"].reviewers  # the same for all
        defined = np.stack([np.isfinite(within.values) for within in of_all.values()])
        once = rows.of_reviewers(reviewers)
        without = once.sums(~defined)
        if rows.item is None:
            known = once.sums(defined)
            total = once.sums(np.stack([np.nan_to_num(within.values) for within in of_all.values()]))
        else:
            # Whom a draw of items leaves without a value has none in this resample; only who has none at all counts 0.
            sums = resampled_within(gold, predicted, rows, names=asked)
            known, total = (np.stack([getattr(sums[name], part) for name in of_all]) for part in ("defined", "total"))
        found, together = {}, Bootstrap(rows).together("within_pearson", gold, predicted)
        for prefix, convention in WITHIN.items():
            for nth, (name, within) in enumerate(of_all.items()):
                skips = convention is Convention.SKIP_CONSTANT
                resampled = divide(total[nth], known[nth] if skips else known[nth] + without[nth])
                found[prefix + name] = _Value(
                    within.mean(convention), resampled, len(gold), within.used, skipped=within.skipped, together=together
                )
        return found

    def _mean(self, values: FloatArray, chosen: BoolArray) -> _Value:
        kept, rows = values[chosen], self.resamples.only(chosen)
        total, number = rows.sums(np.stack([kept, np.ones_like(kept)]))
        value = float(kept.mean()) if len(kept) else None
        return _Value(value, divide(total, number), len(kept), len(np.unique(rows.reviewer)), of_items=True)


def _apart(sides: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """How far apart the sides of either sign are of each item, (n,): what would have to be moved, and how far, for the ones to say what the others say
    (the Wasserstein distance), so that the passes of one side are no mean in which they cancel each other out."""
    weights, said = np.array([weight for weight, _ in sides]), np.stack([given for _, given in sides])
    order = said.argsort(axis=0)
    over = np.abs(weights[order].cumsum(axis=0))[:-1]  # (S - 1, n)
    found: FloatArray = np.nan_to_num((over * np.diff(np.take_along_axis(said, order, axis=0), axis=0)).sum(axis=0))
    return found


def _makers(apart: FloatArray, cluster: IntArray) -> int:
    """How many clusters make the differences, (n,): those whose root mean square is more than `_HARDLY` anything beside the largest."""
    who = np.unique(cluster, return_inverse=True)[1]
    size = np.sqrt(np.bincount(who, weights=apart**2) / np.bincount(who)) if len(who) else np.zeros(0)
    return int((size > max(_SAME, _HARDLY * float(size.max(initial=0.0)))).sum())


def _pooled(gold: FloatArray, predicted: FloatArray, resamples: Resamples, names: tuple[str, ...]) -> dict[str, FloatArray]:
    found = {"pearson": resampled_pearson(gold, predicted, resamples)} if "pearson" in names else {}
    if set(RANKS) & set(names):
        found |= resampled_ranks(gold, predicted, resamples)
    return {name: found[name] for name in _ANY_POOLED if name in names}
