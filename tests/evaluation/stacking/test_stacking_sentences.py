"""What `perse fit` says in words follows from its tables, also where one of the two sides orders nothing, or texts are few."""

import numpy as np
import pytest
from stacking_worlds import around, world

from perse.evaluation.alignment import Fold
from perse.evaluation.stacking.making import fit
from perse.evaluation.stacking.telling import fit_result
from perse.judgement import Judgement
from perse.records import PointwiseExample


@pytest.fixture(scope="module")
def train() -> list[PointwiseExample]:
    return world(60, seed=1, knows=0)[0]


def said(examples: list[PointwiseExample], judgements: list[Judgement] | None, train: list[PointwiseExample]) -> str:
    found = fit([Fold(examples, train)], judgements, resamples=100)
    return fit_result(found, judged=judgements is not None, written=None).answer


def of_new_texts(examples: list[PointwiseExample]) -> list[PointwiseExample]:
    """The same without a profile, about texts that training does not know: the numbers say the same of all."""
    return [one.model_copy(update={"profile": (), "query": f"new {one.query}"}) for one in examples]


@pytest.mark.slow
def test_where_the_numbers_order_nothing_the_judge_is_not_said_to_add_nothing(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=2, knows=0.9, each=6)
    answer = said(of_new_texts(examples), judgements, train)
    assert answer.startswith("The numbers that need no judge put no text before another here")
    assert "undefined" not in answer and "with the language model they have a tau-b of 0." in answer


def test_numbers_that_order_nothing_are_said_to_without_a_judge(train: list[PointwiseExample]) -> None:
    examples, _ = world(20, seed=2, knows=0, each=6)
    answer = said(of_new_texts(examples), None, train)
    assert (
        answer
        == "The numbers that need no judge put no text before another here: tau-b is undefined (constant or too few items)."
    )


def test_where_nothing_orders_anything_no_value_is_told(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=2, knows=0, each=6)
    same = [one.model_copy(update={"distribution": judgements[0].distribution}) for one in judgements]
    answer = said(of_new_texts(examples), same, train)
    assert answer == (
        "The numbers that need no judge put no text before another here, and neither does the language model: tau-b is undefined "
        "(constant or too few items)."
    )


@pytest.mark.slow
def test_what_is_added_on_few_shared_texts_is_said_of_these_alone(train: list[PointwiseExample]) -> None:
    examples, judgements = world(60, seed=2, knows=2, each=8)
    few = [one.model_copy(update={"query": f"text {n % 8}", "item_id": f"i{n % 8}"}) for n, one in enumerate(examples)]
    answer = said(few, judgements, train)
    assert "adds +" in answer and "to the numbers that need no judge, on these texts alone; within each reader +" in answer
    whole = said(examples, judgements, train)
    assert "adds +" in whole and "on these texts alone" not in whole


@pytest.mark.slow
def test_of_a_judge_that_knows_leniency_alone_what_it_adds_is_said_not_to_be_shown_within_readers(
    train: list[PointwiseExample],
) -> None:
    examples, judgements = world(60, seed=2, knows=0)
    scores: dict[str, list[float]] = {}
    for one in examples:
        assert one.reference is not None
        scores.setdefault(one.reviewer_id, []).append(one.reference.score)
    generator = np.random.default_rng(3)
    lenient = [
        judgement.model_copy(
            update={
                "distribution": around(float(np.mean(scores[one.reviewer_id]) + generator.normal(0, 0.7))),
                "expected": None,
            }
        )
        for one, judgement in zip(examples, judgements, strict=True)
    ]
    answer = said(examples, [Judgement.model_validate(one.model_dump()) for one in lenient], train)
    assert answer.startswith("The language model adds +") and "; within each reader not shown (" in answer
