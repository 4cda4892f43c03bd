"""Every run begins with a proof, on its own model, that two examples in one row are what they are alone."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
import transformers
from architectures import BRANCHES, FAMILIES, GQA, LONGEST, SIZE, model_of
from separate_rows import alone, furthest, together

from perse.errors import BadInput
from perse.settings.training import Attention
from perse.training.model.routers import leave_out_router_logits
from perse.training.rows.attention import set_attention
from perse.training.rows.packable import check_packable
from perse.training.rows.proof import Proof, prove, proven_attention, refuse_unproven, to_prove
from perse.training.rows.schedule import Schedule

pytestmark = pytest.mark.numeric
PAIR = [BRANCHES[2], BRANCHES[4]]
ROPE = {"rope_theta": 10000.0}
CONV = transformers.Lfm2Config(**{**GQA, "num_hidden_layers": 3}, layer_types=["conv", "full_attention", "conv"])


def proven(model: Any, how: Attention, branches: Any = PAIR, dtype: torch.dtype = torch.float32) -> Proof:
    set_attention(model, how)
    return prove(model, branches, attention=how, share=True, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("family", "how"), [("llama", "tree"), ("llama", "mask"), ("gemma2", "mask"), ("gpt2", "tree")])
def test_a_model_that_keeps_examples_apart_is_proven_and_left_as_it_was(
    family: str, how: Attention, dtype: torch.dtype
) -> None:
    model = model_of(family)
    implementation = set_attention(model, how), model.config._attn_implementation
    random = torch.get_rng_state()
    found = proven(model, how, dtype=dtype)
    assert found.holds and found.leak == 0
    refuse_unproven(family, found, how)
    assert model.training and (how, model.config._attn_implementation) == implementation
    assert torch.equal(random, torch.get_rng_state())


def test_of_one_example_in_a_row_nothing_is_said_of_others() -> None:
    model = model_of("llama")
    found = proven(model, "tree", PAIR[:1])
    assert found.holds and found.leak is None
    assert found.told().startswith("one example, packed by itself in a row of this model, is ")
    assert "two examples in one row of this model are" in proven(model, "tree").told()


@pytest.mark.parametrize(
    "config",
    [
        CONV,
        transformers.MiniMaxConfig(**GQA, num_local_experts=4, head_dim=8, block_size=16),
        transformers.BertConfig(**SIZE),
    ],
    ids=["convolutions", "linear attention", "both directions"],
)
def test_a_model_through_which_examples_see_each_other_is_found_out_by_the_proof_alone(config: Any) -> None:
    model = model_of(config)
    found = proven(model, "mask")
    assert not found.holds
    with pytest.raises(
        BadInput, match="two examples in one row of Odd with train.attention=mask are .* nats from what they are"
    ):
        refuse_unproven("Odd", found, "mask")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (CONV, "Lfm2ForCausalLM has layers of the kind conv, through which examples of a row would see each other"),
        (transformers.MiniMaxConfig(**GQA, num_local_experts=4, head_dim=8), "layers of the kind linear_attention"),
        (
            transformers.LlamaConfig(
                **{**GQA, "max_position_embeddings": 16}, rope_parameters={**ROPE, "rope_type": "dynamic", "factor": 2.0}
            ),
            rf"scaled \(dynamic\) by the longest .* from 16 tokens and an example has {LONGEST}; set model.context=16",
        ),
        (
            transformers.Phi3Config(
                **GQA,
                original_max_position_embeddings=16,
                rope_parameters={
                    **ROPE,
                    "rope_type": "longrope",
                    "short_factor": [1.0] * 4,
                    "long_factor": [4.0] * 4,
                    "original_max_position_embeddings": 16,
                },
            ),
            r"scaled \(longrope\) by the longest example of a row, from 16 tokens .* set model.context=16",
        ),
    ],
    ids=["convolutions", "linear attention", "dynamic positions", "longrope"],
)
def test_what_the_configuration_says_is_refused_before_anything_is_computed(config: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_packable(model_of(config), longest=LONGEST)


def test_positions_that_depend_on_the_longest_example_are_found_out_by_the_proof_too() -> None:
    """The short example alone is within what the model was made for, and beside the long one it is not."""
    config = transformers.LlamaConfig(
        **{**GQA, "max_position_embeddings": 20}, rope_parameters={**ROPE, "rope_type": "dynamic", "factor": 8.0}
    )
    long, short = BRANCHES[2], BRANCHES[6]
    assert long.tokens > 20 > short.tokens
    assert not proven(model_of(config), "mask", [long, short]).holds
    check_packable(model_of(config), longest=20)


@pytest.mark.parametrize("family", ["nemotron", "doge"])
def test_layers_that_do_more_than_plain_attention_are_refused_for_a_tree_in_one_sentence_and_masked_by_default(
    family: str,
) -> None:
    config = transformers.NemotronConfig(**GQA) if family == "nemotron" else transformers.DogeConfig(**GQA)
    with pytest.raises(BadInput, match="which tree attention does not do; set train.attention=mask"):
        proven(model_of(config), "tree")
    assert proven(model_of(config), "mask").holds


def test_a_model_whose_code_takes_no_row_of_several_examples_is_refused_in_one_sentence() -> None:
    model = model_of(transformers.OpenAIGPTConfig(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=128))
    with pytest.raises(BadInput, match="^OpenAIGPTLMHeadModel does not compute a packed row .* set model.path to another$"):
        proven_attention(model, PAIR, set_attention(model, None), share=True, asked=None, dtype=torch.float32)


@pytest.mark.parametrize("how", ["tree", "mask"])
def test_a_mixture_that_asks_for_router_logits_is_trained_by_its_answers_alone(
    how: Attention, caplog: pytest.LogCaptureFixture
) -> None:
    config = transformers.MixtralConfig(**GQA, num_local_experts=4, output_router_logits=True)
    model = model_of(config)
    plain = model_of(copy.deepcopy(config))  # computed example by example, which transformers can
    leave_out_router_logits(model)
    assert "only answers are learned here" in caplog.text and model.config.output_router_logits
    loss, gradient = together(model, BRANCHES, set_attention(model, how))
    expected, its_gradient = alone(plain, BRANCHES)
    assert loss == pytest.approx(expected, abs=1e-5) and furthest(gradient, its_gradient, floor=1e-2) < 1e-4
    assert proven(model, how).holds


def test_weights_that_are_no_numbers_are_left_to_the_first_step() -> None:
    model = model_of("llama")
    model.model.norm.weight.data[3] = math.nan
    assert proven(model, "tree").holds


def test_the_longest_example_of_the_first_rows_is_proven_with_the_one_that_shares_most_with_it() -> None:
    rows = [tuple(BRANCHES[4:5]), tuple(BRANCHES[:4]), ()]
    assert [one.example_id for one in to_prove(Schedule(rows, 1, 1.0, share=True))] == ["another query", "another aspect"]
    alone = to_prove(Schedule(rows[:1], 1, 1.0, share=True))
    assert alone == tuple(BRANCHES[4:5]) and proven(model_of("llama"), "tree", alone).holds


def test_all_families_of_the_other_tests_are_proven() -> None:
    assert all(proven(model_of(family), "mask").holds for family in FAMILIES)
