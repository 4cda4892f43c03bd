"""An engine that perse started ends with the process that started it, also where that is killed; one of others does not."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says when a process ends that is no child")

STARTS = """
import multiprocessing, sys, threading
from perse.engines.orphans import end_engines_with_us, end_with_parent

def engine(told):
    end_with_parent()
    told.send((multiprocessing.current_process().pid, any(each.name == "perse-parent" for each in threading.enumerate())))
    threading.Event().wait()

if sys.argv[1] == "ours":
    end_engines_with_us()
processes = multiprocessing.get_context("fork")
hear, told = processes.Pipe()
processes.Process(target=engine, args=(told,)).start()
print(*hear.recv(), flush=True)
threading.Event().wait()
"""


@contextmanager
def killed(whose: str) -> Iterator[tuple[int, str]]:
    """The engine of a program that was killed: a descriptor that is ready once it has ended, and whether it looked out for its parent."""
    program = subprocess.Popen([sys.executable, "-c", STARTS, whose], stdout=subprocess.PIPE, text=True)
    assert program.stdout
    with program.stdout:
        process, looks = program.stdout.readline().split()
    engine = os.pidfd_open(int(process))
    program.kill()
    program.wait()
    try:
        yield engine, looks
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(engine, signal.SIGKILL)
        os.close(engine)


@pytest.mark.slow
def test_an_engine_ends_with_the_process_that_started_it_when_that_is_killed() -> None:
    with killed("ours") as (engine, looks):
        ended, _, _ = select.select([engine], [], [], 60)
    assert looks == "True" and ended, "the engine outlives the process that was killed, and keeps its memory"


@pytest.mark.slow
def test_an_engine_that_perse_did_not_start_is_left_alone() -> None:
    with killed("others'") as (engine, looks):
        ended, _, _ = select.select([engine], [], [], 0)
    assert looks == "False" and not ended
