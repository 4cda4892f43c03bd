"""Batches on disk, so that a server that is killed goes on with them.

    FOLDER/batch_0123.../batch.json      whose it is, since when, and what is asked of whom
    FOLDER/batch_0123.../items.jsonl     the items, each with its id
    FOLDER/batch_0123.../answers.jsonl   grows: which items were begun, what was said of each, which were let go again

An item that was begun, and neither answered nor let go, was being asked about when the server died. It is asked alone from then on; where that happens
`DEADLY` times, an error is its answer. Folders are readable for the server's user alone, and have names that no request chooses.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from perse.errors import BadInput, SaveFailed
from perse.files.disk import GrowingFile, aside, no_folder, refuse_link, sweep_temporaries, write_whole
from perse.files.locking import locked
from perse.files.runlog import read_lines
from perse.formats.json_text import read_object
from perse.records import explain
from perse.serving.problems import Conflict, NotThere, StoreFailed, body
from perse.serving.requests import judge_routes
from perse.strict import Name, Strict

log = logging.getLogger("perse.serving")

DEADLY = 3
"""Times that a server may die while it is asked about an item."""
DAY = 86400.0
REMOVE = "remove this batch's folder"
_ID = re.compile(r"batch_[0-9a-f]{24}")
_HALF = re.compile(r"\.batch_[0-9a-f]{24}\.perse-tmp")
_ABOUT, _ITEMS, _ANSWERS = "batch.json", "items.jsonl", "answers.jsonl"


class Once(Strict):
    """By what a caller who lost the answer, and sends the same again, is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: Name
    sha256: str
    """Of what was sent with it."""


class About(Strict):
    """What batch.json says."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    owner: Name
    kind: str
    asked: dict[str, Any]
    """The request's fields besides its items, with the model's digest."""
    size: int = Field(ge=0)
    created: float = Field(ge=0, le=1e11)
    once: Once | None = None

    @model_validator(mode="after")
    def _asks(self) -> Self:
        route = judge_routes().get(self.kind)
        if route is None or self.asked.get("question") not in {one.name for one in route.questions}:
            raise ValueError("its kind or question is none")
        if not all(isinstance(self.asked.get(name), str) for name in ("model", "sha256")):
            raise ValueError("it names no model")
        route.request.model_validate({**self.settings, "input": []})
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of the request, besides its items."""
        return {name: value for name, value in self.asked.items() if name != "sha256"}


@dataclass
class Batch:
    """A batch, and how far it is."""

    id: str
    folder: Path
    about: About
    answered: set[int] = field(default_factory=set)
    failed: int = 0
    """Of those answered, the ones with an error or without a label."""
    deaths: Counter[int] = field(default_factory=Counter)
    """By item: times that it was begun, and not let go."""
    begun: bool = False
    ended: float | None = None
    gone: bool = False
    """It was deleted while it was being judged."""

    def items(self) -> list[dict[str, Any]]:
        """Its items; of one that was answered when it came, an empty one."""
        return read_lines(self.folder / _ITEMS, remedy=REMOVE)

    def results(self) -> list[str]:
        """What was said of each item, as JSON, in their order.

        Raises:
            Conflict: some are not answered yet.
            NotThere: somebody removed them.
            BadInput: the file is damaged.
        """
        told = {line["n"]: line["result"] for line in read_lines(self.folder / _ANSWERS, remedy=REMOVE) if "n" in line}
        if len(told) < self.about.size and self.ended is not None:
            raise NotThere(f"the answers of {self.id} are gone from the disk")
        if len(told) < self.about.size:
            raise Conflict(f"{len(told)} of {self.about.size} items are answered; ask for the results once the batch is done")
        return [json.dumps(told[n]) for n in sorted(told)]

    def take(self, line: Mapping[str, Any]) -> None:
        """Note what a line of its answers says.

        Raises:
            ValueError: that is nothing that stands there.
        """
        match line:
            case {"begun": list(items)} if all(map(self._is_item, items)):
                self.begun = True
                self.deaths.update(items)
            case {"left": list(items)} if all(map(self._is_item, items)):
                self.deaths.subtract(items)
            case {"n": n, "result": dict(result)} if self._is_item(n) and n not in self.answered:
                self.answered.add(n)
                self.failed += _is_failure(result)
            case {"ended": float(ended)} if 0 <= ended <= 1e11 and len(self.answered) == self.about.size:
                self.ended = ended
            case _:
                raise ValueError(f"{_ANSWERS} has the line {json.dumps(line)[:100]}")

    def _is_item(self, number: object) -> bool:
        return type(number) is int and 0 <= number < self.about.size

    def journal(self) -> Journal:
        """Its answers, to be added to."""
        return Journal(self)


class Journal:
    """Adds to a batch's answers; to be closed.

    Raises:
        SaveFailed: as its methods, which then have added nothing.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._file = GrowingFile(batch.folder / _ANSWERS)
        self._file.cut_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begun(self, items: Sequence[int]) -> None:
        """These are asked about now."""
        self._add([{"begun": list(items)}])

    def left(self, items: Sequence[int]) -> None:
        """These were let go without an answer, and are asked about again."""
        self._add([{"left": list(items)}])

    def answered(self, results: Iterable[tuple[int, Any]]) -> None:
        """What was said of some."""
        self._add([{"n": n, "result": result} for n, result in results])

    def ended(self) -> None:
        """All are answered."""
        self._add([{"ended": time.time()}])

    def _add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self._file.append([json.dumps(line) + "\n" for line in lines])
        for line in lines:
            self._batch.take(line)


class Batches:
    """The batches of a server, in a folder that is its own while it runs.

    Args:
        days: after which the answers of a batch are removed.
        most: batches that are kept of one owner.
    Raises:
        BadInput, RunMismatch: as `held`.
    """

    def __init__(self, folder: Path, *, days: float, most: int) -> None:
        self.folder, self._days, self._most = folder, days, most
        self._lock = held(folder)
        self._adding = threading.Lock()
        self._kept: dict[str, Batch] = {}
        for path in sorted(folder.iterdir()):
            if path.is_symlink():
                continue
            if _HALF.fullmatch(path.name):  # killed while it was being written, before anyone was told of it
                remove_files(path)
            if not _ID.fullmatch(path.name):
                continue
            try:
                if not (path / _ABOUT).is_file():
                    raise BadInput(f"{path / _ABOUT} is not there, or no file; put it back, or {REMOVE}")
                self._kept[path.name] = _read(path)
            except BadInput as error:  # others are served all the same
                log.error("a batch is left out: %s", error)

    def close(self) -> None:
        """Give the folder back."""
        self._lock.close()

    def add(
        self,
        owner: str,
        kind: str,
        asked: Mapping[str, Any],
        items: Sequence[Mapping[str, Any] | None],
        answered: Sequence[tuple[int, Any]] = (),
        once: Once | None = None,
    ) -> Batch:
        """Keep a batch; of two that are sent `once`, the first.

        Args:
            items: each with its id; None where it has its answer already.
            answered: those answers, by the items' numbers.

        Raises:
            Conflict: as many of this owner's are kept as may be, or as `known`.
            StoreFailed: nothing was kept.
        """
        about = About(owner=owner, kind=kind, asked=dict(asked), size=len(items), created=time.time(), once=once)
        with self._adding:
            return self.known(owner, once) or self._add(owner, about, items, answered)

    def known(self, owner: str, once: Once | None) -> Batch | None:
        """The batch of this owner that is kept already under the same key.

        Raises:
            Conflict: something else was sent with it.
        """
        found = next((one for one in self.of(owner) if once and one.about.once and one.about.once.key == once.key), None)
        if found is not None and found.about.once != once:
            raise Conflict(
                f"this key was sent with another batch ({found.id}), and this is not the same; send another key with each batch"
            )
        return found

    def _add(
        self, owner: str, about: About, items: Sequence[Mapping[str, Any] | None], answered: Sequence[tuple[int, Any]]
    ) -> Batch:
        own = self.of(owner)
        if len(own) >= self._most:
            raise Conflict(
                f"{len(own)} batches of this key are kept, as many as may be; DELETE one that you have the results of"
            )
        name = f"batch_{secrets.token_hex(12)}"
        folder = self.folder / name
        stage = aside(folder)
        told = [{"n": n, "result": result} for n, result in answered]
        try:
            stage.mkdir(mode=0o700)
            write_whole(stage / _ITEMS, "".join(json.dumps(item or {}) + "\n" for item in items))
            write_whole(stage / _ANSWERS, "".join(json.dumps(line) + "\n" for line in told))
            write_whole(stage / _ABOUT, about.model_dump_json() + "\n")
            stage.rename(folder)
        except (SaveFailed, OSError) as error:
            remove_files(stage)
            raise StoreFailed(f"the batch could not be kept ({error})") from None
        batch = Batch(name, folder, about)
        for line in told:
            batch.take(line)
        self._kept[name] = batch
        return batch

    def of(self, owner: str) -> list[Batch]:
        """An owner's, the oldest first."""
        return sorted(
            (one for one in self._kept.values() if one.about.owner == owner), key=lambda one: (one.about.created, one.id)
        )

    def get(self, owner: str, name: str) -> Batch:
        """One of an owner's.

        Raises:
            NotThere: there is none of this name.
        """
        found = self._kept.get(name)
        if found is None or found.about.owner != owner:
            raise NotThere(
                f"there is no batch '{name[:100]}' of yours here; it may have been deleted, or kept longer than {self._days:g} days"
            )
        return found

    def unfinished(self) -> list[Batch]:
        """All that are not done."""
        return [one for one in self._kept.values() if one.ended is None]

    def expires(self, batch: Batch) -> float | None:
        """When its answers will be removed, in seconds since 1970; None before it is done."""
        return None if batch.ended is None else batch.ended + self._days * DAY

    def remove(self, batch: Batch) -> None:
        """Remove it and its answers.

        Raises:
            StoreFailed: it is still there.
        """
        batch.gone = True  # so that nothing more is written there
        try:
            remove_files(batch.folder)
        except OSError as error:
            batch.gone = False
            raise StoreFailed(f"the batch could not be removed ({error.strerror})") from None
        self._kept.pop(batch.id, None)

    def sweep(self, now: float | None = None) -> None:
        """Remove what has been done for long enough."""
        now = time.time() if now is None else now
        for batch in list(self._kept.values()):
            expires = self.expires(batch)
            if expires is not None and expires < now:
                self.remove(batch)


def held(folder: Path) -> ExitStack:
    """The lock of a server's folder, which is made if it is not there; to be closed.

    Raises:
        BadInput: it is no folder, or cannot be made, read or written.
        RunMismatch: another server has it.
    """
    with ExitStack() as lock:
        lock.enter_context(locked(folder))
        try:
            refuse_link(folder)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"batches={folder} cannot be made ({no_folder(folder, error)}); give a folder") from None
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise BadInput(f"batches={folder} cannot be read and written by this user; change that, or give another folder")
        return lock.pop_all()


def _read(folder: Path) -> Batch:
    """A batch as it was left.

    Raises:
        BadInput: its files are damaged.
    """
    try:
        batch = Batch(folder.name, folder, About.model_validate(read_object(folder / _ABOUT, remedy=REMOVE)))
        if len(batch.items()) != batch.about.size:
            raise ValueError(f"{_ITEMS} has not the {batch.about.size} items of {_ABOUT}")
        for line in read_lines(folder / _ANSWERS, remedy=REMOVE):
            batch.take(line)
    except ValidationError as error:
        raise BadInput(f"{folder / _ABOUT}: {explain(error)}; {REMOVE}") from None
    except ValueError as error:
        raise BadInput(f"{folder} is damaged ({error}); {REMOVE}") from None
    except OSError as error:
        raise BadInput(f"{folder} cannot be read ({error.strerror}); {REMOVE}") from None
    batch.deaths = Counter({n: times for n, times in batch.deaths.items() if times > 0 and n not in batch.answered})
    return batch


def remove_files(folder: Path) -> None:
    """Remove what perse wrote in a batch's folder; the folder itself where nothing else is in it."""
    if not folder.is_dir():
        return
    sweep_temporaries(folder)
    for name in (_ABOUT, _ITEMS, _ANSWERS):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _is_failure(result: Mapping[str, Any]) -> bool:
    several = result.get("results")
    return any(
        not isinstance(one, dict) or one.get("status") != "ok" for one in (several if isinstance(several, list) else [result])
    )


def deadly(times: int) -> dict[str, Any]:
    """The answer of an item that kills servers."""
    said = body(f"the server died {times} times while it was asked about this item", HTTPStatus.INTERNAL_SERVER_ERROR)
    return said.model_dump(mode="json")
