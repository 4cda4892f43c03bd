"""The common shape of a study: some judges, each asked under several conditions, measured on the items that all answered.

A condition is a place on the x axis: a k, an arm's name. Baselines that need a profile are computed under each condition
from the profiles that are shown there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from perse.evaluation.differences import as_coarse, labels_alone, least
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.significance import holm
from perse.judgement import Status
from perse.records import Example, chooses
from perse.results.result import Cell, Estimate, Point, Table
from perse.studies.frame.arms import Answers
from perse.studies.frame.summarizing import (
    NOTHING,
    SharedResamples,
    answered_by_all,
    arithmetic,
    crossed_note,
    heading,
    headline,
    mean_of,
    metrics_of,
    minus,
    note_of_shares,
    points,
    readings,
    undefined,
    verdict,
)
from perse.studies.frame.unanswered import coverage

BASELINES = ("profile average", "copy the example")
"""What needs a profile and no judge."""
SHOWN = "entries shown"
"""Heads the column of how many entries of a profile fitted the prompt."""
READINGS = (
    "a judge's own row is the expected score (pairs: the likelier choice) of its distribution over the labels, or its label where it gave none (half a one where that is another when a pair's texts are swapped); a row marked (label) is the "
    "answer that it gave, one random draw at a temperature above 0, as in the paper"
)


def paired(metrics: Sequence[str]) -> str:
    """What stands below a table of differences in these metrics."""
    alone = "each interval is looked at by itself, and nothing is adjusted for how many there are"
    if "kendall" not in metrics:
        return f"paired: the same pairs on both sides; {alone}"
    return (
        "paired: the same items and the same resamples (of readers, and of texts where these are drawn, too) on both sides; a lower MAE is better; within: readers whose values "
        f"are constant are left out on each side by itself; {alone}; a difference in Kendall tau-b may be one of ties alone: those that the answer tells are looked at again where ties count for neither"
    )


@dataclass(frozen=True)
class Condition:
    """One judge asked in one way, once or in several passes. `examples` are what was shown."""

    judge: str
    x: str
    passes: tuple[Answers, ...]
    examples: Sequence[Example]


@dataclass(frozen=True)
class Measured:
    """Values of every series (a judge, its labels, a baseline) at every x, all on the same items."""

    shared: SharedResamples
    metrics: tuple[str, ...]
    main: str
    """The metric that the answer is told in."""
    values: Mapping[tuple[str, str], tuple[FloatArray, ...]]
    """(series, x) -> the predictions of each pass; none where it was not answered."""
    points: tuple[Point, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """series, x, mean profile entries that fitted, ok / asked, and the metrics."""
    notes: tuple[str, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """The metrics as tables head them."""
        return tuple(map(heading, self.metrics))

    def table(self, title: str, x: str) -> Table:
        """All values; `x` is what the conditions are called."""
        return Table(title=title, header=("who", x, SHOWN, "answered", *self.headings), rows=self.rows)

    def difference(self, left: tuple[str, str], right: tuple[str, str], metric: str) -> Estimate:
        """`left` minus `right`, paired; undefined where one has no value."""
        missing = [place for place in (left, right) if not self.values.get(place)]
        if missing:
            return undefined(f"no value of {missing[0][0]} at {missing[0][1]}: {NOTHING}")
        return self.shared.value(metric, minus(mean_of(self.values[left]), mean_of(self.values[right])))

    def told(self, left: tuple[str, str], right: tuple[str, str], *, adjusted: float | None = None) -> str:
        """`difference` of the main metric in words (`SharedResamples.told`)."""
        if not self.values.get(left) or not self.values.get(right):
            return verdict(self.difference(left, right, self.main))
        return self.shared.told(self.main, minus(mean_of(self.values[left]), mean_of(self.values[right])), holm=adjusted)

    def told_together(self, left: tuple[str, str], others: Sequence[tuple[str, str]], *, seed: int) -> list[str]:
        """As `told` of `left` minus each of `others`, as one family: p of each is adjusted by Holm, so that more of them do not find more by chance."""
        found = [self._exchanged(left, right, seed=seed) for right in others]
        return [self.told(left, right, adjusted=p) for right, p in zip(others, holm(found), strict=True)]

    def _exchanged(self, left: tuple[str, str], right: tuple[str, str], *, seed: int) -> float | None:
        if not self.values.get(left) or not self.values.get(right):
            return None
        one, other = (np.mean(self.values[side], axis=0) for side in (left, right))
        return self.shared.exchanged(self.main, one, other, seed=seed)

    def differences(self, left: tuple[str, str], right: tuple[str, str]) -> tuple[Estimate, ...]:
        """`difference` for every metric."""
        return tuple(self.difference(left, right, metric) for metric in self.metrics)

    def value(self, series: str, x: str, metric: str) -> Estimate:
        """The value of a point."""
        passes = self.values.get((series, x))
        return self.shared.value(metric, mean_of(passes)) if passes else undefined(NOTHING)

    def over_rounded(self, series: str, average: str, x: str) -> Estimate | None:
        """The main metric of a judge that gives labels alone, minus that of an average told as coarsely (`as_coarse`), where that is least; of one that
        is not behind, which ties may be, too (`told`)."""
        mine, others = self.values[series, x], self.values[average, x]
        if self.main == "accuracy" or not mine or not all(map(labels_alone, mine)):
            return None
        if self.difference((series, x), (average, x), self.main).below_zero:
            return None
        told = zip(*(as_coarse(theirs, one) for theirs, one in zip(cycle(others), mine, strict=False)), strict=True)
        return least([self.shared.value(self.main, minus(mean_of(mine), mean_of(one))) for one in told])

    def simple(self, x: str) -> str | None:
        """The baseline of the profile that there is at `x`."""
        return next((name for name in BASELINES if self.values.get((name, x))), None)


def measure(conditions: Sequence[Condition], *, resamples: int, seed: int) -> Measured:
    """Measure the conditions on the items that every pass of every one answered (pairs: all; one not answered is wrong, and an arm
    without any answer has no value)."""
    named = {f"{one.judge}, {one.x}, pass {n}": answers for one in conditions for n, answers in enumerate(one.passes, start=1)}
    common = set.intersection(*({example.id for example in one.examples} for one in conditions))
    asked = [example for example in conditions[0].examples if example.id in common]
    kept = {example.id for example in answered_by_all(asked, named)} if asked else set()
    shown = {id(one): [example for example in one.examples if example.id in kept] for one in conditions}
    shared = SharedResamples.over(shown[id(conditions[0])] or conditions[0].examples, resamples=resamples, seed=seed)
    metrics = metrics_of(conditions[0].examples)
    values: dict[tuple[str, str], tuple[FloatArray, ...]] = {}
    found: list[Point] = []
    rows: list[tuple[Cell, ...]] = []
    for one in conditions:
        for series, passes in readings(one.judge, shown[id(one)], one.passes).items():
            values[series, one.x] = passes
            here = points(shared, series, one.x, metrics=metrics, passes=passes)
            found += here
            rows.append((series, one.x, _entries(one.passes), _answered(one.passes), *(point.estimate for point in here)))
    for one in {one.x: one for one in conditions}.values() if kept else ():
        for name, predicted in arithmetic(shown[id(one)], seed=seed).items():
            values[name, one.x] = (predicted,)
            here = points(shared, name, one.x, metrics=metrics, passes=[predicted], baseline=True)
            found += here
            rows.append((name, one.x, None, None, *(point.estimate for point in here)))
    largest = max(len(one.examples) for one in conditions)
    notes = [_behind(len(kept), largest, pairs=chooses(conditions[0].examples))]
    notes += note_of_shares(asked)
    notes += crossed_note([example for example in asked if example.id in kept])
    notes += coverage(named)
    return Measured(shared, metrics, headline(conditions[0].examples), values, tuple(found), tuple(rows), (*notes, READINGS))


def _behind(kept: int, asked: int, *, pairs: bool) -> str:
    """What the values are of (see `answered_by_all`)."""
    if pairs:
        return f"{kept} of {asked} pairs stand behind each value: those asked under every condition; one that was not answered is a wrong one"
    return f"{kept} of {asked} items stand behind each value: those that have an answer under every condition that has any"


def _ok(answers: Answers) -> int:
    return sum(judgement.status is Status.OK for judgement in answers.values())


def _entries(passes: Sequence[Answers]) -> str | None:
    """Mean number of profile entries that fitted the prompt, over what was answered."""
    known = [one.k_effective for answers in passes for one in answers.values() if one.status is Status.OK]
    return f"{sum(known) / len(known):.2f}" if known else None


def _answered(passes: Sequence[Answers]) -> str:
    return f"{sum(map(_ok, passes))}/{sum(map(len, passes))}"
