"""A piece of work that a stranger's file drives, done where it can harm nothing: in a child process with little time and memory.

A chat template is a program, and a configuration says how many layers are built: either can ask for more than any machine
has. No list of forbidden constructs is complete, and Python cannot be stopped in the middle of one; a process can. The child is
a fork, which begins within milliseconds with everything imported, prints and reads nothing, and hands back JSON. It must not
compute on a device or in many threads, which a fork of a process that has threads cannot do; so it sees no GPU.

Memory is what it can write to. Addresses that are only reserved do not count: a CUDA driver reserves more than any machine has.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST_ANSWER = 1 << 24
"""Bytes."""
STILL = 60.0
"""Seconds in which the child computes nothing at all, after which it hangs: on a busy machine it comes on slowly, but it does."""
WAITED = 60
"""Seconds of patience in all for each second of computing."""
LOOK = 0.5
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE}
"""Ends that are not ours: of code that does not look whether it got the memory that it asked for, or of a fault."""


class Failed(Exception):
    """The work raised; the message is its error's first line."""


class Exceeded(Exception):
    """The work was stopped: it took too much time or memory, or killed its process."""


class Stalled(Exception):
    """The work was stopped, and it is not known whether anything is wrong with it: it stood still, or the machine did."""


def bounded(work: Callable[[], Any], *, seconds: int, megabytes: int) -> Any:
    """What `work` returns, which is JSON-able.

    Args:
        seconds: of one processor's time.
        megabytes: beyond what this process has.
    Raises:
        Failed: it raised.
        Exceeded: it took more than it may.
        Stalled: it came to no end, and took little: a disk, or other programs, may have held it up.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which the child leaves alone
        child = os.fork()
    if child == 0:
        _work(work, write, seconds=seconds, megabytes=megabytes)
    os.close(write)
    try:
        told = _read(read, child, until=time.monotonic() + WAITED * seconds)
    finally:
        os.close(read)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    try:
        answer = json.loads(told or b"")
    except ValueError:
        ended = os.waitstatus_to_exitcode(status)
        crash = f" (its process ended by {signal.Signals(-ended).name})" if ended in _CRASHES else ""
        raise Exceeded(f"it takes more than {seconds} s or {megabytes} MB{crash}") from None
    if "error" in answer:
        raise Failed(answer["error"])
    return answer["result"]


def first_line(error: BaseException) -> str:
    """An error in one line: what it is, and the first thing that it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ends = next(
        (at for at, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1
    )  # "X is wrong:" says too little
    return f"{type(error).__name__}: {' '.join(lines[: ends + 1])[:300]}" if lines else type(error).__name__


def _work(work: Callable[[], Any], write: int, *, seconds: int, megabytes: int) -> None:
    """In the child, which ends here."""
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WAITED * seconds)  # should the parent be killed before it can end this
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _lower(resource.RLIMIT_CPU, seconds)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        with suppress(OSError):  # not Linux: time alone is limited
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])  # data and stack
            _lower(resource.RLIMIT_DATA, pages * resource.getpagesize() + (megabytes << 20))
        try:
            told = json.dumps({"result": work()}).encode()
        except MemoryError:
            told = b""
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is told, and the process ends
            told = json.dumps({"error": first_line(error)}).encode()
        while told:
            told = told[os.write(write, told) :]
    finally:
        os._exit(0)


def _lower(limit: int, most: int) -> None:
    """Set a limit of this process, unless a stricter one is set."""
    _, hard = resource.getrlimit(limit)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(limit, (most, hard))


def _read(read: int, child: int, *, until: float) -> bytes:
    """All that the child writes; nothing where it writes too much.

    Raises:
        Stalled: it does not end.
    """
    told, computed, moved = b"", -1, time.monotonic()
    while len(told) <= LONGEST_ANSWER:
        ready, _, _ = select.select([read], [], [], LOOK)
        part = os.read(read, 1 << 16) if ready else b""
        if ready and not part:
            return told
        told += part
        now, taken = time.monotonic(), _computed(child)
        if ready or taken != computed:
            computed, moved = taken, now
        if now - moved > STILL or now > until:
            for_long = f"for {STILL:g} s" if now - moved > STILL else "for most of the time"
            raise Stalled(
                f"it stood still {for_long}, as on a machine or a disk that is too busy; try again once it is less so"
            )
    return b""


def _computed(process: int) -> int:
    """What a process has computed so far, in the system's own unit; always 0 where the system (not Linux) does not say."""
    try:
        told = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(told[11]) + int(told[12])
