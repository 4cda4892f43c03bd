"""A stranger's piece of work is stopped where it takes too much, and not because the machine is busy."""

from __future__ import annotations

import faulthandler
import mmap
import os
import time
from typing import Any

import pytest

import perse.bounded
from perse.bounded import Exceeded, Failed, Stalled, bounded
from perse.errors import BadInput
from perse.models.opening import _tried


def compute(seconds: float) -> None:
    """For so long a processor's time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_what_comes_to_its_end_is_handed_back_and_what_fails_is_told() -> None:
    assert bounded(lambda: {"a": [1, "ä"]}, seconds=5, megabytes=100) == {"a": [1, "ä"]}
    with pytest.raises(Failed, match="ZeroDivisionError: .*by zero"):
        bounded(lambda: 1 // 0, seconds=5, megabytes=100)


@pytest.mark.slow
@pytest.mark.parametrize("work", [lambda: compute(60), lambda: "x" * 2**31, lambda: os.kill(os.getpid(), 9)])
def test_what_takes_too_much_or_dies_is_stopped(work: Any) -> None:
    with pytest.raises(Exceeded, match="it takes more than 1 s or 100 MB"):
        bounded(work, seconds=1, megabytes=100)


@pytest.mark.slow
def test_what_comes_on_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine: of the seconds that it takes, few are its own."""

    def slowly() -> str:
        for _ in range(40):
            compute(0.03)
            time.sleep(0.2)
        return "done"

    monkeypatch.setattr(perse.bounded, "STILL", 5.0)
    assert bounded(slowly, seconds=2, megabytes=100) == "done"


def test_what_stands_still_is_not_waited_for_and_not_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.bounded, "STILL", 0.2)
    monkeypatch.setattr(perse.bounded, "LOOK", 0.05)
    with pytest.raises(Stalled, match="it stood still for 0.2 s, as on a machine or a disk that is too busy; try again"):
        bounded(lambda: time.sleep(600), seconds=20, megabytes=100)
    with pytest.raises(
        BadInput, match="the model x could not be looked at: it stood still .*; try again once it is less so"
    ) as told:
        _tried(lambda: time.sleep(600), "the model x")
    assert "copy" not in str(told.value)


def test_what_never_ends_in_all_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.bounded, "WAITED", 0.1)
    monkeypatch.setattr(perse.bounded, "LOOK", 0.05)
    monkeypatch.setattr(perse.bounded.signal, "alarm", lambda seconds: None)
    with pytest.raises(Stalled, match="for most of the time"):
        bounded(lambda: time.sleep(600), seconds=1, megabytes=100)


def test_addresses_that_are_only_reserved_are_no_memory() -> None:
    """A CUDA driver, and the C library for each thread, reserve more than a machine has; on a machine with a GPU no model could be loaded."""

    def reserving() -> int:
        return len(mmap.mmap(-1, 16 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ))

    assert bounded(reserving, seconds=5, megabytes=100) == 16 << 30
    with pytest.raises(Exceeded, match=r"^it takes more than 5 s or 100 MB$"):
        bounded(lambda: len(bytearray(200 << 20)), seconds=5, megabytes=100)


def test_the_child_sees_no_gpu_and_a_crash_names_its_signal() -> None:
    assert bounded(lambda: os.environ["CUDA_VISIBLE_DEVICES"], seconds=5, megabytes=100) == ""

    def crashing() -> None:
        faulthandler.disable()  # pytest's would print a page
        os.abort()

    with pytest.raises(Exceeded, match=r"\(its process ended by SIGABRT\)$"):
        bounded(crashing, seconds=5, megabytes=100)
