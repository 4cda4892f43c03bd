"""A person on a CPU that multiplies numbers of 16 bits slowly is told so, with what to give instead."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from perse.engines import sixteen_bit


def told(caplog: pytest.LogCaptureFixture, **change: Any) -> list[str]:
    model = {"dtype": torch.bfloat16, "device": torch.device("cpu"), "num_parameters": lambda: 135_000_000} | change
    caplog.clear()
    sixteen_bit.warn_if_slow(SimpleNamespace(**model), setting="model.dtype=float32")
    return [record.getMessage() for record in caplog.records]


def test_a_large_model_in_16_bit_on_a_cpu_without_instructions_for_it_is_said_to_be_slow_with_the_remedy(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sixteen_bit, "slow_in_16_bit", lambda: True)
    [warning] = told(caplog)
    assert "no instructions for bfloat16" in warning and "model.dtype=float32 is faster" in warning
    assert not told(caplog, dtype=torch.float32)
    assert not told(caplog, device=torch.device("meta"))
    assert not told(caplog, num_parameters=lambda: 1000)
    monkeypatch.setattr(sixteen_bit, "slow_in_16_bit", lambda: False)
    assert not told(caplog)


@pytest.mark.parametrize(
    ("machine", "capability", "slow"),
    [("x86_64", "AVX2", True), ("AMD64", "DEFAULT", True), ("x86_64", "AVX512", False), ("arm64", "DEFAULT", False)],
)
def test_x86_without_avx_512_is_slow_in_16_bit(
    machine: str, capability: str, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert sixteen_bit.slow_in_16_bit() is slow
