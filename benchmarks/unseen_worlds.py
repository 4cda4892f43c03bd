"""How often an interval of `perse evaluate` misses the truth where a judge is far off now and then, so rarely that many samples show it not at all.

    python benchmarks/unseen_worlds.py --worlds 400

Readers give scores of 1 to 10, evenly; the judge says the same give or take 0.4 (so that Kendall is near 0.94) or, *exact*, the very same, and at a rate it says anything. Of
*MAE* it is 0.4 to 0.6 off and, at the rate, four points. *Ordinary*: a judge that is worth little, of whom nothing is rare. *Resamples alone*: before what no sample
shows was thought of (`perse.evaluation.stats.unseen`). *Too high*: the interval lies above the truth, which is the same value over worlds together (MAE: known); *too
low*: below it. 2.5 of 100 are meant of each; width on average.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Interval

SHAPES = ((20, 4), (40, 8), (79, 5))
"""Readers, and texts of each."""
RATES = (0.0, 0.005, 0.01, 0.02, 0.05)
EXACT, NEAR, ORDINARY = "exact", "near", "ordinary"
COLUMNS = ("kendall", "within_kendall")
_DIGITS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 100
    print(
        "| readers | texts each | judge | rate | of | truth | resamples alone: too high | too low | width | as told: too high | too low | width |"
    )
    print("|---:|---:|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for readers, texts in SHAPES:
        bootstrap = Bootstrap.over(np.repeat(np.arange(readers), texts), resamples=options.resamples, seed=0)
        for judge, rates in ((EXACT, RATES), (NEAR, RATES), ("mae", RATES), (ORDINARY, (0.0,))):
            for rate in rates:
                found: dict[str, list[tuple[float, Interval, Interval]]] = {}
                for number in track(
                    range(options.worlds), description=f"{readers}, {judge}, {rate}", console=Console(stderr=True)
                ):
                    generator = np.random.default_rng((options.seed, readers, int(1000 * rate), number))
                    gold, said = _world(generator, readers * texts, judge, rate)
                    names = ("mae",) if judge == "mae" else ("mae", *COLUMNS) if judge == ORDINARY else COLUMNS
                    for name in names:
                        found.setdefault(name, []).append(_both(bootstrap, name, gold, said))
                for name, rows in found.items():
                    truth = 0.5 + 3.5 * rate if judge == "mae" else float(np.mean([value for value, *_ in rows]))
                    shares = " | ".join(_missed([row[side] for row in rows], truth) for side in (1, 2))
                    print(f"| {readers} | {texts} | {judge} | {rate:.1%} | {name} | {truth:.3f} | {shares} |", flush=True)


def _world(generator: np.random.Generator, number: int, judge: str, rate: float) -> tuple[FloatArray, FloatArray]:
    gold = generator.integers(1, 11, number).astype(np.float64)
    anything, rare = generator.uniform(1, 10, number), generator.random(number) < rate
    if judge == "mae":
        off = np.where(rare, 4.0, 0.5 + generator.uniform(-0.1, 0.1, number))
        return gold, np.where(gold > 5, gold - off, gold + off)
    if judge == ORDINARY:
        return gold, np.clip(np.round(5.5 + 0.3 * (gold - 5.5) + generator.normal(0, 2, number)), 1, 10)
    usual = gold if judge == EXACT else gold + generator.uniform(-0.4, 0.4, number)
    return gold, np.where(rare, np.round(anything) if judge == EXACT else anything, usual)


def _both(bootstrap: Bootstrap, name: str, gold: FloatArray, said: FloatArray) -> tuple[float, Interval, Interval]:
    """The value, its interval by resamples alone, and as told."""
    told = bootstrap.one(name, gold, said)
    assert told.value is not None
    alone = bootstrap.interval(told.value, bootstrap.resampled(name, gold, said), reviewers=bootstrap.reviewers)
    return told.value, alone, told.interval


def _missed(intervals: list[Interval], truth: float) -> str:
    """How often above the truth, and below it, in percent, and how wide."""
    rows = [
        (round(one.low, _DIGITS) > round(truth, _DIGITS), round(one.high, _DIGITS) < round(truth, _DIGITS), one.high - one.low)
        for one in intervals
        if one.low is not None and one.high is not None
    ]
    high, low, width = np.mean(rows, axis=0)
    return f"{100 * high:.1f} | {100 * low:.1f} | {width:.3f}"


if __name__ == "__main__":
    main()
