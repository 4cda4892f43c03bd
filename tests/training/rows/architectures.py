"""Tiny random models of many families, and examples that begin alike in every way that examples do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

from perse.training.rows.branches import Branch


def segment(length: int, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(3, 64, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


OPENING, PROFILE, OTHER = segment(5, 0), segment(11, 1), segment(7, 2)
QUERY, SECOND = segment(6, 3), segment(9, 4)
ASPECT = segment(3, 5)
BRANCHES = [
    Branch("asked", (OPENING, PROFILE, QUERY, ASPECT), segment(4, 6), 2, 1, 1),
    Branch("another aspect", (OPENING, PROFILE, QUERY, segment(2, 7)), segment(2, 8), 2, 1, 1),
    Branch("another query", (OPENING, PROFILE, SECOND, ASPECT), segment(3, 9), 2, 1, 1),
    Branch("the same with another answer", (OPENING, PROFILE, QUERY, ASPECT), segment(5, 10), 2, 1, 1),
    Branch("another profile", (OPENING, OTHER, QUERY), segment(1, 11), 2, 1, 1),
    Branch("the same again", (OPENING, PROFILE, QUERY, ASPECT), segment(4, 6), 2, 1, 1),
    Branch("nothing in common", (segment(8, 12),), segment(3, 13), 0, 1, 1),
]
LONGEST = max(branch.tokens for branch in BRANCHES)
TOKENS = sum(branch.tokens for branch in BRANCHES)

SIZE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GQA = {**SIZE, "num_key_value_heads": 2}
GPT = {
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "initializer_range": 0.3,
    "bos_token_id": 1,
}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "eos_token_id": 2}

FAMILIES: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaConfig(**GQA),
    "llama without groups": lambda: transformers.LlamaConfig(**SIZE, num_key_value_heads=4),
    "qwen2": lambda: transformers.Qwen2Config(**GQA),
    "qwen3": lambda: transformers.Qwen3Config(**GQA, head_dim=8),
    "mistral": lambda: transformers.MistralConfig(**GQA, sliding_window=LONGEST),
    "gemma3": lambda: transformers.Gemma3TextConfig(**GQA, head_dim=8),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**SIZE),
    "gpt2": lambda: transformers.GPT2Config(**GPT, **NO_DROPOUT),  # learned positions
    "gemma2": lambda: transformers.Gemma2Config(**GQA, head_dim=8, attn_logit_softcapping=2.0),
    "gptj": lambda: transformers.GPTJConfig(**GPT, **NO_DROPOUT, rotary_dim=4),
    "falcon": lambda: transformers.FalconConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, initializer_range=0.3
    ),
}
ONLY_MASK = {"gemma2", "gptj", "falcon"}


def model_of(family: str | Any, *, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(FAMILIES[family]() if isinstance(family, str) else family).train()
