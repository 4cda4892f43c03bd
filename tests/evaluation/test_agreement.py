import pytest
from evaluation_builders import answered, failed
from hypothesis import given
from hypothesis import strategies as st

from perse.evaluation.agreement import correct, likeliest_correct


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
