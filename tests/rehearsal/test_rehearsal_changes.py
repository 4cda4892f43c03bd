"""Differences between texts: what stayed, went and came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rehearsal_builders import sample

from perse.rehearsal.folder import Played, Response, Round, Trace, Turn, Version
from perse.rehearsal.reporting.changes import Change, changes, lengths
from perse.rehearsal.reporting.compared import rounds, turns, versions

TEXTS = st.text(st.sampled_from("ab .,'\n\té😀"), max_size=30)


def told(before: str, after: str) -> str:
    """As wdiff writes it."""
    signs = {"=": "{}", "-": "[-{}-]", "+": "{{+{}+}}"}
    return "".join(signs[one.kind].format(one.text) for one in changes(before, after))


def test_an_exchanged_word_went_and_came_and_its_neighbours_stayed() -> None:
    assert told("The strings are loud, and broke.", "The strings are quiet, and broke.") == (
        "The strings are [-loud-]{+quiet+}, and broke."
    )


def test_a_run_of_words_is_one_change_and_the_space_behind_it_stays() -> None:
    assert told("one two three four", "one 2 3 four") == "one [-two three-]{+2 3+} four"


def test_an_apostrophe_is_inside_a_word() -> None:
    assert told("they don't last at all", "they do last at all") == "they [-don't-]{+do+} last at all"


def test_a_space_alone_may_have_changed() -> None:
    assert told("a  b c", "a b c") == "a[-  -]{+ +}b c"


def test_of_equal_texts_everything_stays_and_of_none_nothing_is_told() -> None:
    assert changes("a b", "a b") == (Change("=", "a b"),)
    assert changes("", "") == () and changes("", "a") == (Change("+", "a"),) and changes("a", "") == (Change("-", "a"),)


def test_a_text_of_which_little_stayed_is_a_new_one() -> None:
    # 1 word of 4 + 5 stayed: 2 * 1 / 9 = 0.22, below 0.3.
    assert (
        told("the strings are loud", "my daughter broke the case") == "[-the strings are loud-]{+my daughter broke the case+}"
    )


@given(TEXTS, TEXTS)
def test_both_texts_are_in_the_changes_whole(before: str, after: str) -> None:
    found = changes(before, after)
    assert "".join(one.text for one in found if one.kind != "+") == before
    assert "".join(one.text for one in found if one.kind != "-") == after
    kinds = [one.kind for one in found]
    assert all(one.text for one in found) and all(kinds[n] != kinds[n + 1] for n in range(len(kinds) - 1))
    assert "+-" not in "".join(kinds)


def test_lengths_count_as_a_browser_does() -> None:
    assert lengths((Change("=", "a😀"), Change("-", "\ud83d"), Change("+", "é"))) == "=3-1+1"


def test_a_version_is_compared_with_what_it_was_made_from() -> None:
    trace = Trace(
        sample=sample().id,
        method="rehearsal",
        summary="b",
        general="g",
        versions=(Version(summary="a"), Version(summary=None, failed="too_long: x"), Version(summary="b")),
    )
    assert [one.before for one in versions(trace, chain=True)] == ["g", None, "a"]
    assert [one.before for one in versions(trace, chain=False)] == ["g", None, "g"]


def test_a_response_after_a_lost_one_is_compared_with_the_last_that_there_was() -> None:
    first, last = Response(analysis="a", suggestions="b"), Response(analysis="c", suggestions="d")
    played = Played(turns=(Turn(response=first), Turn(response=None, failed="bad_json: x"), Turn(response=last)))
    assert [one.before for one in turns(played)] == [None, None, first]


def test_a_round_is_compared_with_the_last_summary_that_stood() -> None:
    trace = Trace(
        sample="s1",
        method="personal",
        summary="a",
        general="g",
        rounds=(Round(summary="a", stands=True), Round(failed="rewriting: too_long"), Round(summary="b")),
    )
    assert [one.before for one in rounds(trace)] == ["g", None, "a"]
