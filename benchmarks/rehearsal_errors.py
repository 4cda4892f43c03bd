"""How often Rehearsal's scores call chance a difference: worlds in which all methods are worth the same, and one in which the last is worth more.

    python benchmarks/rehearsal_errors.py --worlds 100

A method's worth differs from product to product by chance (summaries of one product share what they were made from) and from sample to sample. Shares of
worlds: `answer` in which the last method is said to differ from any other in any of the two means, `others` in which any other pair is, which is adjusted as a
family of its own, and `higher` in which the last method is said to be higher than the first. *Fails*: the last method has no summary of so many samples, now and
then, which score 0, and makes up for it with the others; by sample they are 5 points apart.
"""

from __future__ import annotations

import argparse

import numpy as np

from perse.data.persum.folder import ProductReview, Sample, Scores
from perse.rehearsal.folder import Trace
from perse.rehearsal.judging import MEASURES, Measure
from perse.rehearsal.methods import PAPER
from perse.rehearsal.scoring.asking import Scored
from perse.rehearsal.scoring.results import AVERAGE, results

WORLDS = {  # samples, readers, products, spread by product, by sample, what the last method is better by
    "60 readers, 60 products": (60, 60, 60, 0.0, 10.0, 0.0),
    "60 samples of 20 readers": (60, 20, 60, 0.0, 10.0, 0.0),
    "150 readers, 15 products": (150, 150, 15, 6.0, 6.0, 0.0),
    "200 readers, 40 products": (200, 200, 40, 6.0, 6.0, 0.0),
    "60 readers, 60 products, last better by 8": (60, 60, 60, 0.0, 10.0, 8.0),
}
FAILS = {"60 readers": 60, "100 readers": 100}
RATES = (0.0, 0.01, 0.02, 0.05)


def samples(number: int, readers: int, products: int) -> list[Sample]:
    def review(who: str, what: str) -> ProductReview:
        return ProductReview(reviewer_id=who, item_id=what, review="A review.", score=4.0, time=None)

    scores = Scores(history_coverage=4.0, product_coverage=4.0, product_sentiment=4.0)
    return [
        Sample(
            id=f"s{n}",
            category="c",
            group="High",
            own=review(f"u{n % readers}", f"p{n % products}"),
            product_reviews=(review("o", f"p{n % products}"),),
            history=(review(f"u{n % readers}", "h"),),
            scores=scores,
        )
        for n in range(number)
    ]


def world(seed: int, name: str, methods: tuple[str, ...]) -> tuple[bool, bool, bool]:
    """What the module says."""
    number, readers, products, by_product, by_sample, better = WORLDS[name]
    generator, given = np.random.default_rng(seed), samples(number, readers, products)
    worth = generator.normal(60, 5, number)  # of a sample, under any method
    scores = {}
    for method in methods:
        of_product = generator.normal(0, by_product, products)
        added = better if method == methods[-1] else 0.0
        values = worth + added + of_product[np.arange(number) % products]
        table = values[:, None] + generator.normal(0, by_sample, (number, len(MEASURES)))
        scores[method] = {
            one.id: dict(zip(MEASURES, map(float, row), strict=True)) for one, row in zip(given, table, strict=True)
        }
    return _told(given, scores, methods, seed)


def failing(seed: int, number: int, rate: float, methods: tuple[str, ...]) -> tuple[bool, bool, bool]:
    """The same where the last method fails at `rate` and all are worth the same with that counted."""
    generator, given = np.random.default_rng((seed, number, int(1000 * rate))), samples(number, number, number)
    worth, fails = generator.normal(60, 5, number), generator.random(number) < rate
    scores = {}
    for method in methods:
        last = method == methods[-1]
        values = worth + (60 * rate / (1 - rate) if last else 0.0)
        table = values[:, None] + generator.normal(0, 5, (number, len(MEASURES)))
        scores[method] = {
            one.id: dict(zip(MEASURES, map(float, row), strict=True))
            for one, row, failed in zip(given, table, fails.tolist(), strict=True)
            if not (last and failed)
        }
    return _told(given, scores, methods, seed)


def _told(
    given: list[Sample], scores: dict[str, dict[str, dict[Measure, float]]], methods: tuple[str, ...], seed: int
) -> tuple[bool, bool, bool]:
    traces = {
        method: {
            one.id: Trace(sample=one.id, method=method, summary="A summary." if one.id in scores[method] else None)
            for one in given
        }
        for method in methods
    }
    found = results(given, Scored(traces, scores, "judge"), resamples=300, seed=seed)
    told = [one for one in found.differences if one.higher or one.lower]
    higher = any(one.higher and (one.method, one.minus, one.of) == (methods[-1], methods[0], AVERAGE) for one in told)
    return any(one.method == methods[-1] for one in told), any(one.method != methods[-1] for one in told), higher


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--methods", type=int, default=3, help="the first so many, of nine")
    parser.add_argument("--fails", action="store_true", help="only the worlds in which the last method fails now and then")
    parser.add_argument("--small", action="store_true", help="two worlds")
    given = parser.parse_args()
    methods = tuple(PAPER[: given.methods])
    print(f"{given.methods} methods, {2 if given.small else given.worlds} worlds each")
    for name in () if given.fails else WORLDS:
        told = [world(seed, name, methods) for seed in range(2 if given.small else given.worlds)]
        _print(name, told)
    for name, number in FAILS.items():
        for rate in RATES:
            _print(
                f"{name}, last fails at {rate:.1%}",
                [failing(seed, number, rate, methods) for seed in range(2 if given.small else given.worlds)],
            )


def _print(name: str, told: list[tuple[bool, bool, bool]]) -> None:
    answer, others, higher = (sum(each[n] for each in told) / len(told) for n in range(3))
    print(f"{name:45} answer {answer:6.1%}   others {others:6.1%}   higher {higher:6.1%}", flush=True)


if __name__ == "__main__":
    main()
