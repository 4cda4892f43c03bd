"""How often intervals cover the truth, and verdicts are wrong, where nearly all answers are the same.

    python benchmarks/nearly_constant.py --worlds 1000

*Shares*: readers with as many items each, of which a share is 1 and the rest 0; readers may differ in that share (a beta distribution,
of which the correlation of two items of one reader is given). *Differences*: two judges of pairs, who differ on a share of them; of
those a share speaks for the first judge, and readers may differ in both shares; where it is a half, no judge is better. Beside the intervals stands the
p of the exchange test, by readers. *Bias*: pairs of texts asked in both orders, of which some are chosen alike;
of the others a judge prefers the first text in 90%. *Kendall*: 40 readers of 8 items, all answers equal but a few, drawn at random, that
differ at random. *Accuracy*: 40 readers of 6 pairs, a judge that says A but to a few random pairs, minus always saying A. Of
these two the truth is 0: "better" and "worse" are each wrong in 2.5 of 100 where there is an interval. An interval that does not exist
covers nothing.
"""

from __future__ import annotations

import argparse
import json
from itertools import product

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Estimate
from perse.studies.contamination.known_works import bias, mean, over_items

SHARES = ((24, 1), (100, 1), (10, 16), (12, 8), (40, 8))
"""Readers and items of each."""
TRUE = (0.01, 0.05, 0.1, 0.5, 0.9)
CORRELATED = (0.0, 0.1, 0.4)
DIFFERENCES = ((12, 1), (10, 16), (12, 8), (40, 6), (100, 4))
DIFFER, FIRST = (0.03, 0.2, 0.9), (0.5, 0.8, 1.0)
"""Of all pairs: on which the judges differ; and of these: which speak for the first."""
OF_READERS = ((0.0, 0.0), (0.3, 0.6))
"""Correlations of two pairs of one reader: in whether the judges differ, and in whom it speaks for."""
EXCHANGES = 400
PAIRS, ALIKE = (12, 24, 40, 100), (0.03, 0.1, 0.5, 0.95)
DIFFERENT = (3, 6, 12, 20, 40, 80)
"""Answers that are not the common one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 50
    found = Worlds(options.worlds, options.resamples, options.seed)
    told = {
        "shares": found.shares(),
        "differences": found.differences(),
        "bias": found.biases(),
        "kendall": found.kendall(),
        "accuracy": found.accuracy(),
    }
    print(json.dumps({"worlds": options.worlds, "percent": told}, indent=1))


class Worlds:
    """Each method gives percentages by world."""

    def __init__(self, number: int, resamples: int, seed: int) -> None:
        self.number, self.resamples, self.seed = number, resamples, seed

    def shares(self) -> dict[str, dict[str, float]]:
        """Covered by the interval of a share, and by the bootstrap alone."""
        found = {}
        for (readers, items), share, together in product(SHARES, TRUE, CORRELATED):
            if items == 1 and together:
                continue
            hits = []
            for generator, seed in self._each(f"share {readers} x {items}, {share}, {together}"):
                own = _of_readers(generator, share, together, readers)
                values = (generator.random((readers, items)) < own[:, None]).astype(float).ravel()
                bootstrap = Bootstrap.over(np.repeat(np.arange(readers), items), resamples=self.resamples, seed=seed)
                everything = np.ones(len(values), dtype=bool)
                both = bootstrap.share(values, everything), bootstrap.mean(values, everything)
                hits.append([_covers(one, share) for one in both])
            ours, alone = _percent(hits)
            found[f"{readers} x {items}, {share}, correlated {together}"] = {"covered": ours, "by a bootstrap": alone}
        return found

    def differences(self) -> dict[str, dict[str, float]]:
        """Covered; wholly above 0, below 0; and how often p of the exchange test alone, or the interval alone, says that they differ."""
        found = {}
        for (readers, items), differ, first, (same, together) in product(DIFFERENCES, DIFFER, FIRST, OF_READERS):
            if items == 1 and together:
                continue
            who, every = np.repeat(np.arange(readers), items), np.ones(readers * items, dtype=bool)
            signs = np.where(np.random.default_rng(self.seed).random((EXCHANGES, readers)) < 0.5, 1.0, -1.0)
            hits = []
            for generator, seed in self._each(f"difference {readers} x {items}, {differ}, {first}, {same}"):
                apart = generator.random(len(who)) < _of_readers(generator, differ, same, readers)[who]
                for_first = generator.random(len(who)) < _of_readers(generator, first, together, readers)[who]
                values = np.where(apart, np.where(for_first, 1.0, -1.0), 0.0)
                estimate = Bootstrap.over(who, resamples=1, seed=seed).shares_apart(values, every)
                sums = np.bincount(who, weights=values)
                p = (1 + (np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9).sum()) / (1 + EXCHANGES)
                shown = estimate.above_zero or estimate.below_zero
                covered = _covers(estimate, differ * (2 * first - 1))
                told = (estimate.above_zero, estimate.below_zero, p <= 0.05 and not shown, shown and p > 0.05)
                hits.append([covered, *told])
            names = ("covered", "above", "below", "p alone", "interval alone")
            key = f"{readers} x {items}, differ {differ}, for the first {first}, correlated {same} and {together}"
            found[key] = dict(zip(names, _percent(hits), strict=True))
        return found

    def biases(self) -> dict[str, dict[str, float]]:
        """Covered by the contamination study's intervals."""
        found = {}
        for pairs, alike in product(PAIRS, ALIKE):
            hits = []
            for generator, seed in self._each(f"bias {pairs}, {alike}"):
                same = generator.random(pairs) < alike
                values = np.where(same, 0, np.where(generator.random(pairs) < 0.9, 0.5, -0.5))
                bootstrap, everything = over_items(pairs, resamples=self.resamples, seed=seed), np.ones(pairs, dtype=bool)
                consistency = mean(bootstrap, same.astype(float), everything)
                hits.append([_covers(consistency, alike), _covers(bias(bootstrap, values, everything), 0.4 * (1 - alike))])
            consistent, ahead = _percent(hits)
            found[f"{pairs} pairs, {alike}"] = {"consistency": consistent, "bias": ahead}
        return found

    def kendall(self) -> dict[str, dict[str, float]]:
        """Of worlds that have an interval: wholly above, wholly below 0."""
        found = {}
        for different in DIFFERENT:
            estimates = []
            for generator, seed in self._each(f"Kendall, {different} differ"):
                who = np.repeat(np.arange(40), 8)
                gold = 6 + generator.normal(0, 1, 40)[who] + generator.normal(0, 1.5, 320)
                given = np.full(320, 6.0)
                given[generator.choice(320, different, replace=False)] += generator.normal(size=different)
                bootstrap = Bootstrap.over(who, resamples=self.resamples, seed=seed)
                estimates.append(bootstrap.one("kendall", np.clip(np.round(gold), 1, 10), given))
            found[f"{different} of 320 differ"] = _verdicts(estimates)
        return found

    def accuracy(self) -> dict[str, dict[str, float]]:
        """The same of a judge's accuracy minus that of always saying A."""
        found = {}
        for different in DIFFERENT:
            estimates = []
            for generator, seed in self._each(f"accuracy, {different} differ"):
                a_is_right = (generator.random(240) < 0.5).astype(float)
                hits = a_is_right.copy()
                other = generator.choice(240, different, replace=False)
                hits[other] = 1 - hits[other]
                bootstrap = Bootstrap.over(np.repeat(np.arange(40), 6), resamples=self.resamples, seed=seed)
                estimates.append(bootstrap.shares_apart(hits - a_is_right, np.ones(240, dtype=bool)))
            found[f"{different} of 240 differ"] = _verdicts(estimates)
        return found

    def _each(self, description: str) -> list[tuple[np.random.Generator, int]]:
        numbers = range(self.number)
        shown = track(numbers, description=description, console=Console(stderr=True))
        return [(np.random.default_rng((self.seed, number)), number) for number in shown]


def _of_readers(generator: np.random.Generator, share: float, together: float, readers: int) -> FloatArray:
    """(C,) each reader's own share, so that two of their items correlate by `together`."""
    if not together or share in (0.0, 1.0):
        return np.full(readers, share)
    a, b = (part * (1 - together) / together for part in (share, 1 - share))
    return generator.beta(a, b, readers)


def _covers(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval.low, estimate.interval.high
    return low is not None and high is not None and low <= truth <= high


def _percent(hits: list[list[bool]]) -> list[float]:
    shares: FloatArray = 100 * np.array(hits, dtype=float).mean(axis=0)
    return [round(float(one), 1) for one in shares]


def _verdicts(estimates: list[Estimate]) -> dict[str, float]:
    known = [one for one in estimates if one.interval.low is not None]
    better, worse = sum(one.above_zero for one in known), sum(one.below_zero for one in known)
    number = max(1, len(known))
    return {
        "with an interval": round(100 * len(known) / len(estimates), 1),
        "better": round(100 * better / number, 1),
        "worse": round(100 * worse / number, 1),
    }


if __name__ == "__main__":
    main()
