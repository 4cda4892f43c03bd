"""Who works on which shard, kept as files, so that workers on any machines that share a folder need no server.

A claim is a file made exclusively: of two workers one makes it. Its holder touches it every few seconds; one that was not touched for a `LEASE` belongs to a
worker that is gone, and so does one whose process is no longer on this machine: both may be taken. Ages are told by the file system's
own clock, since those of machines differ.

Should two workers hold one shard after all (a machine slept through its lease), both write the same file, whole: work is done twice, no answer is.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perse.batch.sharded.shards import SHARD_ID
from perse.errors import BadInput
from perse.files.disk import refuse_link, sweep_temporaries, write_first, writing
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_text

LEASE = 90.0
"""Seconds without a sign of life after which a claim may be taken."""

_CLAIM = re.compile(SHARD_ID)

TOUCH = 15.0
"""Seconds between two signs of life."""


@dataclass(frozen=True)
class Holder:
    """A worker: a process of a machine."""

    worker: str
    host: str
    pid: int
    started: str
    """Of the process, as the system tells it: a number is given to other processes later."""

    @classmethod
    def me(cls, worker: str) -> Holder:
        """This process, under the name of `worker`."""
        return cls(worker, socket.gethostname(), os.getpid(), _started(os.getpid()) or "")

    @property
    def gone(self) -> bool:
        """Whether it is known to be gone: of another machine nobody here knows."""
        return self.host == socket.gethostname() and _started(self.pid) != self.started


class Claims:
    """The claims of a run.

    Args:
        folder: where the files are; made.
        holder: who claims.
        lease, touch: seconds; what tests shorten.
    """

    def __init__(self, folder: Path, holder: Holder, *, lease: float = LEASE, touch: float = TOUCH) -> None:
        self.folder = folder
        self.holder = holder
        self._lease = lease
        self._touch = touch
        self._held: set[str] = set()
        self._behind, self._set_again = 0.0, 0.0
        self._stop = threading.Event()
        refuse_link(folder)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        sweep_temporaries(folder)

    def begin(self) -> threading.Thread:
        """Signs of life are given for all that is held, from now on."""
        living = threading.Thread(target=self._live, daemon=True)
        living.start()
        return living

    @contextmanager
    def working(self) -> Iterator[None]:
        """Signs of life are given to the end of the block, and what is still held then is given back."""
        living = self.begin()
        try:
            yield
        finally:
            self._stop.set()
            living.join()
            for name in [*self._held]:
                self.give_back(name)

    def take(self, name: str) -> bool:
        """Whether the shard is this worker's now."""
        path = self.folder / name
        if not (self._left(path) and self._made(path)):
            return False
        self._held.add(name)
        return True

    def give_back(self, name: str) -> None:
        """Let others have it."""
        self._held.discard(name)
        path = self.folder / name
        if _holder(path) == self.holder:
            with suppress(OSError):
                path.unlink()

    def sweep(self) -> None:
        """Remove what workers that are gone still hold."""
        for path in _claimed(self.folder):
            self._left(path)

    def _made(self, path: Path) -> bool:
        return write_first(path, json.dumps(vars(self.holder)))

    def _left(self, path: Path) -> bool:
        """Whether nobody has it, or only a holder that is gone, from whom it is then taken away."""
        try:
            held = path.lstat()
        except FileNotFoundError:
            return True
        if not stat.S_ISREG(held.st_mode):
            raise BadInput(f"{path} is no claim, but stands in the place of one; move it away")
        holder = _holder(path)
        if not (holder and holder.gone) and self._now() - held.st_mtime < self._lease:
            return False
        away = path.with_name(f".{path.name}.{secrets.token_hex(4)}.left")
        try:
            path.rename(away)
        except FileNotFoundError:
            return True
        taken = away.stat()
        if (taken.st_ino, taken.st_mtime) != (held.st_ino, held.st_mtime):  # another was faster, and this is its claim
            with suppress(FileExistsError):
                os.link(away, path)
            away.unlink(missing_ok=True)
            return False
        away.unlink(missing_ok=True)
        return True

    def _now(self) -> float:
        """By the clock of the file system, which is asked once in a lease: how far ours is behind it changes little."""
        if time.monotonic() >= self._set_again:
            probe = self.folder / f".now.{secrets.token_hex(4)}"
            with writing(probe):
                probe.touch()
                try:
                    self._behind = probe.stat().st_mtime - time.monotonic()
                finally:
                    probe.unlink(missing_ok=True)
            self._set_again = time.monotonic() + self._lease
        return time.monotonic() + self._behind

    def _live(self) -> None:
        while not self._stop.wait(self._touch):
            for name in [*self._held]:
                with suppress(OSError):
                    os.utime(self.folder / name)


def living(folder: Path, now: float) -> Counter[str]:
    """The workers that hold shards, and how many each holds: as far as their last signs of life tell, and on this machine their processes."""
    held: Counter[str] = Counter()
    for path in _claimed(folder):
        with suppress(OSError):
            if now - path.stat().st_mtime < LEASE and (holder := _holder(path)) and not holder.gone:
                held[str(holder.worker)] += 1
    return held


def _holder(path: Path) -> Holder | None:
    try:
        return Holder(**parsed(own_text(path)))
    except (OSError, ValueError, TypeError, BadInput):
        return None


def _claimed(folder: Path) -> list[Path]:
    """The claims there are: other files in the folder are not ours."""
    return [one for one in folder.iterdir() if _CLAIM.fullmatch(one.name)] if folder.is_dir() else []


def _started(pid: int) -> str | None:
    """When a process of this machine was started, in the system's ticks; None where it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, ValueError, IndexError):
        return None
