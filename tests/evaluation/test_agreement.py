import pytest

from perse.evaluation.agreement import accuracy, accuracy_by_aspect, correct


def test_an_item_not_answered_is_wrong_not_absent() -> None:
    # 2 right of 4 asked; of the 3 answered it would be 2/3.
    assert accuracy(["A", "B", "A", "B"], ["A", "B", "B", None]) == 0.5
    assert list(correct(["A"], [None])) == [0.0]


def test_accuracy_of_nothing_is_undefined() -> None:
    assert accuracy([], []) is None


def test_accuracy_stands_per_aspect_in_order_of_appearance() -> None:
    found = accuracy_by_aspect(["A", "A", "B"], ["A", "B", "B"], aspects=["Surprise", "Ending", "Surprise"])
    assert list(found.items()) == [("Surprise", 1.0), ("Ending", 0.0)]


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError):
        accuracy(["A"], ["A", "B"])
    with pytest.raises(ValueError, match="1 answers and 2 aspects"):
        accuracy_by_aspect(["A"], ["A"], aspects=["Ending", "Ending"])
