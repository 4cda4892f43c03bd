"""How often `perse fit` credits a judge that knows nothing, and how often one that knows something; and whether predicted shares happen.

    python benchmarks/stacking_credit.py --worlds 200
    python benchmarks/stacking_credit.py --worlds 100 --resamples 200 --readers 30 --each 8 --knows 0 --texts 15
    python benchmarks/stacking_credit.py --worlds 100 --resamples 200 --readers 100 --each 8 --knows 0 --two-values

Readers differ in leniency, texts in quality, and each reader has a taste for each text. The numbers know leniency and quality, with noise; the judge knows
`knows` of the taste, and else draws. *Above*: the whole 95% interval of what the judge adds lies above 0, *below*: below it. Of a judge that knows nothing
2.5 of 100 may lie above. More lie below: what is fitted to noise costs the others something, so what it adds is truly below 0. *bias*: the judge says
what user+item bias says, so that it adds nothing either. *Alone*: tau-b of the judge by itself, cross-fitted, as rows are told of in
what knows what; *unlevelled*: of the same before models of different readers were brought to one level (`perse.evaluation.stacking.crossing`).
With `--texts` all readers judge texts out of as many, which nobody of the training side knows, no reader has a taste, and the judge draws one number for
each text; readers are resampled, and texts with them unless `--resample reviewers`. With `--two-values` the numbers tell severe readers from lenient ones and
no more.
*Covered*: true scores in the narrowest run of labels from the distribution's middle that holds 80% or more of it, beside how much that run holds.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stacking.adding import MEASURES, Told, gains
from perse.evaluation.stacking.crossing import CrossFitted, Rows
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.stacking.sources import JUDGE

SAME = "bias"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--readers", type=int, nargs="+", default=[20, 80])
    parser.add_argument("--each", type=int, default=15, help="texts of a reader")
    parser.add_argument(
        "--knows", nargs="+", default=["0", "0.5", SAME], help=f"how much of the taste; {SAME}: what user+item bias knows"
    )
    parser.add_argument("--texts", type=int, help="that readers share, new to training; the judge draws a number for each")
    parser.add_argument("--resample", choices=("two-way", "reviewers"), default="two-way", help="of shared texts")
    parser.add_argument("--two-values", action="store_true", help="the numbers have two values")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples, options.readers, options.each = 2, 100, [12], 6
    header = " | ".join(f"{name}: above | below | mean" for name in MEASURES)
    rest = "alone: above | below | mean | unlevelled: above | below | mean | held | covered"
    print(f"| readers | knows | {header} | {rest} |")
    print("|---:" * (3 * len(MEASURES) + 10) + "|")
    for readers in options.readers:
        for knows in options.knows:
            found, held = [], []
            for seed in track(range(options.worlds), description=f"{readers}, {knows}", console=Console(stderr=True)):
                rows, text = rows_of(readers, options.each, seed=seed, knows=knows), None
                if options.texts:
                    rows, text = of_shared_texts(readers, options.each, options.texts, seed=seed)
                elif options.two_values:
                    rows = of_two_values(readers, options.each, seed=seed)
                cross = CrossFitted.of(rows, seed=seed)
                drawn = text if options.resample == "two-way" else None
                bootstrap = Bootstrap.over(rows.reader, resamples=options.resamples, seed=seed, item=drawn)
                told = Told.by(cross, rows.sources)
                without = Told.by(cross, [one for one in rows.sources if one != JUDGE])
                of_measures = gains(rows.gold, told, without, bootstrap)
                alone = Told.by(cross, [JUDGE])
                by_itself = [bootstrap.one("kendall", rows.gold, values) for values in (alone.order, alone.values)]
                estimates = [*map(of_measures.__getitem__, MEASURES), *by_itself]
                found.append([(one.above_zero, one.below_zero, one.value or 0.0) for one in estimates])
                assert told.distributions is not None
                held.append(coverage(rows.gold, told.distributions))
            means = np.array(found, dtype=np.float64).mean(axis=0)
            cells = " | ".join(f"{100 * above:.1f} | {100 * below:.1f} | {mean:+.4f}" for above, below, mean in means)
            print(
                f"| {readers} | {knows} | {cells} | {' | '.join(f'{100 * one:.1f}' for one in np.mean(held, axis=0))} |",
                flush=True,
            )


def rows_of(readers: int, each: int, *, seed: int, knows: float | str) -> Rows:
    """One world, its features as `perse.stacking.sources` would find them."""
    generator = np.random.default_rng([seed, 7])
    size = readers * each
    reader = np.repeat(np.arange(readers), each)
    lenient, quality = generator.normal(0, 0.8, readers)[reader], generator.normal(size=size)
    taste = generator.normal(0, 0.7, size)
    gold = np.clip(np.round(6 + lenient + quality + taste + generator.normal(size=size)), 1, 10)
    drawn = generator.normal(0, 0.7, size)
    own = lenient * 0.6 + generator.normal(0, 0.3, size)
    others = quality + generator.normal(0, 0.5, size)
    middle = 6 + (own + others if knows == SAME else float(knows) * taste + drawn)
    content = np.where(generator.random(size) < 0.7, 6 + 0.5 * quality + generator.normal(0, 0.5, size), np.nan)
    columns = (middle, middle - 5.5 + generator.normal(0, 0.1, size), own, others, 6 + own + others, content)
    return Rows(np.stack(columns, axis=1), gold, reader)


def of_shared_texts(readers: int, each: int, texts: int, *, seed: int) -> tuple[Rows, IntArray]:
    """A world of a few new texts that many readers share, which text each row asks about, and a judge that draws a number for each text."""
    generator = np.random.default_rng([seed, 9])
    reader = np.repeat(np.arange(readers), each)
    text = np.concatenate([generator.choice(texts, each, replace=False) for _ in range(readers)])
    lenient, quality = generator.normal(0, 0.8, readers)[reader], generator.normal(size=texts)[text]
    gold = np.clip(np.round(6 + lenient + quality + generator.normal(0, 1.2, len(reader))), 1, 10)
    own = lenient * 0.6 + generator.normal(0, 0.3, readers)[reader]
    return _with_judge(6 + generator.normal(size=texts)[text], own, gold, reader), text


def of_two_values(readers: int, each: int, *, seed: int) -> Rows:
    """A world of severe and of lenient readers, whom the numbers tell apart, and a judge that draws."""
    generator = np.random.default_rng([seed, 9])
    reader = np.repeat(np.arange(readers), each)
    side = np.where(np.arange(readers) % 2, 1.0, -1.0)[reader]
    gold = np.clip(np.round(6 + 2.5 * side + generator.normal(0, 1.6, len(reader))), 1, 10)
    return _with_judge(6 + generator.normal(size=len(reader)), 0.8 * side, gold, reader)


def _with_judge(middle: FloatArray, own: FloatArray, gold: FloatArray, reader: IntArray) -> Rows:
    """Of texts that training readers did not score, and without evidence."""
    absent = np.full(len(gold), np.nan)
    return Rows(np.stack([middle, middle - 5.5, own, absent, 6 + own, absent], axis=1), gold, reader)


def coverage(gold: FloatArray, distributions: FloatArray, share: float = 0.8) -> tuple[float, float]:
    """How much a central run of labels that holds `share` or more holds on average, and how often the true score is in it."""
    below = distributions.cumsum(axis=1)
    low, high = (below < (1 - share) / 2).sum(axis=1), (below < 1 - (1 - share) / 2).sum(axis=1)
    at = np.arange(len(gold))
    inside = (gold >= low + 1) & (gold <= high + 1)
    held = below[at, high] - np.where(low > 0, below[at, np.maximum(low - 1, 0)], 0.0)
    return float(held.mean()), float(inside.mean())


if __name__ == "__main__":
    main()
