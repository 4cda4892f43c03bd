"""How often the interval of an AUROC of `perse kgds agreement` covers the truth: by a bootstrap's percentiles alone, and as told.

    python benchmarks/kgds_agreement.py --worlds 400

Samples with true and false claims, as many of each, some samples harder than others. *Graded*: P(yes) is as fine as numbers are. *Yes and no*: it is nearly 0 or 1.
*Rarely wrong*: true and false are far apart, but for single claims that the judge has the wrong way round. *A difference*: the same judge's claims asked in
two ways, neither of which is better. 2.5 of 100 are meant on each side: *too high*, the whole interval lies above the truth, *too low*, below it. *None*: no interval, where
nothing is out of order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.stats import norm

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.kgds.agreement.measures import SampleResamples
from perse.results.result import Interval

AUROCS = (0.5, 0.8, 0.95, 0.99)
HARD = 0.4
"""Standard deviation of how a sample's claims are taken alike, and of how well they are told apart; of a claim by itself and both it is 1."""
MANY = 20_000
"""Samples of which the truth is computed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--samples", type=int, nargs="+", default=[12, 30, 80])
    parser.add_argument("--each", type=int, nargs="+", default=[2, 6], help="true claims of a sample, and false ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples, options.samples, options.each = 2, 100, [12], [2]
    print(
        "| samples | claims | P(yes) | truth | percentiles: too high | too low | width | as told: too high | too low | width | none |"
    )
    print("|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in options.samples:
        shared = SampleResamples(size, resamples=options.resamples, seed=0)
        for each in options.each:
            for nth, (name, kind) in enumerate(KINDS.items()):
                for aim in AUROCS:
                    seed = (options.seed, each, nth, int(100 * aim))
                    truth = 0.0 if name == DIFFERENCE else _truth(*kind(np.random.default_rng(seed), MANY, each, aim)[:2])
                    rows = []
                    for number in track(range(options.worlds), description=f"{size}, {name}", console=Console(stderr=True)):
                        generator = np.random.default_rng((*seed, size, number))
                        rows.append(_world(*kind(generator, size, each, aim), truth=truth, shared=shared))
                    of_kinds = np.array(rows)
                    widths = [np.nanmean(of_kinds[:, at]) if np.isfinite(of_kinds[:, at]).any() else np.nan for at in (2, 5)]
                    high, low, told_high, told_low, none = (f"{100 * of_kinds[:, at].mean():.1f}" for at in (0, 1, 3, 4, 6))
                    print(
                        f"| {size} | {2 * each * size} | {name} | {truth:.3f} | {high} | {low} | {widths[0]:.3f} | {told_high} | {told_low} | {widths[1]:.3f} | {none} |",
                        flush=True,
                    )


Claims = tuple[FloatArray, BoolArray, IntArray, FloatArray | None]
"""P(yes) or a score in its order, the truth and the sample of each claim, and the score by another way of asking."""


def _claims(samples: int, each: int) -> tuple[BoolArray, IntArray]:
    return np.tile(np.arange(2 * each) % 2 == 0, samples), np.repeat(np.arange(samples), 2 * each)


def _graded(generator: np.random.Generator, samples: int, each: int, aim: float) -> Claims:
    truth, sample = _claims(samples, each)
    alike, apart = generator.normal(0, HARD, (2, samples))[:, sample]
    own = generator.normal(0, np.sqrt(1 - 2 * HARD**2), len(sample))
    return np.sqrt(2) * norm.ppf(aim) * (truth - 0.5) + alike + apart * (2 * truth - 1) + own, truth, sample, None


def _yes_and_no(generator: np.random.Generator, samples: int, each: int, aim: float) -> Claims:
    score, truth, sample, _ = _graded(generator, samples, each, aim)
    return np.round(1 / (1 + np.exp(-6 * score)), 2), truth, sample, None


def _rarely_wrong(generator: np.random.Generator, samples: int, each: int, aim: float) -> Claims:
    truth, sample = _claims(samples, each)
    hard = np.minimum(0.5, (1 - aim) / 2 * np.exp(generator.normal(-0.5, 1, samples)))[sample]
    wrong = generator.random(len(sample)) < hard
    return np.where(truth ^ wrong, 0.9, 0.1) + generator.normal(0, 0.02, len(sample)), truth, sample, None


def _both_ways(generator: np.random.Generator, samples: int, each: int, aim: float) -> Claims:
    score, truth, sample, _ = _graded(generator, samples, each, aim)
    one, other = score + generator.normal(0, 0.3, (2, len(score)))
    return one, truth, sample, other


DIFFERENCE = "a difference"
KINDS: dict[str, Callable[[np.random.Generator, int, int, float], Claims]] = {
    "graded": _graded,
    "yes and no": _yes_and_no,
    "rarely wrong": _rarely_wrong,
    DIFFERENCE: _both_ways,
}


def _truth(score: FloatArray, truth: BoolArray) -> float:
    _, place = np.unique(score, return_inverse=True)
    true, false = (np.bincount(place[side], minlength=place.max() + 1) for side in (truth, ~truth))
    return float((true * (np.cumsum(false) - false / 2)).sum() / true.sum() / false.sum())


def _world(
    score: FloatArray, claims: BoolArray, sample: IntArray, other: FloatArray | None, *, truth: float, shared: SampleResamples
) -> list[float]:
    every = np.ones_like(claims)
    found = shared.auroc(score, claims, chosen=every, sample=sample)
    if other is not None:
        found = found.minus(shared.auroc(other, claims, chosen=every, sample=sample))
    told = found.estimate().interval
    alone = bootstrap_interval(found.resampled, reviewers=found.samples, of="sample")
    if told.low is None:
        alone = told
    return [*_told(alone, truth), *_told(told, truth), told.low is None]


def _told(interval: Interval, truth: float) -> list[float]:
    if interval.low is None or interval.high is None:
        return [0.0, 0.0, np.nan]
    return [interval.low > truth, interval.high < truth, interval.high - interval.low]


if __name__ == "__main__":
    main()
