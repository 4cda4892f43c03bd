"""Calibration error, bins, entropy, and risk against coverage: by hand, and against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.evaluation.calibration.reliability import (
    Promised,
    bin_of,
    calibration_error,
    chance_errors,
    nearest_label,
    reliability_bins,
)
from perse.evaluation.calibration.risk_coverage import area, curve, entropy

ONE = np.ones((1, 4))


def test_the_calibration_error_is_that_computed_by_hand() -> None:
    # P(A) is 0.8 twice, true once. Bin 0.8-0.9: 0.8 against 1/2; bin 0.2-0.3: 0.2 against 1/2. Both are off by 0.3.
    probability = np.array([[0.8, 0.2], [0.8, 0.2]])
    assert calibration_error(probability, np.array([0, 1])) == pytest.approx(0.3)
    assert calibration_error(np.array([[1.0, 0.0]]), np.array([0])) == 0.0


def test_a_judge_that_is_always_right_has_no_chance_error_and_one_that_is_unsure_has() -> None:
    assert chance_errors(np.array([[1.0, 0.0], [0.0, 1.0]]), seed=0, simulations=5) == pytest.approx(np.zeros(5))
    unsure = chance_errors(np.full((200, 2), 0.5), seed=0)
    # |share - 1/2| of 200 fair coins has mean sqrt(2 / pi) * 0.5 / sqrt(200) = 0.028, with both labels in one bin it is 0
    assert unsure == pytest.approx(np.zeros(len(unsure)))
    lopsided = chance_errors(np.tile([0.75, 0.25], (200, 1)), seed=0)
    # sqrt(2 / pi) * sqrt(0.75 * 0.25 / 200) = 0.0244
    assert lopsided.mean() == pytest.approx(0.0244, abs=0.004)


def test_the_curve_and_the_area_are_those_computed_by_hand() -> None:
    # Surest first: risks 0, 1, 2, 5. Risk of what is kept: 0, 1/2, 1, 2. Their mean: 3.5 / 4 = 0.875.
    risk, sure = np.array([5.0, 0.0, 2.0, 1.0]), np.array([1.0, 4.0, 2.0, 3.0])
    assert curve(risk, sure, weights=ONE, shares=(1.0, 0.75, 0.5, 0.25))[0] == pytest.approx([2.0, 1.0, 0.5, 0.0])
    assert area(risk, sure, weights=ONE)[0] == pytest.approx(0.875)


def test_equally_sure_answers_come_and_go_together() -> None:
    # Two groups: {1, 3} surest, mean 2, then {0, 0}. Half of the first group is kept with its mean, whatever the order.
    for risk in ([1.0, 3.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0]):
        found = curve(np.array(risk), np.array([2.0, 2.0, 1.0, 1.0]), weights=ONE, shares=(0.25, 0.5, 1.0))[0]
        assert found == pytest.approx([2.0, 2.0, 1.0])
        # the area: the first two have risk 2 among those as sure, the others 1
        assert area(np.array(risk), np.array([2.0, 2.0, 1.0, 1.0]), weights=ONE)[0] == pytest.approx(1.5)


def test_random_order_has_the_risk_of_all_and_the_oracle_the_least() -> None:
    generator = np.random.default_rng(0)
    risk, sure = generator.random(50), generator.random(50)
    ones = np.ones((1, 50))
    assert area(risk, np.zeros(50), weights=ones)[0] == pytest.approx(risk.mean())
    assert area(risk, -risk, weights=ones)[0] <= area(risk, sure, weights=ones)[0]


@settings(max_examples=60)
@given(st.data())
def test_weights_are_the_resample_built_row_by_row(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    small = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    risk, sure = np.array(data.draw(small), dtype=float), np.array(data.draw(small), dtype=float)
    weights = np.array(data.draw(small), dtype=float)
    if not weights.any():
        assert np.isnan(area(risk, sure, weights=weights[None])[0])
        return
    rows = np.repeat(np.arange(n), weights.astype(int))
    ones = np.ones((1, len(rows)))
    assert area(risk, sure, weights=weights[None])[0] == pytest.approx(area(risk[rows], sure[rows], weights=ones)[0])
    assert curve(risk, sure, weights=weights[None])[0] == pytest.approx(curve(risk[rows], sure[rows], weights=ones)[0])
    # the slow twin of the area: for each row, the mean risk of all rows at least as sure
    slow = [risk[rows][sure[rows] >= sure[row]].mean() for row in rows]
    assert area(risk, sure, weights=weights[None])[0] == pytest.approx(np.mean(slow))


def test_entropy_is_in_bits() -> None:
    # 1/2, 1/4, 1/4: 0.5 * 1 + 0.25 * 2 + 0.25 * 2 = 1.5; certainty is 0, and 0, not -0
    found = entropy(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [np.nan] * 3]))
    assert found[0] == 1.5 and str(found[1]) == "0.0" and np.isnan(found[2])


def test_a_rounding_error_makes_no_answer_surer() -> None:
    sure = np.array([-0.3, -(0.1 + 0.2), -0.3, -(0.1 + 0.2)])
    assert sure[0] != sure[1]
    assert curve(np.array([0.0, 1.0, 0.0, 1.0]), sure, shares=(1.0, 0.5))[0] == pytest.approx([0.5, 0.5])


def test_bins_hold_all_labels_with_what_came_true_of_them() -> None:
    # P is 0.8, 0.2 twice, the first true once: bin 2 holds two labels with mean 0.2, one of them true; bin 8 two with 0.8.
    sides = Promised(("A", "B"), np.array([[0.8, 0.2], [0.8, 0.2]]), np.array([0, 1]), np.array([0, 1]))
    low, high = reliability_bins(sides, resamples=100, seed=0)
    assert (low.place, high.place) == (2, 8)
    assert (low.predicted.value, low.true.value, low.true.items) == (pytest.approx(0.2), 0.5, 2)
    assert (high.predicted.value, high.true.value, high.true.items) == (pytest.approx(0.8), 0.5, 2)


def test_the_last_bin_holds_certainty() -> None:
    assert bin_of(np.array([[0.0, 0.1, 0.95, 1.0]])).tolist() == [[0, 1, 9, 9]]


def test_a_truth_between_two_labels_counts_for_the_nearest_and_midway_for_the_lower() -> None:
    values = np.array([0.0, 20.0, 40.0])
    assert nearest_label(np.array([0.0, 12.0, 30.0, 40.0]), values).tolist() == [0, 1, 1, 2]
