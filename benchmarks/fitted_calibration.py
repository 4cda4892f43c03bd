"""How often `perse fit` calls the probabilities of a stacking not right: of right ones too often by 5 in 100, of others never too often.

    python benchmarks/fitted_calibration.py --worlds 60

Two numbers order the texts, one of which knows the reader; readers (and, where 60 texts are shared, texts) stray beside, which no number knows. *Right*:
scores follow the model that is fitted. *Own tastes*: so they do, and a number says more to some readers than to others, which way, no number knows.
*Rare*: nine of ten scores are the highest. *Not proportional*: a number decides among high scores and says nothing of low ones. *Two spreads*: of readers
whom a number knows some stray four times as far as others. *As it stands*: the chance that a judge who was not fitted here is held against; *below*: the
error below which 95 of 100 right ones are, on average.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import logit, ndtr

from perse.evaluation.calibration.reliability import Promised, calibration_error, chance_errors, off_by_chance
from perse.evaluation.stacking.chance import fitted_errors
from perse.evaluation.stacking.crossing import CrossFitted, Rows
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.intervals import LEVEL
from perse.scale import SCORES

WORLDS = ("right", "own tastes", "rare", "not proportional", "two spreads")
TEXTS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--only", nargs=2, metavar=("READERS", "WORLD"), help="one row alone, such as 20 right")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    sizes = [(20, 40, None), (30, 12, None), (100, 12, TEXTS)]
    if options.small:
        options.worlds, sizes = 1, [(12, 6, None), (12, 6, TEXTS)]
    print("| readers | texts | scores | not right, of 100 | as it stands | ECE | below |\n|---:|---|---|---:|---:|---:|---:|")
    for readers, each, texts in sizes:
        for world in WORLDS:
            if options.only and options.only != [str(readers), world]:
                continue
            found = []
            for seed in track(range(options.worlds), description=f"{readers}, {world}", console=Console(stderr=True)):
                rows, text = rows_of(world, readers, each, texts, seed=seed)
                cross = CrossFitted.of(rows, seed=seed)
                told = cross.tell(rows.sources)
                given = Promised(SCORES.labels, told, rows.gold.astype(np.int64) - 1, rows.reader, text)
                errors = fitted_errors(cross, rows.sources, given, seed=seed)
                plain = chance_errors(given, seed=seed)
                found.append(
                    (
                        not off_by_chance(given, errors),
                        not off_by_chance(given, plain),
                        calibration_error(given),
                        np.quantile(errors, LEVEL),
                    )
                )
            alarms, standing, error, usual = np.mean(found, axis=0)
            row = (f"{readers}, of {each}", f"{texts} shared" if texts else "own", world)
            print(
                "|",
                *(f"{one} |" for one in row),
                f"{100 * alarms:.1f} | {100 * standing:.1f} | {error:.4f} | {usual:.4f} |",
                flush=True,
            )


def rows_of(world: str, readers: int, each: int, texts: int | None, *, seed: int) -> tuple[Rows, IntArray | None]:
    """One world, and which text each row is about where texts are shared."""
    generator = np.random.default_rng([seed, 11])
    reader = np.repeat(np.arange(readers), each)
    text = np.concatenate([generator.choice(texts, each, replace=False) for _ in range(readers)]) if texts else None
    one, own = generator.normal(size=len(reader)), generator.normal(0, 0.8, readers)[reader]
    strays = generator.normal(0, 0.8, readers)[reader]
    if text is not None:
        strays += generator.normal(0, 0.8, texts)[text]
    noise = strays + generator.logistic(size=len(reader))
    cuts = np.linspace(-12, -4, 9) if world == "rare" else np.linspace(-4, 4, 9)
    if world == "own tastes":
        noise = own_tastes(one, reader, generator)
    if world == "two spreads":
        noise *= np.where(own > 0, 0.5, 2.0)
    reach = one + own + noise
    slopes = np.where(cuts > 0, 1.5, -1.0) if world == "not proportional" else np.zeros(9)
    gold = 1.0 + (reach[:, None] + one[:, None] * slopes > cuts).sum(axis=1)
    absent = np.full(len(reader), np.nan)
    return Rows(np.stack([one, one**3 / 9, own, absent, 6 + own, absent], axis=1), gold, reader), text


def own_tastes(one: FloatArray, reader: IntArray, generator: np.random.Generator) -> FloatArray:
    """Standard logistic noise, (n,), of which a reader's share has the sign of what the number says, or the other throughout."""
    share = 0.8 * one**2 / (1 + one**2)
    taste = np.sign(one) * generator.normal(size=int(reader.max()) + 1)[reader]
    return logit(ndtr(np.sqrt(1 - share) * generator.normal(size=len(one)) + np.sqrt(share) * taste))


if __name__ == "__main__":
    main()
