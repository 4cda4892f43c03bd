"""Figure 3 of a run, and the tables of the role-play."""

from __future__ import annotations

import csv
import io

import pytest

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.drawing.figure import Figure
from perse.rehearsal.folder import Filtered, Played, Response, Round, Trace, Turn, Verdict, Version
from perse.rehearsal.reporting.figures import AFTER, WITHOUT, pass_rates, stop_at
from perse.rehearsal.reporting.telling import pass_rate_table, way_table
from perse.rehearsal.settings import stops

RATES = {"practice 1": [0.25, 0.5], "practice 2": [0.5], WITHOUT: [0.1, 0.2, 0.3, 0.4, 0.5, 0.86], AFTER: [0.4, 0.96]}


def rows(figure: Figure) -> list[list[str]]:
    return list(csv.reader(io.StringIO(figure.csv)))


def test_figure_3_has_every_rate_and_the_suggestions_stand_first() -> None:
    figure = pass_rates(RATES, together=False)
    found = rows(figure)
    assert found[0] == ["played", "demonstrations", "iteration", "passed, percent", "stops at, percent"]
    assert [row[:3] for row in found[1:4]] == [[AFTER, "yes", "1"], [AFTER, "yes", "2"], [WITHOUT, "no", "1"]]
    assert ["suggestions without practice", "no", "6", "86.0", "85"] in found
    assert "suggestions after practice 40% after iteration 1, 96% after iteration 2" in figure.alt
    nearly = pass_rates({AFTER: [1 / 300, 299 / 300]}, together=False).alt
    assert "0.3% after iteration 1, 99.7% after iteration 2" in nearly, "100% is said of all alone"
    assert "rounds of practice" in figure.svg and "stops at 95%, from 6 on at 85%" in figure.svg


def test_practice_that_was_shown_what_passed_before_has_demonstrations_from_its_second_round_on() -> None:
    found = {row[0]: row[1] for row in rows(pass_rates(RATES, together=True))[1:]}
    assert found == {AFTER: "yes", WITHOUT: "no", "practice 1": "no", "practice 2": "yes"}


def test_a_run_in_which_nobody_supervised_says_so() -> None:
    figure = pass_rates({}, together=False)
    assert figure.alt == "Nothing to draw: nobody was supervised." and rows(figure)[1:] == []
    assert pass_rate_table({}, together=False) is None


def test_one_iteration_is_drawn() -> None:
    assert len(rows(pass_rates({AFTER: [1.0]}, together=False))) == 2


@pytest.mark.parametrize("iteration", range(1, 18))
def test_the_marks_are_where_the_role_play_stops(iteration: int) -> None:
    passed = int(10 * stop_at(iteration))
    assert stops(iteration, passed, 1000)
    assert passed == 0 or not stops(iteration, passed - 1, 1000)


def test_the_table_of_pass_rates_ends_with_where_it_stops() -> None:
    table = pass_rate_table(RATES, together=False)
    assert table is not None
    assert table.header == ("played", "demonstrations", "1", "2", "3", "4", "5", "6")
    assert table.rows[0] == (AFTER, "yes", "40.0", "96.0", None, None, None, None)
    assert table.rows[-1] == ("stops at", None, "95", "95", "95", "95", "95", "85")


def trace(sample: str, method: str, **given: object) -> Trace:
    return Trace.model_validate({"sample": sample, "method": method, "summary": "s", **given})


def test_what_happened_on_the_way_is_counted() -> None:
    response = Response(analysis="a", suggestions="b")
    passed = Turn(response=response, verdict=Verdict(thought="", recommendations="", passed=True))
    sent_back = Turn(response=response, verdict=Verdict(thought="", recommendations="more", passed=False))
    versions = (Version(summary="s", score=1.0), Version(summary="t", score=2.0))
    found = way_table(
        {
            "onlysum": {"s1": trace("s1", "onlysum")},
            "role": {
                "s1": trace("s1", "role", suggestions=Played(turns=(Turn(response=response),)), versions=versions, kept=1)
            },
            "rehearsal": {
                "s1": trace(
                    "s1",
                    "rehearsal",
                    suggestions=Played(turns=(sent_back, passed)),
                    filtered=Filtered(removed=(1, 2, 3), drawn=(3,), history=1),
                    versions=versions,
                    kept=2,
                ),
                "s2": trace(
                    "s2",
                    "rehearsal",
                    suggestions=Played(turns=(sent_back,)),
                    filtered=Filtered(history=1),
                    versions=versions,
                    kept=2,
                ),
                "s3": trace("s3", "rehearsal", summary=None, failed="general summary: too_long"),
            },
        }
    )
    assert found is not None
    assert found.rows == (
        ("+RoleChange", None, "1.00", None, None, "1", "0"),
        ("Rehearsal", "1 of 3", "1.50", "1.50", "1 of 3", "0", "2"),
    )
    rounds = (
        Round(suggestions=response, summary="s", filtered=Filtered(removed=(1,), history=1), stands=True),
        Round(suggestions=response, summary="t", preferred=0.3),
        Round(failed="suggestions: bad_json"),
    )
    ours = way_table(
        {"personal": {"s1": trace("s1", "personal", rounds=rounds[:2]), "s2": trace("s2", "personal", rounds=rounds[1:])}}
    )
    assert ours is not None
    assert ours.rows == (("Personal judge (ours)", None, "1.50", "1.00", "0 of 1", "1", "0"),), (
        "a user who could not answer gave no response"
    )
    assert way_table({"onlysum": {"s1": trace("s1", "onlysum")}}) is None
