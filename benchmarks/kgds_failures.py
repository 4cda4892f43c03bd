"""How often a difference of KGDS leaves out 0 between two models that are the same once failures are counted, of which one or both fail now and then.

    python benchmarks/kgds_failures.py --worlds 1000

What a model loses by failing it makes up for where it does not, so the means over all samples there could be are equal: 2.5 of 100 are meant above 0 and
below. *Bootstrap alone*: of the samples, failures among them. *As told*: how much more often one fails has Newcombe's interval
(`perse.evaluation.stats.paired_shares`). *Width*: of that interval, in points, on average.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.scoring.results import SampleScores, Scores
from perse.kgds.scoring.sides import Side, difference, percent
from perse.results.result import Estimate, Interval

RATES = ((0.0, 0.0), (0.005, 0.0), (0.01, 0.0), (0.02, 0.0), (0.03, 0.0), (0.1, 0.0), (0.3, 0.0), (0.05, 0.05))
"""Of the one and of the other, each by itself."""
SPREADS = (0.03, 0.1)
"""Standard deviation of how far the two are apart at a sample."""
MEAN, BETA = 0.7, (2.975, 1.275)
"""Of what is read where nobody fails, and how its samples are spread: with a standard deviation of 0.2."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    worlds = 2 if options.small else options.worlds
    draws = Resamples(np.arange(options.samples), times_drawn(options.samples, resamples=300, seed=0))
    print(f"{options.samples} samples")
    print("| one fails | other | apart by | bootstrap alone: above 0 | below 0 | width | as told: above 0 | below 0 | width |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for rates in RATES:
        for spread in SPREADS:
            rows = []
            for number in track(range(worlds), description=f"{rates}, {spread}", console=Console(stderr=True)):
                generator = np.random.default_rng(
                    (options.seed, *(int(1000 * rate) for rate in rates), int(100 * spread), number)
                )
                rows.append(_world(generator, rates, spread, draws))
            told = (f"{100 * share:.1f} |" for share in np.mean(rows, axis=0))
            print(f"| {rates[0]:.1%} | {rates[1]:.1%} | {100 * spread:.0f} points |", *told, flush=True)


def _world(generator: np.random.Generator, rates: tuple[float, float], spread: float, draws: Resamples) -> list[float]:
    samples = len(draws.reviewer)
    readable = generator.beta(*BETA, samples)
    fails, other_fails = generator.random((2, samples)) < np.array(rates)[:, None]
    better = MEAN * ((1 - rates[1]) / (1 - rates[0]) - 1)
    one = np.where(fails, 0.0, readable + better + generator.normal(0, spread, samples))
    other = np.where(other_fails, 0.0, readable)
    told = difference(_side("one", one, draws), _side("other", other, draws), "cao").interval
    alone = bootstrap_interval(draws.sums((one - other)[None])[0] / samples, reviewers=samples, of="sample")
    return [*_told(alone), *_told(told, percent=100)]


def _told(interval: Interval, percent: int = 1) -> list[float]:
    """Whether it lies above 0, below it, and how wide it is."""
    if interval.low is None or interval.high is None:
        raise ValueError("two models that differ have an interval")
    return [interval.low > 0, interval.high < 0, (interval.high - interval.low) / percent]


def _side(name: str, values: FloatArray, draws: Resamples) -> Side:
    scores = Scores(
        model=name,
        pattern="ebs-aos",
        paradigm="structured",
        values={"cao": Estimate(value=percent(float(values.mean())), interval=Interval(), items=len(values))},
        failed=int((values == 0).sum()),
        unanswered=0,
        strange=0,
        samples=tuple(
            SampleScores(sample=n, values={"cao": value}, failed=None if value else "unparsed")
            for n, value in enumerate(values.tolist())
        ),
    )
    return Side(scores, {"cao": draws.sums(values[None])[0] / len(values)}, draws)


if __name__ == "__main__":
    main()
