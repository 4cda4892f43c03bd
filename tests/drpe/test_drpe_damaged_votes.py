"""A run of votes that is damaged is one sentence, and never other numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from test_drpe_forgetting import ANN, reader, reply
from vote_builders import Poll, document

from perse.drpe.votes.run_folder import read_run
from perse.errors import BadInput

DOCUMENTS = [document(1), document(2)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Poll(reply).vote(tmp_path / "votes", DOCUMENTS)


def change(path: Path, edit: Callable[[dict[str, Any]], object], line: int = 0) -> None:
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    fields = json.loads(lines[line])
    edit(fields)
    lines[line] = json.dumps(fields)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "edit", "why"),
    [
        ("manifest.json", lambda one: one["run"]["settings"].update(references="x"), "'run.settings' is .* expected the settings"),
        ("manifest.json", lambda one: one["run"]["settings"].pop("prompting"), "expected the settings of a vote"),
        ("manifest.json", lambda one: one["run"]["documents"].update(sha256="0"), "documents.jsonl: is not what was voted on"),
        ("documents.jsonl", lambda one: one["candidates"][0].update(scores={"coherence": 5.0}), "is not what was voted on"),
        ("ballots.jsonl", lambda one: one.update(document="x"), "ballots.jsonl: is not what was asked"),
        ("manifest.json", lambda one: one["run"].pop("ballots"), "'run.ballots' is null, expected the count of ballots"),
        ("single/judgements.jsonl", lambda one: one.update(label=None), "the answer 'd1/.*' has null, expected A or B"),
        ("single/judgements.jsonl", lambda one: one.update(label="C"), 'has "C", expected A or B'),
        ("single/judgements.jsonl", lambda one: one.update(distribution={}), "has {}, expected A or B"),
        ("single/judgements.jsonl", lambda one: one.update(distribution={"A": 0.5, "C": 0.5}), "expected A or B"),
        ("single/judgements.jsonl", lambda one: one.update(mean_logprob=0.5), "line 1: .*'mean_logprob': found 0.5, expected .* at most 0"),
        ("single/judgements.jsonl", lambda one: one.update(distribution={"A": "0.5", "B": 0.5}), "'distribution.A': found \"0.5\", expected a number"),
    ],
)  # fmt: skip
def test_a_damaged_run_of_votes_is_one_sentence(
    run: Path, name: str, edit: Callable[[dict[str, Any]], object], why: str
) -> None:
    if name == "ballots.jsonl":
        for line in range(4):
            change(run / name, edit, line)
    else:
        change(run / name, edit)
    with pytest.raises(BadInput, match=why):
        read_run(run)


def test_a_judge_whose_name_is_no_text_has_none(run: Path) -> None:
    change(run / "manifest.json", lambda one: one["run"]["judge"].update(model=3))
    assert read_run(run).judge == "?"


@pytest.mark.slow
def test_ballots_that_end_early_are_not_a_smaller_vote(run: Path, tmp_path: Path) -> None:
    ballots = run / "ballots.jsonl"
    whole = ballots.read_bytes()
    ballots.write_bytes(whole[: len(whole) // 2])
    said = perse("drpe", "report", run, "--no-baselines", "--out", tmp_path / "report")
    assert said.returncode == 2 and "ballots; give the command that began the run again" in said.stderr, said.stderr
    poll = Poll(reply)
    poll.vote(run, DOCUMENTS)
    assert ballots.read_bytes() == whole and not poll.asked


@pytest.mark.parametrize("last", [1, 3])
def test_ballots_of_real_readers_that_end_early_are_noticed(tmp_path: Path, last: int) -> None:
    run = Poll(reply).vote(tmp_path / "readers", DOCUMENTS, readers=[reader(ANN), reader("Bob")])
    ballots = run / "ballots.jsonl"
    whole = ballots.read_text()
    ballots.write_text("".join(whole.splitlines(keepends=True)[:-last]))
    total = len(whole.splitlines())
    with pytest.raises(BadInput, match=f"has {total - last} of {total} ballots; give the command that began the run again"):
        read_run(run)
    Poll(reply).vote(run, DOCUMENTS, readers=[reader(ANN), reader("Bob")])
    assert ballots.read_text() == whole and len(read_run(run).ballots) == total


def test_ballots_that_somebody_added_are_not_gone_on_with(run: Path) -> None:
    ballots = run / "ballots.jsonl"
    ballots.write_text(ballots.read_text() + ballots.read_text().splitlines(keepends=True)[0])
    with pytest.raises(BadInput, match="ballots.jsonl: is not what was asked"):
        read_run(run)
    with pytest.raises(BadInput, match="is not the ballot that this run asked for"):
        Poll(reply).vote(run, DOCUMENTS)


def test_ballots_that_were_changed_are_not_gone_on_with(run: Path) -> None:
    change(run / "ballots.jsonl", lambda one: one.update(judgement="d1/x"), 3)
    with pytest.raises(BadInput, match="ballots.jsonl, line 4: is not the ballot that this run asked for"):
        Poll(reply).vote(run, DOCUMENTS)


def test_a_reader_who_voted_and_is_not_in_the_manifest_is_named(tmp_path: Path) -> None:
    run = Poll(reply).vote(tmp_path / "readers", DOCUMENTS, readers=[reader(ANN), reader("Bob")])
    change(run / "manifest.json", lambda one: one["run"]["readers"].pop(ANN))
    with pytest.raises(BadInput, match=f"'run.readers' lacks \"{ANN}\", who voted"):
        read_run(run)


def test_a_manifest_without_documents_of_its_own_shape_is_one_sentence(run: Path) -> None:
    change(run / "manifest.json", lambda one: one["run"].update(documents=None))
    with pytest.raises(BadInput, match="'run.documents' is null, expected a JSON object"):
        read_run(run)
