"""Fused kernels: they compute what torch computes, stay in the model they were put into, and are refused in plain words."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any

import pytest
from builders import tiny_llama

from perse.errors import BadInput
from perse.training.model.fused import exchange, fuse

# On a CPU only triton's interpreter runs the kernels, and it must be told so before triton is imported. It hands plain numbers
# to a kernel where a compiler hands scalars, and does not know the device library's rsqrt: both are mended here, for the test.
COMPARED = """
import copy
import sys

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from transformers import AutoConfig, AutoModelForCausalLM

import liger_kernel.ops.rms_norm as norms
from tolerances import forward, gradient
from perse.training.model.fused import exchange

as_it_is = interpreter._implicit_cvt

def as_scalar(given):
    if isinstance(given, float):
        return tl.tensor(interpreter.TensorHandle(np.array([given], dtype=np.float32), tl.float32), tl.float32)
    return as_it_is(given)

interpreter._implicit_cvt = as_scalar
norms.rsqrt = lambda x: tl.rsqrt(x)

for kind in ("llama", "qwen3", "olmo3"):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind, vocab_size=90, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, initializer_range=0.3, bos_token_id=None, eos_token_id=1, pad_token_id=0,
    )
    plain = AutoModelForCausalLM.from_config(config)
    fused = copy.deepcopy(plain)
    exchange(fused)
    ids = torch.randint(0, 90, (1, 16))
    losses = []
    for model in (plain, fused):
        loss = model(ids, labels=ids).loss
        loss.backward()
        losses.append(loss.item())
    apart = max(
        float((one.grad - other.grad).abs().max() / one.grad.abs().max())
        for one, other in zip(plain.parameters(), fused.parameters(), strict=True)
    )
    print(kind, abs(losses[1] - losses[0]) / losses[0] / forward(plain, 16), apart / gradient(plain, 16))
"""


@pytest.mark.integration
@pytest.mark.numeric
def test_fused_kernels_give_the_same_loss_and_gradients() -> None:
    pytest.importorskip("triton", reason="liger-kernel's kernels are triton's")
    pytest.importorskip("liger_kernel", reason="fused kernels are liger-kernel's, of the extra `cluster`")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", COMPARED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [line.split() for line in done.stdout.splitlines() if line.startswith(("llama", "qwen3", "olmo3"))]
    assert [kind for kind, _, _ in found] == ["llama", "qwen3", "olmo3"]
    assert all(float(apart) <= 1 for _, *each in found for apart in each), f"times what rounding does: {found}"


@pytest.mark.slow
def test_another_model_of_the_class_keeps_torchs_kernels(tokenizers: dict[str, Any]) -> None:
    pytest.importorskip("liger_kernel", reason="fused kernels are liger-kernel's, of the extra `cluster`")
    import torch
    from transformers.models.llama import modeling_llama

    before = dict(vars(modeling_llama))
    model = tiny_llama(tokenizers["whole_numbers"])
    ids = torch.arange(8)[None]
    expected = model(ids).logits
    exchange(model)
    assert "Liger" in repr(model) and {name: vars(modeling_llama)[name] for name in before} == before
    other = tiny_llama(tokenizers["whole_numbers"])
    assert "Liger" not in repr(other) and torch.equal(other(ids).logits, expected)


def test_without_cuda_torchs_kernels_are_used_and_nothing_is_said_unless_others_are_asked_for(
    tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = tiny_llama(tokenizers["whole_numbers"])
    with caplog.at_level(logging.INFO, "perse"):
        assert not fuse(model, asked=None) and not fuse(model, asked=False)
    assert not caplog.text
    with pytest.raises(BadInput, match="train.liger is true, and there is no CUDA device, which they are written for"):
        fuse(model, asked=True)


def test_a_missing_package_and_an_unknown_model_are_named(tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from perse.training.model import fused

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    model = tiny_llama(tokenizers["whole_numbers"])
    with monkeypatch.context() as missing:
        missing.setattr(fused, "find_spec", lambda name: None)
        with pytest.raises(BadInput, match=r"liger-kernel is not installed: pip install .*\[cluster\]'"):
            fuse(model, asked=True)
    pytest.importorskip("liger_kernel", reason="fused kernels are liger-kernel's, of the extra `cluster`")
    model.config.model_type = "mine"
    with pytest.raises(BadInput, match="liger-kernel has none for a model of type 'mine': set train.liger=false"):
        fuse(model, asked=True)
