"""How often chance alone puts an interval above or below 0 where one of two sides nearly always gives one answer: by a bootstrap alone, and as told.

    python benchmarks/rare_answers.py --worlds 300

40 readers with 8 texts each; reader and judge say 5, and at a rate each by itself 1. *Weighted kappa* and *within readers* as in `perse evaluate`, *study* as
every study tells Kendall tau-b and what it changes by under another profile, *two ways of asking* the kappa of `perse kgds agreement` (yes at the rate, under
each way by itself), *sureness* the gain of `perse study risk-coverage` (wrong at the rate, and as sure as chance makes it), also of errors of expected scores: half a point, give or take
a hundredth, and at the rate four. Nothing is ever there to be found:
2.5 of 100 are meant above and below. What is withheld: `perse.evaluation.stats.departures`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.calibration.risk_coverage import area
from perse.evaluation.metrics import METRICS, Scored
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.ordinal import qwk_of_tables, table_cells
from perse.kgds.agreement.measures import SampleResamples
from perse.records import PointwiseExample
from perse.results.result import Estimate, Interval
from perse.scale import SCORES
from perse.studies.calibration.risk_coverage import Answers, risk_coverage
from perse.studies.frame.resampling import estimates
from perse.studies.frame.summarizing import SharedResamples

READERS, TEXTS = 40, 8
RATES = (0.02, 0.05, 0.1, 0.2, 0.3)
READER = np.repeat(np.arange(READERS), TEXTS)
EVERY = np.ones(len(READER), dtype=bool)
Both = tuple[str, Interval, Interval]
"""What, by a bootstrap alone, and as told."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 100
    print("| what | rate | bootstrap alone: above | below | as told: above | below | nothing said |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    bootstrap = Bootstrap.over(READER, resamples=options.resamples, seed=0)
    samples = SampleResamples(READERS, resamples=options.resamples, seed=0)
    for rate in RATES:
        found: dict[str, list[list[bool]]] = {}
        for number in track(range(options.worlds), description=f"{rate}", console=Console(stderr=True)):
            generator = np.random.default_rng((options.seed, int(1000 * rate), number))
            for what, alone, told in _world(generator, rate, bootstrap, samples):
                found.setdefault(what, []).append([*_sides(alone), *_sides(told), told.low is None])
        for what, rows in found.items():
            print(f"| {what} | {rate:.0%} |", *(f"{100 * share:.1f} |" for share in np.mean(rows, axis=0)))


def _world(generator: np.random.Generator, rate: float, bootstrap: Bootstrap, samples: SampleResamples) -> Iterator[Both]:
    gold, judged, other = np.where(generator.random((3, len(READER))) < rate, 1.0, 5.0)
    scored = Scored(
        bootstrap=bootstrap, gold=gold, predicted=judged, scale=SCORES, half=np.zeros(bootstrap.reviewers, dtype=np.int64)
    )
    table = bootstrap.of_tables(table_cells(gold, judged), len(SCORES.labels) ** 2, qwk_of_tables, EVERY)
    kappa = METRICS["qwk"].function(scored)
    assert kappa is not None
    yield "weighted kappa", table.interval, kappa.interval
    yield "within readers", *_correlation("within_kendall", gold, judged, bootstrap)
    resampled = [bootstrap.resampled("kendall", gold, side) for side in (judged, other)]
    study = SharedResamples(gold, READER, bootstrap)
    yield "study", _alone(resampled[0]), study.value("kendall", [(1.0, judged)]).interval
    change = study.value("kendall", [(1.0, judged), (-1.0, other)])
    yield "study, a change", _alone(resampled[0] - resampled[1]), change.interval
    yes = gold == 1, judged == 1
    value = samples.kappa(*yes, chosen=EVERY, sample=READER)
    yield "two ways of asking", _alone(value.resampled), value.estimate().interval
    wrong = (gold == 1).astype(np.float64)
    yield "sureness", *_sureness(wrong, generator, bootstrap)
    errors = 0.5 + 3.5 * wrong + np.abs(generator.normal(0, 0.01, len(wrong)))
    yield "sureness, errors nearly alike", *_sureness(errors, generator, bootstrap)


def _correlation(name: str, gold: FloatArray, judged: FloatArray, bootstrap: Bootstrap) -> tuple[Interval, Interval]:
    behind = bootstrap.standing_behind((name,), gold, judged)[name].reviewers
    return bootstrap_interval(bootstrap.resampled(name, gold, judged), reviewers=behind), bootstrap.one(
        name, gold, judged
    ).interval


def _sureness(wrong: FloatArray, generator: np.random.Generator, bootstrap: Bootstrap) -> tuple[Interval, Interval]:
    examples = tuple(
        PointwiseExample(id=f"{n}", reviewer_id=f"u{who}", item_id=f"{n}", profile=(), query="q")
        for n, who in enumerate(READER)
    )
    sure = {"entropy": generator.normal(size=len(READER))}
    answers = Answers(tuple(one.id for one in examples), wrong, sure, len(READER), "error", examples)
    said = risk_coverage({"judge": answers}, resamples=bootstrap.resamples.number).tables[0].rows[0]
    gain = said[-1]
    assert isinstance(gain, Estimate)

    def gains(weights: FloatArray) -> FloatArray:
        return (area(wrong, np.zeros_like(wrong), weights=weights) - area(wrong, sure["entropy"], weights=weights))[:, None]

    [alone] = estimates(gains, bootstrap, items=[len(wrong)])
    return alone.interval, gain.interval


def _alone(resampled: FloatArray) -> Interval:
    return bootstrap_interval(resampled, reviewers=READERS)


def _sides(interval: Interval) -> tuple[bool, bool]:
    estimate = Estimate(value=None, interval=interval, items=0)
    return estimate.above_zero, estimate.below_zero


if __name__ == "__main__":
    main()
