"""What only CUDA's kernels can show: packed rows there are what separate rows are. `make test-gpu`, on a machine with a GPU.

In float32 both are compared as on a CPU. In sixteen bits, which tree attention's flash kernel is for, rounding is as large as what is
compared, so both are held against separate rows in float32: packing may be as far from them as separate rows in sixteen bits are,
twice over.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from architectures import BRANCHES, FAMILIES, LONGEST, ONLY_MASK, SIZE, TOKENS, model_of, segment
from builders import pointwise_examples, tiny_llama, whole_number_tokenizer
from separate_rows import Gradients, alone, cosine, furthest, together
from tolerances import forward, gradient

from perse.errors import BadInput
from perse.records import example_lines
from perse.settings.training import Attention, Lora, load_config
from perse.training.model.adapting import adapted
from perse.training.model.fused import exchange
from perse.training.rows import flex
from perse.training.rows.attention import set_attention, use_tree_attention, ways
from perse.training.rows.branches import Branch
from perse.training.rows.proof import proven_attention
from perse.training.trainer import train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here, and these are tests of its kernels"),
]

WIDE: dict[str, Any] = {
    **SIZE,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "initializer_range": 0.02,
}
"""Two layers as wide as LLaMA-2 7B's."""
HOW: tuple[Attention, ...] = ("flex", "tree")


@pytest.fixture(autouse=True)
def no_tf32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("family", FAMILIES)
def test_a_masked_row_on_a_gpu_has_the_loss_and_gradients_of_separate_rows(family: str) -> None:
    same_as_separate_rows(model_of(family).to("cuda"), "mask")


def same_as_separate_rows(model: Any, how: Attention) -> None:
    twin = copy.deepcopy(model)
    if twin._supports_attention_backend:
        twin.set_attn_implementation("eager")
    loss, grads = alone(twin, BRANCHES)
    assert set_attention(model, how) == how
    found, other = together(model, BRANCHES, how)
    assert found == pytest.approx(loss, abs=forward(model, LONGEST) * max(1.0, loss))
    assert furthest(other, grads) <= gradient(model, TOKENS)


def as_near_as_separate_rows(
    model: Any, *, autocast: bool, attention: Attention, branches: Sequence[Branch] = BRANCHES
) -> None:
    """`model`, in float32, computes packed rows in bfloat16 about as well as separate ones."""
    exact, exact_grads = alone(model, branches)
    low = copy.deepcopy(model) if autocast else copy.deepcopy(model).to(torch.bfloat16)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        loss, grads = alone(low, branches)
        assert set_attention(low, attention, computed=torch.bfloat16) == attention
        shared, shared_grads = together(low, branches, attention)
        side_by_side, unshared_grads = together(low, branches, attention, share=False)
    for found, own in ((shared, shared_grads), (side_by_side, unshared_grads)):
        assert abs(found - exact) <= 2 * abs(loss - exact) + 0.01 * exact
        assert off(own, exact_grads) <= 2 * off(grads, exact_grads)
        assert cosine(own, grads) > 0.99


def off(one: Gradients, exact: Gradients) -> float:
    """How far the whole gradient is off, by the exact one's length."""
    apart = sum(float((one[name].double() - g.double()).square().sum()) for name, g in exact.items())
    return float((apart / sum(float(g.double().square().sum()) for g in exact.values())) ** 0.5)


@pytest.mark.parametrize("autocast", [False, True], ids=["bfloat16 weights", "autocast"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ONLY_MASK])
def test_tree_attention_by_a_gpus_kernels_is_as_near_to_float32_as_separate_rows(
    family: str, how: Attention, autocast: bool
) -> None:
    as_near_as_separate_rows(wider(family), autocast=autocast, attention=how)


def wider(family: str) -> Any:
    """With heads of 16, which the compiled kernel takes."""
    config = FAMILIES[family]()
    config.hidden_size *= 2
    if getattr(config, "head_dim", None):
        config.head_dim = 16
    model = model_of(config)
    assert "flex" in ways(model.to("cuda"), computed=torch.float32)
    return model


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ONLY_MASK])
def test_one_compiled_kernel_has_the_loss_and_gradients_of_separate_rows_in_float32(family: str) -> None:
    same_as_separate_rows(wider(family), "flex")


@pytest.mark.parametrize("how", HOW)
def test_rows_of_other_lengths_and_widths_of_head_are_computed_by_the_same_kernel(how: Attention) -> None:
    """Widths of LLaMA-2 7B (128), of the embedded model (64), of GPT-J and Phi (256, 80), and lengths around whole blocks."""
    for width in (64, 80, 128, 256):
        config = {**SIZE, "hidden_size": 4 * width, "max_position_embeddings": 2048, "initializer_range": 0.02}
        model = model_of(transformers.LlamaConfig(**config, num_key_value_heads=2)).to("cuda")
        for length in (3, 100, 127, 128, 129, 700, 1300):
            profile = segment(length, 0)
            branches = [Branch(str(n), (profile, segment(40 + n, n)), segment(4, 9 + n), 1, 1, 1) for n in range(3)]
            as_near_as_separate_rows(model, autocast=True, attention=how, branches=branches)


def test_a_run_by_default_takes_the_compiled_kernel_and_where_none_is_made_goes_on_by_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = wider("llama").to(torch.bfloat16)
    assert set_attention(model, None) == "flex"

    def broken() -> Any:
        raise torch._dynamo.exc.TorchDynamoException("no compiler")

    monkeypatch.setattr(flex, "_kernel", lambda: lambda *_, **__: broken())
    assert proven_attention(model, BRANCHES[:2], "flex", share=True, asked=None, dtype=torch.bfloat16) == "tree"
    assert "no compiler" in caplog.text


def test_layers_as_wide_as_llama_2_7b_and_adapters_are_trained_by_packed_rows_as_by_separate_ones() -> None:
    torch.manual_seed(0)
    wide = transformers.LlamaForCausalLM(transformers.LlamaConfig(**WIDE, num_key_value_heads=32)).to("cuda")
    for how in HOW:
        as_near_as_separate_rows(wide, autocast=True, attention=how)
    for how in HOW:
        as_near_as_separate_rows(adapted(copy.deepcopy(wide), Lora(rank=16), checkpointing=False), autocast=True, attention=how)


def test_fused_kernels_change_no_more_than_rounding() -> None:
    pytest.importorskip("liger_kernel", reason="liger-kernel, whose kernels are looked at, is not installed")
    model = model_of("llama").to("cuda")
    loss, grads = alone(model, BRANCHES)
    exchange(model)
    set_attention(model, "mask")
    found, other = together(model, BRANCHES, "mask")
    assert found == pytest.approx(loss, rel=1e-4)
    assert furthest(other, grads) <= 1e-3


def test_float32_has_no_flash_kernel() -> None:
    model = wider("llama")
    with pytest.raises(BadInput, match="no flash kernel for its type and width.* train.attention=mask"):
        use_tree_attention(model, computed=torch.float32)
    assert set_attention(model, None, computed=torch.float32) == "flex"


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["model.dtype=bfloat16"],
        ["train.precision=bf16"],
        ["train.gradient_checkpointing=true"],
        ["train.optimizer=adafactor"],
    ],
    ids=str,
)
def test_a_run_is_trained_and_merged_on_a_gpu(tmp_path: Path, changes: list[str]) -> None:
    base, tokenizer = tmp_path / "base", whole_number_tokenizer()
    tiny_llama(tokenizer).save_pretrained(base)
    tokenizer.save_pretrained(base)
    data = tmp_path / "data.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(3))), encoding="utf-8")
    given = [f"model.path={base}", "model.dtype=float32", "lora.rank=4", f"data.path={data}", "train.steps=4"]
    given += ["train.row_tokens=1024", "train.save_every=2", "train.report_to=[]", "watch=null", f"output={tmp_path / 'run'}"]
    out = train(load_config("embedded_lora", [*given, *changes]))
    losses = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines() if "loss" in line]
    assert losses and (out / "merged" / "model.safetensors").exists()
