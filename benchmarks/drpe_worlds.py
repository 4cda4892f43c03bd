"""Do the intervals of `perse drpe correlate` cover, and does its test call chance a difference? Worlds where the truth is known.

    python benchmarks/drpe_worlds.py --worlds 400

In a world, systems differ in how good they are, documents in how hard they are, and people give each candidate what its system and document are worth, with noise.
Two metrics see the same with noise of their own, equally well; the second has a scale of its own (100 times as wide), as BLEU has. A third is better, a fourth is
partial to some systems whatever they write, a fifth knows nothing and is partial, too. Documents are drawn anew in every world, systems stay, for that is what the intervals speak of. The truth is the same coefficient in a world of very
many documents; by system, its mean over other worlds of as many, for means of more documents are less noisy, and correlate more.

Printed: how often the intervals cover that truth; how often the paired test alone (p below 0.05) and the word ("shown": the interval, too, and p adjusted over two
differences) call the equal metrics different, and the better one; and the mean |Pearson| of the metric that knows nothing.
With `--chosen` instead: how often the highest of one or eight metrics that know nothing, but each which documents it likes, is said to agree with people; and the same where
people give nine candidates of ten one grade, and metrics are far higher now and then (lognormal).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import product

import numpy as np

from perse.drpe.correlation.correlating import COMPARED, LEVELS, Coefficients, Level, coefficients, differences
from perse.drpe.correlation.of_many import of_many
from perse.evaluation.comparing.results import LEVEL
from perse.evaluation.stats.correlation import COEFFICIENTS, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap

SYSTEMS = 16
MANY = 20_000
"""Documents of the world that has the truth."""
WORLDS = {  # documents; whether only the two best and two worst of each are looked at
    "78 documents, all": (78, False),
    "78 documents, extremes": (78, True),
    "20 documents, extremes": (20, True),
}
METRICS = {
    "one": (0.6, 1.0, 1.0, 0.0),
    "other": (0.6, 1.0, 100.0, 0.0),
    "better": (0.8, 1.0, 1.0, 0.0),
    "partial": (0.6, 1.0, 1.0, 0.4),
    "nothing": (0.0, 1.0, 1.0, 0.4),
}
"""How much a metric sees of what people see, its noise, its scale, and how partial it is to some systems."""
_GRADES = 3.0
"""Steps of people's scores: thirds, as three people's means have."""

World = tuple[FloatArray, Mapping[str, FloatArray], IntArray, IntArray]
"""People's scores, the metrics', documents and systems: (n,) each."""


def world(documents: int, extremes: bool, generator: np.random.Generator) -> World:
    """Systems are the same in all worlds."""
    always = np.random.default_rng(7)
    worth = always.normal(0, 0.4, SYSTEMS)
    liked = {name: lean * always.normal(0, 1, SYSTEMS) for name, (*_, lean) in METRICS.items()}
    hard = generator.normal(0, 0.4, (documents, 1))
    seen = worth + hard + generator.normal(0, 0.6, (documents, SYSTEMS))
    people = np.clip(np.round((4 + seen + generator.normal(0, 0.3, seen.shape)) * _GRADES) / _GRADES, 1, 5)
    metrics = {
        name: scale
        * (
            share * seen
            + liked[name]
            + noise * (generator.normal(0, 0.5, (documents, 1)) + generator.normal(0, 0.8, seen.shape))
        )
        for name, (share, noise, scale, _) in METRICS.items()
    }
    chosen = np.ones(seen.shape, dtype=bool)
    if extremes:
        order = np.argsort(-people, axis=1, kind="stable")
        chosen = np.zeros(seen.shape, dtype=bool)
        np.put_along_axis(chosen, np.hstack([order[:, :2], order[:, -2:]]), True, axis=1)
    row, system = np.nonzero(chosen)
    return (
        people[chosen],
        {name: values[chosen] for name, values in metrics.items()},
        row.astype(np.int64),
        system.astype(np.int64),
    )


Measured = Mapping[str, Coefficients]


def measured(given: World, *, resamples: int) -> Measured:
    people, metrics, document, system = given
    draws = Bootstrap.over(document, resamples=resamples, seed=0)
    return {name: coefficients(people, values, system=system, draws=draws) for name, values in metrics.items()}


def truth(documents: int, extremes: bool, *, many: int, worlds: int) -> dict[tuple[str, Level, str], float]:
    """By metric, level and coefficient."""
    large = measured(world(many, extremes, np.random.default_rng(99)), resamples=1)
    found = {
        (name, level, one): _value(large, name, level, one) for name in METRICS for level in LEVELS for one in COEFFICIENTS
    }
    others = [measured(world(documents, extremes, np.random.default_rng((2, seed))), resamples=1) for seed in range(worlds)]
    for name in METRICS:
        for one in COEFFICIENTS:
            found[name, "systems", one] = float(np.mean([_value(each, name, "systems", one) for each in others]))
    return found


def _value(found: Measured, *names: str) -> float:
    name, level, one = names
    value = found[name][level][one].value  # type: ignore[index]
    assert value is not None
    return value


def called(pair: tuple[str, str], documents: int, extremes: bool, *, worlds: int, resamples: int) -> dict[str, FloatArray]:
    """By what differences are of: the shares of worlds in which the second metric's p is below 0.05, and in which a difference is shown, (2,)."""
    found: dict[str, list[tuple[bool, bool]]] = {of: [] for of in COMPARED}
    for seed in range(worlds):
        people, metrics, document, _ = world(documents, extremes, np.random.default_rng((3, seed)))
        draws = Bootstrap.over(document, resamples=resamples, seed=seed)
        for one in differences(people, {name: metrics[name] for name in pair}, draws, seed=seed):
            found[one.of].append((one.p.p is not None and one.p.p < 0.05, one.shown))
    return {of: np.mean(shares, axis=0) for of, shares in found.items()}


def chosen(documents: int, number: int, seed: int, *, skewed: bool, resamples: int) -> tuple[bool, bool]:
    """Whether the highest pooled correlation of metrics that know nothing is above 0 by its interval, and as one of so many, too."""
    generator, document = np.random.default_rng((4, documents, number, seed)), np.repeat(np.arange(documents), 4)
    people = generator.normal(0, 0.4, documents)[document] + np.tile([0.8, 0.6, -0.7, -0.9], documents)
    people += generator.normal(0, 0.2, len(document))
    metrics = {
        f"{n}": generator.normal(0, 0.5, documents)[document] + generator.normal(0, 1, len(document)) for n in range(number)
    }
    if skewed:
        people = np.where(generator.random(len(document)) < 0.1, generator.uniform(1, 4, len(document)), 5.0)
        metrics = {name: np.exp(1.5 * generator.normal(0, 1, len(document))) for name in metrics}
    draws = Bootstrap.over(document, resamples=resamples, seed=seed)
    found = {name: draws.one("pearson", people, values) for name, values in metrics.items()}
    best = max(found, key=lambda name: found[name].value or -1.0)
    above = found[best].above_zero
    return above, above and of_many(people, metrics, draws, seed=seed)[best, "pooled"] <= LEVEL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--worlds", type=int, default=200, help="of which intervals are looked at; three times as many for equal metrics"
    )
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--only", choices=list(WORLDS), help="one of the three kinds of worlds")
    parser.add_argument(
        "--chosen", action="store_true", help="only how often the highest of metrics that know nothing is said to agree"
    )
    parser.add_argument("--small", action="store_true", help="two worlds")
    given = parser.parse_args()
    worlds, many = (2, 200) if given.small else (given.worlds, MANY)
    if given.chosen:
        for skewed, documents, number in product((False, True), (10, 20, 78), (1, 8)):
            alone, told = np.mean(
                [chosen(documents, number, seed, skewed=skewed, resamples=given.resamples) for seed in range(worlds)], axis=0
            )
            print(
                f"{documents} documents, {'skewed' if skewed else 'usual'}, highest of {number}, {worlds} worlds: interval alone {alone:.1%}, as told {told:.1%}",
                flush=True,
            )
        return
    for title in [given.only] if given.only else list(WORLDS):
        documents, extremes = WORLDS[title]
        true = truth(documents, extremes, many=many, worlds=worlds)
        covered: dict[tuple[str, Level, str], list[bool]] = {place: [] for place in true}
        nothing = []
        for seed in range(worlds):
            found = measured(world(documents, extremes, np.random.default_rng((1, seed))), resamples=given.resamples)
            nothing.append(abs(_value(found, "nothing", "pooled", "pearson")))
            for (name, level, coefficient), value in true.items():
                interval = found[name][level][coefficient].interval
                assert interval.low is not None and interval.high is not None, interval.reason
                covered[name, level, coefficient].append(interval.low <= value <= interval.high)
        print(f"{title}: {worlds} worlds")
        for level in LEVELS:
            rows = {name: [np.mean(covered[name, level, one]) for one in COEFFICIENTS] for name in METRICS}
            cells = "; ".join(f"{name} {', '.join(f'{share:.1%}' for share in shares)}" for name, shares in rows.items())
            print(f"  covered, {level} ({', '.join(COEFFICIENTS)}): {cells}")
        for pair, times in ((("one", "other"), 3), (("one", "better"), 1)):
            shares = called(pair, documents, extremes, worlds=times * worlds, resamples=given.resamples)
            for of, (below, shown) in shares.items():
                print(f"  {' and '.join(pair)}, {of}, {times * worlds} worlds: p < 0.05 in {below:.1%}, shown in {shown:.1%}")
        print(f"  |Pearson| of the metric that knows nothing: {np.mean(nothing):.3f} on average")


if __name__ == "__main__":
    main()
