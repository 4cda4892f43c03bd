"""Cells in words: what rounding must not say."""

from __future__ import annotations

import pytest

from perse.results.words import in_percent


@pytest.mark.parametrize(
    ("share", "digits", "said"),
    [
        (299 / 300, 0, "99.7%"),
        (1 / 300, 0, "0.3%"),
        (49_999 / 50_000, 1, "99.998%"),
        (1.0, 0, "100%"),
        (0.0, 1, "0.0%"),
        (1 / 3, 0, "33%"),
        (11 / 12, 1, "91.7%"),
        (sum([0.1] * 10), 0, "100%"),  # a hair below 1
    ],
)
def test_only_all_are_100_percent_and_only_none_0(share: float, digits: int, said: str) -> None:
    assert in_percent(share, digits=digits) == said
