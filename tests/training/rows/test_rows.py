"""Rows that are kept and mapped are those that were made, and are made anew when anything they depend on changes."""

from __future__ import annotations

import fcntl
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import pointwise_examples, words
from full_disks import files_of_at_most
from hypothesis import given
from hypothesis import strategies as st
from places import SAMPLES

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.errors import BadInput, RunMismatch
from perse.files.runlog import file_digest
from perse.records import example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig, load_config
from perse.training.launched import ALONE
from perse.training.rows.branches import Branch, Branches
from perse.training.rows.deal import ABOUT, _own_digest, needed, read_rows, rows_key, write_rows
from perse.training.rows.label_tree import LabelTree, TrueLabel
from perse.training.rows.prepare import Prepared, prepare, renderer_for
from perse.training.rows.schedule import Schedule
from perse.training.trainer import prepared_once, train


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(3, 5))), encoding="utf-8")
    return path


def settings(model: Path, data: Path, *more: str) -> TrainConfig:
    given = [
        f"model.path={model}",
        f"data.path={data}",
        "model.context=2048",
        "train.epochs=2",
        f"output={data.parent / 'run'}",
    ]
    return load_config("embedded_lora", [*given, *more])


def made(config: TrainConfig, model: Path, tokenizers: dict[str, Any]) -> tuple[Prepared, Renderer]:
    renderer = renderer_for(config, model, tokenizers["whole_numbers"])
    return prepare(config, renderer), renderer


def test_kept_rows_are_those_that_were_made(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    found = read_rows(tmp_path / "rows", renderer, key="k")
    assert found is not None
    assert list(found.schedule.rows) == list(prepared.schedule.rows)
    assert list(found.branches.fitting) == list(prepared.branches.fitting)
    for step in range(1, prepared.schedule.steps + 1):
        assert found.schedule.step_rows(step) == prepared.schedule.step_rows(step)
    assert found.schedule.rows[-1] == prepared.schedule.rows[-1]
    assert list(found.schedule.rows[1:3]) == list(prepared.schedule.rows[1:3])
    for kept, whole in ((found.schedule.rows, prepared.schedule.rows), (found.branches.fitting, prepared.branches.fitting)):
        assert kept[-len(whole)] == whole[0] and kept[len(whole) - 1] == whole[-1]
        for outside in (len(whole), len(whole) + 1, -len(whole) - 1):
            with pytest.raises(IndexError):
                kept[outside]
    for name in ("question", "data_digest", "reviewers", "digest", "longest"):
        assert getattr(found, name) == getattr(prepared, name), name
    assert replace(found.schedule, rows=()) == replace(prepared.schedule, rows=())
    assert isinstance(found.branches.fitting.tokens.flat, np.memmap)  # type: ignore[attr-defined]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=4), min_size=1, max_size=3), st.text(max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_any_branches_come_back(tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[list[list[int]], str]]) -> None:
    branches = tuple(
        Branch(f"{at}{text}".rstrip("\0") + "|", tuple(map(tuple, parts)), (1, at), len(parts) - 1, 3, 2)
        for at, (parts, text) in enumerate(drawn)
    )
    rows = (branches[::-1], (), branches[:1])
    known: dict[str, Any] = {
        "question": _question(),
        "renderer": None,
        "data_digest": "d",
        "digest": "x",
        "longest": 9,
        "examples": 2,
        "times": 1.5,
    }
    prepared = Prepared(
        branches=Branches(branches, ("left",)), schedule=Schedule(rows, 3, 1.0, True), reviewers=frozenset({None, "r"}), **known
    )
    folder = tmp_path_factory.mktemp("rows") / "rows"
    write_rows(prepared, folder, key="k")
    found = read_rows(folder, None, key="k")  # type: ignore[arg-type]
    assert found is not None and tuple(found.schedule.rows) == rows and tuple(found.branches.fitting) == branches
    assert found.reviewers == {None, "r"} and found.branches.too_long == ("left",)


def _question() -> Any:
    from perse.questions import QUESTIONS

    return QUESTIONS["pointwise"]


def test_the_key_changes_with_whatever_rows_depend_on_and_with_nothing_else(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    config = settings(tiny_model_folder, data)
    key = rows_key(config, tiny_model_folder)
    for more in (
        "train.seed=3",
        "train.max_shared_examples=1",
        "train.rows_per_step=4",
        "data.answer_tokens=50",
        "model.context=1024",
    ):
        assert rows_key(settings(tiny_model_folder, data, more), tiny_model_folder) != key, more
    for more in ("train.learning_rate=1", "lora.rank=2", f"output={tmp_path / 'other'}", "train.world_size=1"):
        assert rows_key(settings(tiny_model_folder, data, more), tiny_model_folder) == key, more
    data.write_text(data.read_text().replace("r0-0", "r0-x"), encoding="utf-8")
    assert rows_key(config, tiny_model_folder) != key


def test_rows_are_made_once_and_again_when_the_data_changed(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any]
) -> None:
    config = settings(tiny_model_folder, data)
    renderer = renderer_for(config, tiny_model_folder, tokenizers["whole_numbers"])
    about = data.parent / "run" / ".rows" / ABOUT
    first = prepared_once(config, renderer, tiny_model_folder, ALONE)
    stamp = about.stat().st_mtime_ns
    assert prepared_once(config, renderer, tiny_model_folder, ALONE).digest == first.digest
    assert about.stat().st_mtime_ns == stamp
    data.write_text("".join(example_lines(pointwise_examples(3, 4))), encoding="utf-8")
    second = prepared_once(config, renderer, tiny_model_folder, ALONE)
    assert len(second.branches.fitting) == 12 and second.digest != first.digest
    about.write_text("{torn", encoding="utf-8")
    assert prepared_once(config, renderer, tiny_model_folder, ALONE).digest == second.digest


def test_a_process_that_does_not_see_the_run_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match="are not to be seen here; give an output folder on a file system that all machines share"
    ):
        needed(None, tmp_path)


def test_rows_that_were_damaged_are_made_again(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    for damage in ("tokens.npy", "paths.npy"):
        write_rows(prepared, tmp_path / "rows", key="k")
        file = tmp_path / "rows" / damage
        file.write_bytes(file.read_bytes()[:-8] + b"\7" * 8 if damage == "tokens.npy" else b"")
        assert read_rows(tmp_path / "rows", renderer, key="k") is None


@pytest.mark.parametrize(
    "said", [{"too_long": 1.5}, {"epochs": "../../x"}, {"reviewers": ["r0", ["r1"]]}, {"rows_per_step": 7}]
)
def test_rows_of_which_something_else_is_said_are_made_again(
    said: dict[str, Any], tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    about = json.loads((tmp_path / "rows" / ABOUT).read_text())
    (tmp_path / "rows" / ABOUT).write_text(json.dumps(about))
    assert read_rows(tmp_path / "rows", renderer, key="k") is not None
    (tmp_path / "rows" / ABOUT).write_text(json.dumps(about | said))
    assert read_rows(tmp_path / "rows", renderer, key="k") is None


def sealed_again(folder: Path, **said: object) -> None:
    """What is said of the rows, with the digests of the files as they are now: a stranger can reckon them, too."""
    about = (
        json.loads((folder / ABOUT).read_text())
        | {"files": {file.name: file_digest(file) for file in folder.glob("*.npy")}}
        | said
    )
    (folder / ABOUT).write_text(json.dumps(about | {"sha256": _own_digest(about)}))


@pytest.mark.parametrize(
    "said",
    [
        *(
            {"question": "zz"},
            {"question": 5},
            {"reviewers": None},
            {"reviewers": [["r"]]},
            {"rows_per_step": 0},
            {"rows_per_step": 7},
        ),
        *(
            {"epochs": "x"},
            {"share": 2},
            {"too_long": 3},
            {"apart": [[1]]},
            {"longest": None},
            {"unwatched": []},
            {"files": {}},
        ),
        *({"files": {"../../x": "y"}}, {"files": None}, {"data_digest": {}}, {"digest": 7}),
    ],
    ids=lambda said: next(iter(said)),
)
def test_rows_of_which_a_stranger_says_and_seals_something_else_are_made_again(
    said: dict[str, Any], tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    sealed_again(tmp_path / "rows")
    assert read_rows(tmp_path / "rows", renderer, key="k") is not None
    sealed_again(tmp_path / "rows", **said)
    assert read_rows(tmp_path / "rows", renderer, key="k") is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("paths", lambda found: found + 10**6),
        ("paths", lambda found: -found - 1),
        ("rows", lambda found: found + 10**6),
        ("rows", lambda found: found[:0]),
        ("rows-cuts", lambda found: -found),
        ("rows-cuts", lambda found: found[:-1]),
        ("paths-cuts", lambda found: found[:0]),
        ("tokens", lambda found: found.reshape(1, -1)),
        ("tokens", lambda found: -found - 1),
        ("tokens", lambda found: found.astype(float)),
        ("facts", lambda found: found.astype(float)),
        ("facts", lambda found: found[:, :2]),
        ("facts", lambda found: found + 100),
        ("ids", lambda found: np.arange(len(found))),
        ("ids", lambda found: found[:-1]),
    ],
)
def test_rows_whose_numbers_point_at_nothing_are_made_again_though_they_are_sealed(
    name: str, change: Any, tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    file = tmp_path / "rows" / f"{name}.npy"
    np.save(file, change(np.array(np.load(file))))
    sealed_again(tmp_path / "rows")
    assert read_rows(tmp_path / "rows", renderer, key="k") is None


@pytest.mark.parametrize("left", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00" + b"(" * 118])
def test_a_cut_file_of_rows_that_is_sealed_is_made_again(
    left: bytes, tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    (tmp_path / "rows" / "ids.npy").write_bytes(left)
    sealed_again(tmp_path / "rows")
    assert read_rows(tmp_path / "rows", renderer, key="k") is None


def test_rows_that_the_disk_does_not_take_to_the_last_byte_are_not_kept(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    """Of each file, whichever is the largest that is cut: numpy's own way of writing would be silent about some."""
    prepared, renderer = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    write_rows(prepared, tmp_path / "rows", key="k")
    for size in sorted({path.stat().st_size for path in (tmp_path / "rows").glob("*.npy")}):
        for limit in (size - 1, size - size // 4):
            with pytest.raises(OSError, match="File too large"), files_of_at_most(limit):
                write_rows(prepared, tmp_path / "full", key="k")
            assert read_rows(tmp_path / "full", renderer, key="k") is None


@pytest.mark.slow
def test_rows_of_a_run_are_not_replaced_by_those_of_other_settings_or_while_it_runs(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any]
) -> None:
    more = ["model.dtype=float32", "train.steps=1", "train.report_to=[]"]
    run = train(settings(tiny_model_folder, data, *more))
    before = (run / ".rows" / ABOUT).read_text()
    config = settings(tiny_model_folder, data, *more, "train.seed=5")
    renderer = renderer_for(config, tiny_model_folder, tokenizers["whole_numbers"])
    with pytest.raises(RunMismatch, match=r"train.seed was 0, is 5"):
        prepared_once(config, renderer, tiny_model_folder, ALONE)
    assert (run / ".rows" / ABOUT).read_text() == before
    (run / ".rows" / ABOUT).write_text(before.replace('"key": "', '"key": "of older code '))
    with (run / "log.jsonl").open("a") as held, pytest.raises(RunMismatch, match="is being written by another process"):
        fcntl.flock(held, fcntl.LOCK_EX)
        prepared_once(settings(tiny_model_folder, data, *more), renderer, tiny_model_folder, ALONE)
    assert prepared_once(settings(tiny_model_folder, data, *more), renderer, tiny_model_folder, ALONE).schedule.steps == 1


def test_a_folder_of_somebody_elses_is_not_replaced(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    prepared, _ = made(settings(tiny_model_folder, data), tiny_model_folder, tokenizers)
    (tmp_path / ".rows").mkdir()
    (tmp_path / ".rows" / "mine").touch()
    with pytest.raises(BadInput, match="is there and holds no rows"):
        write_rows(prepared, tmp_path / ".rows", key="k")
    assert (tmp_path / ".rows" / "mine").exists()


def test_settings_that_the_data_cannot_follow_are_refused_or_told(
    tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def prepared(*more: str) -> Prepared:
        config = settings(tiny_model_folder, data, *more)
        return prepare(config, renderer_for(config, tiny_model_folder, tokenizers["chatml"]))

    with pytest.raises(
        BadInput, match="is a file of examples, all of which are trained on: it has no sides; leave data.split out"
    ):
        prepared("data.split=valid")
    built = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": data.with_name("set")}
    build_pointwise(PointwiseOptions(**built))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="data.profile_aspects is asked, and .* holds single texts, which have no aspects"):
        prepared(f"data.path={data.with_name('set')}", "data.profile_aspects=asked")
    prepared("model.context=1000000")
    assert "model.context is 1000000, and the model was made for" in caplog.text


@pytest.mark.parametrize(("view", "others"), [("asked", False), ("all", True)])
def test_rows_of_pairs_show_the_preferences_that_the_recipe_says(
    view: str, others: bool, tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any]
) -> None:
    pairs = [
        {
            "annotator": f"p{who}",
            "aspect": aspect,
            "text_a": words(4, (who, n)),
            "text_b": words(4, (n, who)),
            "preference": "A",
        }
        for who in range(4)
        for n in range(5, 8)
        for aspect in ("Ending", "Surprise")
    ]
    table, folder = data.with_name("pairs.jsonl"), data.with_name("pairs")
    table.write_text("".join(json.dumps(one) + "\n" for one in pairs), "utf-8")
    build_pairwise(PairwiseOptions(pairs=table, out=folder, k=1, min_comparisons=3, split="reviewer"))
    prepared, _ = made(settings(tiny_model_folder, folder, f"data.profile_aspects={view}"), tiny_model_folder, tokenizers)
    prompts = [tokenizers["whole_numbers"].decode(branch.prompt) for row in prepared.schedule.rows for branch in row]
    assert prompts
    for prompt in prompts:
        asked = set(re.findall(r"\[Aspect\] (\w+)", prompt))
        shown = set(re.findall(r"\[(\w+)\] Plot [AB]", prompt))
        assert shown == ({"Ending", "Surprise"} if others else asked)


TREE = LabelTree(((1,), (2,), (1, 0)), (1.0, 2.0, 10.0), tail=1)


def labelled(folder: Path, *, labels: bool = True) -> Path:
    """Two rows a step, four branches of three pieces each, the first of label 10 and of a reader, the second of label 1 and of nobody by name."""
    branches = tuple(
        Branch(name, ((7, at), (8,)), answer, 1, 2, 1, TrueLabel(TREE, index, reader) if labels else None)
        for at, (name, answer, index, reader) in enumerate(
            [("a", (1, 0, 4), 2, 0), ("b", (1, 4), 0, None), ("c", (2, 4), 1, 0), ("d", (3, 2, 4), 1, 1)]
        )
    )
    known: dict[str, Any] = {
        "question": _question(),
        "renderer": None,
        "data_digest": "d",
        "digest": "x",
        "longest": 9,
        "examples": 4,
        "times": 1.0,
    }
    planned = Schedule((branches[:2], branches[2:], (), branches[:1]), 2, 1.0, True)
    prepared = Prepared(branches=Branches(branches, ()), schedule=planned, reviewers=frozenset({"r"}), **known)
    write_rows(prepared, folder, key="k")
    found = read_rows(folder, None, key="k")  # type: ignore[arg-type]
    assert found is not None and tuple(found.branches.fitting) == branches
    assert found.branches.fitting[1:3] == list(branches[1:3]) and [*found.branches.fitting] == list(branches)
    assert tuple(found.schedule.rows) == planned.rows and found.schedule.rows[-4] == planned.rows[0]
    return folder


@pytest.mark.parametrize(
    ("column", "taken", "odd"),
    [
        (0, (0, 2), (-1, 3)),  # segments that are shared, of two before the answer
        (1, (0, 99), (-1,)),
        (2, (0, 99), (-1,)),
        (3, (0, 2), (-1, 3)),  # the number of one of three labels
        (4, (-1, 0, 99), (-2,)),
    ],
)
def test_every_number_that_is_kept_of_a_branch_has_its_bounds(tmp_path: Path, column: int, taken: Any, odd: Any) -> None:
    folder = labelled(tmp_path / "rows")
    facts = np.array(np.load(folder / "facts.npy"))
    for value, fine in (*((one, True) for one in taken), *((one, False) for one in odd)):
        changed = facts.copy()
        changed[0, column] = value
        np.save(folder / "facts.npy", changed)
        sealed_again(folder)
        assert (read_rows(folder, None, key="k") is not None) == fine, (column, value)  # type: ignore[arg-type]


def test_a_label_that_is_longer_than_its_answer_or_of_no_tree_is_none(tmp_path: Path) -> None:
    folder = labelled(tmp_path / "rows")
    facts = np.array(np.load(folder / "facts.npy"))
    facts[1, 3] = 2  # "10" in an answer of two tokens, of which one is the end
    np.save(folder / "facts.npy", facts)
    sealed_again(folder)
    assert read_rows(folder, None, key="k") is None  # type: ignore[arg-type]
    plain = labelled(tmp_path / "plain", labels=False)
    facts = np.array(np.load(plain / "facts.npy"))
    assert facts[:, 3:].tolist() == [[-1, -1]] * 4
    facts[0, 3] = 0
    np.save(plain / "facts.npy", facts)
    sealed_again(plain)
    assert read_rows(plain, None, key="k") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "most"), [("paths", 8), ("rows", 3)])
def test_a_number_may_point_at_the_last_thing_and_not_behind_it(tmp_path: Path, name: str, most: int) -> None:
    folder = labelled(tmp_path / "rows")
    flat = np.array(np.load(folder / f"{name}.npy"))
    assert flat.max() == most
    for value, fine in ((most, True), (0, True), (most + 1, False), (-1, False)):
        changed = flat.copy()
        changed[0] = value
        np.save(folder / f"{name}.npy", changed)
        sealed_again(folder)
        assert (read_rows(folder, None, key="k") is not None) == fine, value  # type: ignore[arg-type]
