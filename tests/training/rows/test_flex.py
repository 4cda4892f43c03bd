"""What torch's FlexAttention is told of a row is the row: the same tokens see each other as in tree attention's dense twin."""

from __future__ import annotations

import copy

import pytest
import torch
from architectures import BRANCHES, FAMILIES, model_of, segment
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import logprob
from torch.nn.attention.flex_attention import flex_attention as plain

from perse.errors import BadInput
from perse.settings.training import Attention
from perse.training.model.heads import head_widths
from perse.training.planning.flops import passed
from perse.training.rows import flex
from perse.training.rows.attention import dense_mask, flex_attention_forward, set_attention, tree_attention_forward
from perse.training.rows.batches import collate
from perse.training.rows.branches import Branch
from perse.training.rows.flex import BLOCK, block_mask, last_seen
from perse.training.rows.trie import Tree, packed

CPU = torch.device("cpu")


def branching(lengths: list[tuple[int, int, int]]) -> Tree:
    """Examples of a shared segment by its length, another by its own, and an answer."""
    branches = [
        Branch(str(n), (segment(first, first), segment(second, second)), segment(answer, 100 + n), 1, 1, 1)
        for n, (first, second, answer) in enumerate(lengths)
    ]
    return packed(branches).tree


trees = st.lists(
    st.tuples(st.sampled_from([1, 60, 127, 128, 129, 300]), st.sampled_from([1, 5, 128, 200]), st.sampled_from([1, 30, 128])),
    min_size=1,
    max_size=6,
).map(branching)


@given(trees)
@settings(max_examples=25, deadline=None)
def test_the_kernel_is_told_of_each_token_what_it_sees_and_of_each_block_whether_to_look_and_to_mask(tree: Tree) -> None:
    ends, at = last_seen(tree, CPU), torch.arange(tree.length + -tree.length % BLOCK)
    seen = (at[None, :] <= at[:, None]) & (at[:, None] < ends[None, :])
    assert torch.equal(seen[: tree.length, : tree.length], dense_mask(tree)[0, 0])
    assert torch.equal(seen[tree.length :], torch.eye(len(at), dtype=torch.bool)[tree.length :]), "what fills up sees itself"
    blocks = len(at) // BLOCK
    by_block = seen.view(blocks, BLOCK, blocks, BLOCK).permute(0, 2, 1, 3).flatten(2)
    told = block_mask(tree, CPU)
    listed = told.to_dense()[0, 0].bool()  # blocks that are looked at
    assert torch.equal(listed, by_block.any(-1))
    whole = torch.zeros(blocks, blocks, dtype=torch.bool)
    for row, (count, order) in enumerate(zip(told.full_kv_num_blocks[0, 0], told.full_kv_indices[0, 0], strict=True)):
        whole[row, order[:count].long()] = True
    assert torch.equal(whole, by_block.all(-1)), "blocks that are not masked are seen whole"


@pytest.mark.slow
def test_its_output_is_tree_attentions(monkeypatch: pytest.MonkeyPatch) -> None:
    """By torch's plain version of the kernel, which is what a CPU has, forward alone."""
    monkeypatch.setattr(flex, "_kernel", lambda: plain)
    tree = packed(BRANCHES).tree
    query = torch.randn(1, 4, tree.length, 8)
    key, value = torch.randn(2, 1, 2, tree.length, 8)
    module = torch.nn.Module()
    found = flex_attention_forward(module, query, key, value, None, tree=tree, scaling=0.3)[0]
    other = tree_attention_forward(module, query, key, value, None, tree=tree, scaling=0.3)[0]
    torch.testing.assert_close(found, other, atol=1e-5, rtol=1e-5)


def test_a_whole_model_computes_the_same_row_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flex, "_kernel", lambda: plain)
    monkeypatch.setattr("perse.training.rows.attention.has_flex", lambda _: True)
    found = []
    how: Attention
    for how in ("flex", "mask"):
        model = copy.deepcopy(model_of("llama"))
        assert set_attention(model, how) == how
        batch = collate([packed(BRANCHES)], attention=how)
        del batch["labels"]
        with torch.no_grad():
            found.append(model(**batch).logits)
    assert float((found[0] - found[1]).abs().max()) <= logprob(model, 40)


def test_without_a_gpu_it_is_refused_with_the_way_that_works() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(
        BadInput, match=r"needs a GPU, Triton and heads of 16 and more\); set train.attention=tree, which is exact, too$"
    ):
        set_attention(model_of("llama"), "flex")


def test_a_kernel_that_is_not_made_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise torch._dynamo.exc.TorchDynamoException("no compiler\nand 200 lines")

    monkeypatch.setattr(flex, "_kernel", lambda: broken)
    part = torch.randn(1, 2, 5, 8)
    with pytest.raises(BadInput, match=r"\(TorchDynamoException: no compiler\); it wants Triton .* train.attention=tree"):
        flex.flex_attention(part, part, part, branching([(2, 2, 1)]), 1.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_width_of_heads_is_that_of_every_layer(family: str) -> None:
    model = model_of(family)
    config = model.config.get_text_config()
    assert head_widths(model) == [getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads] * 2


def test_layers_whose_heads_are_of_two_widths_are_told_apart_and_counted_each() -> None:
    """Gemma 4's: its configuration refuses to name one width for all."""
    from transformers import Gemma4ForCausalLM, Gemma4TextConfig

    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Gemma4TextConfig(
        **sizes, num_key_value_heads=2, head_dim=16, global_head_dim=32, layer_types=["sliding_attention", "full_attention"],
        vocab_size_per_layer_input=64, hidden_size_per_layer_input=8, num_kv_shared_layers=0,
    )  # fmt: skip
    model = Gemma4ForCausalLM(config)
    assert head_widths(model) == [16, 32]
    counted = passed(model)
    assert counted is not None and counted.attention == 4 * (16 + 32)
