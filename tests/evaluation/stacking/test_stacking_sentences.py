"""What `perse fit` says in words follows from its tables, also where one of the two sides orders nothing, or texts are few."""

import re

import numpy as np
import pytest
from stacking_worlds import around, world

from perse.evaluation.alignment import Fold
from perse.evaluation.stacking.making import fit
from perse.evaluation.stacking.telling import _adds, fit_result
from perse.judgement import Judgement
from perse.records import PointwiseExample, ProfileReview
from perse.results.result import Estimate, Interval


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


@pytest.mark.slow
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


def of_leniency(examples: list[PointwiseExample], judgements: list[Judgement], *, noise: float = 0.7) -> list[Judgement]:
    """What a judge says that knows how lenient each reader is, and nothing of texts."""
    generator, told = np.random.default_rng(3), []
    for one, judgement in zip(examples, judgements, strict=True):
        middle = np.mean(
            [other.reference.score for other in examples if other.reference and other.reviewer_id == one.reviewer_id]
        )
        distribution = around(float(middle + generator.normal(0, noise)))
        told.append(judgement.model_copy(update={"distribution": distribution, "expected": None}))
    return [Judgement.model_validate(one.model_dump()) for one in told]


@pytest.mark.slow
def test_of_a_judge_that_knows_leniency_alone_what_it_adds_is_said_not_to_be_shown_within_readers(
    train: list[PointwiseExample],
) -> None:
    examples, judgements = world(60, seed=2, knows=0)
    answer = said(examples, of_leniency(examples, judgements), train)
    assert answer.startswith("The language model adds +") and "; within each reader not shown (" in answer


@pytest.mark.slow
def test_a_judge_that_orders_texts_the_wrong_way_round_is_told_so_beside_what_it_adds(train: list[PointwiseExample]) -> None:
    examples, judgements = world(60, seed=2, knows=2, each=8)
    turned = []
    for one in judgements:
        assert one.distribution is not None
        labels = dict(zip(one.distribution, reversed(one.distribution.values()), strict=True))
        turned.append(Judgement.model_validate({**one.model_dump(), "distribution": labels, "expected": None}))
    answer = said(examples, turned, train)
    assert "adds +" in answer and "within each reader +" in answer
    assert ", though by itself it orders a reader's texts the wrong way round (-0." in answer


@pytest.mark.slow
def test_where_profiles_hold_a_readers_other_texts_a_judge_of_leniency_is_not_credited_with_an_order_of_them(
    train: list[PointwiseExample],
) -> None:
    """The mean of a reader's other scores is low where the one left out is high; who tells leniency without that mends it, and knows no text."""
    examples, judgements = world(80, seed=6, knows=0, each=8)
    drawn = np.random.default_rng(5)
    others = []
    for one in examples:
        rest = [other for other in examples if other.reviewer_id == one.reviewer_id and other.id != one.id]
        chosen = [rest[n] for n in drawn.choice(len(rest), 3, replace=False)]
        past = tuple(ProfileReview(text=c.query, score=c.reference.score, item_id=c.item_id) for c in chosen if c.reference)
        others.append(one.model_copy(update={"profile": past}))
    answer = said(others, of_leniency(others, judgements, noise=0.1), train)
    assert answer.startswith("The language model adds +") and "; within each reader +" in answer
    # What is gained there lies between two values, which are told.
    ends = re.search(r"; within each reader \+([\d.]+) \[[^]]+\] \(from (-?[\d.]+) to (-?[\d.]+)\)", answer)
    assert ends, answer
    assert float(ends[3]) - float(ends[2]) == pytest.approx(float(ends[1]), abs=0.002)
    assert ", though by itself it is not shown to order a reader's texts (" in answer


def estimate(value: float | None, *, skipped: int = 0, low: float = 0.1, high: float = 0.9) -> Estimate:
    interval = Interval(reason="undefined (x)") if value is None else Interval(low=low, high=high)
    return Estimate(value=value, interval=interval, items=9, skipped_reviewers=skipped)


def added(within: Estimate, reached: tuple[Estimate, Estimate]) -> str:
    gains = {"kendall": estimate(0.3), "within_kendall": within}
    return _adds("the language model", gains, estimate(0.5), {"within_kendall": estimate(0.4)}, reached, "")


def test_what_a_gain_within_readers_lies_between_is_said_of_the_same_readers_alone() -> None:
    assert added(estimate(0.25), (estimate(0.1), estimate(0.35))).endswith(
        "within each reader 0.250 [0.100, 0.900] (from 0.100 to 0.350)."
    )
    others = added(estimate(0.25, skipped=62), (estimate(0.354, skipped=62), estimate(0.326)))
    assert others.endswith(
        "within each reader 0.250 [0.100, 0.900] (of the readers whose texts both order, without 62 others)."
    )


def test_within_readers_whose_texts_the_numbers_do_not_order_what_is_reached_with_the_judge_is_said() -> None:
    said = added(estimate(None, skipped=9), (estimate(None, skipped=9), estimate(0.31)))
    assert said.endswith("not shown (without it no reader's texts are ordered, with it tau-b is 0.310 [0.100, 0.900]).")


def test_a_gain_that_does_not_bring_the_order_above_chance_says_so() -> None:
    low = estimate(0.1, low=-0.2, high=0.3)
    said = _adds("the language model", {"kendall": estimate(0.3)}, low, {}, (low, low), "")
    assert said.endswith(", but with it their order is not shown to be better than chance (0.100 [-0.200, 0.300]).")


@pytest.mark.slow
def test_how_much_a_judge_answered_stands_beside_what_it_adds(train: list[PointwiseExample]) -> None:
    examples, judgements = world(40, seed=2, knows=1, each=6)
    refused = {one.id for one in examples if int(one.reviewer_id.split("-")[-1]) % 2}
    given = [
        one.model_copy(update={"status": "unparsed", "label": None, "distribution": None, "expected": None})
        if one.id in refused
        else one
        for one in judgements
    ]
    assert f" (it answered {240 - len(refused)} of 240). The numbers alone" in said(examples, given, train)
