"""What the study of aspects says of single aspects."""

from pathlib import Path

import pytest
from judging_builders import asking, point
from reading_builders import answered, failed, pair

from perse.data.profiles.views import ProfileAspects
from perse.questions import QUESTIONS
from perse.results.result import Estimate, Interval
from perse.studies.aspects import ALL, SINGLE, UNIFIED, _by_aspect, _orders, _result, _shown
from perse.studies.frame.summarizing import readings


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


def test_a_judge_of_one_aspect_that_answered_nothing_has_no_value_and_leaves_the_mean_without_one() -> None:
    pairs = [pair(f"{aspect}{n}", f"r{n}", "AB"[n % 2], aspect=aspect) for n in range(12) for aspect in ("Ending", "Surprise")]
    unified = {one.id: answered(one.id, "A") for one in pairs}
    single = {one.id: failed(one.id) if one.aspect == "Ending" else answered(one.id, "A") for one in pairs}
    hits = readings(UNIFIED, pairs, [unified]) | readings(SINGLE, pairs, [single])
    result = _result(
        asking(Path("x"), resamples=50), QUESTIONS["pairwise_once"], pairs, ["Ending", "Surprise"], hits, silent=["Ending"], view="all", given=None
    )  # fmt: skip
    for x in ("Ending", ALL):
        assert point(result, SINGLE, x, "accuracy").estimate.interval.reason == "undefined (nothing was answered of Ending)"
        assert point(result, UNIFIED, x, "accuracy").estimate.value == 0.5
    assert point(result, SINGLE, "Surprise", "accuracy").estimate.value == 0.5
    assert (
        "difference undefined (nothing was answered of Ending)" in result.answer
        and "Of the intervals of 1 aspect" in result.answer
    )


def test_no_rate_of_chance_is_told_that_is_of_another_number_of_aspects() -> None:
    """Measured: one of 2, 5 and 10 aspects that are alike is off 0 in 14, 35 and 64 of 150 worlds; "of five, every fourth" was said of all."""
    for number in (2, 5, 10):
        told = _by_aspect({f"aspect {n}": apart(0.05 if n == 0 else -0.1, 0.3) for n in range(number)})
        assert f"Of the intervals of {number} aspects" in told and "five that" not in told and "fourth" not in told


def test_both_orders_are_said_to_be_asked_only_where_they_are() -> None:
    assert ["both orders" in note for note in _orders(QUESTIONS["pairwise"])] == [True]
    assert _orders(QUESTIONS["pairwise_once"]) == _orders(QUESTIONS["pairwise_aspect_first"]) == ()


@pytest.mark.parametrize(
    ("view", "given", "said"),
    [
        ("asked", None, "the asked aspect alone, as in the paper, in training and when asked"),
        ("all", None, "all preferences on its pair, in training and when asked, those of single aspects too: the paper's are with --profile-aspects asked"),
        ("asked", "asked", "the asked aspect alone, as in the paper, in training and when asked"),
        ("asked", "all", "in training and when asked; the judge that was given all preferences on its pair"),
    ],
)  # fmt: skip
def test_what_profiles_show_is_said_of_the_judges_trained_here_and_of_one_that_was_given(
    view: ProfileAspects, given: ProfileAspects | None, said: str
) -> None:
    """Figure 5 compares judges that are shown other things than ours by default."""
    assert _shown(view, given) == f"a profile entry shows the judges that were trained here {said}" or _shown(
        view, given
    ).endswith(said)
