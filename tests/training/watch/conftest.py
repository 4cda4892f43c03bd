"""One thread for every test of watching, and a renderer whose tokenizer knows whole numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from perse.rendering.prompt import Renderer


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def renderer(tokenizers: dict[str, Any]) -> Renderer:
    return Renderer(tokenizers["whole_numbers"], 2048)
