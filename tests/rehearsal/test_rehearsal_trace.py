"""`perse rehearsal trace`: one sample's story on a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from command_line import perse
from report_builders import scored_run, told_samples
from rich.console import Console

from perse.rehearsal.folder import Filtered, Played, Response, Round, Trace, Turn, Verdict, Version, read_traces
from perse.rehearsal.reporting.terminal import print_story


def shown(trace: Trace, *, everything: bool = False, colours: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=colours, color_system="standard" if colours else None)
    print_story(trace, console, sample=None, chain=True, everything=everything)
    return out.getvalue()


def played(*recommended: str) -> Played:
    """Responses that were sent back with these words, and one that passed."""
    said = [Response(analysis=f"I like quiet {n}", suggestions=f"say more of noise {n}") for n in range(len(recommended) + 1)]
    verdicts = [
        *(Verdict(thought="it lacks", recommendations=words, passed=False) for words in recommended),
        Verdict(thought="it fits", recommendations="", passed=True),
    ]
    return Played(turns=tuple(Turn(response=r, verdict=v) for r, v in zip(said, verdicts, strict=True)))


TRACE = Trace(
    sample="s1",
    method="rehearsal",
    summary="They are quiet.",
    general="They are loud.",
    practice=(played("be brief"),),
    demonstrations=("I like quiet 1\nsay more of noise 1",),
    suggestions=played("speak of price"),
    filtered=Filtered(removed=(3, 1), drawn=(3,), history=2),
    versions=(Version(summary="They are quiet.", score=80.0), Version(summary=None, failed="too_long: no room")),
    kept=1,
)


def test_a_story_is_told_from_the_general_summary_to_the_version_that_was_kept() -> None:
    lines = [line.strip() for line in shown(TRACE).splitlines() if line.strip()]
    order = [
        "Sample s1, Rehearsal", "General summary", "They are loud.", "Practice: 1 of 1 rounds passed", "round 1: passed, 2 responses",
        "Suggestions: passed, 2 responses", "user, response 1", "supervisor: to be revised", "speak of price", "user, response 2",
        "I like quiet [-0-]{+1+}", "supervisor: no suggestions, passed", "product reviews removed: 1, 3, of these by chance: 3",
        "review of the history chosen: 2", "Version 1: score 80.0, kept", "They are [-loud-]{+quiet+}.", "Version 2: no score",
        "too_long: no room",
    ]  # fmt: skip
    assert [line for line in lines if line in order] == order
    assert "be brief" not in lines and "be brief" in shown(TRACE, everything=True)


def test_rounds_under_the_personal_judge_say_what_the_reader_would_rather_have() -> None:
    said = Response(analysis="I like quiet", suggestions="say more of noise")
    rounds = (
        Round(
            suggestions=said, filtered=Filtered(removed=(2,), history=1), summary="They are quiet.", preferred=0.62, stands=True
        ),
        Round(suggestions=said, summary="They are very quiet.", preferred=0.5496),
        Round(suggestions=said, summary="They are quiet.", preferred=0.5),
        Round(failed="suggestions: bad_json"),
    )
    told = shown(Trace(sample="s1", method="personal", summary="They are quiet.", general="They are loud.", rounds=rounds))
    lines = [line.strip() for line in told.splitlines()]
    assert "Round 1: the reader would rather have it with 62%, stands" in lines and "They are [-loud-]{+quiet+}." in lines
    assert "Round 2: the reader would rather have it with 54.96%, does not stand" in lines
    assert "They are {+very +}quiet." in lines
    assert "Round 3: the rewriting changes nothing" in lines, "no judge was asked"
    assert "Round 4: no preference, does not stand" in lines and "suggestions: bad_json" in lines
    assert "Summary" not in lines


@pytest.mark.parametrize(("method", "told"), [("rehearsal", "not passed, 0 responses"), ("role", "0 responses, unsupervised")])
def test_a_supervised_user_who_said_nothing_is_not_said_to_be_unsupervised(method: str, told: str) -> None:
    nothing = Played(turns=(Turn(response=None, failed="bad_json: no JSON"),))
    trace = Trace(
        sample="s1", method=method, summary=None, failed="suggestions: bad_json", practice=(nothing,), suggestions=nothing
    )
    lines = [line.strip() for line in shown(trace).splitlines()]
    assert f"Suggestions: {told}" in lines and "round 1: not passed, 0 responses" in lines


def test_colours_stand_for_signs_where_there_are_colours() -> None:
    told = shown(TRACE, colours=True)
    assert "[-loud-]" not in told and "\x1b[9;31mloud" in told and "\x1b[4;32mquiet" in told


def test_a_version_of_which_nothing_stayed_is_shown_without_the_one_before_it() -> None:
    versions = (Version(summary="My daughter broke the case.", score=80.0),)
    told = shown(TRACE.model_copy(update={"versions": versions}))
    assert "(a new text) My daughter broke the case." in told and "[-" not in told.partition("Version 1")[2]


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    hostile = TRACE.model_copy(update={"general": "a\x1b[2Jb\u202ec [red]d[/red]", "sample": "s\x1b]0;x\x07"})
    told = shown(hostile)
    assert "\x1b" not in told and "\u202e" not in told and "\x07" not in told
    assert "[red]d[/red]" in told


def test_a_sample_without_a_summary_says_why() -> None:
    told = shown(Trace(sample="s1", method="persum", summary=None, failed="engine: timeout"))
    assert "No summary" in told and "engine: timeout" in told


@pytest.mark.slow
def test_the_command_prints_the_last_methods_trace_or_the_one_that_is_named(tmp_path: Path) -> None:
    _, run = scored_run(tmp_path, told_samples(2), methods=("onlysum", "rehearsal"))
    traces = read_traces(run)
    printed = json.loads(perse("rehearsal", "trace", run, "s2", "--json").stdout)
    assert Trace.model_validate_json(json.dumps(printed)) == traces["rehearsal"]["s2"]
    assert json.loads(perse("rehearsal", "trace", run, "s1", "--method", "onlysum", "--json").stdout)["method"] == "onlysum"
    told = perse("rehearsal", "trace", run, "s1", "--data", tmp_path / "data", "--all").stdout
    assert "reader u1, product p1" in told and "(removed)" in told and "(chosen)" in told
    for given, words in (
        (("s9",), "no sample 's9' under rehearsal; it has s1, s2"),
        (("s1", "--method", "role"), "no method 'role'; it has onlysum, rehearsal"),
    ):
        refused = perse("rehearsal", "trace", run, *given)
        assert refused.returncode == 2 and words in " ".join(refused.stderr.split())
