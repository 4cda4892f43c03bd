"""What a report says of a judge's answers when the two texts are swapped."""

from types import SimpleNamespace

import pytest

from perse.reporting.summary import _steadiness
from perse.results.result import Estimate, Interval


@pytest.mark.parametrize(
    ("low", "high", "begins"),
    [
        (0.20, 0.45, "Bound to the order: asked again with the two texts swapped, it chose the same text in 0.40 [0.20, 0.45] of the pairs that it answered in both orders (20)."),
        (0.20, 0.60, "Asked again with the two texts swapped, it chose the same text in 0.40 [0.20, 0.60] of the pairs that it answered in both orders (20)."),
        (None, None, "Asked again with the two texts swapped, it chose the same text in 0.40 [undefined (few reviewers)] of the pairs that it answered in both orders (20)."),
    ],
)  # fmt: skip
def test_a_judge_is_called_bound_to_the_order_only_where_the_interval_says_so(
    low: float | None, high: float | None, begins: str
) -> None:
    interval = Interval(low=low, high=high) if low is not None else Interval(reason="undefined (few reviewers)")
    same = Estimate(value=0.4, interval=interval, items=20)
    evaluation = SimpleNamespace(rows=[SimpleNamespace(name="judge (likeliest)", columns={"order_consistency": same})])
    assert _steadiness(evaluation, "judge (likeliest)") == begins  # type: ignore[arg-type]
