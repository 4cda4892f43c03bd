"""Who is watched is not trained on, and is nobody who is scored later; a judge chosen by readers who are scored is told so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples, words
from command_line import perse
from places import SAMPLES

from perse import Judge
from perse.batch.local import chosen_by, trained_aspects
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.identity import pair_key, reader_key
from perse.records import Example, PairwiseExample, example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig, load_config
from perse.settings.watching import Watch
from perse.training.rows.prepare import Prepared
from perse.training.trainer import train
from perse.training.watch.apart import rows_apart
from perse.training.watch.run import watching_for


def settings(model: Path, data: Path, *more: str) -> TrainConfig:
    given = (f"model.path={model}", f"data.path={data}", "model.context=8192", "watch.every=2", f"output={data.parent / 'run'}")
    return load_config("embedded_lora", [*given, *more])


def written(path: Path, examples: list[Any]) -> Path:
    path.write_text("".join(example_lines(examples)), encoding="utf-8")
    return path


def trained_on(prepared: Prepared, examples: list[Example]) -> set[str | None]:
    ids = {branch.example_id for row in prepared.schedule.rows for branch in row}
    return {one.reviewer_id for one in examples if one.id in ids}


BRIEFLY = (
    "data.question=pointwise_score",
    "model.dtype=float32",
    "lora.rank=2",
    "train.steps=2",
    "train.batch_size=2",
    "train.rows_per_step=1",
)
"""Two steps of two examples."""


@pytest.fixture
def readers(tmp_path: Path) -> Path:
    """24 readers with eight examples each."""
    return written(tmp_path / "train.jsonl", pointwise_examples(24, 8, k=1))


def test_readers_who_are_watched_are_not_trained_on(
    readers: Path, tiny_model_folder: Path, renderer: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings(tiny_model_folder, readers, "watch.held_apart=0.125", "data.question=pointwise_score", "train.epochs=2")
    prepared = rows_apart(config, renderer)
    with caplog.at_level("INFO"):
        watching = watching_for(config, prepared)
    assert watching is not None and len(prepared.apart) == 3
    assert watching.what.readers == prepared.apart == {one.reviewer_id for one in watching.what.judged}
    everybody = load_examples(readers, split="train").examples
    assert trained_on(prepared, everybody) == {one.reviewer_id for one in everybody} - prepared.apart
    assert "24 examples of 3 readers who are not trained on, held apart from the training side, are watched" in caplog.text
    assert "apart from the training side, are watched, 24 of them judged, every " in caplog.text
    assert watching.choosers(prepared.schedule.steps) == sorted(map(reader_key, prepared.apart))


def test_few_of_those_who_are_watched_are_judged_where_the_judge_writes(
    readers: Path, tiny_model_folder: Path, renderer: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    some = ["watch.held_apart=0.125", "watch.generated=2", "watch.new_tokens=5", "watch.every=5"]
    config = settings(tiny_model_folder, readers, *some)
    with caplog.at_level("INFO"):
        assert watching_for(config, rows_apart(config, renderer)) is not None
    assert "24 examples of 3 readers who are not trained on" in caplog.text
    assert "are watched, 2 of them judged, every 5 steps" in caplog.text


@pytest.mark.slow
def test_who_is_held_apart_is_the_same_every_time_and_moves_with_the_seed(
    readers: Path, tiny_model_folder: Path, renderer: Renderer
) -> None:
    def apart(*more: str) -> frozenset[str]:
        config = settings(tiny_model_folder, readers, "watch.held_apart=0.1", "data.question=pointwise_score", *more)
        return rows_apart(config, renderer).apart

    assert apart() == apart() and len(apart()) == 2
    assert len({apart(f"train.seed={seed}") for seed in range(8)}) > 2
    assert apart("watch=null") == apart(f"watch.data={readers}") == frozenset()


def test_nobody_of_the_validation_side_chooses_weights(tiny_model_folder: Path, renderer: Renderer, tmp_path: Path) -> None:
    """Weights that did best on readers who are scored later look better on them than on others."""
    out = tmp_path / "set"
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out))
    config = settings(tiny_model_folder, out, "watch.held_apart=0.2", "data.question=pointwise_score", "data.max_examples=12")
    prepared = rows_apart(config, Renderer(renderer.tokenizer, 8192))
    watching = watching_for(config, prepared)
    assert watching is not None and watching.what.readers
    scored = {one.reviewer_id for one in load_examples(out, split="valid").examples}
    assert not watching.what.readers & scored and not watching.what.readers & prepared.reviewers


def test_a_run_too_short_to_be_watched_trains_on_all_readers_and_says_so(
    readers: Path, tiny_model_folder: Path, renderer: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings(tiny_model_folder, readers, "watch.held_apart=0.1", "watch.every=null", "train.steps=1")
    prepared = rows_apart(config, renderer)
    with caplog.at_level("INFO"):
        assert watching_for(config, prepared) is None
    assert prepared.apart == frozenset() and len(prepared.reviewers) == 24
    assert "too short to be watched within 5% of its time, so it is not, and all readers are trained on" in caplog.text


def test_readers_with_too_few_examples_to_choose_by_are_all_trained_on_and_not_watched(
    tiny_model_folder: Path, renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    few = written(tmp_path / "few.jsonl", pointwise_examples(20, 15, k=1))
    config = settings(tiny_model_folder, few, "data.question=pointwise_score")
    prepared = rows_apart(config, renderer)
    with caplog.at_level("INFO"):
        assert watching_for(config, prepared) is None
    assert prepared.apart == frozenset() and len(prepared.reviewers) == 20
    assert (
        f"all 20 readers of {few} are trained on: those who could be held apart (1, by watch.held_apart=0.05) have 15 examples"
        in caplog.text
    )
    assert [Watch(held_apart=0.05).number_apart(n) for n in (0, 1, 9, 10, 29, 30, 1000)] == [0, 0, 0, 1, 1, 2, 50]
    assert Watch(held_apart=0.99).number_apart(3) == 2


def test_pairs_of_texts_that_are_watched_are_not_trained_on(
    tiny_model_folder: Path, renderer: Renderer, tmp_path: Path
) -> None:
    """As between the two sides of a data set that keeps pairs apart: who has learned a pair by heart is not better."""
    rows = [
        {
            "annotator": f"annotator {who}",
            "aspect": "Ending",
            "text_a": words(8, ("left", pair)),
            "text_b": words(8, ("right", pair)),
            "preference": "AB"[(who + pair) % 2],
        }
        for pair in range(120)
        for who in ((pair * 7) % 40, (pair * 11 + 3) % 40)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = tmp_path / "set"
    build_pairwise(PairwiseOptions(pairs=tmp_path / "pairs.jsonl", out=out, k=1, min_comparisons=2, split="reviewer_item"))
    prepared = rows_apart(settings(tiny_model_folder, out, "watch.held_apart=0.2"), renderer)
    assert prepared.apart

    def shown(examples: list[Example]) -> set[str]:
        pairs = [text for one in examples if isinstance(one, PairwiseExample) for text in (one.query, *one.profile)]
        return {pair_key(text.text_a, text.text_b) for text in pairs}

    everything = load_examples(out, split="train").examples
    ids = {branch.example_id for row in prepared.schedule.rows for branch in row}
    theirs = shown([one for one in everything if one.reviewer_id in prepared.apart])
    assert theirs and theirs.isdisjoint(shown([one for one in everything if one.id in ids]))
    assert any(shown([one]) & theirs for one in everything if one.reviewer_id not in prepared.apart), "or nothing is tested"


@pytest.mark.slow
def test_a_trained_judge_keeps_whose_answers_chose_its_weights(readers: Path, tiny_model_folder: Path) -> None:
    shown: list[Prepared] = []
    run = train(settings(tiny_model_folder, readers, *BRIEFLY, "watch.every=1", "watch.held_apart=0.125"), show=shown.append)
    everybody = load_examples(readers, split="train").examples
    apart = {str(one.reviewer_id) for one in everybody} - shown[0].reviewers
    assert len(apart) == 3 and choosers_of(run) == sorted(map(reader_key, apart))
    assert chosen_by(str(run / "merged"), None, everybody) == chosen_by("a base", str(run / "adapter"), everybody) == 24


@pytest.mark.slow
@pytest.mark.parametrize(("every", "is_a_choice"), [(1, True), (2, False)])
def test_readers_of_a_validation_side_that_is_watched_are_kept_as_those_who_chose_where_there_are_two_judgings(
    every: int, is_a_choice: bool, tiny_model_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "set"
    build_pointwise(
        PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out, k=1, max_queries=1)
    )
    run = train(settings(tiny_model_folder, out, *BRIEFLY, f"watch.every={every}", f"watch.data={out}"))
    scored = load_examples(out, split="valid").examples
    assert choosers_of(run) == (sorted({reader_key(str(one.reviewer_id)) for one in scored}) if is_a_choice else [])
    assert chosen_by(str(run / "merged"), None, scored) == (len(scored) if is_a_choice else 0) and scored


def choosers_of(run: Path) -> list[str]:
    found: list[str] = json.loads((run / "manifest.json").read_text("utf-8"))["context"]["choosers"]
    return found


def test_examples_without_anybody_to_watch_are_refused(tmp_path: Path, tiny_model_folder: Path, renderer: Renderer) -> None:
    unanswered = [one.model_copy(update={"reference": None}) for one in pairwise_examples(2)]
    other = written(tmp_path / "others.jsonl", unanswered)
    train = written(tmp_path / "train.jsonl", [one.model_copy(update={"reviewer_id": "t"}) for one in pairwise_examples(3)])
    config = settings(tiny_model_folder, train, f"watch.data={other}", "watch.best=loss")
    with pytest.raises(BadInput, match="holds no examples with a reference to watch; name others as watch.data"):
        watching_for(config, rows_apart(config, renderer))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "merged"])
def test_scores_of_readers_who_chose_the_weights_are_told_as_such_and_of_others_not(
    part: str, tiny_model_folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_model_folder, run / "merged")
    told = {"run": {"kind": "train", "config": {"data": {}}}, "context": {"choosers": [reader_key("r0"), reader_key("r2")]}}
    (run / "manifest.json").write_text(json.dumps(told))
    examples = written(tmp_path / "valid.jsonl", pointwise_examples(6, 4, k=1))
    others = written(
        tmp_path / "others.jsonl", [one for one in pointwise_examples(6, 4, k=1) if one.reviewer_id not in ("r0", "r2")]
    )
    said = "8 of 24 examples are of readers on whom the judge's weights were chosen while it was trained"
    for data, name in ((examples, "some"), (others, "none")):
        done = perse(
            "score", "--examples", data, "--judge", run / part, "--out", tmp_path / name, "--dtype", "float32",
            "--question", "pointwise_score",
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        assert (said in " ".join(done.stderr.split())) == (name == "some"), done.stderr
        told_again = perse("evaluate", tmp_path / name, "--resamples", 100)
        assert (said in " ".join(told_again.stdout.split())) == (name == "some"), told_again.stdout + told_again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("choosers", [5, {"a": 1}, [["x"], 3, None], "r0", None])
def test_a_damaged_list_of_choosers_tells_of_nobody(choosers: Any, tiny_model_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "merged").symlink_to(tiny_model_folder)
    told = {"run": {"kind": "train", "config": {"data": {}}}, "context": {"choosers": choosers}}
    (run / "manifest.json").write_text(json.dumps(told))
    judge = Judge.load(run, dtype="float32")
    assert (
        chosen_by(judge.identity.model, judge.identity.adapter, pointwise_examples(2, 2)) == 0
        and trained_aspects(str(run)) == "all"
    )
