"""How often a judge is called lenient, or strict, that gives 5 points more than people do, which is neither: `perse rehearsal leniency`.

    python benchmarks/leniency_worlds.py --worlds 200

The judge gives 80 of 100 to nearly all summaries and now and then 0, and people's mean is 5 points below the judge's, over all summaries there could be. What resamples
of the products come to, and what is told (`perse.rehearsal.leniency.measuring`): 2.5 of 100 are meant above 5 points and below. Width in points.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.estimates import Bootstrap
from perse.rehearsal.leniency.measuring import more_than_people
from perse.rehearsal.leniency.telling import CONVENTION
from perse.results.result import Interval

SUMMARIES = 8
"""Of a product."""
USUAL = 80.0
SPREADS = (3.0, 10.0)
"""Standard deviations of people's means of a summary, in points."""
RATES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--products", type=int, nargs="+", default=[12, 26])
    parser.add_argument(
        "--spread",
        type=float,
        default=0.0,
        help="standard deviation of what the judge gives, in points: an expected score never repeats",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    worlds = 2 if options.small else options.worlds
    print(
        "| products | summaries | people's spread | gives 0 | resamples: above 5 | below 5 | width | as told: above 5 | below 5 | width |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for products in options.products:
        product = np.repeat(np.arange(products), SUMMARIES)
        draws = Bootstrap.over(product, resamples=300, seed=0)
        every = np.ones(len(product), dtype=bool)
        for spread in SPREADS:
            for rate in RATES:
                rows = []
                for number in track(range(worlds), description=f"{products}, {spread}, {rate}", console=Console(stderr=True)):
                    generator = np.random.default_rng((options.seed, products, int(spread), int(1000 * rate), number))
                    judged = np.where(generator.random(len(product)) < rate, 0.0, USUAL)
                    judged = np.clip(judged + generator.normal(0, options.spread, len(product)), 0, 100)
                    people = USUAL * (1 - rate) - CONVENTION + generator.normal(0, spread, len(product))
                    people += generator.normal(0, spread / 3, products)[product]
                    alone = draws.mean(judged - people, every)
                    rows.append([*_told(alone.interval), *_told(more_than_people(draws, judged, people).interval)])
                above, below, width, told_above, told_below, told_width = np.mean(rows, axis=0)
                shares = " ".join(
                    f"{100 * high:.1f} | {100 * low:.1f} | {wide:.1f} |"
                    for high, low, wide in ((above, below, width), (told_above, told_below, told_width))
                )
                print(f"| {products} | {products * SUMMARIES} | {spread:g} | {rate:.1%} | {shares}", flush=True)


def _told(interval: Interval) -> list[float]:
    if interval.low is None or interval.high is None:
        raise ValueError("people's means differ, so there is an interval")
    return [interval.low > CONVENTION, interval.high < CONVENTION, interval.high - interval.low]


if __name__ == "__main__":
    main()
