"""The planner: what it says of a run is what the run has, counted, measured, or derived by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import pointwise_examples
from places import ROOT
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, Trainer, TrainingArguments
from typer.testing import CliRunner

from perse.commands.app import app
from perse.errors import BadInput, ModelNotFound
from perse.records import example_lines
from perse.settings.training import Lora, TrainConfig, load_config
from perse.training.launched import SHARDED, WHOLE
from perse.training.model.adapting import adapted, check_trainable
from perse.training.model.architecture import KNOWN, architecture, meta_model
from perse.training.planning.flops import Passed, passed, training_flops
from perse.training.planning.hardware import GPUS, Device, device, reported
from perse.training.planning.memory import Activations, StaticMemory, activations, gathered, static_memory
from perse.training.planning.placement import Needs, chosen, placement, placements, remedies
from perse.training.planning.plan import Plan, plan
from perse.training.planning.speed import TOKENS, short_row
from perse.training.planning.telling import plan_result, plan_words, time_words
from perse.training.ready import load_model
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.prepare import prepare, renderer_for
from perse.training.rows.trie import PackedRow, row_size

LORA = ["model.dtype=bfloat16"]
FULL = ["model.dtype=float32", "lora=null"]
WHOLE_HEAD = ["model.dtype=float32", "lora.modules_to_save=[lm_head]"]
FULL_BF16 = [*FULL, "train.precision=bf16"]
AGAIN = "train.gradient_checkpointing=true"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 6))), encoding="utf-8")
    return path


def settings(model: Path | str, data: Path | str, *more: str) -> TrainConfig:
    return load_config("embedded_lora", [f"model.path={model}", f"data.path={data}", "train.batch_size=4", *more])


def largest_row(config: TrainConfig, folder: Path, tokenizer: Any) -> PackedRow:
    """A real row, whose branches share."""
    planned = prepare(config, renderer_for(config, folder, tokenizer)).schedule
    row = max((planned.row(at) for at, some in enumerate(planned.rows) if some), key=lambda row: len(row.ids))
    assert row.unshared > len(row.ids) and len(row.tree.spans) > 3
    return row


# Operations


def test_operations_of_full_training_by_hand() -> None:
    # 6 x 100 weights x 10 tokens = 6000; attention: 4 + 8 products a unit of width, 5 wide, 55 pairs: 12 x 5 x 55 = 3300;
    # head: 6 x 40 weights at 3 places = 720.
    weights = Passed(frozen=0, trained=100, head=40, head_trained=True, attention=5)
    assert training_flops(weights, tokens=10, pairs=55, learned=3) == 6000 + 3300 + 720


def test_operations_with_lora_by_hand() -> None:
    # Frozen: 4 x 90 x 10 = 3600; adapter: 6 x 10 x 10 = 600; attention 3300; a frozen head: 4 x 40 x 3 = 480.
    weights = Passed(frozen=90, trained=10, head=40, head_trained=False, attention=5)
    assert training_flops(weights, tokens=10, pairs=55, learned=3) == 3600 + 600 + 3300 + 480
    # Once more forward: 2 x 100 x 10 and 4 x 5 x 55; the head is not checkpointed.
    again = training_flops(weights, tokens=10, pairs=55, learned=3, recomputed=True)
    assert again == 3600 + 600 + 3300 + 480 + 2000 + 1100


def test_operations_equal_those_that_torch_counts() -> None:
    """With eager attention, which computes every pair of a row, seen or not."""
    from torch.utils.flop_counter import FlopCounterMode

    config = LlamaConfig(
        vocab_size=90,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config)
    with FlopCounterMode(display=False) as counter:
        answer_loss(
            model(torch.zeros((1, 24), dtype=torch.long), logits_to_keep=5), torch.zeros((1, 6), dtype=torch.long)
        ).backward()
    found = passed(model)
    assert found is not None
    assert found.attention == 3 * 32 and found.head == 90 * 32 and found.head_trained
    norms = 7 * 32  # no products of matrices
    ours = training_flops(found, tokens=24, pairs=24 * 24, learned=5) - 6 * norms * 24
    assert ours == counter.get_total_flops()


# Bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "more"),
    [("tiny", LORA), ("tiny", FULL), ("tiny", WHOLE_HEAD), ("embedded", LORA)],
    ids=["tiny-lora", "tiny-full", "tiny-whole-head", "embedded-lora"],
)
def test_weights_gradients_and_optimizer_are_predicted_to_the_byte(
    which: str, more: list[str], tiny_model_folder: Path, embedded: Path, tmp_path: Path
) -> None:
    folder = tiny_model_folder if which == "tiny" else embedded
    config = settings(folder, "x", *more)
    described = architecture(str(folder))
    predicted = static_memory(meta_model(config, described, checkpointing=False))
    model = load_model(config, folder, shared=True)
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to="none")
    optimizer = Trainer(model=model, args=arguments).create_optimizer()
    model(torch.zeros((1, 2), dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    parameters = list(model.parameters())
    assert predicted == StaticMemory(
        weights=sum(each.nbytes for each in (*parameters, *model.buffers())),
        gradients=sum(each.grad.nbytes for each in parameters if each.grad is not None),
        optimizer=sum(value.nbytes for state in optimizer.state.values() for value in state.values()),
    )


@pytest.mark.parametrize("more", [LORA, FULL, WHOLE_HEAD], ids=["lora", "full", "lora and a whole head"])
def test_the_planned_model_is_the_trained_one(more: list[str], tiny_model_folder: Path) -> None:
    config = settings(tiny_model_folder, "x", *more)
    planned = meta_model(config, architecture(str(tiny_model_folder)), checkpointing=True)
    trained = load_model(config, tiny_model_folder, shared=True)

    def shapes(model: Any) -> dict[str, Any]:
        return {name: (each.shape, each.dtype, each.requires_grad) for name, each in model.named_parameters()}

    assert shapes(planned) == shapes(trained)


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["plain", "checkpointing"])
@pytest.mark.parametrize("more", [LORA, FULL, FULL_BF16, [*LORA, "train.attention=mask"]], ids=["lora", "full", "bf16", "mask"])
def test_saved_activations_are_those_of_a_real_row(
    more: list[str], again: bool, tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any]
) -> None:
    """Measured by hooks on what autograd keeps; a storage that is kept several times counts once, parameters do not."""
    config = settings(tiny_model_folder, data, f"train.gradient_checkpointing={again}", *more)
    row = largest_row(config, tiny_model_folder, tokenizers["whole_numbers"])
    bf16 = config.train.precision == "bf16"
    predicted = activations(
        meta_model(config, architecture(str(tiny_model_folder)), checkpointing=again),
        tokens=len(row.ids),
        learned=len(row.targets),
        bf16=bf16,
        checkpointing=again,
        attention=config.train.attention,
    )
    model = load_model(config, tiny_model_folder, shared=True).train()
    if again:
        model.gradient_checkpointing_enable()
    batch = collate([row], attention=set_attention(model, config.train.attention))
    labels = batch.pop("labels")
    own = {each.untyped_storage()._cdata for each in (*model.parameters(), *model.buffers())}
    kept: dict[int, Any] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), torch.autocast("cpu", torch.bfloat16, bf16):
        answer_loss(model(**batch), labels)
    measured = sum(storage.nbytes() for storage in kept.values())
    assert predicted.saved == pytest.approx(measured, rel=0.15)
    assert predicted.peak > predicted.saved >= predicted.saved_sharded


@pytest.mark.slow
def test_what_autocast_copies_of_weights_is_not_held_when_sharded(tiny_model_folder: Path) -> None:
    config = settings(tiny_model_folder, "x", *FULL_BF16)
    described = architecture(str(tiny_model_folder))
    found = activations(
        meta_model(config, described, checkpointing=False), tokens=50, learned=5, bf16=True, checkpointing=False
    )
    model = meta_model(config, described, checkpointing=False)
    matrices = [module.weight.numel() for module in model.modules() if isinstance(module, torch.nn.Linear)]
    assert found.saved - found.saved_sharded == 2 * sum(matrices)  # bfloat16 copies, one of each


def resident(*arguments: str) -> dict[str, int]:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).parent / "resident_bytes.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def assert_resident(folder: Path, tokens: int, learned: int, *more: str) -> None:
    config = settings(folder, "x", *more)
    again = config.train.gradient_checkpointing
    model = meta_model(config, architecture(str(folder)), checkpointing=again)
    predicted = activations(model, tokens=tokens, learned=learned, bf16=False, checkpointing=again)
    measured = resident(str(tokens), str(learned), f"model.path={folder}", *more)
    assert predicted.saved == pytest.approx(measured["saved"], rel=0.15)
    assert predicted.peak == pytest.approx(measured["peak"], rel=0.15)


needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="resident memory is read from /proc")


@needs_proc
@pytest.mark.integration
@pytest.mark.parametrize("more", [LORA, [*FULL, AGAIN]], ids=["lora", "full-checkpointing"])
def test_activations_are_what_a_process_grows_by(more: list[str], embedded: Path) -> None:
    """Measured by the system, in a process of its own: independent of torch's own account."""
    config = settings(embedded, "x", *more)
    again = config.train.gradient_checkpointing
    model = meta_model(config, architecture(str(embedded)), checkpointing=again)
    predicted = activations(model, tokens=400, learned=60, bf16=False, checkpointing=again)
    measured = resident("400", "60", f"model.path={embedded}", *more)
    assert predicted.saved == pytest.approx(measured["saved"], rel=0.15)
    assert predicted.peak == pytest.approx(measured["peak"], rel=0.15)


# Placement, in bytes small enough to add up


NEEDS = Needs(StaticMemory(80, 40, 81), off=Activations(100, 120, 90, 110), on=Activations(10, 30, 5, 25), gathered=7)


def test_one_device_holds_all_and_several_divide_it() -> None:
    assert placement(NEEDS, devices=1, sharded=False, checkpointing=False).total == 80 + 40 + 81 + 120
    # Two devices sum their gradients in buckets as large as these.
    assert placement(NEEDS, devices=2, sharded=False, checkpointing=True).total == 80 + 40 + 81 + 40 + 30
    # Sharded: half of each, rounded up, two layers gathered, and no copies of whole weights.
    assert placement(NEEDS, devices=2, sharded=True, checkpointing=True).total == 40 + 20 + 41 + 7 + 25


@pytest.mark.parametrize(
    ("usable", "expected"),
    [(361, (False, False)), (360, (False, True)), (271, (False, True)), (270, (True, False)), (217, (True, True)), (132, None)],
)
def test_the_first_way_that_fits_is_chosen(usable: int, expected: tuple[bool, bool] | None) -> None:
    # Two devices: 361 whole, 271 with checkpointing; 218 sharded (108 + 110), 133 with checkpointing.
    way = chosen(placements(NEEDS, devices=2), usable)
    assert (way and (way.sharded, way.checkpointing)) == expected


def remedied(needs: Needs = NEEDS, **more: Any) -> tuple[str, ...]:
    """Of a row of 1000 tokens, of which nothing is held but what grows with it."""
    nothing = Activations(0, 0, 0, 0)
    given = {"devices": 1, "row": 1000, "shortest_row": 100, "rows_per_step": 8, "lora_weights": None}
    return remedies(needs, **({"least": (0, replace(needs, off=nothing, on=nothing))} | given | more))


def test_what_would_make_it_fit_is_said() -> None:
    # On one device at best 80 + 40 + 81 + 30 = 231. On 2, sharded: 133.
    found = remedied(usable=140, lora_weights=100)
    assert found[0].startswith("--gpus 2, fully sharded") and found[1].startswith("a lora section")
    # 216 to fill leaves 15 of the 30 for activations: half a row of 1000, in steps of 64.
    assert "train.row_tokens=448" in remedied(usable=216)[1]
    assert "model.context=448" in remedied(usable=216, shortest_row=800)[1]


def test_the_devices_suggested_come_with_rows_that_they_divide() -> None:
    assert remedied(usable=140)[0].endswith("train.gradient_checkpointing=true")
    assert remedied(usable=140, rows_per_step=9)[0].endswith("train.gradient_checkpointing=true and train.rows_per_step=10")
    assert remedied(usable=140, rows_per_step=1)[0].endswith("and train.rows_per_step=2")


def test_what_every_row_takes_is_not_thought_to_shrink_with_it() -> None:
    """Of the 30, 10 are held at 200 tokens: 15 are reached a quarter of the way from there to 1000, at 400."""
    short = replace(NEEDS, on=Activations(0, 10, 0, 10))
    assert "train.row_tokens=384" in remedied(usable=216, least=(200, short))[1]
    assert len(remedied(usable=210, least=(200, short))) == 1, "a row of 200 does not fit"


def test_dividing_is_no_remedy_for_what_every_device_must_hold_whole() -> None:
    """Two devices hold 231 and buckets of 40 each, at best; halved it would be 133. 256 leave 15 of the 30 for a row of 1000."""
    whole = replace(NEEDS, whole=True)
    found = remedied(whole, devices=2, usable=256)
    assert found == ("train.row_tokens=448, with train.gradient_checkpointing=true",)
    assert remedied(whole, devices=2, usable=140) == ()


def test_gathered_weights_are_two_layers_and_what_is_in_none(tiny_model_folder: Path) -> None:
    model = meta_model(settings(tiny_model_folder, "x", *FULL), architecture(str(tiny_model_folder)), checkpointing=False)
    total = sum(each.numel() for each in model.parameters())  # the tiny model has two layers: all of it
    assert gathered(model, itemsize=2) == 2 * total


# Whole plans


@pytest.fixture(scope="module")
def planned(tiny_model_folder: Path, data: Path) -> Plan:
    return plan(settings(tiny_model_folder, data, "train.epochs=2", "train.rows_per_step=2"), device=GPUS["l40s"], devices=2)


@pytest.mark.slow
def test_tokens_and_steps_are_those_of_training(
    planned: Plan, tiny_model_folder: Path, data: Path, tokenizers: dict[str, Any]
) -> None:
    config = settings(tiny_model_folder, data, "train.epochs=2", "train.rows_per_step=2")
    prepared = prepare(config, renderer_for(config, tiny_model_folder, tokenizers["whole_numbers"]))
    assert planned.steps == prepared.schedule.steps and planned.epochs == 2
    assert planned.examples == 24 and planned.too_long == 0
    assert planned.work.unshared == 2 * sum(branch.tokens for branch in prepared.branches.fitting)
    assert planned.work.learned == 2 * sum(len(branch.answer) for branch in prepared.branches.fitting)
    assert planned.work.tokens == sum(
        len(prepared.schedule.row(at).ids) for at, some in enumerate(prepared.schedule.rows) if some
    )
    assert planned.shared > 1.5


def test_hours_are_operations_over_what_the_devices_reach(planned: Plan) -> None:
    assert planned.peak == 362e12 and planned.hours == pytest.approx(planned.flops / (362e12 * 0.4 * 2) / 3600)
    assert planned.way is not None and not planned.way.checkpointing and not planned.way.sharded


def test_assumed_hours_are_told_beside_those_at_what_was_measured(planned: Plan) -> None:
    """0.4 of the peak in 32 hours are 12.8 at all of it: 53.3 at 24%, 61.0 at 21%; with all weights 40 at 32%, 45.7 at 28%."""

    def time(of: Plan) -> str:
        told = plan_result(replace(of, hours=32.0), checkpointing=True).tables[0].rows
        [said] = [str(row[1]) for row in told if row[0] == "time"]
        return said

    assert time(planned) == (
        "32.0 hours, if 40% of 362 TFLOP/s are reached (assumed); 53.3 hours to 61.0 hours at the 24% to 21% that short runs of adapters reached on one H100"
    )
    assert time(replace(planned, trains="all weights")).endswith(
        "40.0 hours to 45.7 hours at the 32% to 28% that short runs of all weights reached on one H100"
    )


def test_the_row_that_is_told_is_that_of_the_way_and_what_is_read_in_it_is_not_called_learned(planned: Plan) -> None:
    def row(of: Plan) -> str:
        told = dict(plan_result(of, checkpointing=True).tables[0].rows)
        return str(told["row that should take the most memory, predicted of it"])

    with_rows = replace(planned, row_off=(2985, 28), row_on=(1200, 300))
    assert row(with_rows) == "2,985, 28 tokens" and row(replace(with_rows, way=None)) == "1,200, 300 tokens"


@pytest.mark.slow
def test_float32_is_planned_with_its_own_peak_and_a_cpu_with_none(tiny_model_folder: Path, data: Path) -> None:
    config = settings(tiny_model_folder, data, *FULL, "data.max_examples=4")
    assert plan(config, device=GPUS["h200"]).peak == 67e12
    assert plan(config, device=device("cpu")).hours is None


@pytest.mark.slow
def test_without_a_gpu_the_hours_of_this_machine_are_measured(
    tiny_model_folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "data.max_examples=4", "model.dtype=float32"]
    shown = CliRunner().invoke(app, ["plan", "--config", "embedded_lora", *given, "--json"])
    found = json.loads(shown.stdout)["details"]
    assert found["peak"] is None and found["reached"] > 0
    judged = found["watch"]["share"] if found["watch"] else 0
    assert found["hours"] == pytest.approx(found["flops"] / found["reached"] / 3600 / (1 - judged))
    ranked = ["data.question=pointwise_score", "train.rank_weight=1", "train.max_shared_examples=4"]
    told = CliRunner().invoke(app, ["plan", "--config", "embedded_lora", *given, *ranked])
    assert "GFLOP/s, as just measured here on a short row" in " ".join(told.stdout.split())


def test_the_row_that_is_timed_is_short_and_one_of_the_runs_own(tiny_model_folder: Path, data: Path, tokenizers: Any) -> None:
    config = settings(tiny_model_folder, data)
    schedule = prepare(config, renderer_for(config, tiny_model_folder, tokenizers["whole_numbers"])).schedule
    taken = short_row(schedule)
    assert len(taken) >= 1 and list(taken) == list(schedule.rows[0][: len(taken)])
    assert len(taken) == 1 or row_size(taken, share=True).tokens <= TOKENS


def test_a_time_is_never_nothing() -> None:
    assert [time_words(hours) for hours in (1e-9, 40 / 3600, 0.2, 2.54, 1234.5)] == [
        "1 seconds", "40 seconds", "12 minutes", "2.5 hours", "1,234.5 hours"
    ]  # fmt: skip


@pytest.mark.slow
def test_a_plan_is_printed_as_json_and_the_same_again(tiny_model_folder: Path, data: Path) -> None:
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "data.max_examples=4"]
    runs = [
        CliRunner().invoke(app, ["plan", "--config", "embedded_lora", *given, "--gpu", "a100-80gb", "--gpus", "2", "--json"])
        for _ in range(2)
    ]
    assert runs[0].exit_code == 0, runs[0].output
    assert runs[0].stdout == runs[1].stdout
    shown = json.loads(runs[0].stdout)["details"]
    assert len(shown["ways"]) == 4 and shown["ways"][shown["way"]]["fits"] and shown["examples"] == 4


@pytest.mark.slow
def test_a_person_sees_what_fits_and_what_to_set(tiny_model_folder: Path, data: Path) -> None:
    given = [f"model.path={tiny_model_folder}", f"data.path={data}", "data.max_examples=4", "train.gradient_checkpointing=true"]
    run = CliRunner().invoke(app, ["plan", "--config", "embedded_lora", *given, "--gpu", "h200"])
    assert run.exit_code == 0
    assert "fits: set train.gradient_checkpointing=false (now true)" in run.stdout
    assert "40% of 989 TFLOP/s" in " ".join(run.stdout.split())


@pytest.mark.slow
def test_a_run_too_large_for_the_device_is_told_what_would_do(tiny_model_folder: Path, data: Path) -> None:
    config = settings(tiny_model_folder, data, *FULL, "data.max_examples=4")
    found = plan(config, device=Device("a small one", 5_000_000, 1e12, 1e12))
    said = plan_words(found, checkpointing=False)
    assert found.way is None and said.startswith("does not fit: at least")
    [shorter] = [
        int(line.partition("train.row_tokens=")[2].partition(",")[0]) for line in said.split("; ") if "row_tokens" in line
    ]
    heeded = settings(tiny_model_folder, data, *FULL, "data.max_examples=4", f"train.row_tokens={shorter}")
    assert plan(heeded, device=found.device).way is not None


@pytest.mark.parametrize(
    "odd",
    [
        {"hidden_act": "nope"},
        {"num_key_value_heads": 0},
        {"rope_parameters": {"rope_type": "nope"}},
        {"rope_parameters": {"rope_type": "dynamic", "factor": "x"}},
        pytest.param({"num_hidden_layers": 10**7}, marks=pytest.mark.slow),  # stopped after 20 seconds of computing
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_a_configuration_of_which_no_model_can_be_built_is_a_sentence(
    tiny_model_folder: Path, data: Path, tmp_path: Path, odd: dict[str, Any]
) -> None:
    model = shutil.copytree(tiny_model_folder, tmp_path / "model")
    (model / "config.json").write_text(json.dumps({**json.loads((model / "config.json").read_text()), **odd}))
    with pytest.raises(BadInput, match=rf"the configuration of {model} cannot be used.*; fetch or copy it again"):
        plan(settings(model, data), device=device("a100-80gb"), devices=1)


def test_the_launch_that_is_printed_shards_layer_by_layer() -> None:
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    for file, sharded in ((WHOLE, False), (SHARDED, True)):
        given, _, _ = _validate_launch_command(
            launch_command_parser().parse_args(["--config_file", str(ROOT / file), "train.py"])
        )
        assert (given.use_fsdp, given.multi_gpu) == (sharded, not sharded)
    assert given.fsdp_auto_wrap_policy == "TRANSFORMER_BASED_WRAP" and str(given.fsdp_version) == "2"


def test_a_mixture_of_experts_is_not_planned(data: Path, tmp_path: Path) -> None:
    MixtralConfig(
        vocab_size=90,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_local_experts=2,
    ).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match=r"is a mixture of experts.*; train with train\.steps=1 to see"):
        plan(settings(tmp_path, data, *FULL), device=GPUS["h200"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-80gb"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("A100-SXM4-80GB", "a100-80gb"),  # as older drivers say it
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA L40", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
    ],
)
def test_a_gpu_is_known_by_exactly_what_its_driver_calls_it(name: str, expected: str | None) -> None:
    assert reported(name) == (GPUS[expected] if expected else None)


@pytest.mark.integration
def test_a_reference_recipe_is_planned_without_its_model(data: Path) -> None:
    given = [f"data.path={data}", "data.max_examples=4", "train.steps=1", "--gpu", "a100-80gb"]
    run = CliRunner().invoke(app, ["plan", "--config", "llama2_7b_full", *given])
    said = " ".join(run.stdout.split())
    assert "does not fit" in said and "--gpus 2, fully sharded" in said and "a lora section" in said
    assert "is not here: its published configuration is used" in said


@pytest.mark.parametrize(("size", "parameters"), [("7b", 6_738_415_616), ("13b", 13_015_864_320)])
def test_the_reference_models_are_known_without_their_weights(size: str, parameters: int) -> None:
    config = load_config(f"llama2_{size}_full", ["data.path=x"])
    assert config.model.path in KNOWN
    model = meta_model(config, architecture(config.model.path), checkpointing=False)
    assert sum(each.numel() for each in model.parameters()) == parameters


# Bad input


@pytest.mark.parametrize("targets", [("q_prj",), ("q_proj", "k_prj"), ("self_attn",), (), "nothing"])
def test_lora_targets_that_name_nothing_are_refused(targets: Any, tiny_model_folder: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(tiny_model_folder)
    with pytest.raises(BadInput, match=r"lora.targets has .*choose among .*q_proj.*or all-linear"):
        adapted(model, Lora(targets=targets), checkpointing=False)


def test_a_model_of_which_nothing_is_trained_is_refused(tiny_model_folder: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(tiny_model_folder).requires_grad_(False)
    with pytest.raises(BadInput, match="0 of .* parameters are trainable"):
        check_trainable(model)


def test_absent_data_absent_models_and_unknown_gpus_are_named(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="absent"):
        plan(settings(tiny_model_folder, tmp_path / "absent.jsonl"), device=GPUS["h200"])
    with pytest.raises(ModelNotFound, match="known without it are meta-llama"):
        plan(settings("nobody/has-this", data), device=GPUS["h200"])
    with pytest.raises(BadInput, match="choose from a100-40gb"):
        device("a100")
