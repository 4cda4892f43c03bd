"""Kill a process before any change that it makes to files, or at the same question each time, again and again, until it is done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from full_disks import contents
from places import ROOT


def killed_at(event: int, act: Callable[[], object], under: Path) -> bool:
    """Runs `act` in a child that is killed before its n-th change of a file under a folder; False if it made fewer."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = event

    def hook(what: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if what in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "open") and str(arguments[0]).startswith(str(under)):
            left -= 1
            if left < 0:
                os._exit(9)

    sys.addaudithook(hook)
    try:
        act()
    finally:
        os._exit(0)


SIGNALLED = """
import os, signal, sys
from perse.files.disk import GrowingFile

sent, name, left = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
append = GrowingFile.append

def then_signalled(self, lines, **named):
    global left
    lines = [*lines]
    append(self, lines, **named)
    left -= len(lines) if str(self.path).endswith(name) else 0
    if left <= 0:
        os.kill(os.getpid(), sent)

GrowingFile.append = then_signalled
signal.signal(signal.SIGINT, signal.default_int_handler)  # what begins in the background of a shell ignores Ctrl-C
sys.argv[:] = ["perse", *sys.argv[4:]]
from perse.__main__ import main
main()
"""


def signalled(sent: signal.Signals, file: Path, lines: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`perse ARGUMENTS`, to which a signal is sent at the moment that a file which grows has so many lines: not sooner, and not later,
    however busy the machine is."""
    command = [sys.executable, "-c", SIGNALLED, str(int(sent)), str(file), str(lines), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


Script = Callable[[str, int], Any]
"""What a scripted engine says to a message, with a seed."""


def came_to_its_end(work: Callable[[], object]) -> bool:
    """Do `work` in a process of its own; whether it came to its end, or was killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(900)
            work()
            code = 0
        except BaseException:  # noqa: BLE001  # this process ends here, whatever happened
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"exit code {code}"
    return code == 0


def times_killed(work: Callable[[], object], *, at_most: int = 50) -> int:
    """How often `work` was killed until it came to its end."""
    kills = 0
    while not came_to_its_end(work):
        kills += 1
        assert kills <= at_most, "no progress"
    return kills


def dying(say: Script, asked: Path, *, after: int | None) -> Script:
    """`say`, with every message on a line of the file `asked`; the process dies of the question after so many answers."""
    answered = 0

    def reply(message: str, seed: int) -> Any:
        nonlocal answered
        with asked.open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
        if answered == after:
            os.kill(os.getpid(), signal.SIGKILL)
        answered += 1
        return say(message, seed)

    return reply


def check_nothing_lost(
    ask: Callable[[Path, Script], object],
    say: Script,
    place: Path,
    *,
    out: str = "run",
    prepare: Callable[[Path], object] = lambda folder: None,
    after: int = 2,
    messages: int = 1,
) -> None:
    """`ask(folder, script)` writes to FOLDER/out. Killed after every few answers it writes the same as if it never was, and asks
    again only what was in flight.

    Args:
        prepare: puts into a folder what the work begins with.
        messages: that a question has, which are in flight together.
    """
    whole, killed = place / "whole", place / "killed"
    for folder in (whole, killed):
        folder.mkdir(parents=True)
        prepare(folder)
    ask(whole, dying(say, whole / "asked", after=None))
    kills = times_killed(lambda: ask(killed, dying(say, killed / "asked", after=after)))
    assert contents(killed / out) == contents(whole / out)
    once, asked = ((folder / "asked").read_text("utf-8").splitlines() for folder in (whole, killed))
    assert set(asked) == set(once)
    assert kills >= len(once) // (after + messages), "it was hardly killed"
    assert kills <= len(asked) - len(once) <= messages * kills, f"{len(asked)} questions, not {len(once)}, at {kills} kills"
