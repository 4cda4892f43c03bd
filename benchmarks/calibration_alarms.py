"""How often `perse study calibration` calls a judge's probabilities not right: of right ones too often by 5 in 100, of others never too often.

    python benchmarks/calibration_alarms.py --simulations 500

Scores from 1 to 10: what a text is worth to all, what a reader adds to every score, and chance. *Right* judges know the first and give
the distribution of the score over readers and chance, or know nothing and give everybody the shares of all scores; they are right
whoever the reader is, and one reader's answers stray together, and so do answers about one text where the judge does not know it; of *sure* ones, who know nearly
everything, the scores are drawn from what they say. *Wrong* ones give 0.1 to every score, the shares of all scores where
those that fall into one bin have changed places, or the right distribution too narrow. The old way is that of truths drawn item by item, of all labels in one heap.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import stats

from perse.evaluation.calibration.reliability import BINS, Promised, bin_of, chance_errors, off_by_chance
from perse.evaluation.stats.correlation import FloatArray, IntArray

LABELS = tuple(str(score) for score in range(1, 11))
WORLDS = {"right": "right", "right, knows no text": "right", "right and sure": "right", "0.1 to every score": "wrong", "shares of a bin exchanged": "wrong",
          "too narrow": "wrong"}  # fmt: skip
READERS = ((10, 3, None), (12, 40, None), (40, 12, None), (160, 3, None), (40, 12, 30), (80, 5, 100))
"""Readers, items of each on average, and the texts that all of them choose from; None: every item has a text of its own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--spread", type=float, default=1.2, help="standard deviation of what a reader adds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the shares as JSON on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.simulations = 2
    found = []
    for readers, each, texts in READERS:
        alarms: dict[str, list[tuple[bool, bool, bool]]] = {name: [] for name in WORLDS}
        for number in track(
            range(options.simulations), description=f"{readers} readers, {texts or 'own'} texts", console=Console(stderr=True)
        ):
            generator = np.random.default_rng((options.seed, readers, number))
            for name, given in _judges(readers, each, texts, options.spread, generator=generator).items():
                alone = replace(given, text=None)
                by_readers = not off_by_chance(alone, chance_errors(alone, seed=number))
                new = by_readers if texts is None else not off_by_chance(given, chance_errors(given, seed=number))
                alarms[name].append((new, by_readers, _old(given, generator)))
        found += [
            {
                "readers": readers,
                "each": each,
                "texts": texts,
                "judge": name,
                "new": shares[0],
                "alone": shares[1],
                "old": shares[2],
            }
            for name, given in alarms.items()
            if (shares := np.mean(given, axis=0).tolist())
        ]
    print(json.dumps({**vars(options), "found": found}, indent=2) if options.json else _markdown(found))


def _judges(
    readers: int, each: int, texts: int | None, spread: float, *, generator: np.random.Generator
) -> dict[str, Promised]:
    items = np.minimum(1 + generator.poisson(each - 1, readers), texts or 10**9)
    reviewer: IntArray = np.repeat(np.arange(readers), items)
    text: IntArray | None = None
    worth = generator.normal(6.5, 1.3, texts or len(reviewer))
    if texts is not None:
        text = np.concatenate([generator.choice(texts, count, replace=False) for count in items])
        worth = worth[text]
    strays = generator.normal(0, spread, readers)[reviewer] + generator.normal(0, 1.0, len(reviewer))
    truth = (np.clip(np.round(worth + strays), 1, 10) - 1).astype(np.int64)
    whole = float(np.hypot(spread, 1.0))
    right, narrow = _spread(worth, whole), _spread(worth, whole / 2)
    shares = _spread(np.array([6.5]), float(np.hypot(whole, 1.3)))
    place = bin_of(shares[0])
    exchanged = shares[0].copy()
    for one in np.unique(place):
        exchanged[place == one] = shares[0][place == one][::-1] if one else np.roll(shares[0][place == one], 2)
    given = {
        "right": right,
        "right, knows no text": np.repeat(shares, len(reviewer), axis=0),
        "0.1 to every score": np.full_like(right, 0.1),
        "shares of a bin exchanged": np.repeat(exchanged[None], len(reviewer), axis=0),
        "too narrow": narrow,
    }
    judges = {name: Promised(LABELS, probability, truth, reviewer, text) for name, probability in given.items()}
    sure = _spread(worth, 0.3)
    drawn: IntArray = np.minimum((generator.random((len(sure), 1)) >= sure.cumsum(axis=1)).sum(axis=1), 9)
    return judges | {"right and sure": Promised(LABELS, sure, drawn, reviewer, text)}


def _spread(mean: FloatArray, deviation: float) -> FloatArray:
    """(n, 10) of a normal rounded to 1 to 10."""
    steps = stats.norm.cdf((np.arange(1, 10) + 0.5 - mean[:, None]) / deviation)
    return np.diff(np.concatenate([np.zeros((len(mean), 1)), steps, np.ones((len(mean), 1))], axis=1), axis=1)


def _old(given: Promised, generator: np.random.Generator) -> bool:
    place, steps = bin_of(given.probability), given.probability.cumsum(axis=1)
    inside = np.bincount(place.ravel(), weights=given.probability.ravel(), minlength=BINS)

    def error(truth: IntArray) -> float:
        true = np.bincount(place[np.arange(len(truth)), truth], minlength=BINS)
        return float(np.abs(inside - true).sum())

    drawn = [np.minimum((generator.random((len(steps), 1)) >= steps).sum(axis=1), 9) for _ in range(200)]
    return bool(error(given.truth) > np.quantile([error(one) for one in drawn], 0.95))


def _markdown(found: list[dict[str, object]]) -> str:
    lines = [
        "| readers | items each | texts | judge | is | called not right | by readers alone | by the old way |",
        "|---:|---:|---:|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {row['readers']} | {row['each']} | {row['texts'] or 'its own'} | {row['judge']} | {WORLDS[str(row['judge'])]} | {row['new']:.1%} | {row['alone']:.1%} | {row['old']:.1%} |"
        for row in found
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
