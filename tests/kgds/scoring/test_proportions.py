from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perse.kgds.outcomes import ErrorType
from perse.kgds.scoring.proportions import proportions


def of(*counts: float) -> list[float]:
    """In the order of table 2: OFI OSD IRU IRIC OM."""
    return list(proportions(dict(zip(ErrorType, counts, strict=True))).values())


@pytest.mark.parametrize(
    ("counts", "row"),
    [
        # 18 of 210 is 8.571, 13 6.190, 56 26.667, 117 55.714, 6 2.857: rounded they sum to 100.00 as they are.
        ((18, 13, 56, 117, 6), [8.57, 6.19, 26.67, 55.71, 2.86]),
        # GPT-4o, abs-aos: of 270 they are 4.074, 2.963, 50.741, 40.370, 1.852; rounded they sum to 99.99, and the last gets 1.86.
        ((11, 8, 137, 109, 5), [4.07, 2.96, 50.74, 40.37, 1.86]),
        # GPT-4o-mini, abs-aos: of 631 they are 1.743, 0.792, 73.693, 23.613, 0.158; 99.99 again, and the last gets 0.17.
        ((11, 5, 465, 149, 1), [1.74, 0.79, 73.69, 23.61, 0.17]),
    ],
)
def test_rows_of_the_papers_table_2_come_out_to_the_digit(counts: tuple[int, ...], row: list[float]) -> None:
    assert of(*counts) == row


def test_the_remainder_goes_on_the_smallest_class_that_occurs() -> None:
    # 2/6, 3/6, 1/6: 33.33 + 50.00 + 16.67 = 100.00. 1/7, 2/7, 4/7: 14.29 + 28.57 + 57.14 = 100.00.
    assert of(2, 3, 1, 0, 0) == [33.33, 50, 16.67, 0, 0]
    assert of(1, 2, 4, 0, 0) == [14.29, 28.57, 57.14, 0, 0]
    # 3/11, 3/11, 5/11: 27.27 + 27.27 + 45.45 = 99.99, and the first of the two smallest gets what is missing.
    assert of(0, 5, 0, 3, 3) == [0, 45.45, 0, 27.28, 27.27]
    # Two thirds: 66.67 + 33.33. A third each: 33.33 three times, the first gets 33.34.
    assert of(0, 1, 1, 1, 0) == [0, 33.34, 33.33, 33.33, 0]
    # 2/6 and 1/6, twice each: 33.33 + 33.33 + 16.67 + 16.67 = 100.00.
    assert of(2, 2, 1, 1, 0) == [33.33, 33.33, 16.67, 16.67, 0]
    # Too much: 5 of 30, 5, 5, 5, 10: 16.67 four times + 33.33 = 100.01, and the first of the smallest loses it.
    assert of(5, 5, 5, 5, 10) == [16.66, 16.67, 16.67, 16.67, 33.33]


def test_one_class_alone_has_all() -> None:
    assert of(0, 0, 7, 0, 0) == [0, 0, 100, 0, 0]


def test_a_smallest_class_that_has_too_little_is_left_with_nothing_and_not_less() -> None:
    # Of 200,000: 24.9995 -> 25.00 twice, 50.0005 -> 50.00, 0.0005 -> 0.00: the sum is 100.00.
    assert of(49_999, 49_999, 100_001, 1, 0) == [25, 25, 50, 0, 0]
    # Of 1,000,000: three of 24.9957 -> 25.00 (+0.0043 each), 25.0128 -> 25.01, 0.0001 -> 0.00: 100.01; nothing to take from the
    # smallest (0.00), so that the next smallest, the first of the three, gives it.
    assert of(249_957, 249_957, 249_957, 250_128, 1) == [24.99, 25, 25, 25.01, 0]


@pytest.mark.parametrize("counts", [{}, {ErrorType.OM: 0}, {ErrorType.OM: -1, ErrorType.IRU: 2}])
def test_nothing_to_share_is_an_error_of_the_caller(counts: dict[ErrorType, float]) -> None:
    with pytest.raises(ValueError, match="not negative and not all 0"):
        proportions(counts)


counts = st.one_of(st.integers(0, 10**6), st.floats(0, 1000, allow_subnormal=False))


@given(st.tuples(counts, counts, counts, counts, counts).filter(any))
def test_shares_sum_to_100_are_not_negative_and_near_the_exact_ones(counted: tuple[float, ...]) -> None:
    shares = of(*counted)
    assert sum(round(100 * share) for share in shares) == 10_000
    assert all(round(share, 2) == share >= 0 for share in shares)
    for count, share in zip(counted, shares, strict=True):
        assert abs(share - 100 * count / sum(counted)) < 0.05
        assert count or share == 0
