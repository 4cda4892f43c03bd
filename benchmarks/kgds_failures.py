"""How often a difference of KGDS leaves out 0 between two models that are the same once failures are counted, of which one fails now and then.

    python benchmarks/kgds_failures.py --worlds 1000

What the one loses by failing it makes up for where it does not, so the means over all samples there could be are equal. *No failure seen*: worlds in
which none of the samples shows one, and the interval leaves out 0 all the same: it is of summaries that can be read. *Readable*: the same means where
nobody fails. *May fail*: what is said beside the numbers, the most that no failure in so many samples leaves possible.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.scoring.failures import at_most
from perse.kgds.scoring.results import SampleScores, Scores
from perse.kgds.scoring.sides import Side, difference, percent
from perse.results.result import Estimate, Interval

SAMPLES = 100
RATES = (0.0, 0.005, 0.01, 0.02, 0.03)
SPREADS = (0.03, 0.1)
"""Standard deviation of how far the two are apart at a sample."""
MEAN = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    worlds = 2 if options.small else options.worlds
    draws = Resamples(np.arange(SAMPLES), times_drawn(SAMPLES, resamples=300, seed=0))
    print(f"{SAMPLES} samples; where none failed, up to {at_most(SAMPLES)} of others may")
    print("| fails | apart by | above 0 | of these no failure seen | below 0 | nothing said |")
    print("|---:|---:|---:|---:|---:|---:|")
    for rate in RATES:
        for spread in SPREADS:
            rows = []
            for number in track(range(worlds), description=f"{rate}, {spread}", console=Console(stderr=True)):
                generator = np.random.default_rng((options.seed, int(1000 * rate), int(100 * spread), number))
                rows.append(_world(generator, rate, spread, draws))
            shares = " ".join(f"{100 * share:.1f} |" for share in np.mean(rows, axis=0))
            print(f"| {rate:.1%} | {100 * spread:.0f} points | {shares}", flush=True)


def _world(generator: np.random.Generator, rate: float, spread: float, draws: Resamples) -> list[bool]:
    other = np.clip(MEAN + generator.normal(0, 0.1, SAMPLES), 0.01, 1)
    failed = generator.random(SAMPLES) < rate
    one = np.where(failed, 0.0, other + generator.normal(0, spread, SAMPLES) + MEAN * rate / (1 - rate))
    found = difference(_side("one", one, draws), _side("other", other, draws), "cao")
    above = found.above_zero
    return [above, above and not failed.any(), found.below_zero, found.interval.low is None]


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
