"""Which reviews a rewriting reads (Rehearsal, section 3.4 and appendix B), each rule derived by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsal_builders import Cast, Said, step_of

from perse.rehearsal.filtering import Sets, filter_reviews, kept, to_remove
from perse.rehearsal.folder import Filtered


def test_how_many_go_is_the_excess_over_the_average_length() -> None:
    assert to_remove([1000] * 12, 10_000) == 2  # (12,000 - 10,000) / 1,000
    assert to_remove([1500] * 8, 10_000) == 2  # (12,000 - 10,000) / 1,500 = 1.33, and one is not enough
    assert to_remove([999] * 10, 10_000) == 0  # 9,990 characters are fewer than 10,000
    assert to_remove([1000] * 10, 10_000) == 1  # 10,000 are not


def test_the_last_review_stays_however_long_it_is() -> None:
    assert to_remove([50_000], 10_000) == 0
    assert to_remove([50_000, 50_000], 10_000) == 1


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.integers(1, 20_000))
def test_some_go_exactly_if_there_are_too_many_and_never_all(lengths: list[int], limit: int) -> None:
    number = to_remove(lengths, limit)
    assert 0 <= number < len(lengths)
    assert (number == 0) == (sum(lengths) < limit or len(lengths) == 1)


def numbers(*given: object) -> str:
    return json.dumps({"Numbers": list(given)})


def long_reviews(number: int, *, characters: int = 100) -> tuple[str, ...]:
    return tuple(f"Review of {n:03d}: ".ljust(characters, "x") for n in range(number))


def filtered(
    tmp_path: Path,
    say: Callable[[str, int], Said],
    *,
    product: tuple[str, ...],
    history: tuple[str, ...] = ("One.", "Two.", "Three."),
    limit: int = 1000,
) -> tuple[Filtered, Cast]:
    """With a filter that is told how often each of the two was asked, from 0."""
    times: dict[str, int] = {}

    def reply(message: str) -> Said:
        step = step_of(message)
        times[step] = times.get(step, -1) + 1
        return say(step, times[step])

    cast = Cast(reply)
    agents = cast.agents(tmp_path, product_characters=limit, max_new_tokens=16)
    return filter_reviews(agents, {"s": Sets(product, history, "Less noise.")}, step="rehearsal")["s"], cast


def product_times(cast: Cast) -> int:
    return cast.steps().count("wants the least relevant")


def history_times(cast: Cast) -> int:
    return cast.steps().count("wants the nearest")


def test_the_named_reviews_go_and_the_others_stay_in_order(tmp_path: Path) -> None:
    def say(step: str, time: int) -> Said:
        return numbers(12, 3) if step == "wants the least relevant" else numbers(2)

    product = long_reviews(11) + long_reviews(1)  # 1,200 characters: 2 too many
    found, cast = filtered(tmp_path, say, product=product, limit=1001)
    assert found.removed == (12, 3) and found.drawn == () and found.history == 2
    assert kept(product, found) == product[:2] + product[3:11] and product_times(cast) == 1
    assert "exactly 2 different numbers" in cast.asked[0]


def test_nobody_is_asked_of_reviews_that_are_few_enough(tmp_path: Path) -> None:
    found, cast = filtered(tmp_path, lambda step, time: numbers(1), product=long_reviews(3))
    assert found.removed == () and product_times(cast) == 0


def test_reviews_go_again_until_fewer_characters_are_left(tmp_path: Path) -> None:
    """2,000 characters, 500 on average: 2 go. The filter names two short ones, which leaves 1,980 of 990 on average: 1 more goes."""
    product = ("a" * 10, "b" * 10, "c" * 990, "d" * 990)

    def say(step: str, time: int) -> Said:
        return [numbers(1, 2), numbers(2)][time] if step == "wants the least relevant" else numbers(1)

    found, cast = filtered(tmp_path, say, product=product, limit=1001)
    assert found.removed == (1, 2, 4) and product_times(cast) == 2  # the numbers of the second round are of what is left
    assert sum(map(len, kept(product, found))) < 1001


@pytest.mark.parametrize(
    "bad", [numbers(1), numbers(1, 2, 3), numbers(1, 1), numbers(1, 13), numbers(0, 1), "none of them", numbers("all", 1)]
)
def test_too_few_too_many_repeated_or_missing_numbers_are_asked_for_again(tmp_path: Path, bad: str) -> None:
    def say(step: str, time: int) -> Said:
        return numbers(1) if step == "wants the nearest" else bad if time < 5 else numbers(11, 12)

    found, cast = filtered(tmp_path, say, product=long_reviews(12), limit=1001)
    assert found.removed == (11, 12) and found.drawn == () and product_times(cast) == 6


def test_answers_before_the_sixth_retry_are_not_gathered_and_those_after_it_are(tmp_path: Path) -> None:
    """Asked, retried 5 times: each must be right alone. From the 6th retry on valid numbers add up: 4 and then 6."""
    answers = [*[numbers(n + 1) for n in range(6)], numbers(4), numbers(4, 99, 6), numbers(7, 8)]

    def say(step: str, time: int) -> Said:
        return numbers(1) if step == "wants the nearest" else answers[time]

    found, cast = filtered(tmp_path, say, product=long_reviews(12), limit=1001)
    assert found.removed == (4, 6) and found.drawn == () and product_times(cast) == 8


def test_after_the_eighth_retry_the_rest_is_drawn_by_the_seed(tmp_path: Path) -> None:
    def say(step: str, time: int) -> Said:
        return numbers(1) if step == "wants the nearest" else numbers(5)

    found, cast = filtered(tmp_path, say, product=long_reviews(12), limit=1001)
    assert product_times(cast) == 9 and found.removed[0] == 5 and len(set(found.removed)) == 2
    assert found.drawn == found.removed[1:]
    again, _ = filtered(tmp_path / "again", say, product=long_reviews(12), limit=1001)
    assert again == found


def test_one_number_of_a_review_of_the_history_is_wanted(tmp_path: Path) -> None:
    found, cast = filtered(tmp_path, lambda step, time: numbers(3), product=("One.",))
    assert found.history == 3 and not found.history_drawn and history_times(cast) == 1


def test_several_numbers_are_asked_for_again_5_times_and_then_the_first_of_the_next_answer_counts(tmp_path: Path) -> None:
    found, cast = filtered(tmp_path, lambda step, time: numbers(2, 3) if time < 6 else numbers(99, 3, 1), product=("One.",))
    assert found.history == 3 and not found.history_drawn and history_times(cast) == 7


def test_without_any_number_one_review_is_drawn_and_this_is_said(tmp_path: Path) -> None:
    found, cast = filtered(tmp_path, lambda step, time: "The second one.", product=("One.",))
    assert found.history in (1, 2, 3) and found.history_drawn and history_times(cast) == 7


def test_a_history_of_one_review_needs_no_filter(tmp_path: Path) -> None:
    found, cast = filtered(tmp_path, lambda step, time: numbers(9), product=("One.",), history=("One.",))
    assert found.history == 1 and cast.asked == []


def test_a_set_that_does_not_fit_is_split_at_random_and_each_part_names_its_share(tmp_path: Path) -> None:
    """12 reviews in words, of which a context holds about 8: two parts of 6, which name 1 each of the 2 that go."""
    product = tuple(f"Number {n:03d} " + "is loud " * 11 for n in range(12))
    seen: list[list[str]] = []

    def reply(message: str) -> Said:
        if step_of(message) == "wants the nearest":
            return numbers(1)
        seen.append(re.findall(r"Number (\d+)", message))
        return numbers(2)

    cast = Cast(reply)
    agents = cast.agents(tmp_path, product_characters=sum(map(len, product)) - 150, max_new_tokens=16)
    agents.fits = lambda role, prompt: len(prompt(str).split()) < 250  # type: ignore[method-assign]
    found = filter_reviews(agents, {"s": Sets(product, ("One.",), "Less noise.")}, step="rehearsal")["s"]
    assert [len(part) for part in seen] == [6, 6] and not set(seen[0]) & set(seen[1])
    assert sorted(found.removed) == sorted(int(part[1]) + 1 for part in seen) and found.drawn == ()
    assert sorted(seen[0]) != [f"{n:03d}" for n in range(6)], "the halves are drawn"


def test_a_single_review_that_fits_in_no_context_goes_when_reviews_must_go(tmp_path: Path) -> None:
    product = ("Short and loud.", "word " * 400, "Short and cheap.")
    cast = Cast(lambda message: numbers(1))
    agents = cast.agents(tmp_path, product_characters=1000, max_new_tokens=16)
    agents.fits = lambda role, prompt: len(prompt(str).split()) < 300  # type: ignore[method-assign]
    found = filter_reviews(agents, {"s": Sets(product, ("One.",), "Less noise.")}, step="rehearsal")["s"]
    assert sum(map(len, kept(product, found))) < 1000
