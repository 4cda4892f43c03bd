"""The commands of a quickstart, kept in its folder: what was run, how long it took, what is next.

The same quickstart runs what is not done yet; each command goes on by itself where it was stopped.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated

from pydantic import Field, ValidationError

from perse.errors import BadInput
from perse.files.belongings import keep
from perse.files.disk import refuse_link, sweep_temporaries, write_whole
from perse.files.own_files import write_own
from perse.files.runlog import MANIFEST, file_digest, make_folder
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes
from perse.records import explain
from perse.secrets import redact
from perse.strict import Strict

NAME = "quickstart.json"

STOPPED = (130, 143, -2, -15)
"""Exit codes of a command that Ctrl-C or SIGTERM has ended."""
USAGE = 2
"""Exit code of what a person can mend."""
MADE_WHOLE = ("data", "fit")
"""Commands that do not go on where they were stopped, but make all of it at once."""
Run = Callable[[Sequence[str], IO[bytes] | None], int]
"""Runs `perse` with these words, its answer into an open file or to this terminal, and gives its exit code."""


class Ran(Strict):
    """A command that ended well, its words behind `perse`."""

    words: tuple[str, ...]
    seconds: Annotated[float, Field(ge=0)]
    into: str | None = None

    @property
    def shown(self) -> str:
        """As it is typed."""
        return _typed(self.words, self.into)


class Kept(Strict):
    """What is kept: the files that it began with, by their digests, the budget, and what was decided and run."""

    files: dict[str, str]
    minutes: Annotated[float, Field(gt=0)]
    steps: int | None = None
    planning: Annotated[float, Field(ge=0)] = 0.0
    """Seconds in which the machine was timed."""
    judged: int | None = None
    ran: tuple[Ran, ...] = ()
    begun: tuple[str, ...] = ()
    """The words of the command that was begun last; it may have ended well although nobody was left to note it."""


@dataclass
class Journal:
    """`kept` as it stands in `folder`; each `run` adds to it."""

    folder: Path
    kept: Kept
    say: Callable[[str], None]
    run: Run = field(default_factory=lambda: in_a_process)

    def once(self, *words: str, makes: str | None = None, into: str | None = None, needed: bool = True) -> None:
        """Run a command, unless it was run before and what it made is there.

        Args:
            makes: a file in the folder that is there once it is done.
            into: a file in the folder for its answer, whose first paragraph is said; one that a person put there, or edited, gets another name.
            needed: by those that follow; they go on without what could not be made otherwise.
        Raises:
            BadInput: it failed and is needed; what it said stands above.
            KeyboardInterrupt: it was stopped.
        """
        told = self.folder / into if into else None
        shown = _typed(words, None if told is None else str(told))
        place = self.folder / makes if makes else told
        before = next((ran for ran in self.kept.ran if ran.words == words), None)
        if before is not None and all(made.is_file() for made in (place, told) if made is not None):
            self.say(f"done before: {before.shown}")
            return
        if words[0] in MADE_WHOLE and place is not None:
            if before is not None and told is not None:
                self._keep_aside(place, f"{told.name}, which tells of it, is gone")
            elif self.kept.begun == words:
                self._keep_aside(place, "nobody noted that it was finished")
        self.say(f"\n$ {shown}")
        self.keep(begun=words, ran=tuple(ran for ran in self.kept.ran if ran.words != words))
        began = time.monotonic()
        code, answer = self._run(words, kept=told is not None)
        if code:  # nothing is perse's own of what lies there when it is begun again: a person may have gone on by hand
            self.keep(begun=())
        elif told is not None:
            write_own(told, answer)
        if code in STOPPED:
            raise KeyboardInterrupt
        if code == USAGE and not needed:
            self.say("it goes on without: why stands above")
            return
        if code:
            raise BadInput(
                f"the command above ended with exit code {code}; what is finished is kept in {self.folder}: mend what it says and type the "
                "same quickstart again, or go on by hand from there"
            )
        if place is not None and not place.is_file():
            raise BadInput(
                f"the command above ended as if it were done, and {place} is not there: something that it loads, such as a tracker of training, "
                "may have ended it; what is finished is kept: type the same quickstart again"
            )
        ran = Ran(words=words, seconds=round(time.monotonic() - began, 1), into=None if told is None else str(told))
        self.keep(ran=(*self.kept.ran, ran))
        if told is not None:
            first = answer.strip().partition("\n\n")[0]
            self.say(f"{' '.join(first.split())}\ntables: {told}")

    def _keep_aside(self, place: Path, why: str) -> None:
        """What a command left that is to be made again, as of one whose quickstart was killed, so that nobody noted its end; a person may have put something
        there since."""
        made = place.parent if place.name == MANIFEST else place
        if os.path.lexists(made):
            self.say(f"\n{made} is there, and {why}: it is kept as {keep(made).name}, and made again")

    def _run(self, words: Sequence[str], *, kept: bool) -> tuple[int, str]:
        """The exit code of a command and, where it is to be kept, what it answered."""
        if not kept:
            return self.run(words, None), ""
        with TemporaryFile() as answer:
            code = self.run(words, answer)
            answer.seek(0)
            return code, answer.read().decode(errors="replace")

    def keep(self, **changes: object) -> None:
        self.kept = self.kept.model_copy(update=changes)
        write_whole(self.folder / NAME, json.dumps(self.kept.model_dump(mode="json"), indent=2) + "\n")


def opened(folder: Path, files: Mapping[str, Path], minutes: float, say: Callable[[str], None]) -> Journal:
    """The journal in `folder`, begun or gone on with.

    Args:
        files: what it begins with, by what each is for.
    Raises:
        BadInput: the folder holds something else, or a quickstart of other files or another budget.
    """
    digests = {role: file_digest(path) for role, path in files.items()}
    place = folder / NAME
    refuse_link(place)
    if place.exists():
        try:
            kept = Kept.model_validate(parsed(own_bytes(place)))
        except (ValueError, RecursionError) as error:
            why = explain(error) if isinstance(error, ValidationError) else "no JSON"
            raise BadInput(f"{place} is damaged ({why}); choose another --out") from None
        if kept.files != digests:
            raise BadInput(f"{folder} holds a quickstart of other files, or of these as they were before; choose another --out")
        if kept.minutes != minutes:
            raise BadInput(
                f"{folder} holds a quickstart within {kept.minutes:g} minutes, and {minutes:g} are asked for; choose another --out, where it begins anew"
            )
        return Journal(folder, kept, say)
    sweep_temporaries(folder)  # of one that was killed before its first line was there
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there and holds something else; choose another --out")
    make_folder(folder)
    journal = Journal(folder, Kept(files=digests, minutes=minutes), say)
    journal.keep()
    return journal


def _typed(words: Sequence[str], into: str | None) -> str:
    return redact(f"perse {shlex.join(words)}{f' > {shlex.quote(into)}' if into else ''}")


def in_a_process(words: Sequence[str], answer: IO[bytes] | None) -> int:
    """As typed in a shell: it writes to this terminal, and Ctrl-C reaches it, which then says what it keeps and ends.

    A SIGTERM is handed on. A command whose quickstart was killed with -9 goes on, and holds its folder until it is done.
    """
    plain = {name: value for name, value in os.environ.items() if answer is None or name != "FORCE_COLOR"}
    with subprocess.Popen([sys.executable, "-m", "perse", *words], stdout=answer, env=plain) as process:
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            while True:
                try:
                    return process.wait()
                except KeyboardInterrupt:
                    continue
        finally:
            signal.signal(signal.SIGTERM, before)
