"""How often two that are equal are called different, where one of them is far off so rarely that many samples show nothing of it.

    python benchmarks/unseen_differences.py --worlds 300

*One judge minus another*: the first says the readers' score give or take 0.4 and, at a rate, anything; the other errs everywhere a little, so that
both have the same correlation (of MAE, in a study: half a point off, and four at the rate; the other always as far off as that is on average). *Both*: p of the
exchange, which `perse compare` asks for, too. *Ordinary*: two judges that know equally little; *truly*: two of which the first knows more, where a difference is there to
be seen. *Values*: weighted kappa, RPS and pairs in order of a judge that says the very score and, at the rate, any; *annotators*: alpha of three who do. *Systems*: the correlation of 16
systems' means, of a metric on a scale of -3 to 3 that follows people and is at the far end of it at the rate.

*Resamples alone*: before what no sample shows was thought of (`perse.evaluation.stats.unseen`). *Too high*: the interval lies above the truth, which is 0 of a
difference and else known or the mean of all worlds; *too low*: below it. 2.5 of 100 are meant of each; width on average.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import stats

from perse.drpe.correlation.systems import by_resamples_alone, by_system
from perse.evaluation.annotators.measuring import alpha, alpha_of, coincidences
from perse.evaluation.comparing.results import LEVEL
from perse.evaluation.metrics import METRICS
from perse.evaluation.metrics.samples import Scored
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.ordinal import point_masses, qwk_of_tables, rps_values, table_cells
from perse.evaluation.stats.significance import paired_permutation
from perse.evaluation.stats.ties import calibrated_pairs
from perse.results.result import Interval
from perse.scale import SCORES
from perse.studies.frame.summarizing import SharedResamples

SHAPES = ((20, 4), (40, 8), (79, 5))
"""Readers, and texts of each."""
RATES = (0.005, 0.01, 0.02, 0.05)
DIFFERENCES = ("pearson", "kendall", "within_kendall")
DOCUMENTS, SYSTEMS = (20, 78), 16
_MANY, _ROUNDING = 30_000, 1e-9

Found = Iterator[tuple[str, float, float | None, Interval, Interval, bool | None]]
"""Of what, its value, the truth if it is known, the interval by resamples alone and as told, and whether p says different."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one kind of worlds, or all that begin so, such as: values, systems")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 100
    kinds: dict[str, Callable[[np.random.Generator], Found]] = {}
    for readers, texts in SHAPES:
        draws = Bootstrap.over(np.repeat(np.arange(readers), texts), resamples=options.resamples, seed=0)
        for rate in RATES:
            kinds[f"difference | {readers} x {texts} | {rate:.1%}"] = _differing(draws, rate, options.resamples)
            kinds[f"values | {readers} x {texts} | {rate:.1%}"] = _valued(draws, rate)
        for name, (one, other) in {"ordinary": (0.3, 0.3), "truly": (0.5, 0.3)}.items():
            kinds[f"{name} | {readers} x {texts} | "] = _usual(draws, one, other, options.resamples)
    for documents in DOCUMENTS:
        for rate in RATES[:-1]:
            kinds[f"systems | {documents} x {SYSTEMS} | {rate:.1%}"] = _ordering(documents, rate, options.resamples)
    for readers, texts in SHAPES:
        draws = Bootstrap.over(np.repeat(np.arange(readers), texts), resamples=options.resamples, seed=0)
        for rate in RATES:
            kinds[f"annotators | {readers} x {texts} | {rate:.1%}"] = _rated(draws, rate)
    print(
        "| world | readers x texts | rate | of | truth | resamples alone: too high | too low | width | as told: too high | too low | width | both |"
    )
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for number, (name, world) in enumerate(kinds.items()):
        if not name.startswith(options.only or ""):
            continue
        rows: defaultdict[str, list[tuple[float, float | None, Interval, Interval, bool | None]]] = defaultdict(list)
        for nth in track(range(options.worlds), description=name, console=Console(stderr=True)):
            for of, *row in world(np.random.default_rng((options.seed, number, nth))):
                rows[of].append(tuple(row))  # type: ignore[arg-type]
        for of, all_of in rows.items():
            truth = all_of[0][1] if all_of[0][1] is not None else float(np.mean([value for value, *_ in all_of]))
            alone, told = (_missed([row[side] for row in all_of], truth) for side in (2, 3))  # type: ignore[misc]
            print(f"| {name} | {of} | {truth:.3f} | {alone} | {told} | {_both(all_of)} |", flush=True)


def _differing(draws: Bootstrap, rate: float, permutations: int) -> Callable[[np.random.Generator], Found]:
    even = {name: _as_good(name.removeprefix("within_"), rate) for name in DIFFERENCES}
    size = len(draws.reviewer)

    def world(generator: np.random.Generator) -> Found:
        gold = generator.integers(1, 11, size).astype(np.float64)
        one = _rarely_off(generator, gold, rate)
        for name in DIFFERENCES:
            yield _apart(draws, name, gold, one, gold + even[name] * generator.normal(0, 1, size), permutations)
        rare = generator.random(size) < rate
        off = np.where(rare, 4.0, 0.5 + generator.uniform(-0.1, 0.1, size))
        usual = 0.5 + 3.5 * rate + generator.uniform(-0.1, 0.1, size)
        sides = [np.where(gold > 5, gold - far, gold + far) for far in (off, usual)]
        study = SharedResamples(gold, draws.reviewer, draws)
        found = study.value("mae", [(1.0, sides[0]), (-1.0, sides[1])])
        assert found.value is not None
        yield "mae, study", found.value, 0.0, draws.mean(off - usual, np.ones(size, dtype=bool)).interval, found.interval, None

    return world


def _usual(draws: Bootstrap, one: float, other: float, permutations: int) -> Callable[[np.random.Generator], Found]:
    """Two judges who know `one` and `other` of what makes a score."""
    size = len(draws.reviewer)

    def world(generator: np.random.Generator) -> Found:
        gold = generator.integers(1, 11, size).astype(np.float64)
        sides = [share * (gold - 5.5) + generator.normal(0, 2, size) for share in (one, other)]
        for name in DIFFERENCES:
            yield _apart(draws, name, gold, sides[0], sides[1], permutations)

    return world


def _apart(
    draws: Bootstrap, name: str, gold: FloatArray, one: FloatArray, other: FloatArray, permutations: int
) -> tuple[str, float, float | None, Interval, Interval, bool | None]:
    found = draws.difference(name, gold, one, other)
    assert found.value is not None
    resampled = draws.resampled(name, gold, one) - draws.resampled(name, gold, other)
    alone = draws.interval(found.value, resampled, reviewers=draws.reviewers)
    sides = [(side - side.mean()) / side.std() for side in (one, other)]
    [p] = paired_permutation(
        lambda drawn, true, said: {name: drawn.resampled(name, true, said)},
        gold,
        one=sides[0],
        other=sides[1],
        reviewer=draws.reviewer,
        permutations=permutations,
        seed=0,
    ).values()
    return name, found.value, 0.0, alone, found.interval, p.p is not None and p.p <= LEVEL


def _rarely_off(generator: np.random.Generator, gold: FloatArray, rate: float) -> FloatArray:
    near = gold + generator.uniform(-0.4, 0.4, len(gold))
    return np.where(generator.random(len(gold)) < rate, generator.uniform(1, 10, len(gold)), near)


def _as_good(name: str, rate: float) -> float:
    """The spread of errors with which a judge has the correlation of one that is rarely off."""
    generator = np.random.default_rng(1)
    gold, noise = generator.integers(1, 11, _MANY).astype(np.float64), generator.normal(0, 1, _MANY)
    coefficient = stats.pearsonr if name == "pearson" else stats.kendalltau
    wanted = coefficient(gold, _rarely_off(generator, gold, rate)).statistic
    low, high = 0.0, 4.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if coefficient(gold, gold + middle * noise).statistic > wanted else (low, middle)
    return low


def _valued(draws: Bootstrap, rate: float) -> Callable[[np.random.Generator], Found]:
    size, every = len(draws.reviewer), np.ones(len(draws.reviewer), dtype=bool)
    half = np.arange(draws.reviewers) % 2
    distance = sum(gap * 2 * (10 - gap) for gap in range(1, 10)) / 100

    def world(generator: np.random.Generator) -> Found:
        gold = generator.integers(1, 11, size).astype(np.float64)
        said = np.where(generator.random(size) < rate, generator.integers(1, 11, size), gold)
        cells, masses = table_cells(gold, said), point_masses(said)
        kappa = draws.of_tables(cells, 100, qwk_of_tables, every)
        errors = draws.mean(rps_values(gold, masses), every)
        ties = calibrated_pairs(gold, said, draws.reviewer, fold_of_reviewer=half, epsilon=0.0)
        pairs = draws.ratio(ties.right, ties.pairs)
        scored = Scored(bootstrap=draws, gold=gold, predicted=said, scale=SCORES, half=half, epsilon=0.0)
        alone = {"qwk": (kappa, 1 - rate), "rps": (errors, rate * distance / 9), "pair_accuracy": (pairs, None)}
        for name, (before, truth) in alone.items():
            found = METRICS[name].function(scored)
            assert found is not None and found.value is not None
            yield name, found.value, truth, before.interval, found.interval, None

    return world


def _rated(draws: Bootstrap, rate: float) -> Callable[[np.random.Generator], Found]:
    size = len(draws.reviewer)

    def world(generator: np.random.Generator) -> Found:
        gold = generator.integers(1, 11, (size, 1)).astype(np.float64)
        scores = np.where(generator.random((size, 3)) < rate, generator.integers(1, 11, (size, 3)), gold)
        found = alpha(scores, bootstrap=draws)
        drawn = alpha_of(draws.resamples.sums(coincidences(scores).T).T)
        assert found.value is not None
        yield "alpha", found.value, None, draws.interval(found.value, drawn, reviewers=draws.reviewers), found.interval, None

    return world


def _ordering(documents: int, rate: float, resamples: int) -> Callable[[np.random.Generator], Found]:
    worth = np.random.default_rng(7).normal(0, 0.4, SYSTEMS)
    document, system = np.repeat(np.arange(documents), SYSTEMS), np.tile(np.arange(SYSTEMS), documents)
    draws = Bootstrap.over(document, resamples=resamples, seed=0)

    def world(generator: np.random.Generator) -> Found:
        shape = documents, SYSTEMS
        people = worth + generator.normal(0, 0.4, (documents, 1)) + generator.normal(0, 0.6, shape)
        metric = np.clip(people + generator.normal(0, 0.2, shape), -3, 3)
        metric = np.where(generator.random(shape) < rate, -3 * np.sign(metric), metric)
        given = people.ravel(), metric.ravel()
        alone, told = (of(*given, system=system, resamples=draws.resamples) for of in (by_resamples_alone, by_system))
        for name, one in told.items():
            assert one.value is not None
            yield name, one.value, None, alone[name].interval, one.interval, None

    return world


def _missed(intervals: list[Interval], truth: float) -> str:
    """How often above the truth, and below it, in percent of all, and how wide those are that there are."""
    known = [(one.low, one.high) for one in intervals if one.low is not None and one.high is not None]
    if not known:
        return " | | "
    high, low = (
        sum(missed) / len(intervals)
        for missed in zip(*((a > truth + _ROUNDING, b < truth - _ROUNDING) for a, b in known), strict=True)
    )
    return f"{high:.1%} | {low:.1%} | {np.mean([b - a for a, b in known]):.3f}".replace("%", "")


def _both(rows: list[tuple[float, float | None, Interval, Interval, bool | None]]) -> str:
    """How often p and the interval as told say that two are different; by the interval alone, in brackets."""
    if rows[0][4] is None:
        return ""

    def apart(one: Interval) -> bool:
        return one.low is not None and one.high is not None and (one.low > 0 or one.high < 0)

    shares = [np.mean([bool(row[4]) and apart(row[side]) for row in rows]) for side in (3, 2)]  # type: ignore[arg-type]
    return f"{100 * shares[0]:.1f} (before {100 * shares[1]:.1f})"


if __name__ == "__main__":
    main()
