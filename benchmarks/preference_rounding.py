"""How far the rounding of bfloat16 moves a personal judge's preference, beside float32: why a rewriting needs a gain of more than 0 to stand.

    python benchmarks/preference_rounding.py summeval-op-detailed.jsonl --model smollm2-135m

Neighbouring summaries of each product, for a reader who wrote the next product's reviews. It says by how much the probability differs between the two, how
often it is on the other side of one half, and how often only one of the two lets a summary stand, by threshold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from perse import Judge
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.records import Pair, PastReview, SummaryPairExample
from perse.rehearsal.leniency.reading import read_graded
from perse.rehearsal.preferring import GREEDY
from perse.rehearsal.settings import GAIN

SCORE = 8
"""Of every review: what these are worth to whoever wrote them is not in the file."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graded", type=Path)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--pairs", type=int, default=240)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    asked = examples(options.graded)[: 2 if options.small else options.pairs]
    exact, rounded = (preferences(options.model, dtype, asked) for dtype in ("float32", "bfloat16"))
    apart = np.abs(exact - rounded)
    print(f"apart: mean {apart.mean():.4f}, 95% below {np.quantile(apart, 0.95):.4f}, most {apart.max():.4f}")
    print(f"on the other side of one half: {np.mean((exact > 0.5) != (rounded > 0.5)):.1%}")
    for gain in sorted({0.0, 0.01, 0.02, GAIN}):
        one, other = exact > 0.5 + gain, rounded > 0.5 + gain
        print(f"threshold {gain:g}: {other.mean():.1%} stand in bfloat16, {np.mean(one != other):.1%} in one of the two alone")


def examples(path: Path) -> list[SummaryPairExample]:
    products = read_graded(path).products
    return [
        SummaryPairExample(
            id=f"{product.id}/{place}",
            reviewer_id=product.id,
            profile=tuple(PastReview(review=text, score=SCORE) for text in products[(at + 1) % len(products)].reviews),
            query=Pair(text_a=product.summaries[place].text, text_b=product.summaries[place + 1].text),
        )
        for at, product in enumerate(products)
        for place in range(len(product.summaries) - 1)
    ]


def preferences(model: str, dtype: str, asked: list[SummaryPairExample]) -> np.ndarray:
    """(n,) the probability of the second summary."""
    answers = Judge.load(model, dtype=dtype).ask(SUMMARY_PAIR, asked, GREEDY)
    found = np.array([one.distribution["B"] if one.distribution else np.nan for one in answers])
    gaps = [one.order_gap for one in answers if one.order_gap is not None]
    print(f"{dtype}: {len(asked)} pairs, standard deviation {found.std():.4f}, mean order gap {np.mean(gaps):.3f}")
    return found


if __name__ == "__main__":
    main()
