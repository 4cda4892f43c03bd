"""Where branches share tokens no dropout is left on, wherever a model keeps its rate, and the saved model keeps its own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from perse.training.model.dropout import switch_off_dropout
from perse.training.saving.gather_weights import gather_weights, write_weights

SIZE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
DROPPING = {
    "opt": transformers.OPTConfig(**SIZE, ffn_dim=48, word_embed_proj_dim=32, dropout=0.3, layerdrop=0.3),
    "llama": transformers.LlamaConfig(**SIZE, intermediate_size=48, attention_dropout=0.3),
    "phi": transformers.PhiConfig(**SIZE, intermediate_size=48, resid_pdrop=0.3, attention_dropout=0.3),
    "seed_oss": transformers.SeedOssConfig(**SIZE, intermediate_size=48, num_key_value_heads=2, residual_dropout=0.3),
    "gpt2": transformers.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2),
    "falcon": transformers.FalconConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, hidden_dropout=0.3, attention_dropout=0.3
    ),
}


def model_of(family: str) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(copy.deepcopy(DROPPING[family])).train()


@pytest.mark.parametrize("family", DROPPING)
def test_no_dropout_is_left_on_wherever_the_model_keeps_its_rate(family: str) -> None:
    model, ids = model_of(family), torch.arange(3, 23)[None]
    drawn = {float(model(input_ids=ids).logits.detach().sum()) for _ in range(4)}
    assert len(drawn) > 1, "it drops nothing, so there is nothing to switch off"
    assert switch_off_dropout(model)
    still = {float(model(input_ids=ids).logits.detach().sum()) for _ in range(4)}
    assert len(still) == 1 and switch_off_dropout(model) == ()


@pytest.mark.parametrize("family", DROPPING)
def test_a_model_is_saved_with_the_rates_that_it_came_with(family: str, tmp_path: Path) -> None:
    model = model_of(family)
    before = model.config.to_dict()
    assert switch_off_dropout(model) and not switch_off_dropout(model), "the second time there is nothing left"
    write_weights(model, gather_weights(model, is_main_process=True), tmp_path)
    saved = AutoConfig.from_pretrained(tmp_path).to_dict()
    rates = {name: rate for name, rate in before.items() if "drop" in name}
    assert any(rates.values())
    assert {name: saved[name] for name in rates} == rates
    assert len({float(model(input_ids=torch.arange(3, 23)[None]).logits.detach().sum()) for _ in range(3)}) == 1
