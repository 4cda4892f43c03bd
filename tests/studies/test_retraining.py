"""Retraining: one recipe for each thing that varies, one step of a tiny model, trained once and refused where it is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from judging_builders import asking, average, point, scripted

from perse.errors import BadInput
from perse.studies.aspects import ALL, SINGLE, UNIFIED, aspects
from perse.studies.frame.retraining import Recipe, configs
from perse.studies.k_curve import k_curve
from perse.studies.review_text import WITH, review_text


@pytest.fixture
def recipe(answering_model: Path) -> Recipe:
    overrides = (
        f"model.path={answering_model}", "model.dtype=float32", "model.context=1024", "lora.rank=2", "train.steps=1",
        "train.batch_size=1", "train.rows_per_step=1", "data.max_examples=2", "data.answer_tokens=32",
    )  # fmt: skip
    return Recipe("embedded_lora", overrides)


def trained_with(folder: Path) -> dict[str, object]:
    config = json.loads((folder / "manifest.json").read_text())["run"]["config"]
    return dict(config["data"])


@pytest.mark.slow
def test_a_judge_is_trained_for_each_k_and_asked_with_that_k(recipe: Recipe, readers: Path, tmp_path: Path) -> None:
    one = asking(readers, judge=None, limit=4, question="pointwise_score")
    result = k_curve(one, tmp_path, ks=[0, 3], recipe=recipe)
    assert {p.series for p in result.points if not p.baseline} == {"retrained per k", "retrained per k (label)"}
    for k in (0, 3):
        assert trained_with(tmp_path / "trained" / f"k{k}")["k"] == k
        assert trained_with(tmp_path / "trained" / f"k{k}")["question"] == "pointwise_score"
    judges = {(tmp_path / "arms" / f"retrained-k{k}" / "manifest.json").read_text().count(f"trained/k{k}") > 0 for k in (0, 3)}
    assert judges == {True}
    weights = tmp_path / "trained" / "k3" / "merged" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert k_curve(one, tmp_path, ks=[0, 3], recipe=recipe) == result
    assert weights.stat().st_mtime_ns == before, "trained again"


@pytest.mark.slow
def test_aspects_compares_a_unified_judge_with_one_for_each_on_every_pair_that_they_answer(
    recipe: Recipe, couples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "study"
    result = aspects(asking(couples, judge=None, limit=8), out, recipe=recipe)
    folders = {folder.name: trained_with(folder)["aspect"] for folder in (out / "trained").iterdir()}
    assert folders == {"unified": None, "aspect1-ending": "Ending", "aspect2-surprise": "Surprise"}
    assert {p.x for p in result.points} == {"Ending", "Surprise", ALL}
    for series in ("copy the example", "random"):
        assert point(result, series, ALL, "accuracy").estimate.items == 8
    for series in (UNIFIED, SINGLE):  # one step of training teaches nobody to answer
        estimate = point(result, series, ALL, "accuracy").estimate
        assert (estimate.value, estimate.interval.reason) == (None, "undefined (nothing was answered)")
    assert "difference undefined (nothing was answered)" in result.answer and "0.000" not in result.answer
    asked = [
        json.loads(line)["aspect"] for line in (out / "arms" / "aspect2-surprise" / "examples.jsonl").read_text().splitlines()
    ]
    assert set(asked) == {"Surprise"}

    # The same judges, as if they had learned to answer: trained no more, and every pair counts.
    copied = tmp_path / "answering"
    shutil.copytree(out, copied, ignore=shutil.ignore_patterns("arms"))
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*.safetensors")}
    answering = scripted(lambda message, seed: "Plot A")
    result = aspects(asking(couples, judge=None, limit=8), copied, recipe=recipe, load=answering)
    for series in (UNIFIED, SINGLE):
        assert point(result, series, ALL, "accuracy").estimate.items == 8
    assert {path: path.stat().st_mtime_ns for path in copied.rglob("*.safetensors")} == before != {}, "trained again"


@pytest.mark.slow
def test_review_text_trains_a_judge_for_each_way(recipe: Recipe, readers: Path, tmp_path: Path) -> None:
    one = asking(readers, judge=None, limit=4, question="pointwise_score")
    result = review_text(one, tmp_path, repeats=1, recipe=recipe)
    assert trained_with(tmp_path / "trained" / "with-text")["review_text"] is True
    assert trained_with(tmp_path / "trained" / "without-text")["review_text"] is False
    assert point(result, "retrained each way", WITH, "mae").estimate.items in (0, 4)
    assert "asked only" not in result.tables[0].title


def test_wrong_settings_are_named_before_anything_is_trained(recipe: Recipe, readers: Path, tmp_path: Path) -> None:
    one = asking(readers, judge=None)
    for override, message in (
        ("data.k=2", "data.k is set by the study itself; leave it out"),
        ("output=elsewhere", "output is set by the study itself"),
        ("train.stepz=2", "did you mean 'train.steps'"),
    ):
        with pytest.raises(BadInput, match=message):
            k_curve(one, tmp_path / "out", recipe=Recipe(recipe.config, (*recipe.overrides, override)))
    with pytest.raises(BadInput, match="no judge; name one with --judge, or train its own with --retrain"):
        k_curve(one, tmp_path / "out", load=scripted(average))
    assert not (tmp_path / "out").exists()


def test_the_studys_fold_is_the_one_that_is_left_out_of_training(recipe: Recipe, readers: Path, tmp_path: Path) -> None:
    one = asking(readers, judge=None, fold=2)
    question = asking(readers).ask(asking(readers).open())
    made = configs(recipe, {"k1": {"k": 1}}, asking=one, question=question, out=tmp_path)
    assert made["k1"].data.fold == 2 and made["k1"].data.path == str(readers)


def test_single_texts_have_no_aspects(recipe: Recipe, readers: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds single texts, which have no aspects"):
        aspects(asking(readers, judge=None), tmp_path, recipe=recipe)
