"""Several data sets in one run: each example as often as its set's weight says, and none of a reader who is watched."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples
from places import SAMPLES

from perse.batch.local import check_unseen
from perse.commands.train import rows_table
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.load import LoadedExamples, load_examples
from perse.errors import BadInput
from perse.models.opening import tokenizer
from perse.records import example_lines
from perse.settings.training import TrainConfig, load_config
from perse.training.planning.hardware import Device
from perse.training.planning.plan import plan
from perse.training.rows.deal import rows_key
from perse.training.rows.mixing import dealt
from perse.training.rows.prepare import Prepared, prepare, renderer_for


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Two files of eight examples whose ids differ, and one of pairs."""
    lines = [json.loads(line) for line in example_lines(pointwise_examples(4, 2, k=1))]
    for name in ("one", "two"):
        own = [{**line, "id": f"{name}-{line['id']}", "reviewer_id": f"{name}-{line['reviewer_id']}"} for line in lines]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own))
    (tmp_path / "pairs.jsonl").write_text("".join(example_lines(pairwise_examples())))
    return tmp_path


def config_of(model: Path, sets: Path, *more: str, two: str = "two.jsonl", weight: float = 1.0) -> TrainConfig:
    given = [f"model.path={model}", f"data.path={sets / 'one.jsonl'}", f"output={sets / 'run'}", "train.batch_size=4"]
    mix = json.dumps([{"path": str(sets / two), "weight": weight}])
    return load_config("embedded_lora", [*given, f"data.mix={mix}", *more])


def seen(prepared: Prepared) -> Counter[str]:
    """How often examples stand in the rows of a run, by their set, and by themselves."""
    ids = [branch.example_id for row in prepared.schedule.rows for branch in row]
    return Counter(ids) + Counter(one.partition("-")[0] for one in ids)


def prepared_of(config: TrainConfig, model: Path, **options: Any) -> Prepared:
    return prepare(config, renderer_for(config, model, tokenizer(model)), **options)


@pytest.mark.parametrize(("weight", "times"), [(1.0, 1), (2.0, 2), (3.0, 3)])
def test_each_example_is_seen_as_often_as_its_sets_weight_says(
    tiny_model_folder: Path, sets: Path, weight: float, times: int
) -> None:
    found = seen(prepared_of(config_of(tiny_model_folder, sets, weight=weight), tiny_model_folder))
    assert found["one"] == 8 and found["two"] == 8 * times
    assert {count for name, count in found.items() if name.startswith("two-")} == {times}


def test_an_example_that_is_seen_twice_is_one_example(tiny_model_folder: Path, sets: Path) -> None:
    prepared = prepared_of(config_of(tiny_model_folder, sets, "train.epochs=2", weight=3.0), tiny_model_folder)
    assert (prepared.examples, prepared.times) == (16, 2 * (8 + 3 * 8) / 16)
    assert "16 of 16" in [str(cell) for cell in rows_table(prepared).columns[1].cells]


@pytest.mark.parametrize(("long_in", "fit"), [(("two",), 8), (("one", "two"), 7)])
def test_an_example_that_fits_in_one_draw_is_not_among_those_too_long(
    tiny_model_folder: Path, sets: Path, long_in: tuple[str, ...], fit: int
) -> None:
    """Two sets ask the same texts of the same readers."""
    lines = [json.loads(line) for line in example_lines(pointwise_examples(4, 2, k=1))]
    for name in ("one", "two"):
        own = [{**line, "id": f"{name}-{line['id']}"} for line in lines]
        if name in long_in:
            own[0]["query"] = "ferry " * 9000
        (sets / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own))
    prepared = prepared_of(config_of(tiny_model_folder, sets), tiny_model_folder)
    assert (prepared.examples, prepared.left_out) == (fit, 8 - fit)
    cells = [str(cell) for cell in rows_table(prepared).columns[1].cells]
    assert f"{fit} of 8" in cells and f"0 of {16 - len(long_in)} drawn" in cells


def test_of_half_a_weight_each_pass_sees_another_half(tiny_model_folder: Path, sets: Path) -> None:
    prepared = prepared_of(config_of(tiny_model_folder, sets, "train.epochs=6", weight=0.5), tiny_model_folder)
    found = seen(prepared)
    assert found["one"] == 6 * 8 and found["two"] == 6 * 4
    assert {count for name, count in found.items() if name.startswith("two-")} == {3}, "each comes once in two passes"
    assert (
        prepared.digest
        == prepared_of(config_of(tiny_model_folder, sets, "train.epochs=6", weight=0.5), tiny_model_folder).digest
    )


def test_a_weight_and_the_other_sets_bytes_belong_to_the_run(tiny_model_folder: Path, sets: Path) -> None:
    def digests(weight: float) -> tuple[str, str]:
        config = config_of(tiny_model_folder, sets, weight=weight)
        return prepared_of(config, tiny_model_folder).digest, rows_key(config, tiny_model_folder)

    first, heavier = digests(1.0), digests(2.0)
    other = sets / "two.jsonl"
    other.write_text("".join(other.read_text().splitlines(keepends=True)[1:]))
    changed = digests(1.0)
    assert all(len({one, two, three}) == 3 for one, two, three in zip(first, heavier, changed, strict=True))


@pytest.mark.parametrize(("weight", "passes", "total"), [(0.01, 3, 0), (0.01, 13, 1), (1.04, 25, 208), (1.5, 4, 48)])
def test_what_a_weight_leaves_over_is_carried_on_and_no_example_comes_twice_more_than_another(
    weight: float, passes: int, total: int
) -> None:
    examples: list[Any] = list(pointwise_examples(4, 2, k=1))
    found = Counter(one.id for epoch in range(passes) for one in dealt(examples, weight, epoch=epoch, seed="0"))
    assert found.total() == total
    assert total == 0 or max(found.values()) - min(found[one.id] for one in examples) <= 1


def test_a_set_is_named_once(tiny_model_folder: Path, sets: Path) -> None:
    with pytest.raises(BadInput, match=r"names .*one\.jsonl, which is named already; give each set once"):
        prepared_of(config_of(tiny_model_folder, sets, two="one.jsonl"), tiny_model_folder)
    with pytest.raises(BadInput, match=r"^data\.mix names .*nope\.jsonl: "):
        prepared_of(config_of(tiny_model_folder, sets, two="nope.jsonl"), tiny_model_folder)


def test_a_judge_of_several_sets_is_known_to_have_seen_each_of_them(tmp_path: Path) -> None:
    run = {"kind": "train", "data_digest": "first", "mixed_digests": "second third", "config": {"data": {"fold": 0}}}
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged" / "config.json").write_text("{}")
    (tmp_path / "manifest.json").write_text(json.dumps({"run": run}))
    for digest in ("first", "second", "third"):
        with pytest.raises(BadInput, match="was trained for fold 0 of this data set and has seen the readers of fold 1"):
            check_unseen(str(tmp_path), LoadedExamples([], digest, None, 1))
    check_unseen(str(tmp_path), LoadedExamples([], "fourth", None, 1))


def test_a_reader_who_is_watched_is_in_none_of_the_sets(tiny_model_folder: Path, sets: Path) -> None:
    reader = json.loads((sets / "two.jsonl").read_text().splitlines()[0])["reviewer_id"]
    prepared = prepared_of(config_of(tiny_model_folder, sets), tiny_model_folder, apart=frozenset([reader]))
    assert reader not in prepared.reviewers and seen(prepared)["two"] == 6


def test_sets_of_another_kind_are_refused_with_both_names(tiny_model_folder: Path, sets: Path) -> None:
    with pytest.raises(BadInput, match=r"names .*pairs\.jsonl, whose examples are pairwise, and data.path has pointwise"):
        prepared_of(config_of(tiny_model_folder, sets, two="pairs.jsonl"), tiny_model_folder)
    with pytest.raises(BadInput, match=r"data\.mix.*weight"):
        config_of(tiny_model_folder, sets, weight=0)


def test_no_validation_reader_of_the_first_set_may_come_in_with_another(tiny_model_folder: Path, tmp_path: Path) -> None:
    built = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": tmp_path / "set", "valid": 0.3}
    build_pointwise(PointwiseOptions(**built))  # type: ignore[arg-type]
    for side in ("train", "valid"):
        lines = example_lines(load_examples(tmp_path / "set", split=side).examples[:4])  # type: ignore[arg-type]
        (tmp_path / f"{side}.jsonl").write_text("".join(lines), encoding="utf-8")

    def mixed_with(side: str) -> TrainConfig:
        mix = json.dumps([{"path": str(tmp_path / f"{side}.jsonl")}])
        given = [f"model.path={tiny_model_folder}", f"data.path={tmp_path / 'set'}", f"output={tmp_path / 'run'}"]
        return load_config("embedded_lora", [*given, "data.max_examples=4", f"data.mix={mix}"])

    with pytest.raises(
        BadInput, match="of the validation readers of .*set, such as .*; what is scored on them later would say nothing"
    ):
        prepared_of(mixed_with("valid"), tiny_model_folder)
    assert len(prepared_of(mixed_with("train"), tiny_model_folder).branches.fitting) == 4


def test_a_set_drawn_anew_each_epoch_is_mixed_with_one_that_is_not(tiny_model_folder: Path, sets: Path, tmp_path: Path) -> None:
    built = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": tmp_path / "set"}
    build_pointwise(PointwiseOptions(**built, profiles="per_reviewer_epoch"))  # type: ignore[arg-type]
    own = len(load_examples(tmp_path / "set", split="train").examples)
    given = ["train.epochs=2", "data.question=pointwise_score", f"data.path={tmp_path / 'set'}"]
    prepared = prepared_of(config_of(tiny_model_folder, sets, *given, two="one.jsonl"), tiny_model_folder)
    found = seen(prepared)
    assert {count for name, count in found.items() if name.startswith("one-")} == {2}
    drawn = [load_examples(tmp_path / "set", split="train", epoch=epoch).examples for epoch in range(2)]
    asked = {(one.reviewer_id, one.work) for epoch in drawn for one in epoch}
    assert own < len(asked) < 2 * own, "the second epoch asks of other texts, and of some again"
    assert prepared.examples == len(asked) + 8 and prepared.times == 2 * (own + 8) / prepared.examples


@pytest.mark.slow
def test_pairs_are_mixed_with_pairs_and_planned(tiny_model_folder: Path, sets: Path) -> None:
    lines = [json.loads(line) for line in example_lines(pairwise_examples())]
    more = "".join(
        json.dumps({**line, "id": f"more-{line['id']}", "reviewer_id": f"more-{line['reviewer_id']}"}) + "\n" for line in lines
    )
    (sets / "more.jsonl").write_text(more)
    config = config_of(tiny_model_folder, sets, f"data.path={sets / 'pairs.jsonl'}", two="more.jsonl", weight=2.0)
    prepared = prepared_of(config, tiny_model_folder)
    assert seen(prepared)["more"] == 2 * len(lines) and prepared.examples == 2 * len(lines)
    assert plan(config, device=Device("a small one", 5_000_000, 1e12, 1e12)).examples == 2 * len(lines)
