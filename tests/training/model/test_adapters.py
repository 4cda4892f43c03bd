"""LoRA, DoRA and QLoRA: each learns, is saved, and is merged into what it was trained on top of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import pointwise_examples, tiny_llama
from peft.optimizers import create_loraplus_optimizer
from tolerances import forward, logprob

from perse.errors import BadInput
from perse.models import finding as models
from perse.publishing import merging
from perse.questions import QUESTIONS
from perse.records import example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig, load_config
from perse.training.model import quantized
from perse.training.model.adapting import adapted
from perse.training.model.architecture import architecture, meta_model
from perse.training.model.quantized import check_undivided, load_base, packed_bytes
from perse.training.optimizers import faster_second
from perse.training.planning.flops import passed
from perse.training.planning.memory import activations, static_memory
from perse.training.ready import load_model
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import training_branches
from perse.training.rows.trie import PackedRow, packed
from perse.training.trainer import train

KINDS = {
    "lora": [],
    "dora": ["lora.dora=true"],
    "qlora": ["model.quantize=nf4"],
    "qdora": ["model.quantize=nf4", "lora.dora=true"],
    "rslora": ["lora.rslora=true"],
    "whole": ["lora.modules_to_save=[embed_tokens,lm_head]", "model.dtype=float32"],
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def base(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As wide as a block of 4-bit weights."""
    folder = tmp_path_factory.mktemp("wide") / "model"
    tiny_llama(tokenizers["whole_numbers"], context=8192, width=64).save_pretrained(folder)
    tokenizers["whole_numbers"].save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def row(tokenizers: dict[str, Any]) -> PackedRow:
    renderer = Renderer(tokenizers["whole_numbers"], 8192)
    return packed(training_branches(renderer, QUESTIONS["pointwise"], pointwise_examples(1, 3)).fitting)


def settings(base: Path, kind: str, *more: str) -> TrainConfig:
    if "quantize" in str(KINDS[kind]):
        pytest.importorskip("bitsandbytes", reason="4-bit weights are bitsandbytes', of the extra `cluster`")
    return load_config("embedded_lora", [f"model.path={base}", "data.path=x", "lora.rank=4", *KINDS[kind], *more])


def made(config: TrainConfig, base: Path) -> Any:
    torch.manual_seed(0)
    return adapted(load_base(config.model, base), config.lora, checkpointing=config.train.gradient_checkpointing)


def stepped(model: Any, row: PackedRow, *, steps: int) -> list[float]:
    """The loss before each step, and after the last."""
    batch = collate([row], attention=set_attention(model, "tree"))
    labels = batch.pop("labels")
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=0.01)
    losses = []
    model.train()
    for _ in range(steps + 1):
        loss = answer_loss(model(**batch), labels)
        loss.backward()
        losses.append(loss.item())
        if len(losses) <= steps:
            optimizer.step()
        optimizer.zero_grad()
    return losses


@pytest.mark.slow
@each_kind
def test_two_steps_lower_the_loss_and_train_the_adapter_alone(kind: str, base: Path, row: PackedRow) -> None:
    config = settings(base, kind, "train.gradient_checkpointing=true")
    model = made(config, base)
    model.gradient_checkpointing_enable()
    trained = {name: each.dtype for name, each in model.named_parameters() if each.requires_grad}
    assert all("lora_" in name or ".modules_to_save." in name for name in trained) and set(trained.values()) == {torch.float32}
    assert sum("modules_to_save" in name for name in trained) == (2 if kind == "whole" else 0)
    assert any("magnitude" in name for name in trained) == ("dora" in kind)
    losses = stepped(model, row, steps=2)
    assert losses[2] < losses[1] < losses[0]


@pytest.mark.slow
@pytest.mark.numeric
@each_kind
def test_merged_in_float32_it_is_the_whole_base_with_its_adapter(kind: str, base: Path, row: PackedRow, tmp_path: Path) -> None:
    config = settings(base, kind)
    model = made(config, base)
    stepped(model, row, steps=3)
    model.save_pretrained(tmp_path / "adapter")
    merging.merge(base, tmp_path / "adapter", tmp_path / "merged", dtype="float32")
    merged = models.load(tmp_path / "merged", dtype="float32")
    unmerged = models.load(base, dtype="float32", adapter=tmp_path / "adapter").eval()
    plain = models.load(base, dtype="float32")
    assert "quantization_config" not in (tmp_path / "merged" / "config.json").read_text()
    ids = torch.arange(20)[None] + 5
    with torch.inference_mode():
        assert torch.allclose(unmerged(ids).logits, merged(ids).logits, atol=logprob(merged, 20), rtol=0)
        assert not torch.allclose(plain(ids).logits, merged(ids).logits, atol=1e-2)


@pytest.mark.slow
@pytest.mark.numeric
@pytest.mark.parametrize("kind", ["lora", "dora", "rslora", "whole"])
def test_the_merged_model_is_the_one_that_was_trained(kind: str, base: Path, row: PackedRow, tmp_path: Path) -> None:
    config = settings(base, kind, "model.dtype=float32")
    model = made(config, base)
    stepped(model, row, steps=3)
    model.save_pretrained(tmp_path / "adapter")
    merging.merge(base, tmp_path / "adapter", tmp_path / "merged", dtype="float32")
    merged = models.load(tmp_path / "merged", dtype="float32")
    batch = collate([row], attention=set_attention(merged, "tree"))
    batch.pop("labels")
    with torch.inference_mode():
        assert torch.allclose(
            model.eval()(**batch).logits, merged(**batch).logits, atol=logprob(merged, row.tree.depth), rtol=0
        )


@pytest.mark.numeric
def test_tree_attention_over_4_bit_weights_is_what_a_mask_gives(base: Path, row: PackedRow) -> None:
    losses = []
    for attention in ("tree", "mask"):
        model = made(settings(base, "qlora", "model.dtype=float32"), base).train()
        batch = collate([row], attention=set_attention(model, attention))  # type: ignore[arg-type]
        labels = batch.pop("labels")
        losses.append(answer_loss(model(**batch), labels).item())
    assert losses[0] == pytest.approx(losses[1], rel=forward(model, row.tree.depth))


def test_judging_between_steps_leaves_the_gradients_as_they_are(base: Path, row: PackedRow) -> None:
    """On a CPU bitsandbytes repacks what it reads without gradients, and what is repacked gave none afterwards."""
    gradients = []
    for judged in (False, True):
        model = made(settings(base, "qlora"), base)
        batch = collate([row], attention=set_attention(model, "tree"))
        labels = batch.pop("labels")
        if judged:
            with torch.inference_mode():
                model.eval()(**batch)
        answer_loss(model.train()(**batch), labels).backward()
        gradients.append({name: each.grad for name, each in model.named_parameters() if each.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    assert all(torch.equal(gradients[0][name], gradients[1][name]) for name in gradients[0])
    assert any(each.any() for each in gradients[0].values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dora", "qlora", "whole"])
def test_a_run_ends_with_a_merged_model(kind: str, base: Path, tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(1, 2))), encoding="utf-8")
    given = [f"data.path={data}", f"output={tmp_path / 'run'}", "train.steps=2", "train.rows_per_step=1"]
    run = train(settings(base, kind, *given))
    assert (run / "merged" / "config.json").exists() and (run / "adapter" / "adapter_model.safetensors").exists()


def test_a_rank_stabilized_adapter_is_multiplied_by_alpha_over_the_root_of_the_rank(base: Path) -> None:
    scales = [
        made(settings(base, kind, "lora.rank=4", "lora.alpha=12"), base)
        .base_model.model.model.layers[0]
        .mlp.up_proj.scaling["default"]
        for kind in ("lora", "rslora")
    ]
    assert scales == [12 / 4, 12 / 2]


def test_lora_plus_gives_each_matrix_the_rate_that_peft_does(base: Path) -> None:
    """Its own factory, where embeddings and vectors, which it also treats apart, have no adapter."""
    model = made(settings(base, "lora"), base)
    theirs = create_loraplus_optimizer(model, torch.optim.AdamW, lr=1e-3, loraplus_lr_ratio=16)
    trained = [each for each in model.parameters() if each.requires_grad]
    ours = torch.optim.AdamW([{"params": trained, "weight_decay": 0.1}, {"params": []}], lr=1e-3)
    faster_second(ours, model, times=16)
    rates = [
        {id(each): group["lr"] for group in optimizer.param_groups for each in group["params"]} for optimizer in (ours, theirs)
    ]
    assert rates[0] == rates[1] and sorted(set(rates[0].values())) == [1e-3, 16e-3] and len(rates[0]) == len(trained)
    assert {group["weight_decay"] for group in ours.param_groups if group["params"]} == {0.1}
    assert ours.param_groups[0]["lr"] == 1e-3, "what is logged as the learning rate"
    assert all(group["params"] for group in ours.param_groups)


# Modules that are trained whole


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lm_haed", "has 'lm_haed', which is no module of this model with weights; expected such as embed_tokens or lm_head"),
        ("head", "has 'head', which is no module of this model with weights"),
        ("rotary_emb", "has 'rotary_emb', which is no module of this model with weights"),
        (
            "norm",
            "has 'norm', with which 'model.layers.0.input_layernorm' ends, too, .* write more of the name, such as model.norm",
        ),
    ],
)
def test_a_module_that_would_be_trained_otherwise_than_asked_is_refused(name: str, said: str, base: Path) -> None:
    config = settings(base, "lora", f"lora.modules_to_save=[{name}]", "model.dtype=float32")
    with pytest.raises(BadInput, match=f"lora.modules_to_save {said}"):
        meta_model(config, architecture(str(base)), checkpointing=False)


def test_a_part_named_by_more_of_its_name_is_trained_alone(base: Path) -> None:
    config = settings(base, "lora", "lora.modules_to_save=[model.norm]", "model.dtype=float32")
    model = meta_model(config, architecture(str(base)), checkpointing=False)
    assert [name for name, each in model.named_parameters() if each.requires_grad and "lora_" not in name] == [
        "base_model.model.model.norm.modules_to_save.default.weight"
    ]


@pytest.mark.parametrize("name", ["embed_tokens", "lm_head"])
def test_an_embedding_that_is_the_head_too_is_not_trained_as_a_copy(name: str, embedded: Path) -> None:
    config = settings(embedded, "lora", f"lora.modules_to_save=[{name}]", "model.dtype=float32")
    with pytest.raises(BadInput, match=r"has model.embed_tokens.weight and lm_head.weight in one, .* or train all weights"):
        meta_model(config, architecture(str(embedded)), checkpointing=False)


def test_a_module_is_trained_whole_or_by_an_adapter(base: Path) -> None:
    with pytest.raises(BadInput, match="'up_proj' is in targets and in modules_to_save, and would be trained whole alone"):
        settings(base, "whole", "lora.targets=[q_proj,up_proj]", "lora.modules_to_save=[up_proj]")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("model.dtype=bfloat16", "bfloat16 weights lose small updates; set model.dtype=float32 and train.precision=bf16"),
        ("model.quantize=nf4", "beside weights that model.quantize rounds; leave one of the two out"),
    ],
)
def test_a_module_of_few_bits_is_not_trained_whole(more: str, said: str, base: Path) -> None:
    with pytest.raises(BadInput, match=said):
        settings(base, "lora", "lora.modules_to_save=[lm_head]", more)


def test_the_head_that_is_trained_whole_is_the_one_that_is_counted(base: Path) -> None:
    described = architecture(str(base))
    plain = passed(meta_model(settings(base, "lora"), described, checkpointing=False))
    whole = passed(meta_model(settings(base, "whole"), described, checkpointing=False))
    assert plain is not None and whole is not None
    assert whole == replace(plain, head_trained=True)


# 4-bit weights


def test_the_trainer_holds_the_frozen_layers_in_4_bits(base: Path) -> None:
    model = load_model(settings(base, "qlora"), base, shared=True)
    packed_ones = [name for name, each in model.named_parameters() if each.dtype == torch.uint8]
    assert len(packed_ones) == 2 * 7  # two layers: q, k, v, o, gate, up, down; neither embedding nor head


def test_packed_weights_by_hand() -> None:
    # 64 x 64 weights: 2048 bytes, 64 blocks of 64 with a byte each, all in one group of 256 with 4 bytes.
    assert packed_bytes(64 * 64) == 2048 + 64 + 4
    # 65: 33 bytes, 2 blocks, 1 group.
    assert packed_bytes(65) == 33 + 2 + 4


def test_what_4_bit_weights_take_is_planned_to_the_byte(base: Path) -> None:
    config = settings(base, "qlora")
    planned = meta_model(config, architecture(str(base)), checkpointing=False)
    predicted = static_memory(planned)
    model = made(config, base)
    held: dict[int, int] = {}
    for each in (*model.parameters(), *model.buffers()):
        state = getattr(each, "quant_state", None)
        for tensor in (each, *((state.absmax, state.state2.absmax) if state else ())):
            held[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
    assert predicted.weights == sum(held.values())
    whole = static_memory(meta_model(settings(base, "lora"), architecture(str(base)), checkpointing=False))
    assert (predicted.gradients, predicted.optimizer) == (whole.gradients, whole.optimizer)
    shapes = {name: each.requires_grad for name, each in model.named_parameters()}
    assert shapes == {name: each.requires_grad for name, each in planned.named_parameters()}


@pytest.mark.slow
def test_one_unpacked_layer_is_planned_beside_the_activations(base: Path) -> None:
    peaks = [
        activations(
            meta_model(settings(base, kind), architecture(str(base)), checkpointing=False),
            tokens=50,
            learned=5,
            bf16=False,
            checkpointing=False,
        ).peak
        for kind in ("lora", "qlora")
    ]
    assert peaks[1] - peaks[0] == 2 * 64 * 64


def test_a_packed_weight_is_counted_as_the_weight_it_is(base: Path) -> None:
    """Two of 4 bits lie in an element: the log's `mfu` of a 4-bit base was half of what it was."""
    counts = [passed(made(settings(base, kind), base)) for kind in ("lora", "qlora")]
    assert counts[0] is not None and counts[0] == counts[1]


def test_without_bitsandbytes_the_extra_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "find_spec", lambda name: None)
    config = load_config("embedded_lora", [f"model.path={base}", "data.path=x", "model.quantize=nf4"])
    with pytest.raises(BadInput, match=r"bitsandbytes does, and it is not installed; pip install .*\[cluster\]'"):
        load_base(config.model, base)


def test_4_bit_weights_are_not_divided_among_devices() -> None:
    config = load_config("llama2_7b_qlora", ["data.path=x"])
    check_undivided(config.model, sharding="none")
    with pytest.raises(BadInput, match="the launch asks for fsdp2; start with configs/accelerate/ddp.yaml"):
        check_undivided(config.model, sharding="fsdp2")
