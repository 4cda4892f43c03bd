"""How far long work has come: what the library tells, and the one way in which a person is shown it.

A function that takes long has `on_progress`, which is called with (done, total), first with what was done before; work of several
parts calls it with (part, done, total). `shown_on` makes one that draws: a bar on a terminal, elsewhere a line now and then, so that
a log stays short. Both say the rate and the time left. These are counted from the first call on, and not over the last seconds as
rich does it, so that they are known for steps that take minutes, too, and what a run had before is not counted as fast work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from perse.secrets import printable

Item = TypeVar("Item")

OnProgress = Callable[[int, int], None]
"""Told how many are done, and of how many."""

OnPart = Callable[[str, int, int], None]
"""Told the part's name, how many of it are done, and of how many."""


class Shown(Protocol):
    """An `OnPart` that can be told a word about the part, too, such as the latest loss; it stands until there is another."""

    def __call__(self, part: str, done: int, total: int, /, note: str = "") -> None: ...


LINE_EVERY = 30.0
"""Seconds between two lines of a log."""


def unseen(_done: int, _total: int) -> None:
    """An `OnProgress` that shows nothing."""


def unseen_part(_part: str, _done: int, _total: int) -> None:
    """An `OnPart` that shows nothing."""


def counted(items: Sequence[Item], on_progress: OnProgress) -> Iterator[Item]:
    """The items, told of as they are taken."""
    for done, item in enumerate(items):
        on_progress(done, len(items))
        yield item
    on_progress(len(items), len(items))


@dataclass
class Pace:
    """How fast work goes since `began`, when `before` was done already; times in seconds."""

    before: int
    began: float

    def words(self, done: int, total: int, now: float) -> str:
        """Rate and time left, or the time it took: "2.4/s, 0:01:30 left"; empty until something was done."""
        new, seconds = done - self.before, now - self.began
        if new <= 0 or seconds <= 0:
            return ""
        rate = f"{new / seconds:.1f}/s" if new >= seconds else f"{seconds / new:.1f} s each"
        return f"{rate}, {_clock((total - done) * seconds / new)} left" if done < total else f"{rate}, took {_clock(seconds)}"


@contextmanager
def shown_on(console: Console, *, clock: Callable[[], float] = time.monotonic) -> Iterator[Shown]:
    """An `OnPart` that shows each part on `console` from the first time that it is told of.

    Args:
        clock: seconds; what tests set.
    """
    if console.is_terminal:
        with _bars(console, clock) as on_part:
            yield on_part
    else:
        yield _lines(console, clock)


@contextmanager
def _bars(console: Console, clock: Callable[[], float]) -> Iterator[Shown]:
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, TextColumn("{task.fields[pace]} {task.fields[note]}"), console=console)
    tasks: dict[str, tuple[TaskID, Pace]] = {}

    def on_part(part: str, done: int, total: int, /, note: str = "") -> None:
        progress.start()  # here and not before: what runs until then may show a bar of its own
        if part not in tasks:
            tasks[part] = progress.add_task(escape(printable(part)), total=total, pace="", note=""), Pace(done, clock())
        task, pace = tasks[part]
        progress.update(task, completed=done, total=total, pace=pace.words(done, total, clock()))
        if note:
            progress.update(task, note=escape(note))

    try:
        yield on_part
    finally:
        progress.stop()


def _lines(console: Console, clock: Callable[[], float]) -> Shown:
    paces: dict[str, Pace] = {}
    last: dict[str, float] = {}
    notes: dict[str, str] = {}

    def on_part(part: str, done: int, total: int, /, note: str = "") -> None:
        now = clock()
        notes[part] = note or notes.get(part, "")
        pace = paces.setdefault(part, Pace(done, now))
        due = now - last.setdefault(part, now) >= LINE_EVERY
        if not due and (done < total or last[part] == float("inf")):
            return
        last[part] = now if done < total else float("inf")  # its end is told once
        said = (f"{part}: {done:,} of {total:,}", pace.words(done, total, now), notes[part])
        console.print(printable(", ".join(filter(None, said))), markup=False, highlight=False, soft_wrap=True)

    return on_part


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
