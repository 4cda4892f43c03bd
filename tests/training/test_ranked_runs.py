"""Whole runs that learn the order of a reader's scores: what is logged, resumed, planned, kept and refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders import pairwise_examples, pointwise_examples, tiny_llama
from safetensors.torch import load_file

from perse.errors import BadInput, RunMismatch
from perse.files.runlog import read_manifest
from perse.models.opening import tokenizer as opened
from perse.records import example_lines
from perse.settings.training import TrainConfig, load_config
from perse.training.identity import run_identity
from perse.training.model.architecture import architecture, meta_model
from perse.training.planning.hardware import GPUS
from perse.training.planning.memory import activations
from perse.training.planning.plan import plan
from perse.training.rows.batches import collate
from perse.training.rows.deal import _own_digest, read_rows, write_rows
from perse.training.rows.prepare import Prepared, prepare, renderer_for
from perse.training.rows.row_loss import RowLoss, row_loss_for
from perse.training.rows.schedule import RowDataset
from perse.training.trainer import train

pytestmark = [pytest.mark.slow, pytest.mark.numeric]

BOTH = ("train.rank_weight=0.5", "train.ordinal_smoothing=0.4")


@pytest.fixture(scope="module")
def split_digits(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose tokenizer makes two tokens of 10."""
    folder = tmp_path_factory.mktemp("split") / "model"
    tiny_llama(tokenizers["chatml"]).save_pretrained(folder)
    tokenizers["chatml"].save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 6, k=1))), encoding="utf-8")
    return path


def settings(model: Path, data: Path, out: Path, *more: str) -> TrainConfig:
    given = [
        f"model.path={model}",
        "model.dtype=float32",
        f"data.path={data}",
        "data.question=pointwise_score",
        "lora.rank=4",
        "train.batch_size=3",
        "train.max_shared_examples=3",
        "train.rows_per_step=2",
        "train.learning_rate=0.01",
        "train.save_every=2",
        "train.log_every=1",
        "train.report_to=[]",
        "watch=null",
        f"output={out}",
    ]
    return load_config("embedded_lora", [*given, *more])


def prepared_of(config: TrainConfig) -> Prepared:
    folder = Path(config.model.path)
    return prepare(config, renderer_for(config, folder, opened(folder)))


def lines(run: Path) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if "loss" in line]


SPEED = ("tokens_per_second", "unshared_tokens_per_second", "mfu")


def test_a_killed_run_is_resumed_to_the_last_bit_and_its_losses_stand_apart_in_the_log(
    split_digits: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(settings(split_digits, data, tmp_path / "whole", *BOTH))
    found = lines(whole)
    assert [line["step"] for line in found] == [1, 2, 3, 4]
    for line in found:
        assert line["loss"] == pytest.approx(line["answer_loss"] + 0.5 * line["rank_loss"], rel=1e-5)
        assert line["rank_pairs"] == 6 and 0 <= line["rank_ordered"] <= 1, "two rows of three different scores"
    calls = []
    once = RowLoss.__call__

    def until(self: RowLoss, *args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 6:  # the second row of step 3
            raise KeyboardInterrupt
        return once(self, *args, **more)

    killed = settings(split_digits, data, tmp_path / "killed", *BOTH)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RowLoss, "__call__", until)
        train(killed)
    assert not (tmp_path / "killed" / "merged").exists()
    run = train(killed)
    without = [
        [{key: value for key, value in line.items() if key not in SPEED} for line in lines(each)] for each in (run, whole)
    ]
    assert without[0] == without[1]
    merged = [load_file(each / "merged" / "model.safetensors") for each in (run, whole)]
    assert all(torch.equal(merged[0][name], merged[1][name]) for name in merged[1])
    with pytest.raises(RunMismatch, match=r"train.rank_weight was 0.5, is 1"):
        train(settings(split_digits, data, tmp_path / "whole", "train.rank_weight=1", BOTH[1]))


def test_the_order_is_learned_and_off_it_nothing_is_logged_of_it(split_digits: Path, tmp_path: Path) -> None:
    """Two readers with three texts each, all of them in every step."""
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(2, 3, k=1))), encoding="utf-8")
    more = ("train.steps=15", "train.save_every=50", "train.warmup=0")
    ranked = lines(train(settings(split_digits, data, tmp_path / "ranked", "train.rank_weight=10", *more)))
    assert ranked[-1]["rank_loss"] < 0.5 * ranked[0]["rank_loss"] and ranked[-1]["rank_ordered"] == 1
    plain = lines(train(settings(split_digits, data, tmp_path / "plain", "train.steps=1")))
    assert not {"answer_loss", "rank_loss", "rank_pairs", "rank_ordered"} & set(plain[0])
    soft = lines(train(settings(split_digits, data, tmp_path / "soft", "train.ordinal_smoothing=0.5", "train.steps=1")))
    assert soft[0]["answer_loss"] == pytest.approx(soft[0]["loss"]) and "rank_loss" not in soft[0]


def test_off_a_run_is_what_it_was_before_there_was_such_a_loss(split_digits: Path, data: Path, tmp_path: Path) -> None:
    """Its identity and the digest of its rows, so that runs begun before are resumed."""
    off = settings(split_digits, data, tmp_path)
    prepared = prepared_of(off)
    said = run_identity(off, prepared, {})["config"]["train"]
    assert "rank_weight" not in said and "ordinal_smoothing" not in said
    on = settings(split_digits, data, tmp_path, *BOTH)
    assert {"rank_weight", "ordinal_smoothing"} <= run_identity(on, prepared, {})["config"]["train"].keys()
    assert prepared.digest != prepared_of(on).digest
    assert all(branch.label is None and "label" not in repr(branch) for branch in prepared.branches.fitting)
    assert row_loss_for(off.train) is None and prepared.schedule.row(0).reading is None
    assert prepared.longest == prepared_of(on).longest


def test_rows_kept_on_the_disk_are_read_as_they_were_made(split_digits: Path, data: Path, tmp_path: Path) -> None:
    prepared = prepared_of(settings(split_digits, data, tmp_path, *BOTH))
    write_rows(prepared, tmp_path / "rows", key="k")
    found = read_rows(tmp_path / "rows", prepared.renderer, key="k")
    assert found is not None and list(found.branches.fitting) == list(prepared.branches.fitting)
    kept, made = RowDataset(found.schedule), RowDataset(prepared.schedule)
    assert [kept[at] for at in range(len(kept))] == [made[at] for at in range(len(made))]
    assert found.branches.fitting[0].label == prepared.branches.fitting[0].label is not None


@pytest.mark.parametrize(
    "change",
    [
        {"tree": None},
        {"tree": {"labels": [[1], [1]], "values": [1.0, 2.0], "tail": 1}},
        {"tree": {"labels": [[1]], "values": [1.0], "tail": 1}},
        {"tree": {"labels": [[n] for n in range(10)], "values": [float(n) for n in range(10)], "tail": 900}},
        {"tree": {"labels": [[n] for n in range(3)], "values": [1.0, 2.0, 3.0], "tail": 1}},
        {"tree": {"labels": [[n] for n in range(10)], "values": [float(-n) for n in range(10)], "tail": 1}},
    ],
)
def test_kept_rows_whose_labels_a_stranger_changed_are_made_again(
    split_digits: Path, data: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    prepared = prepared_of(settings(split_digits, data, tmp_path, *BOTH))
    write_rows(prepared, tmp_path / "rows", key="k")
    about = json.loads((tmp_path / "rows" / "about.json").read_text()) | change
    (tmp_path / "rows" / "about.json").write_text(json.dumps(about | {"sha256": _own_digest(about)}))
    assert read_rows(tmp_path / "rows", prepared.renderer, key="k") is None


def test_a_row_knows_the_pairs_of_its_step_over_all_devices(split_digits: Path, data: Path, tmp_path: Path) -> None:
    schedule = prepared_of(settings(split_digits, data, tmp_path, "train.rank_weight=1")).schedule
    rows = RowDataset(schedule)
    for step in range(schedule.steps):
        readings = [rows[at].reading for at in (2 * step + 1, 2 * step)]
        assert [one.of_step for one in readings if one] == [sum(len(one.pairs) for one in readings if one)] * 2


def test_the_plan_counts_what_labels_are_read_after(split_digits: Path, data: Path, tmp_path: Path) -> None:
    """Tokens, places at which the head is computed, and the memory that the loss takes."""
    plans, counted = [], []
    for more in ((), BOTH):
        config = settings(split_digits, data, tmp_path, *more)
        schedule = prepared_of(config).schedule
        rows = [schedule.row(at) for at, some in enumerate(schedule.rows) if some]
        counted.append((sum(len(row.ids) for row in rows), sum(len(row.sources) for row in rows)))
        plans.append(plan(config, device=GPUS["l40s"]))
        assert (plans[-1].work.tokens, plans[-1].work.read) == counted[-1]
    off, on = plans
    beside = sum(label not in (1, 10) for label in scores(data))
    assert counted[1][0] - counted[0][0] == counted[1][1] - counted[0][1] == beside, (
        "one place for each answer that does not begin with 1"
    )
    assert on.work.learned == off.work.learned == off.work.read and on.flops > off.flops
    assert on.needs.off.saved > off.needs.off.saved


@pytest.mark.parametrize("more", [BOTH, BOTH[:1]])
def test_the_memory_of_a_ranked_row_is_that_which_autograd_keeps(
    split_digits: Path, data: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    config = settings(split_digits, data, tmp_path, *more)
    row = prepared_of(config).schedule.row(0)
    batch = collate([row], attention="tree")
    labels, reading = batch["labels"], batch["reading"]
    logits = torch.randn(1, len(row.sources), 49152, requires_grad=True)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        row_loss_for(config.train)(SimpleNamespace(logits=logits), labels, reading=reading)  # type: ignore[misc]

    def predicted(loss: Any) -> int:
        model = meta_model(config, architecture(str(split_digits)), checkpointing=False)
        tokens, learned = len(row.ids), len(row.sources)
        return activations(model, tokens=tokens, learned=learned, bf16=False, checkpointing=False, loss=loss).saved

    ranked = RowLoss(rank_weight=config.train.rank_weight, ordinal_smoothing=config.train.ordinal_smoothing)
    nothing = predicted(lambda outputs, labels: outputs.logits.float().sum())
    found = predicted(partial(ranked, reading=reading)) - nothing
    assert found == pytest.approx(sum(kept.values()), rel=0.1)


def scores(data: Path) -> list[int]:
    return [json.loads(line)["reference"]["score"] for line in data.read_text().splitlines()]


def test_rows_without_two_scores_of_a_reader_are_refused(split_digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(6, 1, k=1))), encoding="utf-8")
    with pytest.raises(
        BadInput, match="no row holds two texts that one reader scored differently.*--profiles per_reviewer_epoch"
    ):
        prepared_of(settings(split_digits, path, tmp_path / "run", "train.rank_weight=1"))
    prepared_of(settings(split_digits, path, tmp_path / "run", "train.ordinal_smoothing=0.5"))


def test_pairs_of_texts_are_refused_before_anything_is_written(split_digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pairwise_examples())), encoding="utf-8")
    config = settings(split_digits, path, tmp_path / "run", "train.rank_weight=1", "data.question=pairwise")
    with pytest.raises(BadInput, match="the labels A, B of the question pairwise have no order"):
        train(config)
    assert not (tmp_path / "run").exists()


def test_the_manifest_says_what_was_asked_for(split_digits: Path, data: Path, tmp_path: Path) -> None:
    run = train(settings(split_digits, data, tmp_path / "run", "train.steps=1", *BOTH))
    said = read_manifest(run)["run"]["config"]["train"]
    assert (said["rank_weight"], said["ordinal_smoothing"]) == (0.5, 0.4)
