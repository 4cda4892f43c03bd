from __future__ import annotations

import numpy as np
import pytest

from perse.evaluation.stats.correlation import BoolArray
from perse.evaluation.stats.paired_shares import reach


def of_counts(both: int, alone: int, other_alone: int, neither: int) -> tuple[BoolArray, BoolArray]:
    one = np.repeat([True, True, False, False], [both, alone, other_alone, neither])
    other = np.repeat([True, False, True, False], [both, alone, other_alone, neither])
    return one, other


def test_the_interval_is_newcombes_of_his_own_example() -> None:
    # 36 both, 12 and 2 alone, none neither: 0.20, from 0.0569 to 0.3404 by method 10.
    below, above = reach(*of_counts(36, 12, 2, 0))
    assert (0.2 - below, 0.2 + above) == (pytest.approx(0.0569, abs=5e-5), pytest.approx(0.3404, abs=5e-5))


def test_the_interval_is_turned_with_its_sides() -> None:
    one, other = of_counts(3, 9, 4, 20)
    assert reach(one, other) == pytest.approx(reach(other, one)[::-1])


def test_what_none_of_100_shows_may_be_so_of_others() -> None:
    # Wilson's end of 0 of n is z^2 / (n + z^2) = 3.84 / 103.84.
    below, above = reach(*of_counts(0, 0, 0, 100))
    assert below == above == pytest.approx(0.037, abs=5e-5)
    assert reach(*of_counts(100, 0, 0, 0)) == pytest.approx((below, above))
