"""Two processes train what one does: the same rows in every step, so the same losses and the same weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import pointwise_examples
from places import ROOT
from safetensors.torch import load_file
from tolerances import TRAINED, TRAINED_WEIGHTS, forward, gradient

from perse.records import example_lines

pytestmark = [pytest.mark.integration, pytest.mark.numeric]

ONE = (sys.executable, "train.py")
TWO = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "train.py")


def trained(launch: tuple[str, ...], model: Path, data: Path, out: Path, *more: str) -> Path:
    given = [
        f"model.path={model}",
        "model.dtype=float32",
        "model.context=2048",
        f"data.path={data}",
        "lora.rank=4",
        "train.batch_size=2",
        "train.max_shared_examples=2",
        "train.row_tokens=4096",
        "train.report_to=[]",
        "train.learning_rate=0.01",
        "train.max_grad_norm=100000",
        "train.log_every=1",
        f"output={out}",
    ]
    command = [*launch, "--config", "embedded_lora", *given, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return out


def logged(run: Path, what: str) -> list[float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line[what] for line in lines if what in line]


@pytest.mark.parametrize(
    ("more", "variants"),
    [
        pytest.param((), ((), ("train.gradient_checkpointing=true",)), id="lora"),
        pytest.param(("lora=null",), ((),), id="full", marks=pytest.mark.long),
    ],
)
def test_two_ranks_train_what_one_does(
    tiny_model_folder: Path, tmp_path: Path, more: tuple[str, ...], variants: tuple[tuple[str, ...], ...]
) -> None:
    """Nine rows, four in a step: the third step has one row with examples and three empty ones, two of them the second rank's."""
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(9, 2, k=1))), encoding="utf-8")
    one = trained(ONE, tiny_model_folder, data, tmp_path / "one", "train.rows_per_step=4", *more)
    assert len(logged(one, "loss")) == 3 and [share > 0 for share in logged(one, "padding_share")] == [False, False, True]
    weights = load_file(one / "merged" / "model.safetensors")
    for at, variant in enumerate(variants):
        two = trained(TWO, tiny_model_folder, data, tmp_path / f"two-{at}", "train.rows_per_step=4", *more, *variant)
        manifests = [json.loads((run / "manifest.json").read_text()) for run in (one, two)]
        assert [each["context"]["world_size"] for each in manifests] == [1, 2]
        assert manifests[0]["run"] == manifests[1]["run"] or variant
        assert logged(two, "padding_share") == logged(one, "padding_share")
        # AdamW divides by sqrt(v), so in later steps the rounding of the first step's gradient is not small any more.
        assert logged(two, "loss")[0] == pytest.approx(logged(one, "loss")[0], rel=forward(tiny_model_folder, 300))
        assert logged(two, "grad_norm")[0] == pytest.approx(logged(one, "grad_norm")[0], rel=gradient(tiny_model_folder, 2400))
        assert logged(two, "loss") == pytest.approx(logged(one, "loss"), rel=TRAINED)
        merged = load_file(two / "merged" / "model.safetensors")
        for name, weight in weights.items():
            assert float((merged[name] - weight).norm() / weight.norm()) < TRAINED_WEIGHTS, name


def test_two_ranks_learn_the_order_that_one_does(tiny_model_folder: Path, tmp_path: Path) -> None:
    """Pairs are counted over the rows of a step, wherever they are computed; the last step's are all the first rank's."""
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(5, 2, k=1))), encoding="utf-8")
    more = ("train.rows_per_step=4", "train.rank_weight=2", "train.ordinal_smoothing=0.5", "data.question=pointwise_score")
    one, two = (
        trained(launch, tiny_model_folder, data, tmp_path / name, *more) for launch, name in ((ONE, "one"), (TWO, "two"))
    )
    assert logged(two, "rank_pairs") == logged(one, "rank_pairs") == [4, 1]
    for name in ("loss", "answer_loss", "rank_loss", "rank_ordered"):
        assert logged(two, name)[0] == pytest.approx(logged(one, name)[0], rel=3 * forward(tiny_model_folder, 300)), name
        assert logged(two, name) == pytest.approx(logged(one, name), rel=TRAINED), name
    assert logged(two, "grad_norm")[0] == pytest.approx(logged(one, "grad_norm")[0], rel=gradient(tiny_model_folder, 2400))
