"""The report of a vote: what is in its folder, what it refuses, and that it is the same again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import perse
from vote_builders import ROLES, Poll, document

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.drpe.documents import Document
from perse.drpe.reporting.candidates import pack_candidates
from perse.drpe.reporting.report import voters_map, write_report
from perse.drpe.roles import STATIC, Role
from perse.drpe.votes.by_role import by_role
from perse.drpe.votes.run_folder import read_run
from perse.errors import BadInput


def documents(number: int = 12) -> list[Document]:
    """Of these every second has a candidate that says "sank"."""
    return [
        document(
            n,
            candidates=(f"It sails, {n}.", "It sank." if n % 2 else f"It may sail, {n}."),
        )
        for n in range(1, number + 1)
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Poll().vote(tmp_path_factory.mktemp("vote") / "run", documents(), prompting=("single", "batch"))


def written(run: Path, out: Path, **options: Any) -> Path:
    return write_report([run], out, **{"baselines": None, "resamples": 100, "seed": 0, **options})


def test_a_report_is_one_page_with_its_tables_figures_and_numbers(run: Path, tmp_path: Path) -> None:
    page = written(run, tmp_path / "report")
    assert {one.name for one in page.parent.iterdir() if not one.name.startswith(".")} == {
        "report.html", "tables.md", "results.json", "figures",
    }  # fmt: skip
    assert {one.name for one in (page.parent / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("votes-by-role", "agreement-with-people") for kind in ("svg", "png", "csv")
    }
    result = json.loads((page.parent / "results.json").read_text())
    assert result["name"] == "drpe-report" and result["details"]["people"]["compared"] == 24
    assert "invented, by occupation and intent" in (page.parent / "tables.md").read_text()


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    one, other = (written(run, tmp_path / name).read_bytes() for name in ("one", "other"))
    assert one == other


def test_where_candidates_were_chosen_by_peoples_scores_the_lead_says_so(tmp_path: Path) -> None:
    told = "are the 2 best and 2 worst of each document by people's own scores, and these alone are compared"
    chosen = Poll().vote(tmp_path / "chosen", documents(), left_out=8)
    every = Poll().vote(tmp_path / "every", documents())
    for runs, of_whom in (((chosen,), True), ((every,), False), ((every, chosen), True)):
        page = write_report(runs, tmp_path / f"report{len(runs)}", baselines=None, resamples=100, seed=0)
        assert (f"Candidates of chosen {told}" in page.with_name("results.json").read_text()) is of_whom


def test_without_scores_of_people_the_votes_alone_are_told(tmp_path: Path) -> None:
    bare = [
        one.model_copy(update={"candidates": tuple(each.model_copy(update={"scores": None}) for each in one.candidates)})
        for one in documents(3)
    ]
    run = Poll().vote(tmp_path / "run", bare)
    page = written(run, tmp_path / "report")
    html = page.read_text()
    assert "Agreement with people" not in html and "there are no scores of people" in html


def test_a_folder_of_something_else_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds no report of a vote"):
        written(run, tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
    told = perse("drpe", "report", tmp_path / "mine", "--out", tmp_path / "report")
    assert told.returncode == 2 and "give a folder that `perse drpe vote` wrote" in told.stderr


def test_hostile_texts_are_nowhere_markup(tmp_path: Path) -> None:
    evil = "</script><script>window.stolen = 1</script><img src=x onerror=alert(1)>"
    role = Role(type=evil, description=evil, source="coarse")

    def say(message: str, seed: int) -> str:
        return f"Reason: {evil}\nVote: Text A"

    run = Poll(say).vote(tmp_path / "run", [document(1, candidates=(evil,))], (role,))
    html = written(run, tmp_path / "report", title=evil).read_text()
    assert "<script>window" not in html and "<img" not in html


def test_each_role_has_its_share_of_votes_and_what_did_not_come_back_is_not_in_it(run: Path) -> None:
    found = read_run(run)
    rows = by_role(found.ballots, found.answers, "single", resamples=100, seed=0)
    assert [(one.name, one.asked) for one in rows] == [
        ("invented, by occupation and intent", 48),
        ("invented, by what they know", 48),
    ]
    # 12 candidates never win ("sank" loses in both orders: 6 of 24), the others win in one of two orders: 18 * 1 of 48
    assert rows[0].votes.value == pytest.approx(18 / 48) and rows[0].votes.items == 48


def test_a_role_without_any_vote_has_no_share_and_is_shown(tmp_path: Path) -> None:
    run = Poll(lambda message, seed: "Mmm.").vote(tmp_path / "run", documents(2))
    [row, _] = by_role((found := read_run(run)).ballots, found.answers, "single", resamples=100, seed=0)
    assert row.votes.value is None and row.asked == 8
    assert "no value is defined" in written(run, tmp_path / "report").read_text()


def test_candidates_that_lack_a_vote_are_kept_first(tmp_path: Path) -> None:
    def say(message: str, seed: int) -> str:
        return "Mmm." if "Ferry 3 " in message else "Reason: so.\nVote: Text A"

    run = read_run(Poll(say).vote(tmp_path / "run", documents(4)))
    packed = pack_candidates(documents(4), run, most=2, seed=0)
    assert packed.shown == 2 and packed.there == 8
    assert packed.packed.head["document"] == ["d3", "d3"] and packed.packed.head["runs"][0]["missing"] == [4, 4]


@pytest.mark.parametrize(("references", "votes"), [(1, [None, 0.0]), (2, [1.0, 0.0])])
def test_no_votes_are_shown_of_a_candidate_for_the_references_that_it_is_itself(
    references: int, votes: list[float | None], tmp_path: Path
) -> None:
    """M1 is the first reference and wins beside the second; M2 is the second and loses beside the first."""
    given = document(1, candidates=("Ferry 1 sails again.", "It sank."), references=("Ferry 1 sails again.", "It sank."))
    found = read_run(Poll().vote(tmp_path / "run", [given], references=references))
    [columns] = pack_candidates([given], found, most=9, seed=0).packed.head["runs"]
    assert columns["votes"] == votes and columns["same"] == [votes[0] is None, False]


def test_the_map_shows_all_roles_and_those_that_voted(run: Path) -> None:
    def apart(texts: Any) -> Any:
        return np.eye(len(texts))

    found = read_run(run)
    other = Role(type="Cook", description="Did not vote.", source="coarse")
    drawn = voters_map(found, {f"d{n}": (*ROLES, other) for n in range(1, 13)}, apart)
    votes = [line.rpartition(",")[0].split(",") for line in drawn.csv.splitlines()]
    assert sum("Cook" in line for line in drawn.csv.splitlines()) == 12 and votes
    assert "24 of them kept" in drawn.alt and len(STATIC) == 3
    with pytest.raises(BadInput, match="roles are of other documents"):
        voters_map(found, {"d1": ROLES}, apart)
