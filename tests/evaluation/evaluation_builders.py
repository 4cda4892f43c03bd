"""Small examples and judgements by hand, and a synthetic world, for the tests of the evaluation room."""

from __future__ import annotations

import json

import numpy as np

from perse.evaluation.stats.results import Evaluation, Row
from perse.judgement import Judgement, Status, Tokens
from perse.records import (
    Choice,
    ChoiceReference,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
    SummaryExample,
    SummaryReference,
)
from perse.scale import SCORES
from perse.stacking.file import OrdinalModel, StackedData, StackedJudge, Stacking
from perse.stacking.sources import Known

TOKENS = Tokens(prompt=10, cached=0, generated=5)


def scored(
    id: str, reviewer: str, score: int | None, *, item: str = "i", profile: tuple[tuple[str | None, int], ...] = ()
) -> PointwiseExample:
    past = tuple(ProfileReview(text=f"text {n} {i}", review="r", score=s, item_id=i) for n, (i, s) in enumerate(profile))
    reference = None if score is None else ReviewReference(review="r", score=score)
    return PointwiseExample(id=id, reviewer_id=reviewer, item_id=item, profile=past, query="q", reference=reference)


def pair(
    id: str, reviewer: str, choice: Choice | None, *, aspect: str = "Ending", profile: tuple[dict[str, Choice], ...] = ()
) -> PairwiseExample:
    past = tuple(ProfileComparison(text_a="a", text_b="b", preference=preference) for preference in profile)
    reference = None if choice is None else ChoiceReference(preference=choice)
    query = Pair(text_a="x", text_b="y")
    return PairwiseExample(id=id, reviewer_id=reviewer, aspect=aspect, profile=past, query=query, reference=reference)


def graded(id: str, product: str, score: float | None) -> SummaryExample:
    reference = None if score is None else SummaryReference(score=score)
    return SummaryExample(id=id, reviewer_id=product, reviews=("r",), summary=f"s {id}", reference=reference)


def answered(
    id: str,
    label: str,
    *,
    distribution: dict[str, float] | None = None,
    order_gap: float | None = None,
    model: str = "m",
    question: str = "q",
    text: str = "",
) -> Judgement:
    numbers = distribution is not None and all(key.isdigit() for key in distribution)
    expected = sum(int(key) * p for key, p in distribution.items()) if distribution and numbers else None
    return Judgement(
        id=id,
        question=question,
        status=Status.OK,
        text=text,
        label=label,
        expected=expected,
        distribution=distribution,
        order_gap=order_gap,
        k_effective=1,
        tokens=TOKENS,
        model=model,
    )


def between(value: float) -> dict[str, float]:
    """A distribution whose expectation is the value."""
    lower = min(9, int(value))
    return {str(lower): lower + 1 - value, str(lower + 1): value - lower}


def failed(id: str, status: Status = Status.UNPARSED, *, question: str = "q") -> Judgement:
    return Judgement(id=id, question=question, status=status, k_effective=1, tokens=TOKENS, model="m")


def world(reviewers: int, *, per_reviewer: int = 10, seed: int = 0) -> list[PointwiseExample]:
    """Readers of different leniency scoring items of different quality."""
    generator = np.random.default_rng(seed)
    quality = np.random.default_rng(99).normal(6, 1.5, 40)
    examples = []
    for r in range(reviewers):
        leniency = generator.normal(0, 1.2)
        items = generator.choice(40, per_reviewer + 3, replace=False)
        scores = np.clip(np.round(quality[items] + leniency + generator.normal(0, 1, len(items))), 1, 10).astype(int)
        profile = tuple((f"i{i}", int(s)) for i, s in zip(items[:3], scores[:3], strict=True))
        for i, s in zip(items[3:], scores[3:], strict=True):
            examples.append(scored(f"w{seed}-{r}-{i}", f"w{seed}-{r}", int(s), item=f"i{i}", profile=profile))
    return examples


def noisy_judge(examples: list[PointwiseExample], *, noise: float, seed: int, failures: float = 0.0) -> list[Judgement]:
    generator = np.random.default_rng(seed)
    judgements = []
    for example in examples:
        assert example.reference
        near = int(np.clip(round(example.reference.score + generator.normal(0, noise)), 1, 9))
        share = float(generator.random()) / 2
        if generator.random() < failures:
            judgements.append(failed(example.id))
        else:
            judgements.append(answered(example.id, str(near), distribution={str(near): 1 - share, str(near + 1): share}))
    return judgements


# Four items of two readers; the judge fails on the last. The training mean is (9 + 5) / 2 = 7.
GOLD = (2, 4, 6, 10)
EXAMPLES = [scored(str(n), f"u{n // 2}", score, profile=(("i1", 5),)) for n, score in enumerate(GOLD)]
TRAIN = [scored("t0", "t0", 9, item="i1"), scored("t1", "t1", 5, item="i2")]
JUDGEMENTS = [
    answered("0", "3", distribution={"3": 0.5, "1": 0.5}),  # expected 2
    answered("1", "4", distribution={"4": 0.5, "6": 0.5}),  # expected 5
    answered("2", "8", distribution={"8": 1.0}),
    failed("3"),
]


def row(evaluation: Evaluation, name: str) -> Row:
    return {row.name: row for row in evaluation.rows}[name]


def value(evaluation: Evaluation, name: str, column: str) -> float | None:
    return row(evaluation, name).columns[column].value


def no_constants(text: str) -> object:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def fitted(question: str, judge: StackedJudge | None = None) -> Stacking:
    """What user+item bias says, with nothing of the judge."""
    return Stacking(
        question=question,
        scale=SCORES.labels,
        judge=judge or StackedJudge(model="m"),
        data=StackedData(sha256="d"),
        examples=10,
        readers=("0123456789ab",),
        known=Known(mean=6, item_penalty=1, reader_penalty=10, texts={}, readers=()),
        models=(OrdinalModel(sources=("bias",), cuts=tuple(float(n) for n in range(-4, 5)), weights={"bias": 0.5}),),
    )
