"""How far the rounding of bfloat16 moves a personal judge's preference, beside float32: why a rewriting needs a gain of more than 0 to stand.

    python benchmarks/preference_rounding.py SUMMEVAL_OP [MODEL] [PAIRS]

SUMMEVAL_OP is summeval-op-detailed.jsonl: neighbouring summaries of each product, in turn, for a reader who wrote the next product's reviews. It says by
how much the probability differs between the two, how often it changes its side of one half, and how often with a threshold.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from perse import Judge
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.records import Pair, PastReview, SummaryPairExample
from perse.rehearsal.preferring import GREEDY
from perse.rehearsal.settings import GAIN


def examples(path: Path, most: int) -> list[SummaryPairExample]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = []
    for place in range(12):
        for number, row in enumerate(rows):
            history = rows[(number + 1) % len(rows)]["reviews"]
            texts = row["summaries"]
            found.append(
                SummaryPairExample(
                    id=f"{number}/{place}",
                    reviewer_id=str(number),
                    profile=tuple(PastReview(review=text, score=8) for text in history),
                    query=Pair(text_a=texts[place], text_b=texts[place + 1]),
                )
            )
    return found[:most]


def main(path: str, model: str = "smollm2-135m", pairs: str = "120") -> None:
    asked = examples(Path(path), int(pairs))
    probabilities = {}
    for dtype in ("float32", "bfloat16"):
        answers = Judge.load(model, dtype=dtype).ask(SUMMARY_PAIR, asked, GREEDY)
        probabilities[dtype] = np.array([one.distribution["B"] if one.distribution else np.nan for one in answers])
        gaps = [one.order_gap for one in answers if one.order_gap is not None]
        print(
            f"{dtype}: {len(asked)} pairs, standard deviation {probabilities[dtype].std():.4f}, mean order gap {np.mean(gaps):.3f}"
        )
    exact, rounded = probabilities.values()
    apart = np.abs(exact - rounded)
    print(f"apart: mean {apart.mean():.4f}, 95% below {np.quantile(apart, 0.95):.4f}, most {apart.max():.4f}")
    print(f"on the other side of 0.5: {np.mean((exact > 0.5) != (rounded > 0.5)):.1%}")
    for gain in (0.0, 0.01, 0.02, GAIN):
        stands = [(one > 0.5 + gain) for one in (exact, rounded)]
        print(f"threshold {gain:g}: {stands[1].mean():.1%} stand, {np.mean(stands[0] != stands[1]):.1%} only in one of the two")


if __name__ == "__main__":
    main(*sys.argv[1:])
