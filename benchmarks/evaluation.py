"""Wall time and memory of the whole table: every pointwise metric of a judge and of all baselines, with intervals.

    OMP_NUM_THREADS=2 python benchmarks/evaluation.py

5,000 reviewers judge 20 of 3,000 items each, 1% of the judgements failed (so that the table of imputed failures is made too),
the judge's expected scores have no ties; 2,000 other reviewers are the training side. No texts: BLEU and ROUGE cost the same
whatever the resamples. Making the examples is not counted.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from perse.evaluation.alignment import Fold
from perse.evaluation.evaluate import evaluate_many
from perse.judgement import Judgement, Status, Tokens
from perse.records import PointwiseExample, ProfileReview, ReviewReference

LABELS = [str(label) for label in range(1, 11)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviewers", type=int, default=5000)
    parser.add_argument("--items", type=int, default=20, help="judgements of each reviewer")
    parser.add_argument("--training-reviewers", type=int, default=2000)
    parser.add_argument("--failed", type=float, default=0.01)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--two-way", action="store_true", help="resample items as well as reviewers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where the time went on stderr")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.reviewers, options.items, options.training_reviewers, options.resamples = 12, 4, 12, 100
    generator = np.random.default_rng(options.seed)
    examples = _examples(generator, options.reviewers, options.items, "r")
    train = _examples(generator, options.training_reviewers, options.items, "t")
    judgements = _judgements(generator, examples, failed=options.failed)

    before, cpu_before = time.perf_counter(), time.process_time()
    profiler = cProfile.Profile()
    found = (profiler.runcall if options.profile else lambda call, *given, **named: call(*given, **named))(
        evaluate_many,
        {"judge": judgements},
        [Fold(examples, train)],
        seed=options.seed,
        resamples=options.resamples,
        resample="two-way" if options.two_way else "reviewers",
    )
    told = {
        "judgements": len(judgements),
        "reviewers": options.reviewers,
        "resamples": options.resamples,
        "resample": "two-way" if options.two_way else "reviewers",
        "rows": len(found.rows),
        "values": sum(len(row.columns) + len(row.imputed or {}) for row in found.rows),
        "seconds": round(time.perf_counter() - before, 1),
        "cpu_seconds": round(time.process_time() - cpu_before, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }
    if options.profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(40)
    if options.json:
        print(json.dumps(told))
        return
    table = Table(title="evaluate_many")
    for name in told:
        table.add_column(name, justify="right")
    table.add_row(*map(str, told.values()))
    Console().print(table)


def _examples(generator: np.random.Generator, reviewers: int, items: int, prefix: str) -> list[PointwiseExample]:
    quality = np.random.default_rng(1).normal(0, 1.3, 3000)  # of the items, the same for all readers
    examples = []
    for reviewer in range(reviewers):
        leniency = generator.normal(6.5, 1.2)
        read = generator.choice(len(quality), items + 3, replace=False)
        scores = np.clip(np.round(leniency + quality[read] + generator.normal(0, 1, len(read))), 1, 10).astype(int).tolist()
        profile = tuple(ProfileReview(text="A text.", score=scores[nth], item_id=f"i{read[nth]}") for nth in range(3))
        for nth in range(3, items + 3):
            example = PointwiseExample(
                id=f"{prefix}{reviewer}-{nth}",
                reviewer_id=f"{prefix}{reviewer}",
                item_id=f"i{read[nth]}",
                profile=profile,
                query="",
                reference=ReviewReference(review="", score=scores[nth]),
            )
            examples.append(example)
    return examples


def _judgements(generator: np.random.Generator, examples: list[PointwiseExample], *, failed: float) -> list[Judgement]:
    judgements = []
    for example in examples:
        gold = example.reference.score if example.reference else 5
        centre = 3 + 0.5 * gold + generator.normal(0, 1.2)
        weight = np.exp(-0.5 * (np.arange(1, 11) - centre) ** 2)
        chances = weight / weight.sum()
        ok = generator.random() >= failed
        judgements.append(
            Judgement(
                id=example.id,
                question="pointwise_score",
                status=Status.OK if ok else Status.UNPARSED,
                label=LABELS[int(generator.choice(10, p=chances))] if ok else None,
                expected=float(chances @ np.arange(1, 11)) if ok else None,
                distribution=dict(zip(LABELS, chances.tolist(), strict=True)) if ok else None,
                k_effective=3,
                tokens=Tokens(prompt=900, cached=600, generated=3),
                model="made up",
            )
        )
    return judgements


if __name__ == "__main__":
    main()
