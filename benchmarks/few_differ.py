"""How often two judges that are equal are called different where they answer few readers, or of few texts, differently.

    python benchmarks/few_differ.py --worlds 600

30 readers of 8 of 40 texts each, two judges that see as much of a text's quality: the second answers as the first, but to some readers, or of some
texts, as a third that is like it; its other answers are up to a hundredth apart, as of two decimals. In each world the difference of the two is as likely to be one way as the other, so that its interval should leave
out 0 in 5 of 100. *Alone*: by resamples and what they do not show (`perse.evaluation.stats.unseen`), as told until 2026-11-30; *told*: where ten
readers, and where texts are drawn ten texts, make it (`Bootstrap.unless_few_differ`).
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap

READERS, TEXTS, EACH = 30, 40, 8
DIFFER = (1, 2, 3, 5, 9, 10, 12, 20)
METRICS = ("kendall", "within_kendall", "mae")
DRAWN = (("readers", "readers"), ("readers", "readers and texts"), ("texts", "readers and texts"))
"""Who is answered differently, and what is drawn."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=600)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 50
    places = [(of, drawn, number) for of, drawn in DRAWN for number in DIFFER]
    print("| who differs | drawn | how many | " + " | ".join(f"{name}, alone / told" for name in METRICS) + " |")
    print("|---|---|---|" + "---|" * len(METRICS))
    for of, drawn, number in track(places, description="worlds", console=Console(stderr=True)):
        alone, told = (np.zeros(len(METRICS)) for _ in range(2))
        for seed in range(options.worlds):
            found = _world(np.random.default_rng([seed, number]), of, drawn, number, options.resamples)
            told += [_shown(name, *found) for name in METRICS]
            with patch.object(Bootstrap, "unless_few_differ", lambda _, interval, *__, **___: interval):
                alone += [_shown(name, *found) for name in METRICS]
        shares = [f"{100 * a / options.worlds:.1f} / {100 * t / options.worlds:.1f}" for a, t in zip(alone, told, strict=True)]
        print(f"| {of} | {drawn} | {number} | {' | '.join(shares)} |")


def _shown(name: str, bootstrap: Bootstrap, gold: FloatArray, one: FloatArray, other: FloatArray) -> bool:
    found = bootstrap.difference(name, gold, one, other)
    return found.above_zero or found.below_zero


def _world(
    generator: np.random.Generator, of: str, drawn: str, number: int, resamples: int
) -> tuple[Bootstrap, FloatArray, FloatArray, FloatArray]:
    reader = np.repeat(np.arange(READERS), EACH)
    text = np.concatenate([generator.choice(TEXTS, EACH, replace=False) for _ in range(READERS)])
    quality = generator.normal(size=TEXTS)[text]
    gold = np.clip(np.round(3 + quality + generator.normal(size=len(reader))), 1, 5)
    one, third = (np.round(np.clip(3 + quality / 2 + generator.normal(size=len(reader)), 1, 5), 2) for _ in range(2))
    whose, among = (reader, READERS) if of == "readers" else (text, TEXTS)
    rounded = one + generator.uniform(-0.01, 0.01, size=len(one))
    other = np.where(np.isin(whose, generator.choice(among, number, replace=False)), third, rounded)
    item = text if drawn == "readers and texts" else None
    return Bootstrap.over(reader, resamples=resamples, seed=0, item=item), gold, one, other


if __name__ == "__main__":
    main()
