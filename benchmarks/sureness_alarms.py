"""How often `perse study risk-coverage` finds that a judge knows when it does not know where its sureness has nothing to do with its errors.

    python benchmarks/sureness_alarms.py --simulations 400

Errors and sureness are drawn apart: each is a text's, and a little of the single answer's. Of 100 such worlds 5 should be called one or the
other. By readers alone: the same with every answer a text of its own, as if readers shared none.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.records import PointwiseExample, ReviewReference
from perse.studies.calibration.risk_coverage import Answers, risk_coverage

WORLDS = ((40, 8, 20), (79, 5, 100), (40, 8, None))
"""Readers, items of each, and the texts that all of them choose from; None: every item has a text of its own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.simulations, options.resamples = 2, 100
    print(
        "| readers | items each | texts | drawn | it knows | surest where wrong |", "|---:|---:|---:|---|---:|---:|", sep="\n"
    )
    for readers, each, texts in WORLDS:
        said: dict[str, Counter[str]] = {"readers and texts": Counter(), "readers alone": Counter()}
        for number in track(range(options.simulations), description=f"{readers} readers", console=Console(stderr=True)):
            generator = np.random.default_rng((options.seed, readers, number))
            text = np.concatenate([generator.choice(texts or 10**6, each, replace=False) for _ in range(readers)])
            risk, sure = _drawn(text, generator)
            for drawn, counts in said.items():
                shown = text if drawn == "readers and texts" else np.arange(len(text))
                counts[_verdict(shown, each, risk, sure, options.resamples)] += 1
        for drawn, counts in said.items() if texts else list(said.items())[:1]:
            knows, wrong = (counts[word] / options.simulations for word in ("knows", "wrong"))
            print(f"| {readers} | {each} | {texts or 'its own'} | {drawn} | {knows:.1%} | {wrong:.1%} |")


def _drawn(text: IntArray, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    _, place = np.unique(text, return_inverse=True)
    error, sure = np.abs(generator.normal(size=place.max() + 1)) * 1.5, generator.normal(size=place.max() + 1)
    own = generator.normal(size=(2, len(place)))
    return error[place] + 0.5 * np.abs(own[0]), sure[place] + 0.2 * own[1]


def _verdict(text: IntArray, each: int, risk: FloatArray, sure: FloatArray, resamples: int) -> str:
    examples = tuple(
        PointwiseExample(
            id=str(number),
            reviewer_id=f"u{number // each}",
            item_id=f"t{one}",
            profile=(),
            query=f"text {one}",
            reference=ReviewReference(review="r", score=5),
        )
        for number, one in enumerate(text.tolist())
    )
    answers = Answers(tuple(one.id for one in examples), risk, {"entropy": sure}, len(examples), "mae", examples)
    told = risk_coverage({"judge": answers}, resamples=resamples).answer
    return "knows" if "it knows when" in told else "wrong" if "surest where it is wrong" in told else "neither"


if __name__ == "__main__":
    main()
