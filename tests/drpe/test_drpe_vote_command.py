"""`perse drpe vote` and `plan`, as they are called, and who votes by the names of `--roles`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import perse
from drpe_builders import Inventor, documents_file
from vote_builders import document

from perse.commands.options.drpe import Thinning
from perse.commands.options.voting import Ballot
from perse.drpe.clustering import Clustering
from perse.drpe.diversity import thin
from perse.drpe.documents import Documents
from perse.drpe.inventing import Invented, Inventing
from perse.drpe.reporting.roles_map import roles_map
from perse.drpe.roles import STATIC, STATIC_OF_TEXTS, Role, manual_roles
from perse.drpe.roles_folder import invent_roles, read_roles
from perse.drpe.votes.electorate import electorate
from perse.errors import BadInput
from perse.records import Pair, PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, example_lines

DOCUMENTS = Documents((document(1), document(2)))
ALL = Clustering(method="none")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return documents_file(tmp_path, *DOCUMENTS.documents)


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    return invent_roles(Inventor().writer, DOCUMENTS, tmp_path / "roles", settings=Inventing())


@pytest.mark.slow
def test_a_vote_from_the_command_to_its_correlation(docs: Path, tmp_path: Path, tiny_model_folder: Path) -> None:
    run = tmp_path / "votes"
    asked: tuple[Any, ...] = ("--judge", tiny_model_folder, "--dtype", "float32", "--candidates", "all", "--reason-tokens", 4)
    made = perse("drpe", "vote", docs, *asked, "--prompting", "both", "--out", run, "--json")
    assert made.returncode == 0, made.stderr
    result = json.loads(made.stdout)
    assert result["name"] == "drpe-vote" and result["details"]["settings"]["orders"] == 2
    again = perse("drpe", "vote", docs, *asked, "--prompting", "both", "--out", run, "--json")
    assert json.loads(again.stdout) == result
    other = perse("drpe", "vote", docs, *asked, "--roles", "none", "--out", run)
    assert other.returncode == 2 and "holds a run with other settings" in other.stderr


def test_a_folder_of_something_else_is_refused_before_a_judge_is_looked_for(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({"run": {"kind": "score"}}))
    (tmp_path / "file").write_text("")
    for name, said in (
        ("mine", "is not empty and holds no run"),
        ("run", "holds a run of perse score, and no votes"),
        ("file", "file"),
    ):
        made = perse("drpe", "vote", docs, "--judge", tmp_path / "no-such-judge", "--out", tmp_path / name)
        assert made.returncode == 2 and said in made.stderr and "no-such-judge" not in made.stderr, made.stderr


def test_a_plan_counts_the_votes_and_what_their_prompts_share(docs: Path) -> None:
    made = perse("drpe", "plan", docs, "--candidates", "all", "--invented", 4, "--prompting", "both", "--json")
    assert made.returncode == 0, made.stderr
    loads = json.loads(made.stdout)["details"]["loads"]
    # two documents, two candidates, two orders: seven prompts each, or one
    assert loads["a role a prompt"]["calls"] == 2 * 2 * 2 * 7 and loads["all roles in one prompt"]["calls"] == 2 * 2 * 2
    assert loads["a role a prompt"]["generated"] == loads["all roles in one prompt"]["generated"] == 56 * 31
    assert 0 < loads["a role a prompt"]["shared"] < loads["a role a prompt"]["prompt"]
    assert "give --prefill and --decode" in perse("drpe", "plan", docs, "--prefill", 10).stderr


def test_each_name_says_who_votes(roles: Path) -> None:
    def who(*names: str) -> list[str]:
        return [role.type for role in electorate(names, DOCUMENTS, ALL, readers=1).roles["d1"]]

    static, manual = [role.type for role in STATIC], [role.type for role in manual_roles(summaries=True)]
    invented = ["Drivers", "Builders", "Nurses"]
    assert who("static") == static and who("manual") == manual and who("none") == []
    assert who("static", str(roles))[:3] == static and set(who("static", str(roles))[3:]) >= set(invented)
    assert not set(who(str(roles))) & set(static)


@pytest.mark.parametrize("names", [("static",), ("manual",), ("manual", "static")])
def test_the_roles_on_stories_speak_of_no_summary_and_no_article(names: tuple[str, ...]) -> None:
    mixed = Documents((document(1), document(2, article=None)))
    found = electorate(names, mixed, ALL, readers=1)
    assert not any(word in role.text.lower() for role in found.roles["d2"] for word in ("summar", "article", "news"))
    assert [role.text for role in found.roles["d2"]][-3:] == [role.text for role in STATIC_OF_TEXTS]
    assert [role.text for role in found.roles["d1"]][-3:] == [role.text for role in STATIC]


def test_a_map_of_both_kinds_of_texts_shows_the_static_roles_of_both_once() -> None:
    invented = [
        Invented(id=name, roles=(Role(type="Sailor", description="Sails.", source="coarse"),)) for name in ("a", "b", "c")
    ]
    found = thin(invented, ALL, embed=None, as_they_are=("b", "c"))
    drawn = roles_map(found, lambda texts: np.eye(len(texts)))
    assert drawn.csv.count(",static,") == len(STATIC) + len(STATIC_OF_TEXTS)


def test_of_invented_roles_those_vote_that_clustering_keeps(roles: Path) -> None:
    def far(texts: Any) -> Any:
        return np.eye(len(texts))

    found = electorate(("static", str(roles)), DOCUMENTS, Clustering(k=2), readers=1, embed=far)
    assert [len(of_one) for of_one in found.roles.values()] == [5, 5]
    none = electorate(("static", str(roles)), DOCUMENTS, Clustering(k=0), readers=1, embed=far)
    assert none.roles["d1"] == STATIC
    invented = sum(map(len, read_roles(roles).values()))
    assert (found.left_out, none.left_out) == (invented - 4, invented)
    assert electorate(("static", str(roles)), DOCUMENTS, ALL, readers=1).left_out == 0


def test_real_readers_are_chosen_from_their_data_set(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    profile = (ProfileReview(text="A ship story.", review="Fine.", score=9),)
    path.write_text(
        "".join(
            example_lines(
                PointwiseExample(id=name, reviewer_id=name, item_id="i", profile=profile, query="Another.")
                for name in ("a", "b")
            )
        ),
        "utf-8",
    )
    found = electorate((f"readers:{path}",), DOCUMENTS, ALL, readers=2, embed=lambda texts: np.ones((len(texts), 2)))
    assert [one.id for one in found.readers] == ["a", "b"] and set(found.roles.values()) == {()} and not found.silent
    nowhere = Clustering(method="none", model=str(tmp_path / "nowhere"))  # nobody is chosen, so that nothing is embedded
    assert electorate((f"readers:{path}",), DOCUMENTS, nowhere, readers=2).readers == found.readers


def test_readers_of_pairs_are_shown_to_a_judge_as_it_was_trained_and_what_is_not_known_of_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ProfileComparison(text_a="A ship.", text_b="A train.", preference={"Ending": "A", "Surprise": "B"})
    other = ProfileComparison(text_a="A ferry.", text_b="A tram.", preference={"Ending": "A"})
    path = tmp_path / "pairs.jsonl"
    pair = Pair(text_a="one", text_b="another")
    example = PairwiseExample(id="a", reviewer_id="ann", aspect="Surprise", profile=(both, other), query=pair)
    path.write_text("".join(example_lines([example])), "utf-8")
    judges = {}
    for view in ("asked", "all"):
        judges[view] = tmp_path / view
        judges[view].mkdir()
        trained = {"kind": "train", "config": {"data": {"profile_aspects": view}}}
        (judges[view] / "manifest.json").write_text(json.dumps({"run": trained}))
    ballot, shown = Ballot(roles=[f"readers:{path}"], readers=1), {}
    for name, judge in {**judges, "unknown": "openai:http://127.0.0.1:1/v1#m"}.items():
        [reader] = ballot.electorate(DOCUMENTS, Thinning(), str(judge)).readers
        shown[name] = ([past.preference for past in reader.profile], "is not known here" in capsys.readouterr().err)
    whole = [{"Ending": "A", "Surprise": "B"}, {"Ending": "A"}]
    assert shown == {"asked": ([{"Surprise": "B"}], False), "all": (whole, False), "unknown": (whole, True)}


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("none", "static"), "stands alone"),
        (("static", "static"), "given twice"),
        (("one", "another"), "give one folder of roles"),
        (("readers:a", "readers:b"), "one data set at most"),
        (("nowhere",), "holds no roles"),
    ],
)
def test_names_that_do_not_go_together_are_refused(names: tuple[str, ...], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        electorate(names, DOCUMENTS, ALL, readers=1)


def test_roles_of_other_documents_are_refused(roles: Path) -> None:
    with pytest.raises(BadInput, match="no roles for 1 of 1 documents, such as 'd9'"):
        electorate((str(roles),), Documents((document(9),)), ALL, readers=1)


def test_documents_without_an_invented_role_are_left_out_where_nobody_else_votes(tmp_path: Path) -> None:
    def mumbles(message: str) -> str:
        return Inventor()._reply(message) if "Ferry 1 " in message else "Mmm."  # type: ignore[return-value]

    folder = invent_roles(Inventor(mumbles).writer, DOCUMENTS, tmp_path / "roles", settings=Inventing(tries=1))
    alone = electorate((str(folder),), DOCUMENTS, ALL, readers=1)
    assert [one.id for one in alone.documents.documents] == ["d1"]
    assert alone.silent == alone.without_invented == ("d2",)
    beside = electorate((str(folder), "static"), DOCUMENTS, ALL, readers=1)
    assert beside.silent == () and beside.without_invented == ("d2",) and beside.roles["d2"] == STATIC
    nobody = invent_roles(Inventor(lambda message: "Mmm.").writer, DOCUMENTS, tmp_path / "none", settings=Inventing(tries=1))
    with pytest.raises(BadInput, match="nobody votes on any document"):
        electorate((str(nobody),), DOCUMENTS, ALL, readers=1)


def test_the_usual_candidates_are_the_extremes_where_people_scored_them(tmp_path: Path) -> None:
    scored = documents_file(tmp_path, document(1, candidates=("a.", "b.", "c.", "d.", "e.")))
    made = perse("drpe", "plan", scored, "--json")
    assert json.loads(made.stdout)["details"]["loads"]["all"]["calls"] == 4 * 3 * 2  # M5, M4, M1, M2; three roles, two orders
    every = perse("drpe", "plan", scored, "--candidates", "all", "--json")
    assert json.loads(every.stdout)["details"]["loads"]["all"]["calls"] == 5 * 3 * 2
