"""A training on a CPU holds no more between two steps than it needs there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perse.training import heap

FRAGMENTED = """
import psutil
import numpy as np
from perse.training.heap import give_back

del (big := [np.ones(20 << 20, dtype=np.uint8)])[:]  # freed once, so that blocks of such a size come from the heap from now on
blocks = [np.ones(1 << 20, dtype=np.uint8) for _ in range(400)]
last = np.ones(1 << 20, dtype=np.uint8)
del blocks
held = psutil.Process().memory_info().rss
given = give_back()
print(given, held >> 20, psutil.Process().memory_info().rss >> 20, last.sum())
"""


def test_what_is_free_below_a_block_in_use_is_given_back() -> None:
    """400 MB that one block at the heap's end kept from the system."""
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("another allocator may be loaded, whose blocks glibc does not know")
    told = subprocess.run([sys.executable, "-c", FRAGMENTED], check=True, capture_output=True, text=True).stdout.split()
    if told[0] == "False":
        pytest.skip("this C library has no malloc_trim")
    assert int(told[1]) - int(told[2]) > 300


def test_a_library_that_cannot_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda _: object())
    assert heap.give_back() is False
