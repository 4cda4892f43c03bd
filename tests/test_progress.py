"""Progress as a person and a log see it: rate and time left always, few lines, nothing counted that was done before."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import pytest
from rich.console import Console

from perse.progress import LINE_EVERY, Pace, counted, shown_on


def told(calls: Iterable[tuple[float, str, int, int]], *, terminal: bool) -> str:
    """What is shown when `calls` (seconds, part, done, total) are told."""
    out, now = io.StringIO(), 0.0
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with shown_on(console, clock=lambda: now) as on_part:
        for now, part, done, total in calls:  # noqa: B007 - the clock reads it
            on_part(part, done, total)
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", out.getvalue())


def test_a_log_has_a_line_now_and_then_with_rate_and_time_left_and_one_at_the_end() -> None:
    lines = told(((float(n), "judging", n, 100) for n in range(101)), terminal=False).splitlines()
    assert lines == [
        "judging: 30 of 100, 1.0/s, 0:01:10 left",
        "judging: 60 of 100, 1.0/s, 0:00:40 left",
        "judging: 90 of 100, 1.0/s, 0:00:10 left",
        "judging: 100 of 100, 1.0/s, took 0:01:40",
    ]


def test_thousands_of_calls_are_few_lines() -> None:
    lines = told(((n / 100, "judging", n, 20_000) for n in range(20_001)), terminal=False).splitlines()
    assert len(lines) == 200 // LINE_EVERY + 1


@pytest.mark.parametrize("terminal", [True, False])
def test_steps_of_minutes_have_a_rate_and_a_time_left(terminal: bool) -> None:
    shown = told([(0, "judging", 0, 10), (240, "judging", 1, 10), (480, "judging", 2, 10)], terminal=terminal)
    assert "240.0 s each, 0:32:00 left" in shown and "2" in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_run_had_before_is_not_counted_as_fast_work(terminal: bool) -> None:
    shown = told([(0, "judging", 900, 1000), (100, "judging", 910, 1000)], terminal=terminal)
    assert "10.0 s each, 0:15:00 left" in shown


def test_a_log_tells_each_part_and_its_end_once() -> None:
    calls = [(0, "k=0", 0, 1), (2, "k=0", 1, 1), (2, "k=0", 1, 1), (3, "k=3", 0, 1), (5, "k=3", 1, 1), (90, "k=3", 1, 1)]
    lines = told(calls, terminal=False).splitlines()
    assert lines == ["k=0: 1 of 1, 2.0 s each, took 0:00:02", "k=3: 1 of 1, 2.0 s each, took 0:00:02"]


def test_a_run_with_nothing_left_to_do_says_so_without_a_rate() -> None:
    assert told([(0, "judging", 8, 8)], terminal=False) == "judging: 8 of 8\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_part_whose_name_looks_like_markup_is_shown_as_it_is(terminal: bool) -> None:
    assert "[/red] own" in told([(0, "[/red] own", 1, 1)], terminal=terminal)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_part_whose_name_a_terminal_would_obey_is_shown_escaped(terminal: bool) -> None:
    assert "flu\\x1b[2Jency" in told([(0, "flu\x1b[2Jency", 1, 1)], terminal=terminal)


def test_a_pace_is_silent_until_something_was_done() -> None:
    assert Pace(3, 0.0).words(3, 9, 50.0) == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_the_latest_word_about_a_part_stands_until_there_is_another(terminal: bool) -> None:
    out, now = io.StringIO(), 0.0
    with shown_on(Console(file=out, force_terminal=terminal, width=100, color_system=None), clock=lambda: now) as shown:
        shown("training", 0, 9)
        shown("training", 1, 9, "loss 4.3")
        now = 40.0
        shown("training", 2, 9)
    assert "loss 4.3" in out.getvalue()


def test_what_is_taken_from_a_list_is_counted() -> None:
    told: list[tuple[int, int]] = []
    assert [*counted("ab", lambda done, total: told.append((done, total)))] == ["a", "b"]
    assert told == [(0, 2), (1, 2), (2, 2)]
