"""The differences found between judges, as plain JSON. Undefined is None with a reason, never NaN or 0."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from perse.evaluation.comparing.sides import Reading
from perse.evaluation.metrics import lower_is_better
from perse.evaluation.stats.results import Drawn
from perse.judgement import Status
from perse.results.result import Estimate, Interval

LEVEL = 0.05
"""Significance level of p adjusted by Holm."""
NOTHING_ANSWERED = Interval(reason="undefined (no item answered by both)")
NOTHING_ORDERED = Interval(reason="undefined (no reader whose texts both order)")


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Contrast(_Result):
    """One metric of two sides on the same items. None means undefined; a reason stands beside it."""

    metric: str
    one: float | None
    other: float | None
    difference: float | None
    """`one` minus `other`; of an error (MAE), less is better."""
    interval: Interval
    """Of the difference."""
    items: int
    reviewers: int
    """That decide it: to the others one side says the same throughout, or the readers do."""
    texts: int | None = None
    """The same of texts, of a correlation where these are drawn, too."""
    p: float | None
    """Two-sided, of the exchange of answers by reviewer."""
    p_reason: str | None = None
    p_exact: bool = False
    """Whether all exchanges were counted; else they were drawn."""
    p_holm: float | None = None
    """Adjusted over all contrasts of the comparison."""
    williams_p: float | None = None
    """Of pooled Pearson alone; assumes independent rows, for comparability with papers only."""
    left_out: int = 0
    """Within readers: those of the comparison that it is not of, since either side, or they themselves, say the same of all their items, or they have one."""
    constant_on_one: int = 0
    """Within readers: reviewers left out on both sides since only one side says the same of all their items."""
    against_chance: Interval | None = None
    """Beside a baseline, which may itself be worse than chance: by how much `one` is better than chance, of MAE than the best constant
    answer to these items."""
    against_constant: Interval | None = None
    """Of accuracy, beside a baseline: by how much `one` is better than the best constant answer to these pairs, or the majority of the training side, if that has more ..."""
    constant: str | None = None
    """... and which of the two that is."""
    against_rounded: Interval | None = None
    """Of a judge that gives labels alone, beside the reader's own average: the same difference from that average as a label."""
    ties_apart: Interval | None = None
    """Of Kendall tau-b that is shown to differ: of 2 (concordant - discordant) / n^2, in which ties count for neither side."""
    of_all: Interval | None = None
    """Within readers, of what is shown to differ and leaves out readers to whom one side says the same of everything: the difference where these count 0."""
    unlike: Interval | None = None
    """Of MAE that is shown to differ: the difference where as many readers as none of these allows may be unlike all of them, and the better side as wrong
    for those as the scale allows."""

    @property
    def estimate(self) -> Estimate:
        """The difference as a cell."""
        return Estimate(value=self.difference, interval=self.interval, items=self.items, difference=True)

    @property
    def by_ties(self) -> bool:
        """Whether the difference is not shown where ties count for neither."""
        return self.ties_apart is not None and not self._on_its_side(self.ties_apart)

    @property
    def by_silence(self) -> bool:
        """Whether the difference is not shown where readers to whom one side says the same of everything count 0."""
        return self.of_all is not None and not self._on_its_side(self.of_all)

    def _on_its_side(self, interval: Interval) -> bool:
        again, estimate = Estimate(value=None, interval=interval, items=0), self.estimate
        return (again.above_zero, again.below_zero) == (estimate.above_zero, estimate.below_zero)

    @property
    def of_these_readers(self) -> bool:
        """Whether the difference is shown of these readers alone: readers of whom the sample has none could undo it."""
        if self.unlike is None:
            return False
        beyond = Estimate(value=None, interval=self.unlike, items=0)
        return not (beyond.above_zero or beyond.below_zero)

    @property
    def better(self) -> bool | None:
        """Whether `one` is shown to be better (True) or worse (False); None if neither is shown, by p and by the interval;
        of these readers alone, where `of_these_readers`."""
        estimate = self.estimate
        shown = self.p_holm is not None and self.p_holm <= LEVEL and (estimate.above_zero or estimate.below_zero)
        if not shown or self.by_ties or self.by_silence:
            return None
        return estimate.below_zero == lower_is_better(self.metric)


class Pairing(_Result):
    """Two judges, or a judge and a baseline."""

    one: str
    other: str
    baseline: bool
    """Whether `other` is a baseline."""
    reading: Reading
    """What of both was compared."""
    items: int
    answered: int
    """Items that both answered."""
    contrasts: tuple[Contrast, ...]
    verdict: str
    """The conclusion in one sentence."""


class JudgedItems(_Result):
    """What one judge was asked, beside what it is compared on."""

    judged: int
    common: int
    dropped: int
    """Judged, but not by every judge or without a true answer."""
    dropped_ids: tuple[str, ...]
    """The first few of them."""
    ok: int
    """Of the common ones."""
    failed: dict[Status, int] = {}
    """Of the common ones that were not answered, how many for which reason."""


class Simple(_Result):
    """The baseline's values on all common items, by metric; or why it is unavailable."""

    name: str
    values: dict[str, Estimate] = {}
    unavailable: str | None = None


class Comparison(_Result):
    """Judges compared on the items common to all."""

    kind: Literal["pointwise", "pairwise"]
    items: int
    reviewers: int
    judges: dict[str, JudgedItems]
    pairings: tuple[Pairing, ...]
    baselines: tuple[Simple, ...] = ()
    """All rows of `perse evaluate`, without p values."""
    metrics: tuple[str, ...]
    family: int
    """Number of p values that Holm's adjustment is over."""
    resample: Drawn = "reviewers"
    resamples: int
    permutations: int
    seed: int
    notes: tuple[str, ...] = ()
