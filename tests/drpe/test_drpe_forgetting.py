"""A real reader who voted leaves a run of votes: ballots, answers and the run's manifest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import perse
from kills import killed_at
from vote_builders import Poll, document

from perse.data.forgetting.forget import forget
from perse.drpe.votes.readers import Reader
from perse.drpe.votes.run_folder import read_run
from perse.errors import BadInput
from perse.records import ProfileReview

ANN, BOB = "r0123456789ab", "Bob"


def reader(name: str) -> Reader:
    return Reader(name, (ProfileReview(text=f"A ship story for {name}.", review="Fine.", score=9),), 2)


def reply(message: str, seed: int) -> str:
    numbers = [line.split("]")[0].removeprefix("[User ") for line in message.splitlines() if line.startswith("[User ")]
    many = [one for one in numbers if one.isdigit()]
    return "\n".join(f"Reason {n}: so.\nVote {n}: Text A" for n in many) if many else "Reason: so.\nVote: Text A"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Poll(reply).vote(
        tmp_path / "votes", [document(1), document(2)], readers=[reader(ANN), reader(BOB)], prompting=("single", "batch")
    )


def whole(run: Path) -> str:
    return "".join(one.read_text() for one in sorted(run.rglob("*")) if one.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("who", [ANN, BOB])
def test_a_reader_who_left_has_no_vote_in_the_run_and_others_keep_theirs(run: Path, who: str) -> None:
    before = read_run(run)
    theirs = {one.judgement for one in before.ballots if one.role and one.role.type == who}
    done = perse("data", "forget", who, run)
    assert done.returncode == 0 and f"{run}: 0 records and 8 examples removed" in done.stderr, done.stderr
    assert "still holds the person" not in done.stderr
    assert who not in whole(run) and not any(one in whole(run) for one in theirs if one)
    after = read_run(run)
    assert after.ballots == tuple(one for one in before.ballots if one.judgement not in theirs)
    assert after.readers == {name: number for name, number in before.readers.items() if name != who}
    for prompting, answers in before.answers.items():
        assert after.answers[prompting] == {id: said for id, said in answers.items() if id not in theirs}
    assert perse("data", "forget", who, run).returncode == 2


@pytest.mark.slow
def test_a_removal_of_votes_that_is_killed_is_whole_or_not_there(run: Path) -> None:
    untouched, event = run.with_name("untouched"), 0
    shutil.copytree(run, untouched)
    before = len(read_run(run).ballots)
    while killed_at(event, lambda: forget(ANN, [run]), run.parent):
        left = len(read_run(run).ballots)
        assert left == before or (left < before and ANN not in whole(run))
        shutil.rmtree(run)
        shutil.copytree(untouched, run)
        event += 1
    assert event > 5 and ANN not in whole(run)


def test_ballots_that_were_lost_are_still_noticed_when_a_reader_has_left(run: Path) -> None:
    ballots = run / "ballots.jsonl"
    ballots.write_text("".join(ballots.read_text().splitlines(keepends=True)[:-1]))
    assert perse("data", "forget", ANN, run).returncode == 0
    with pytest.raises(BadInput, match="ballots; give the command that began the run again"):
        read_run(run)


def test_a_run_in_which_only_this_reader_voted_is_to_be_deleted(tmp_path: Path) -> None:
    alone = Poll(reply).vote(tmp_path / "votes", [document(1)], (), readers=[reader(ANN)])
    with pytest.raises(BadInput, match="nothing would be left without this person; delete it"):
        forget(ANN, [alone])
    assert ANN in (alone / "ballots.jsonl").read_text()


def test_a_part_of_a_run_of_votes_names_the_run(run: Path) -> None:
    with pytest.raises(BadInput, match=f"of which {run} tells whose they are; name that folder"):
        forget(ANN, [run / "single"])
    with pytest.raises(BadInput, match="goes with the other files"):
        forget(ANN, [run / "ballots.jsonl"])


def test_a_reader_who_was_chosen_and_has_no_vote_leaves_the_manifest(run: Path) -> None:
    lines = [line for line in (run / "ballots.jsonl").read_text().splitlines(keepends=True) if ANN not in line]
    (run / "ballots.jsonl").write_text("".join(lines))
    assert perse("data", "forget", ANN, run).returncode == 0
    assert list(json.loads((run / "manifest.json").read_text())["run"]["readers"]) == [BOB]
