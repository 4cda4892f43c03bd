"""What the study of aspects says of single aspects."""

from perse.results.result import Estimate, Interval
from perse.studies.aspects import _by_aspect


def apart(low: float | None, high: float | None) -> Estimate:
    interval = Interval(low=low, high=high) if low is not None else Interval(reason="undefined (few reviewers)")
    return Estimate(value=0.1, interval=interval, items=9, difference=True)


def test_aspects_without_an_interval_are_not_among_those_that_leave_nothing_out() -> None:
    assert _by_aspect({"Ending": apart(None, None)}) == "No aspect by itself has an interval."
    told = _by_aspect({"Ending": apart(-0.1, 0.3), "Surprise": apart(None, None)})
    assert told == "Of the intervals of 1 aspect, each looked at by itself, none leaves out 0."
    told = _by_aspect({"Ending": apart(0.05, 0.3), "Surprise": apart(-0.2, 0.3)})
    assert told.startswith("Of the intervals of 2 aspects, each looked at by itself, that of Ending +0.100 [0.050, 0.300] leaves out 0; the more aspects")  # fmt: skip
    assert _by_aspect({"Ending": apart(0.05, 0.3)}).endswith("that of Ending +0.100 [0.050, 0.300] leaves out 0.")


def test_no_rate_of_chance_is_told_that_is_of_another_number_of_aspects() -> None:
    """Measured: one of 2, 5 and 10 aspects that are alike is off 0 in 14, 35 and 64 of 150 worlds; "of five, every fourth" was said of all."""
    for number in (2, 5, 10):
        told = _by_aspect({f"aspect {n}": apart(0.05 if n == 0 else -0.1, 0.3) for n in range(number)})
        assert f"Of the intervals of {number} aspects" in told and "five that" not in told and "fourth" not in told
