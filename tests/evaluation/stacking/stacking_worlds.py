"""Worlds in which it is known what each source knows, for the tests of stackings."""

from __future__ import annotations

import numpy as np
from evaluation_builders import answered

from perse.judgement import Judgement
from perse.records import PointwiseExample, ProfileReview, ReviewReference

LABELS = np.array([float(label) for label in range(1, 11)])
TEXTS = 80
_DRAWN = np.random.default_rng(11)
QUALITY = _DRAWN.normal(size=TEXTS)


def around(middle: float, spread: float = 1.4) -> dict[str, float]:
    """A distribution over the labels around a score."""
    weights = np.exp(-(((LABELS - middle) / spread) ** 2) / 2)
    return dict(zip(map(str, range(1, 11)), (weights / weights.sum()).tolist(), strict=True))


def world(
    readers: int, *, seed: int, knows: float, each: int = 8, shown: int = 3
) -> tuple[list[PointwiseExample], list[Judgement]]:
    """Readers of differing leniency and tastes of their own, and a judge who knows so much of their taste."""
    generator = np.random.default_rng(seed)
    examples, judgements = [], []
    for r in range(readers):
        mine = generator.choice(TEXTS, each + shown, replace=False)
        taste, lenient = generator.normal(0, 1.0, each + shown), generator.normal(0, 0.8)
        given = 5.5 + lenient + 1.2 * QUALITY[mine] + taste + generator.normal(0, 0.6, each + shown)
        scores = np.clip(np.round(given), 1, 10).astype(int).tolist()
        profile = tuple(
            ProfileReview(text=f"text {text}", score=score, item_id=f"i{text}")
            for text, score in zip(mine[:shown].tolist(), scores[:shown], strict=True)
        )
        for n in range(shown, each + shown):
            name = f"s{seed}-{r}-{n}"
            reference = ReviewReference(review="r", score=scores[n])
            text = int(mine[n])
            examples.append(
                PointwiseExample(
                    id=name,
                    reviewer_id=f"s{seed}-{r}",
                    item_id=f"i{text}",
                    profile=profile,
                    query=f"text {text}",
                    reference=reference,
                )
            )
            middle = 5.5 + knows * float(taste[n]) + float(generator.normal(0, 0.7))
            told = around(middle)
            likeliest = max(told, key=lambda label: told[label])
            judgements.append(answered(name, likeliest, distribution=told, question="pointwise"))
    return examples, judgements
