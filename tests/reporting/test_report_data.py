"""What pictures are drawn from, made of examples and judgements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perse.errors import BadInput
from perse.evaluation.alignment import Fold, align
from perse.judgement import Judgement, Status, Tokens
from perse.records import (
    ChoiceReference,
    Example,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ReviewReference,
    SummaryExample,
    SummaryReference,
    VerbatimExample,
)
from perse.reporting.report_data import RunData, report_data


def text(id: str, reviewer: str, score: int) -> PointwiseExample:
    reference = ReviewReference(review="r", score=score)
    return PointwiseExample(id=id, reviewer_id=reviewer, item_id=id, profile=(), query="q", reference=reference)


def pair(id: str, reviewer: str, choice: str) -> PairwiseExample:
    query = Pair(text_a="x", text_b="y")
    reference = ChoiceReference.model_validate({"preference": choice})
    return PairwiseExample(id=id, reviewer_id=reviewer, aspect="Ending", profile=(), query=query, reference=reference)


def judged(id: str, label: str | None, distribution: dict[str, float] | None = None, *, gap: float | None = None) -> Judgement:
    return Judgement(
        id=id,
        question="q",
        status=Status.OK if label else Status.UNPARSED,
        label=label,
        distribution=distribution,
        order_gap=gap,
        k_effective=1,
        tokens=Tokens(prompt=10, cached=4, generated=5),
        model="m",
    )


def data(examples: list[Example], judgements: list[Judgement]) -> RunData:
    return report_data(align([Fold(examples, None)], {"judge": judgements}))["judge"]


def test_scores_become_arrays_in_the_order_of_the_examples() -> None:
    run = data(
        [text("b", "zoe", 4), text("a", "ann", 9)], [judged("a", "8", {"7": 0.25, "8": 0.75}), judged("b", "5", {"5": 1.0})]
    )
    assert run.ids == ("b", "a")
    assert run.gold.tolist() == [4, 9]
    assert run.label.tolist() == [5, 8]
    assert run.expected.tolist() == [5, 7.75]  # 7 / 4 + 8 * 3 / 4
    assert run.reviewer.tolist() == [1, 0]  # ann, zoe
    assert run.tokens.tolist() == [[10, 4, 5], [10, 4, 5]]


def test_a_failure_is_no_number() -> None:
    run = data([text("a", "r", 4), text("b", "r", 9)], [judged("a", None), judged("b", "7")])
    assert math.isnan(run.label[0]) and math.isnan(run.expected[0])
    assert run.ok.tolist() == run.known.tolist() == [False, True]
    assert run.statuses == (Status.UNPARSED, Status.OK)


def test_an_answer_without_distribution_is_known_but_tells_no_probabilities() -> None:
    run = data([text("a", "r", 4)], [judged("a", "7")])
    assert run.expected.tolist() == run.likeliest.tolist() == [7]
    assert run.known.tolist() == [True] and run.told.tolist() == [False]
    assert np.isnan(run.entropy).all()


def test_the_likeliest_label_may_differ_from_the_drawn_one() -> None:
    run = data([text("a", "r", 4)], [judged("a", "7", {"6": 0.9, "7": 0.1})])
    assert (run.label.tolist(), run.likeliest.tolist()) == ([7], [6])


def test_pairs_are_zero_and_one_and_expect_the_probability_of_b() -> None:
    run = data(
        [pair("a", "r", "A"), pair("b", "r", "B")], [judged("a", "B", {"A": 0.25, "B": 0.75}, gap=0.5), judged("b", None)]
    )
    assert (run.kind, run.labels, run.aspects) == ("pairwise", ("A", "B"), ("Ending", "Ending"))
    assert run.gold.tolist() == [0, 1]
    assert run.expected[0] == 0.75 and math.isnan(run.expected[1])
    assert run.order_gap[0] == 0.5 and math.isnan(run.order_gap[1])


@pytest.mark.parametrize(("question", "label", "labels"), [("coverage", "4", 5), ("sentiment_100", "80", 6)])
def test_graded_summaries_are_on_the_scale_of_their_question(question: str, label: str, labels: int) -> None:
    example = SummaryExample(id="a", reviewer_id="p", reviews=("good",), summary="fine", reference=SummaryReference(score=3.5))
    run = data([example], [judged("a", label).model_copy(update={"question": question})])
    assert (run.kind, len(run.labels)) == ("summary", labels)
    assert run.gold.tolist() == [3.5]


def test_an_answer_off_the_scale_is_named() -> None:
    with pytest.raises(BadInput, match="judgement 'a' of judge is ok with label 'great', expected one of 1, 2"):
        data([text("a", "r", 4)], [judged("a", "great")])


def test_a_prompt_must_first_be_taken_for_what_it_asks() -> None:
    reference = ReviewReference(review="r", score=3)
    with pytest.raises(BadInput, match="example 'a' is a prompt"):
        data([VerbatimExample(id="a", prompt="p", reference=reference)], [judged("a", "4")])
