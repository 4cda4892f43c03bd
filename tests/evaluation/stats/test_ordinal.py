import numpy as np
import pytest
from evaluation_builders import answered, failed
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from perse.evaluation.stats.ordinal import (
    label_distributions,
    nearest_label,
    on_scale,
    point_masses,
    qwk_of_tables,
    rps_values,
    table_cells,
)
from perse.scale import CHOICES, HUNDREDS, SCORES

scores = st.integers(1, 10)


def kappa(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Of one row an item."""
    table = np.bincount(table_cells(gold, predicted), minlength=100)[None].astype(np.float64)
    return float(qwk_of_tables(table)[0])


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_predictions_are_rounded_half_up_to_the_scale() -> None:
    assert list(nearest_label(floats(-3, 1.49, 1.5, 2.5, 9.5, 12))) == [0, 0, 1, 2, 9, 9]
    assert list(nearest_label(floats(9.9, 10, 70, 100), scale=HUNDREDS)) == [0, 1, 4, 5]


def test_what_was_not_answered_has_no_nearest_label() -> None:
    with pytest.raises(ValueError, match="NaN"):
        nearest_label(floats(3, np.nan))


def test_an_average_of_people_may_lie_off_the_scale() -> None:
    assert on_scale(floats(1, 10, 5))
    assert not on_scale(floats(1, 5.5))
    assert on_scale(floats(0, 60), scale=HUNDREDS)


def test_kappa_equals_a_hand_derived_value() -> None:
    # gold 1 2 3, prediction 1 3 3: squared distances 0 1 0, mean 1/3. Independent: gold is 1, 2, 3 and prediction 1, 3, 3 with
    # equal chances; distances from 1: 0 4 4, from 2: 1 1 1, from 3: 4 0 0, mean 15/9. Kappa 1 - (1/3) / (15/9) = 0.8.
    assert kappa(floats(1, 2, 3), floats(1, 3, 3)) == pytest.approx(0.8)
    # Averages are rounded: 2.6 is 3.
    assert kappa(floats(1, 2, 3), floats(1.2, 2.6, 3)) == pytest.approx(0.8)


def test_a_constant_prediction_is_worth_nothing_and_the_same_constant_twice_is_undefined() -> None:
    assert kappa(floats(1, 5, 9), floats(5, 5, 5)) == 0
    assert np.isnan(kappa(floats(7, 7), floats(7, 7)))
    assert np.isnan(kappa(floats(), floats()))
    one = np.zeros((1, 100))
    one[0, 66] = 5
    assert np.isnan(qwk_of_tables(np.concatenate([one, np.zeros((1, 100))]))).all()


@given(st.lists(st.tuples(scores, scores, st.integers(0, 3)), min_size=1, max_size=12))
def test_kappa_of_a_weighted_table_is_scikit_learns_of_the_rows_repeated(rows: list[tuple[int, int, int]]) -> None:
    gold, predicted, times = (floats(*column) for column in zip(*rows, strict=True))
    cells = table_cells(gold, predicted)
    table = np.bincount(cells, weights=times, minlength=100)[None].astype(np.float64)
    repeated = [np.repeat(side, times.astype(int)) for side in (gold, predicted)]
    value = qwk_of_tables(table)[0]
    if len(set(np.concatenate(repeated))) < 2:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(cohen_kappa_score(*repeated, weights="quadratic", labels=range(1, 11)), abs=1e-12)


@pytest.mark.parametrize("cells", [5, 7])
def test_a_table_that_is_not_square_is_refused(cells: int) -> None:
    with pytest.raises(ValueError, match=f"tables of {cells} cells; expected L \\* L"):
        qwk_of_tables(np.zeros((1, cells)))


def test_ranked_probability_equals_a_hand_derived_value() -> None:
    # Labels 1 to 10, gold 3, P(2) = P(3) = 1/2. Cumulative 0 .5 1 1 ... against 0 0 1 1 ...: 0.25 over 9.
    spread = np.zeros((1, 10))
    spread[0, 1:3] = 0.5
    assert rps_values(floats(3), spread) == pytest.approx(0.25 / 9)
    # A point mass is as far off as the labels are apart: 3 and 10, 7 of 9; ends 9 of 9.
    assert rps_values(floats(3, 1, 4), point_masses(floats(10, 10, 4.4))) == pytest.approx([7 / 9, 1, 0])


@given(scores, st.lists(st.floats(0, 1), min_size=10, max_size=10).filter(lambda p: sum(p) > 0.1))
def test_ranked_probability_is_between_0_and_1_and_equals_a_plain_loop(gold: int, weights: list[float]) -> None:
    p = np.array(weights) / sum(weights)
    slow = sum((sum(p[: label + 1]) - (gold <= label + 1)) ** 2 for label in range(10)) / 9
    value = rps_values(floats(gold), p[None])[0]
    assert value == pytest.approx(slow, abs=1e-9)
    assert -1e-12 <= value <= 1 + 1e-12


def test_a_gold_score_off_the_scale_is_refused_for_ranked_probability() -> None:
    with pytest.raises(ValueError, match="none of the labels"):
        rps_values(floats(4.5), point_masses(floats(4)))


def test_a_judgement_without_distribution_was_sure_and_one_that_failed_has_none() -> None:
    given_ = [answered("0", "7"), answered("1", "9", distribution={"9": 0.75, "10": 0.25}), failed("2")]
    rows = label_distributions(given_)
    assert rows.shape == (3, 10)
    assert list(rows[0]) == [0] * 6 + [1, 0, 0, 0]
    assert list(rows[1]) == [0] * 8 + [0.75, 0.25]
    assert np.isnan(rows[2]).all()
    assert np.isnan(rps_values(floats(1, 2, 3), rows)).tolist() == [False, False, True]


def test_choices_have_no_order() -> None:
    with pytest.raises(ValueError, match="no order"):
        nearest_label(floats(1), scale=CHOICES)
    assert nearest_label(floats(3), scale=SCORES)[0] == 2
