"""A judge of pairs is asked as it was trained: with the view of profiles that its recipe says, in scoring and in studies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import perse
from judging_builders import asking, point, scripted

from perse.batch.local import trained_aspects
from perse.batch.sharded.plan import read_plan
from perse.records import PairwiseExample
from perse.studies.aspects import ALL, SINGLE, UNIFIED, aspects
from perse.studies.frame.retraining import Recipe
from perse.studies.k_curve import k_curve


@pytest.fixture
def judge(answering_model: Path, tmp_path: Path) -> Path:
    """A judge that was trained on profiles that show the asked aspect alone."""
    run = tmp_path / "run"
    shutil.copytree(answering_model, run / "merged")
    trained = {"kind": "train", "config": {"data": {"profile_aspects": "asked"}}}
    (run / "manifest.json").write_text(json.dumps({"run": trained}))
    return run


def recipe(model: Path, *more: str) -> Recipe:
    """Trains a judge for one step."""
    overrides = (
        f"model.path={model}", "model.dtype=float32", "model.context=1024", "lora.rank=2", "train.steps=1",
        "train.batch_size=1", "train.rows_per_step=1", "data.max_examples=2", "data.answer_tokens=32",
    )  # fmt: skip
    return Recipe("embedded_lora", (*overrides, *more))


def shown(run: Path) -> list[tuple[str, set[str]]]:
    """Of each example the asked aspect, and the aspects that its profile shows."""
    rows = map(json.loads, (run / "examples.jsonl").read_text().splitlines())
    return [(row["aspect"], {aspect for past in row["profile"] for aspect in past["preference"]}) for row in rows]


def shown_to_workers(run: Path) -> list[tuple[str, set[str]]]:
    """As `shown`, of a run in shards."""
    plan = read_plan(run)
    rows = [one for shard in plan.shards for one in plan.examples(shard) if isinstance(one, PairwiseExample)]
    assert len(rows) == plan.rows > 0
    return [(row.aspect, {aspect for past in row.profile for aspect in past.preference}) for row in rows]


def test_what_a_judge_was_trained_on_is_known_of_its_run_and_its_weights(judge: Path, answering_model: Path) -> None:
    assert trained_aspects(str(judge)) == trained_aspects(str(judge / "merged")) == "asked"
    assert trained_aspects(str(answering_model)) is None and trained_aspects("openai:http://127.0.0.1:1/v1#m") is None


def test_a_judge_is_scored_with_the_profiles_that_it_was_trained_on(judge: Path, couples: Path, tmp_path: Path) -> None:
    """Trained on the asked aspect alone and asked with the others' answers in sight, it is asked what it never saw."""
    score = ["score", "--examples", couples, "--judge", judge, "--dtype", "float32", "--limit", 4]
    done = perse(*score, "--out", tmp_path / "own")
    assert done.returncode in (0, 1), done.stderr
    assert all(seen == {asked} for asked, seen in shown(tmp_path / "own")) and "note:" not in done.stderr
    done = perse(*score, "--profile-aspects", "all", "--out", tmp_path / "other")
    assert "note: the judge was trained with profile_aspects=asked and is asked with all" in done.stderr
    assert all(seen == {"Ending", "Surprise"} for _, seen in shown(tmp_path / "other"))


def test_workers_are_given_the_profiles_that_their_judge_was_trained_on(judge: Path, couples: Path, tmp_path: Path) -> None:
    planned = ["score", "plan", "--examples", couples, "--judge", judge]
    done = perse(*planned, "--out", tmp_path / "own")
    assert done.returncode == 0 and "note: the judge was trained" not in done.stderr, done.stderr
    assert all(seen == {asked} for asked, seen in shown_to_workers(tmp_path / "own"))
    done = perse(*planned, "--profile-aspects", "all", "--out", tmp_path / "other")
    assert "note: the judge was trained with profile_aspects=asked and is asked with all" in done.stderr
    assert all(seen == {"Ending", "Surprise"} for _, seen in shown_to_workers(tmp_path / "other"))


@pytest.mark.slow
def test_where_profiles_may_be_others_than_in_training_a_note_says_so(
    judge: Path, answering_model: Path, couples: Path, tmp_path: Path
) -> None:
    """Of a merged folder or a server nobody knows here how it was trained; an exported file shows what it shows."""
    score = ["score", "--dtype", "float32", "--limit", 2, "--examples"]
    done = perse(*score, couples, "--judge", answering_model, "--out", tmp_path / "unknown")
    assert "a judge that was trained with data.profile_aspects=asked needs --profile-aspects asked" in done.stderr
    done = perse(*score, couples, "--judge", answering_model, "--profile-aspects", "all", "--out", tmp_path / "said")
    assert "note:" not in done.stderr
    perse("data", "export", couples, "--split", "valid", "--out", tmp_path / "valid.jsonl")
    done = perse(*score, tmp_path / "valid.jsonl", "--judge", judge, "--out", tmp_path / "file")
    assert "note: the judge was trained with profile_aspects=asked and is asked with all" in done.stderr


def test_a_study_asks_a_judge_as_it_was_trained(judge: Path, couples: Path) -> None:
    examples = asking(couples, judge=str(judge)).open().shown().examples
    assert examples and all(set(past.preference) == {one.aspect} for one in examples for past in one.profile)  # type: ignore[union-attr]
    others = asking(couples).open().shown().examples
    assert all(len(past.preference) == 2 for one in others for past in one.profile)  # type: ignore[union-attr]


@pytest.mark.slow
def test_judges_of_single_aspects_see_the_asked_aspect_alone_where_the_papers_view_is_asked_for(
    answering_model: Path, couples: Path, tmp_path: Path
) -> None:
    result = aspects(
        asking(couples, judge=None, limit=8),
        tmp_path / "study",
        recipe=recipe(answering_model),
        profile_aspects="asked",
        load=scripted(lambda message, seed: "Plot A"),
    )
    for arm in (tmp_path / "study" / "arms").iterdir():
        assert all(seen == {asked} for asked, seen in shown(arm)), arm
        trained = json.loads((tmp_path / "study" / "trained" / arm.name / "manifest.json").read_text())["run"]["config"]["data"]
        assert trained["profile_aspects"] == "asked"
    for series in (UNIFIED, SINGLE):
        each = [point(result, series, aspect, "accuracy").estimate for aspect in ("Ending", "Surprise")]
        assert {one.items for one in each} != {4}, "or the mean over pairs is that over aspects"
        values = [one.value for one in each if one.value is not None]
        assert point(result, series, ALL, "accuracy").estimate.value == pytest.approx(sum(values) / 2)


@pytest.mark.slow
def test_judges_that_are_trained_for_each_k_are_asked_with_the_view_of_their_recipe(
    answering_model: Path, couples: Path, tmp_path: Path
) -> None:
    k_curve(
        asking(couples, judge=None, limit=4),
        tmp_path / "study",
        ks=[1, 2],
        recipe=recipe(answering_model, "data.profile_aspects=asked"),
        load=scripted(lambda message, seed: "Plot A"),
    )
    arms = sorted((tmp_path / "study" / "arms").iterdir())
    assert [arm.name for arm in arms] == ["retrained-k1", "retrained-k2"]
    assert all(seen == {asked} for arm in arms for asked, seen in shown(arm))
