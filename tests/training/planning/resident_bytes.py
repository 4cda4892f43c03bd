"""Run by test_plan.py in a process of its own: resident bytes that a forward pass adds, and the most of forward and backward.

Read from the system, not from torch, before the forward pass and before the backward pass. With MALLOC_MMAP_THRESHOLD_=65536
every tensor of more is memory of its own, given back when it is freed.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

import torch

from perse.models import finding as models
from perse.settings.training import load_config
from perse.training.ready import load_model
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.trie import PackedRow, Span, Tree


def status(name: str) -> int:
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def main(tokens: int, learned: int, overrides: list[str]) -> None:
    config = load_config("embedded_lora", ["data.path=x", *overrides])
    model = load_model(config, models.find(config.model.path), shared=True).train()
    if config.train.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    attention = set_attention(model, config.train.attention)
    path = Tree(tokens, tokens, (Span(0, tokens, tokens),))
    row = PackedRow((5,) * tokens, tuple(range(tokens)), path, (0,) * learned, (5,) * learned, (), tokens)
    batch = collate([row], attention=attention)
    labels = batch.pop("labels")

    def loss() -> torch.Tensor:
        return answer_loss(model(**batch), labels)

    loss().backward()  # pages of the weights, libraries and gradients come into memory
    before = status("VmRSS")
    kept = loss()
    saved = status("VmRSS") - before
    del kept
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    loss().backward()
    print(json.dumps({"saved": saved, "peak": status("VmHWM") - before}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
