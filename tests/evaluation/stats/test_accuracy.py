import numpy as np
import pytest
from evaluation_builders import answered, failed
from hypothesis import assume, given
from hypothesis import strategies as st

from perse.evaluation.stats.accuracy import aspect_confusion, correct, likeliest_answers, likeliest_correct, order_consistency
from perse.judgement import Judgement


def test_an_item_not_answered_is_wrong_not_absent() -> None:
    assert list(correct(["A", "B", "A", "B"], ["A", "B", "B", None])) == [1, 1, 0, 0]
    assert list(likeliest_correct(["A"], [failed("0")])) == [0]


def test_the_likeliest_answer_is_the_distributions_whatever_label_was_drawn() -> None:
    drawn_against_the_odds = answered("0", "B", distribution={"A": 0.6, "B": 0.4})
    assert list(likeliest_correct(["A", "B"], [drawn_against_the_odds] * 2)) == [1, 0]


def test_an_exact_tie_counts_half_whichever_is_right() -> None:
    tie = answered("0", "A", distribution={"A": 0.5, "B": 0.5})
    near = answered("0", "A", distribution={"A": 0.5 + 1e-12, "B": 0.5 - 1e-12})
    assert list(likeliest_correct(["A", "B"], [tie, tie])) == [0.5, 0.5]
    assert list(likeliest_correct(["A", "B"], [near, near])) == [1, 0]


def test_without_a_distribution_the_label_counts() -> None:
    assert list(likeliest_correct(["A", "B"], [answered("0", "A"), answered("1", "A")])) == [1, 0]


@given(st.floats(0, 1))
def test_the_two_answers_share_one_point(p: float) -> None:
    judgement = answered("0", "A", distribution={"A": p, "B": 1 - p})
    assert likeliest_correct(["A", "B"], [judgement] * 2).sum() == 1


@pytest.mark.parametrize("of", [lambda gold: correct(gold, ["A", "B"]), lambda gold: likeliest_correct(gold, [])])
def test_lengths_that_differ_are_refused(of) -> None:
    with pytest.raises(ValueError):
        of(["A"])


def both_ways(as_given: float, swapped: float) -> Judgement:
    """A judgement that stands on P(A) asked as given and asked swapped."""
    mean = (as_given + swapped) / 2
    return answered("0", "A", distribution={"A": mean, "B": 1 - mean}, order_gap=abs(as_given - swapped))


@given(st.floats(0, 1), st.floats(0, 1))
def test_order_consistency_is_whether_both_ways_of_asking_name_the_same_text(p: float, q: float) -> None:
    assume(min(abs(p - 0.5), abs(q - 0.5)) > 1e-9)
    assert order_consistency([both_ways(p, q)])[0] == float((p > 0.5) == (q > 0.5))


def test_one_way_of_asking_that_names_both_counts_half() -> None:
    assert list(order_consistency([both_ways(0.5, 0.7), both_ways(0.5, 0.1), both_ways(0.5, 0.5)])) == [0.5, 0.5, 0.5]


def test_without_a_gap_or_an_answer_there_is_no_order_consistency() -> None:
    asked_once = answered("0", "A", distribution={"A": 0.9, "B": 0.1})
    label_alone = answered("0", "A", order_gap=0.1)
    assert np.isnan(order_consistency([asked_once, label_alone, failed("1")])).all()


def test_of_labels_alone_that_differ_by_order_neither_is_likelier_and_the_choice_does_not_stay() -> None:
    same, other = answered("0", "A", order_gap=0.0), answered("1", "A", order_gap=1.0)
    assert list(likeliest_correct(["A", "A"], [same, other])) == [1, 0.5]
    assert list(likeliest_correct(["B", "B"], [same, other])) == [0, 0.5]
    assert list(order_consistency([same, other])) == [1, 0]


def test_the_likeliest_answer_is_the_label_where_the_distribution_cannot_tell() -> None:
    tie = {"A": 0.5, "B": 0.5}
    drawn = answered("0", "B", distribution={"A": 0.6, "B": 0.4})
    assert likeliest_answers([drawn, answered("1", "B", distribution=tie), answered("2", "B"), failed("3")]) == [
        "A",
        "B",
        "B",
        None,
    ]


def test_not_answered_is_a_class_of_its_own_in_each_aspect() -> None:
    gold = ["A", "A", "B", "B", "A"]
    answers = ["A", None, "A", "B", "B"]
    found = aspect_confusion(gold, answers, aspects=["Ending", "Ending", "Ending", "Ending", "Surprise"])
    assert found == {
        "Ending": {"A": {"A": 1, "B": 0, "N/A": 1}, "B": {"A": 1, "B": 1, "N/A": 0}},
        "Surprise": {"A": {"A": 0, "B": 1, "N/A": 0}, "B": {"A": 0, "B": 0, "N/A": 0}},
    }
    assert sum(count for aspect in found.values() for row in aspect.values() for count in row.values()) == len(gold)
