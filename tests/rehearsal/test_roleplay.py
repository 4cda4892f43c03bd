"""The role-play under its stop rules (Rehearsal, section 4.3 and appendix B), each derived by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rehearsal_builders import Cast, Said, step_of, usual

from perse.rehearsal.folder import Played, Response, Turn, Verdict
from perse.rehearsal.roleplay import Play, Scene, demonstrations, play
from perse.rehearsal.settings import stops


@pytest.mark.parametrize(
    ("iteration", "passed", "stop"),
    [
        (1, 94, False),
        (1, 95, True),
        (5, 94, False),
        (5, 95, True),
        (6, 84, False),
        (6, 85, True),
        (6, 94, True),
        (15, 84, False),
        (16, 0, True),
        (16, 84, True),
    ],
)
def test_it_stops_at_95_percent_up_to_iteration_5_at_85_after_and_after_16_in_any_case(
    iteration: int, passed: int, *, stop: bool
) -> None:
    assert stops(iteration, passed, 100) is stop


def test_the_rate_is_of_all_samples_and_needs_no_luck_of_rounding() -> None:
    assert stops(1, 19, 20) and not stops(1, 18, 20)  # 0.95 x 20 is 19
    assert stops(6, 17, 20) and not stops(6, 16, 20)  # 0.85 x 20 is 17


def scenes(number: int) -> dict[str, Scene]:
    return {f"s{n}": Scene((f"I, number {n:03d}, like quiet.",), f"A summary of {n:03d}.") for n in range(number)}


def number_of(message: str) -> int:
    found = re.search(r"I, number (\d+),", message)
    assert found is not None
    return int(found[1])


def passing(after: Callable[[int], int]) -> Callable[[str], Said]:
    """A cast in which the response of sample n passes in iteration `after(n)`; a response says how often it was revised."""

    def reply(message: str) -> Said:
        step = step_of(message)
        if step == "supervises":
            times = int(re.findall(r"revised (\d+) times", message)[-1])
            fine = times + 1 >= after(number_of(message))
            return f"Thought: hm.\nSuggestions: {'No suggestions' if fine else f'1. Revise {times} again.'}"
        times = int(re.findall(r"revised (\d+) times", message)[-1]) + 1 if step == "revises" else 0
        return json.dumps({"Analysis": "I like quiet.", "Suggestions": f"Less noise, revised {times} times."})

    return reply


def played(
    tmp_path: Path, reply: Callable[[str], Said], number: int, *, samples: int | None = None, **settings: int
) -> tuple[Play, Cast]:
    cast = Cast(reply)
    found = play(cast.agents(tmp_path, **settings), scenes(number), step="suggestions", samples=samples or number)
    return found, cast


def test_all_pass_at_once_and_nobody_is_asked_again(tmp_path: Path) -> None:
    found, cast = played(tmp_path, passing(lambda n: 1), 4)
    assert found.rates == (1.0,) and cast.steps() == ["suggests"] * 4 + ["supervises"] * 4
    assert all(one.passed and len(one.turns) == 1 for one in found.played.values())


def test_who_has_not_passed_revises_as_recommended_and_who_has_is_left_alone(tmp_path: Path) -> None:
    found, cast = played(tmp_path, passing(lambda n: 3 if n == 1 else 1), 2)
    assert found.rates == (0.5, 0.5, 1.0)
    assert [len(found.played[name].turns) for name in ("s0", "s1")] == [1, 3]
    revisions = [message for message in cast.asked if step_of(message) == "revises"]
    assert [number_of(message) for message in revisions] == [1, 1]
    assert "[Recommendations] 1. Revise 0 again." in revisions[0] and "revised 0 times" in revisions[0]
    last = found.played["s1"].response
    assert last is not None and last.suggestions == "Less noise, revised 2 times."


def test_iterations_go_on_below_95_percent_and_end_at_85_after_the_fifth(tmp_path: Path) -> None:
    """18 of 20 pass at once: 90% is too few up to iteration 5, and enough at 6; the two others are revised 5 times each."""
    found, cast = played(tmp_path, passing(lambda n: 1 if n < 18 else 99), 20)
    assert found.rates == (0.9,) * 6
    assert cast.steps().count("revises") == 2 * 5 and cast.steps().count("supervises") == 20 + 2 * 5


def test_95_percent_end_it_although_one_has_not_passed(tmp_path: Path) -> None:
    found, cast = played(tmp_path, passing(lambda n: 1 if n else 99), 20)
    assert found.rates == (0.95,) and "revises" not in cast.steps()
    assert not found.played["s0"].passed and found.played["s0"].response is not None


def test_nobody_passes_and_it_ends_after_iteration_16(tmp_path: Path) -> None:
    found, cast = played(tmp_path, passing(lambda n: 99), 2)
    assert found.rates == (0.0,) * 16 and cast.steps().count("supervises") == 32 and cast.steps().count("revises") == 30


def test_a_bound_on_iterations_ends_it_before(tmp_path: Path) -> None:
    found, _ = played(tmp_path, passing(lambda n: 99), 2, max_iterations=2)
    assert found.rates == (0.0, 0.0)


def test_the_rate_counts_samples_that_never_had_a_summary(tmp_path: Path) -> None:
    """8 play of 10: all have passed, and 80% are too few, but nobody is left to ask."""
    found, cast = played(tmp_path, passing(lambda n: 1), 8, samples=10)
    assert found.rates == (0.8,) and cast.steps().count("supervises") == 8


def test_a_supervisor_who_answers_nonsense_for_ever_is_counted_and_the_response_stays(tmp_path: Path) -> None:
    def reply(message: str) -> Said:
        return "Mmm." if step_of(message) == "supervises" else usual(message)

    found, cast = played(tmp_path, reply, 1, max_iterations=3, tries=2)
    turns = found.played["s0"].turns
    assert found.rates == (0.0, 0.0, 0.0) and "revises" not in cast.steps()
    assert all(turn.verdict is None and turn.failed is not None and turn.failed.startswith("no_verdict") for turn in turns)
    assert found.played["s0"].response is not None and cast.steps().count("supervises") == 3 * 2


def test_a_user_who_answers_nonsense_has_no_response_and_is_not_supervised(tmp_path: Path) -> None:
    found, cast = played(tmp_path, lambda message: "I do not know.", 1)
    assert found.played["s0"].response is None and found.played["s0"].turns[0].failed is not None
    assert "supervises" not in cast.steps() and found.rates == (0.0,)


def test_a_revision_that_cannot_be_had_leaves_the_response_before(tmp_path: Path) -> None:
    def reply(message: str) -> Said:
        return "Hm." if step_of(message) == "revises" else passing(lambda n: 99)(message)

    found, _ = played(tmp_path, reply, 1, max_iterations=2)
    first, second = found.played["s0"].turns
    assert second.response is None and second.failed is not None and second.verdict is not None
    assert found.played["s0"].response == first.response


def shown(text: str) -> str:
    return f"Analysis: I\nSuggestions: {text}"


def turn(text: str, *, passed: bool) -> Played:
    verdict = Verdict(thought="", recommendations="" if passed else "More.", passed=passed)
    return Played(turns=(Turn(response=Response(analysis="I", suggestions=text), verdict=verdict),))


def test_rounds_that_passed_are_the_demonstrations() -> None:
    rounds = [turn("a", passed=False), turn("b", passed=True), turn("c", passed=True)]
    assert demonstrations(rounds) == (shown("b"), shown("c"))


def test_all_rounds_are_if_none_has_passed() -> None:
    assert demonstrations([turn("a", passed=False), turn("b", passed=False)]) == (shown("a"), shown("b"))


def test_equal_responses_are_shown_once_and_missing_ones_not_at_all() -> None:
    assert demonstrations([turn("a", passed=True), Played(turns=(Turn(response=None),)), turn("a", passed=True)]) == (
        shown("a"),
    )
    assert demonstrations([]) == ()


def test_demonstrations_stand_in_the_first_prompt_and_in_no_revision(tmp_path: Path) -> None:
    cast = Cast(passing(lambda n: 2))
    play(cast.agents(tmp_path), scenes(1), step="suggestions", samples=1, demonstrations={"s0": ["I am like this."]})
    shown = {step_of(message): "[Example 1] I am like this." in message for message in cast.asked}
    assert shown == {"suggests": True, "supervises": False, "revises": False}
