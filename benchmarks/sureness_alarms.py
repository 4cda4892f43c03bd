"""How often `perse study risk-coverage` finds that a judge knows when it does not know where its sureness has nothing to do with its errors.

    python benchmarks/sureness_alarms.py --simulations 400

Errors and sureness are drawn apart: each is a text's, and a little of the single answer's. Of 100 such worlds 5 should be called one or the
other. By readers alone: the same with every answer a text of its own, as if readers shared none.

*Scores alone*: 12 and 40 readers of 8 of 100 texts, whose scores lie in the middle of a scale of 1 to 10 or near its end. A judge says some score that has nothing to do
with the reader's, with probabilities as wide everywhere, or wider by chance: near the ends of the scale it is surer, and where most scores lie near one it is right more often there. Another
one knows each score a little more or less well, and how well. *Knows*: the sentence says so; *scores tell*: it says that what is said tells as much; and the same of judges that
are surest where they are wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import product

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.calibration.risk_coverage import entropy
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.records import PointwiseExample, ReviewReference
from perse.studies.calibration.risk_coverage import Answers, risk_coverage

WORLDS = ((40, 8, 20), (79, 5, 100), (40, 8, None))
"""Readers, items of each, and the texts that all of them choose from; None: every item has a text of its own."""


CENTRES, READERS = (5.5, 8.5), (12, 40)
JUDGES = {"of chance, as sure everywhere": 0.0, "of chance, sure by chance": 0.3, "that knows": None}
"""How much its width varies (the standard deviation of its logarithm); None: with how far it is off."""
KINDS = {
    "knows": "it knows when",
    "scores": "surer where it is right, which is not shown",
    "wrong": "it is surest where it is wrong:",
    "by scores": "surest where it is wrong, which is not shown",
}


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
    print(
        "\n| scores around | readers | judge | knows | scores tell | surest where wrong | scores tell |",
        "|---:|---:|---|---:|---:|---:|---:|",
        sep="\n",
    )
    for centre, readers, (judge, uneven) in product(CENTRES, READERS, JUDGES.items()):
        found: Counter[str] = Counter()
        for number in track(range(options.simulations), description=f"around {centre}", console=Console(stderr=True)):
            generator = np.random.default_rng((options.seed, int(10 * centre), readers, number))
            found[_of_scores(generator, centre, readers, uneven, options.resamples)] += 1
        shares = " | ".join(f"{found[word] / options.simulations:.1%}" for word in KINDS)
        print(f"| {centre} | {readers} | {judge} | {shares} |")


def _of_scores(generator: np.random.Generator, centre: float, readers: int, uneven: float | None, resamples: int) -> str:
    each, texts = 8, 100
    text = np.concatenate([generator.choice(texts, each, replace=False) for _ in range(readers)])
    labels = np.arange(1, 11)
    gold = np.clip(np.round(centre + generator.normal(size=texts)[text] + generator.normal(size=len(text))), 1, 10)
    width = 1.5 * np.exp((uneven or 0.0) * generator.normal(size=len(text)))
    middle = np.clip(centre + generator.normal(size=texts)[text] + generator.normal(size=len(text)), 1, 10)
    if uneven is None:
        width = generator.uniform(0.5, 2.5, len(text))
        middle = gold + width * generator.normal(size=len(text))
    likely = np.exp(-(((labels - middle[:, None]) / width[:, None]) ** 2) / 2)
    likely /= likely.sum(axis=1, keepdims=True)
    said = likely @ labels
    examples = _examples(text, each)
    ids, sure = tuple(one.id for one in examples), {"entropy": -entropy(likely)}
    answers = Answers(ids, np.abs(gold - said), sure, len(ids), "mae", examples, said)
    told = risk_coverage({"judge": answers}, resamples=resamples).answer
    return next((kind for kind, words in KINDS.items() if words in told), "neither")


def _drawn(text: IntArray, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    _, place = np.unique(text, return_inverse=True)
    error, sure = np.abs(generator.normal(size=place.max() + 1)) * 1.5, generator.normal(size=place.max() + 1)
    own = generator.normal(size=(2, len(place)))
    return error[place] + 0.5 * np.abs(own[0]), sure[place] + 0.2 * own[1]


def _verdict(text: IntArray, each: int, risk: FloatArray, sure: FloatArray, resamples: int) -> str:
    examples = _examples(text, each)
    answers = Answers(tuple(one.id for one in examples), risk, {"entropy": sure}, len(examples), "mae", examples)
    told = risk_coverage({"judge": answers}, resamples=resamples).answer
    return "knows" if "it knows when" in told else "wrong" if "surest where it is wrong" in told else "neither"


def _examples(text: IntArray, each: int) -> tuple[PointwiseExample, ...]:
    return tuple(
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


if __name__ == "__main__":
    main()
