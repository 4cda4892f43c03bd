"""How often a 95% interval covers the truth, by the number of reviewers behind it and by the way it is made.

    python benchmarks/interval_coverage.py --simulations 1000

Reviewers with their own leniency and their own agreement with the judge give whole scores from 1 to 10 to 5 to 11 items each;
the truth is the value over 100,000 reviewers. Every method sees the same resamples. A nominal 95% is met up to chance by
95 +- 1.4 points with 1,000 simulations. `perse.evaluation.stats.intervals` has the method that this table speaks for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import stats

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import LEVEL, bootstrap_interval
from perse.evaluation.stats.ordinal import rps_values
from perse.evaluation.stats.resamples import Resamples

REVIEWERS = (10, 20, 50, 200)
STATISTICS = (
    "pearson",
    "spearman",
    "kendall",
    "within_kendall",
    "between_pearson",
    "mae",
    "accuracy",
    "blind_mae",
    "blind_rps",
)
"""The last two are of a judge that knows nothing of a reader's leniency: its errors are a few readers'."""
POPULATION = 100_000

Method = Callable[[float, FloatArray, FloatArray], tuple[float, float]]
"""Value, its resamples (R,) and its leave-one-reviewer-out values (C,) -> low, high."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--reviewers", type=int, nargs="+", default=REVIEWERS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the shares as JSON on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.simulations, options.resamples, options.reviewers = 2, 50, [10]
    console = Console(stderr=True)
    everybody = Sample(POPULATION, (options.seed, 0))
    truth = everybody.values(Resamples(everybody.reviewer, np.ones((POPULATION, 1), dtype=np.float32)))
    covered: dict[str, dict[str, dict[int, float]]] = {name: {method: {} for method in METHODS} for name in STATISTICS}
    for size in options.reviewers:
        hits: dict[tuple[str, str], list[bool]] = {(name, method): [] for name in STATISTICS for method in METHODS}
        numbers = range(options.simulations)
        for number in track(numbers, description=f"{size} reviewers", console=console):
            for name, (value, resampled, left_out) in _one(size, (options.seed, size, number), options.resamples).items():
                for method, interval in METHODS.items():
                    low, high = interval(value, resampled, left_out)
                    hits[name, method].append(bool(low <= truth[name][0] <= high))
        for (name, method), found in hits.items():
            covered[name][method][size] = float(np.mean(found))
    if options.json:
        told = {name: float(value[0]) for name, value in truth.items()}
        print(json.dumps({**vars(options), "truth": told, "covered": covered}, indent=2))
    else:
        print(_markdown(covered, options.reviewers))


class Sample:
    """Reviewers with their items: gold and predicted scores, and whether a choice was right."""

    def __init__(self, reviewers: int, seed: tuple[int, ...]) -> None:
        generator = np.random.default_rng(seed)
        items = generator.integers(5, 12, reviewers)
        self.reviewer: IntArray = np.repeat(np.arange(reviewers), items)
        rows = len(self.reviewer)

        def own(mean: float, spread: float) -> FloatArray:
            """One number a reviewer, repeated for their items."""
            drawn: FloatArray = generator.normal(mean, spread, reviewers)[self.reviewer]
            return drawn

        leniency, quality = own(6.5, 1.2), generator.normal(0, 1.3, rows)
        self.gold = np.clip(np.round(leniency + quality + generator.normal(0, 1, rows)), 1, 10)
        predicted = 6 + 0.5 * (leniency - 6.5) + own(0.5, 0.4) * quality + own(0, 0.5) + generator.normal(0, 0.7, rows)
        self.predicted = np.round(predicted, 1)
        right = generator.beta(6, 4, reviewers)[self.reviewer]
        self.hits = (generator.random(rows) < right).astype(np.float64)
        blind = 6.5 + 0.6 * quality + own(0, 0.7)
        steps = stats.norm.cdf((np.arange(0.5, 11) - blind[:, None]) / 1.5)  # (rows, 11)
        given = np.diff(steps, axis=1) / (steps[:, -1:] - steps[:, :1])  # (rows, 10)
        self.blind_mae: FloatArray = np.abs(self.gold - given @ np.arange(1, 11))
        self.blind_rps = rps_values(self.gold, given)

    def values(self, resamples: Resamples) -> dict[str, FloatArray]:
        """Each statistic in each resample, (R,)."""
        bootstrap = Bootstrap(resamples)
        found = bootstrap.resampled_scores(self.gold, self.predicted)
        everything = np.ones(len(self.hits), dtype=bool)
        for name, values in (("accuracy", self.hits), ("blind_mae", self.blind_mae), ("blind_rps", self.blind_rps)):
            found[name] = bootstrap.resampled_mean(values, everything)
        return {name: found[name] for name in STATISTICS}


def _one(size: int, seed: tuple[int, ...], resamples: int) -> dict[str, tuple[float, FloatArray, FloatArray]]:
    """Value, resamples and leave-one-out values of each statistic in one simulation."""
    sample = Sample(size, seed)
    bootstrap = Bootstrap.over(sample.reviewer, resamples=resamples, seed=int(np.random.default_rng(seed).integers(2**31)))
    drawn = bootstrap.resamples.drawn
    once, left_out = np.ones((size, 1)), 1 - np.eye(size)
    together = np.concatenate([once, left_out, drawn], axis=1).astype(np.float32)
    found = sample.values(Resamples(sample.reviewer, together))
    return {name: (float(values[0]), values[1 + size :], values[1 : 1 + size]) for name, values in found.items()}


def _percentile(value: float, resampled: FloatArray, left_out: FloatArray) -> tuple[float, float]:
    low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _expanded(value: float, resampled: FloatArray, left_out: FloatArray) -> tuple[float, float]:
    interval = bootstrap_interval(resampled, reviewers=len(left_out))
    assert interval.low is not None and interval.high is not None, interval.reason
    return interval.low, interval.high


def _reach(size: int) -> float:
    return float(np.sqrt(size / (size - 1)) * stats.t.ppf((1 + LEVEL) / 2, size - 1))


def _accelerated(value: float, resampled: FloatArray, left_out: FloatArray) -> tuple[float, float]:
    """BCa (Efron, 1987), its levels expanded in the same way."""
    bias = stats.norm.ppf(np.clip((resampled < value).mean() + (resampled == value).mean() / 2, 1e-3, 1 - 1e-3))
    away = np.nanmean(left_out) - left_out
    acceleration = np.nansum(away**3) / (6 * np.nansum(away**2) ** 1.5)
    reach = bias + np.array([-1, 1]) * _reach(len(left_out))
    low, high = np.nanquantile(resampled, stats.norm.cdf(bias + reach / (1 - acceleration * reach)))
    return float(low), float(high)


def _jackknife(value: float, resampled: FloatArray, left_out: FloatArray) -> tuple[float, float]:
    size = len(left_out)
    error = np.sqrt((size - 1) / size * np.nansum((left_out - np.nanmean(left_out)) ** 2))
    reach = stats.t.ppf((1 + LEVEL) / 2, size - 1) * error
    return float(value - reach), float(value + reach)


METHODS: Mapping[str, Method] = {
    "percentile": _percentile,
    "expanded percentile": _expanded,
    "expanded BCa": _accelerated,
    "jackknife t": _jackknife,
}


def _markdown(covered: Mapping[str, Mapping[str, Mapping[int, float]]], sizes: tuple[int, ...]) -> str:
    lines = ["| statistic | interval |" + "".join(f" {size} reviewers |" for size in sizes), "|---|---|" + "---:|" * len(sizes)]
    for name, methods in covered.items():
        for method, shares in methods.items():
            lines.append(f"| {name} | {method} |" + "".join(f" {shares[size]:.1%} |" for size in sizes))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
